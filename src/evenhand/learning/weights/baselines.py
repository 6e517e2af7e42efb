"""The weights people use today: least squares on all rows, or on a limited number of rows per user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.learning.sources import random_ranks
from evenhand.learning.weights.problem import Floats, Problem
from evenhand.learning.weights.solve import cost
from evenhand.planning.row_choice import limits_to_try


@dataclass(frozen=True, eq=False)
class Baseline:
    """Least squares on the first ``limit`` rows of each user in a random order, and its objective."""

    C: Floats
    value: float
    limit: int


def all_rows(problem: Problem) -> Baseline:
    """Ordinary least squares."""
    C = problem.Z @ problem.T.T / problem.size[0]
    return Baseline(C, cost(problem, C), int(problem.counts.max()))


def best_row_limit(problem: Problem, limit: int | None = None) -> Baseline:
    """Least squares on at most ``limit`` random rows per user; the limit with the best forecast if none is given.

    Choosing it reads features, users and public parameters only. Limits are tried in steps of a quarter.
    """
    rank = random_ranks(problem.users, problem.counts)
    tried = limits_to_try(float(problem.counts.max())) if limit is None else [limit]
    limited = (_limited(problem, rank < size, int(size)) for size in tried)
    best = min((one for one in limited if one is not None), key=lambda one: one.value, default=None)
    if best is None:
        raise UsageError(
            f"row_limit={limit}: the rows kept don't determine all coefficients; raise it or leave it out."
        )
    return best


def _limited(problem: Problem, kept: np.ndarray[tuple[int], np.dtype[np.bool_]], limit: int) -> Baseline | None:
    part = problem.Z[kept]
    gram = part.T @ part
    if np.linalg.eigvalsh(gram)[0] <= 1e-10 * np.trace(gram):
        return None
    C = np.zeros(problem.size)
    C[kept] = part @ np.linalg.solve(gram, problem.T.T)
    return Baseline(C, cost(problem, C), limit)

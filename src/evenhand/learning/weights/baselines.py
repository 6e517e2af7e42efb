"""The weights people use today: least squares on all rows, or on a limited number of rows per user."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.learning.weights.problem import Floats, Problem
from evenhand.learning.weights.solve import cost


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
    rank = _random_rank(problem)
    most = int(problem.counts.max())
    tried = np.unique(np.minimum(most, np.ceil(1.25 ** np.arange(0, np.log(most) / np.log(1.25) + 1)))).astype(int)
    best: Baseline | None = None
    for size in tried if limit is None else [limit]:
        candidate = _limited(problem, rank < size, int(size))
        if candidate is not None and (best is None or candidate.value < best.value):
            best = candidate
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


def _random_rank(problem: Problem) -> Floats:
    """The place of each row in a random order of its user's rows."""
    draw = np.random.default_rng(secrets.randbits(128)).random(problem.size[0])
    order = np.lexsort((draw, problem.users))
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order)) - np.repeat(problem.offsets, problem.counts)
    return rank

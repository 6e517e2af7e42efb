"""The convex programme behind label-private regression, in coordinates where the features are orthogonal.

Given public features ``X`` (n × d), rows grouped by user, and a target ``Q`` (d × d, the identity when the
coefficients themselves are wanted), choose ``C`` (d × n) to

    minimise    σ²‖C‖² + κ t²     subject to     C X = Q   and   Σ_{i ∈ user} Σ_j |c_ji| ≤ t   for every user.

With ``X = Z R`` and ``ZᵀZ = n·1`` the equality becomes ``C Z = T`` for ``T = Q R⁻¹``: however badly the columns
are scaled or correlated, only ``T`` depends on it, and Newton's method in the dual does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from evenhand.guarantee import UsageError
from evenhand.learning.data.private_values import Floats, Integers

SINGULAR = 1e-13
"""Smallest eigenvalue of the scaled Gram matrix that is still solved: a condition number of X near 3·10⁶."""


@dataclass(frozen=True, eq=False)
class WeightProblem:
    """One instance: ``Z`` and ``T`` as above, rows per user, ``variance`` = σ² and ``noise`` = κ."""

    Z: Floats
    T: Floats
    counts: Integers
    variance: float
    noise: float

    @property
    def size(self) -> tuple[int, int]:
        """(n, d)."""
        return self.Z.shape[0], self.Z.shape[1]

    @cached_property
    def users(self) -> NDArray[np.intp]:
        """The user of each row."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def offsets(self) -> Integers:
        """The first row of each user."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(np.int64)

    def largest_per_user(self, entries: Floats) -> Floats:
        """The maximum of an n × d array over each user's block."""
        result: Floats = np.maximum.reduceat(entries.ravel(), self.offsets * self.size[1])
        return result

    def coarse(self, rows: int, per_user: int = 200) -> tuple[WeightProblem, float]:
        """A smaller look-alike for a warm start: some users, at most ``per_user`` spread rows of each.

        With a share q of the users, q·κ in place of κ makes its optimum 1/q times the full one, so the dual
        variables of the full problem are about q times those found here. The choice is a fixed function of
        public features and affects speed only.
        """
        kept = np.minimum(self.counts, per_user)
        order = scattered(len(kept))
        chosen = np.sort(order[: max(1, int(np.searchsorted(np.cumsum(kept[order]), rows)))])
        steps = self.counts[chosen] / kept[chosen]
        within = np.concatenate([np.arange(k) for k in kept[chosen]])
        spread = (within * np.repeat(steps, kept[chosen])).astype(np.int64)
        index = np.repeat(self.offsets[chosen], kept[chosen]) + spread
        share = len(chosen) / len(kept)
        part = WeightProblem(
            np.ascontiguousarray(self.Z[index]), self.T, kept[chosen], self.variance, self.noise * share
        )
        return part, share


def scattered(size: int) -> NDArray[np.intp]:
    """A fixed order of ``range(size)`` whose every beginning is spread evenly (golden-ratio steps)."""
    return np.argsort(np.arange(size) * 0.6180339887498949 % 1.0)


def build(X: Floats, counts: Integers, variance: float, noise: float, names: Sequence[str]) -> WeightProblem:
    """Orthogonalise features whose rows are grouped by user; refuse columns that others determine.

    Edge cases: a column of zeros, or one that is a combination of others (a constant beside an intercept), is
    a `UsageError` that names it: its coefficient does not exist.
    """
    n, d = X.shape
    if n < d:
        raise UsageError(
            f"n_samples = {n} rows for {d} coefficients: expected at least as many rows as coefficients "
            f"({_list(names)}). Use fewer features."
        )
    scale = np.sqrt(np.einsum("ij,ij->j", X, X))
    empty = [name for name, size in zip(names, scale, strict=True) if size == 0]
    if empty:
        raise UsageError(
            f"The feature {_list(empty)} is zero in every row, so its coefficient can't be determined. Leave it out."
        )
    Z = X / scale
    gram = Z.T @ Z
    if np.linalg.eigvalsh(gram)[0] < SINGULAR:
        raise UsageError(_dependent(gram, names))
    # Cholesky twice: the first pass leaves Z orthogonal up to the square of the condition number, the second
    # up to rounding.
    R = np.diag(scale)
    for _ in range(2):
        step = linalg.cholesky(Z.T @ Z / n)
        Z = linalg.solve_triangular(step, Z.T, trans="T", lower=False).T
        R = step @ R
    T = linalg.solve_triangular(R, np.eye(d))
    return WeightProblem(np.ascontiguousarray(Z), T, counts, variance, noise)


def _dependent(gram: Floats, names: Sequence[str]) -> str:
    """Say which columns are combinations of others: those a pivoted factorisation takes last."""
    triangle, pivots = linalg.qr(gram, mode="r", pivoting=True)
    small = np.abs(np.diag(triangle)) < 1e3 * SINGULAR
    last = sorted(pivots[small] if small.any() else pivots[-1:])
    others: Any = [index for index in range(len(names)) if index not in last]
    parts = []
    for column in last:
        weight = linalg.lstsq(gram[np.ix_(others, others)], gram[others, column])[0]
        used = [names[other] for other, value in zip(others, weight, strict=True) if abs(value) > 1e-6]
        parts.append(f"{names[column]} (a combination of {_list(used)})" if used else names[column])
    return (
        f"The feature {_list(parts)} adds nothing that the others don't determine (up to rounding), so its "
        f"coefficient can't be determined. Leave it out; for dummy variables drop one level, and drop constant "
        f"columns beside an intercept."
    )


def _list(names: Sequence[str]) -> str:
    shown = [*names[:5], f"and {len(names) - 5} more"] if len(names) > 6 else list(names)
    return ", ".join(shown)

"""The linear system that both solvers share, and the set of nonzero entries it is built from.

Newton's method in the dual and the interior-point method differ only in the weights ``w_e`` of the entries
and the curvature ``E_l`` of the users. Both need

    N = Σ_e w_e a_e a_eᵀ − Σ_l S_l S_lᵀ / E_l + r rᵀ / (2κ + Σ_l 1/E_l)
    with  S_l = Σ_{e ∈ l} w_e a_e  and  r = Σ_l S_l / E_l,

where ``a_e = ± e_j ⊗ z_i`` for the entry (row i, coordinate j) with that sign: d² unknowns, however many
rows there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from evenhand.learning.data.private_values import Floats, Integers
from evenhand.learning.regression.solver.problem import WeightProblem

_CACHED = 20_000_000  # numbers kept between iterations instead of gathered again
_CHUNK = 8_000_000  # numbers of S held at a time


@dataclass(frozen=True, eq=False)
class Entries:
    """Signed entries of ``C``, ordered by coordinate, then row.

    ``groups`` is the place of the entry's user among the capped users, −1 if the cap does not bind there.
    """

    problem: WeightProblem
    rows: Integers
    starts: Integers
    signs: Floats
    groups: Integers
    capped: int

    @classmethod
    def of(cls, problem: WeightProblem, flat: Integers, signs: Floats, capped_users: NDArray[np.bool_]) -> Entries:
        """Entries at flat positions ``row·d + coordinate``, ordered by coordinate, then row."""
        rows, columns = np.divmod(flat, problem.size[1])
        place = np.where(capped_users, np.cumsum(capped_users) - 1, -1)
        starts = np.searchsorted(columns, np.arange(problem.size[1] + 1))
        return cls(problem, rows, starts, signs, place[problem.users[rows]], int(capped_users.sum()))

    @cached_property
    def columns(self) -> Integers:
        """The coordinate of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def _kept(self) -> list[Floats] | None:
        d = self.problem.size[1]
        return [self._gather(j) for j in range(d)] if len(self.rows) * d <= _CACHED else None

    def _gather(self, j: int) -> Floats:
        part = slice(self.starts[j], self.starts[j + 1])
        rows: Floats = self.problem.Z[self.rows[part]]
        rows *= self.signs[part, None]
        return rows

    def signed_rows(self, j: int) -> Floats:
        """The rows ``± z_i`` of the entries of coordinate ``j``."""
        return self._gather(j) if self._kept is None else self._kept[j]

    def forward(self, values: Floats) -> Floats:
        """``Σ_e values_e a_e`` as a d × d matrix."""
        parts = zip(self.starts[:-1], self.starts[1:], strict=True)
        return np.stack([values[lo:hi] @ self.signed_rows(j) for j, (lo, hi) in enumerate(parts)])

    def backward(self, matrix: Floats) -> Floats:
        """``⟨a_e, matrix⟩`` for every entry."""
        return np.concatenate([self.signed_rows(j) @ matrix[j] for j in range(len(matrix))])

    def per_user(self, values: Floats) -> Floats:
        """Sums over the entries of each capped user."""
        counted = self.groups >= 0
        groups, values = (self.groups, values) if counted.all() else (self.groups[counted], values[counted])
        return np.bincount(groups, values, minlength=self.capped).astype(np.float64, copy=False)


class NormalSystem:
    """``N`` above, factorised once; ``solve`` gives ``N⁻¹ right`` for d × d right-hand sides, as often as needed."""

    def __init__(self, entries: Entries, weights: Floats, curvature: Floats, ridge: float) -> None:
        self._entries, self._weights, self._ridge = entries, weights, ridge
        self._inverse = 1.0 / curvature
        d = entries.problem.size[1]
        self._spread = np.zeros(len(weights))
        counted = entries.groups >= 0
        self._spread[counted] = weights[counted] * self._inverse[entries.groups[counted]]
        self.r = entries.forward(self._spread)
        self.total = 2 * entries.problem.noise + float(self._inverse.sum())
        blocks = [(rows := entries.signed_rows(j)).T @ (rows * self._part(j)[:, None]) for j in range(d)]
        self.solve = self._factorised(blocks)

    def _part(self, j: int) -> Floats:
        return self._weights[self._entries.starts[j] : self._entries.starts[j + 1]]

    def _factorised(self, blocks: list[Floats]) -> Callable[[Floats], Floats]:
        d = len(blocks)
        matrix = linalg.block_diag(*blocks)
        self._subtract_users(matrix, [self._user_sums(j) for j in range(d)])
        flat = self.r.ravel()
        matrix += np.outer(flat, flat) / self.total
        diagonal = np.diag_indices(d * d)
        ridge = self._ridge * np.trace(matrix) / (d * d)
        while True:
            matrix[diagonal] += ridge
            try:
                factor = linalg.cho_factor(matrix)
            except linalg.LinAlgError:  # flat directions: a proximal term keeps the step finite
                ridge *= 100
                continue
            return lambda right: linalg.cho_solve(factor, right.ravel()).reshape(d, d)

    def _subtract_users(self, matrix: Floats, sums: list[tuple[Integers, Floats]]) -> None:
        """Subtract ``Σ_l S_l S_lᵀ / E_l``, sparse where users have entries in few coordinates."""
        d, capped = len(sums), self._entries.capped
        scale = np.sqrt(self._inverse)
        if sum(len(groups) for groups, _ in sums) < 0.25 * d * capped:
            blocks = [(values * scale[groups, None]).ravel() for groups, values in sums]
            rows = np.concatenate([np.repeat(groups, d) for groups, _ in sums])
            columns = np.concatenate([np.tile(np.arange(d) + j * d, len(g)) for j, (g, _) in enumerate(sums)])
            S = sparse.csr_array((np.concatenate(blocks), (rows, columns)), shape=(capped, d * d))
            matrix -= (S.T @ S).toarray()
            return
        step = max(1, _CHUNK // (d * d))
        for low in range(0, capped, step):
            high = min(low + step, capped)
            part = np.zeros((high - low, d * d))
            for j, (groups, values) in enumerate(sums):
                first, last = np.searchsorted(groups, [low, high])
                part[groups[first:last] - low, j * d : (j + 1) * d] = values[first:last]
            part *= scale[low:high, None]
            matrix -= part.T @ part

    def _user_sums(self, j: int) -> tuple[Integers, Floats]:
        """``S_l`` restricted to coordinate ``j``, for the capped users that have an entry there."""
        groups = self._entries.groups[self._entries.starts[j] : self._entries.starts[j + 1]]
        weighted = self._entries.signed_rows(j) * self._part(j)[:, None]
        counted = groups >= 0
        if not counted.all():
            groups, weighted = groups[counted], weighted[counted]
        if not len(groups):
            return groups, weighted
        first = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
        return groups[first], np.add.reduceat(weighted, first, axis=0)

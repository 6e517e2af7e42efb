"""Optimal weights in every regime: Newton on a smoothed dual, then entries bought by their price.

1. Start with so large a σ² that plain least squares is nearly optimal, and lower it towards the true one, a
   few Newton steps each time (`dual`). If the true σ² is reached, the optimum is exact.
2. Where privacy noise dominates, the entries that remain nonzero become so few that the dual loses its
   curvature. From there solve the programme on those entries alone (`interior`) and let every entry whose
   price exceeds its user's threshold enter, until none does.
3. Where both are too dear (many coordinates; features with many equal values, whose dual is full of kinks), a first-order
   method (`splitting`) comes within a few percent.

The work is limited by counts that depend on the size of the problem only, never by a clock. Each candidate is made exactly feasible and kept if it is the best so far, and each dual point gives a lower
bound, so the method can be stopped at any time with a proven gap; least squares is the first candidate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from evenhand.learning.data.private_values import Floats, Integers
from evenhand.learning.fitting import single_threaded
from evenhand.learning.regression.solver import interior, splitting
from evenhand.learning.regression.solver.dual import DualPoint, climb, evaluate, lower_bound
from evenhand.learning.regression.solver.normal_equations import Entries
from evenhand.learning.regression.solver.problem import WeightProblem, scattered

NEWTON = 40
"""Up to this many coordinates d the system of d² unknowns is formed: 20 MB, and a fraction of a second to factorise."""

_LARGE = 1_000_000  # entries above which a smaller look-alike is solved first
_SMALL = 2_000  # entries up to which all of them are simply solved for at once
_SPARSE = 20  # times d²: with fewer free entries than this the dual is too flat for Newton
_ENTER = 4  # times d: entries a user may add in the first round; twice as many in each later one
_ROUNDS = 40
_FEW = 20_000_000  # entries times d² with which entries begin to enter
_MANY = 150_000_000  # entries times d² after which no more do, over all rounds
_CLOSE = 1e-3  # a gap that is not worth the first-order method
_WORK = 1.5e10  # of the first-order method: steps times entries, each counted as
_PASS = 150  # ... so many operations of thresholds, plus d of products
_STEPS = (20, 150)  # at least and at most
_SAMPLE = 20_000  # rows among which d independent ones are looked for


@dataclass(frozen=True, eq=False)
class Optimum:
    """A feasible ``C`` (as n × d array, rows grouped by user) with its certificate.

    ``value`` is σ²‖C‖² + κt² of this very ``C``; no feasible matrix can have less than ``bound``. ``limit``: rows per user, if only so
    many count.
    """

    C: Floats
    value: float
    bound: float
    limit: int | None = None

    @property
    def gap(self) -> float:
        """How far above the best possible value this one may be, relatively."""
        return max(0.0, 1.0 - self.bound / self.value) if self.value > 0 else 0.0


def optimise(problem: WeightProblem, tolerance: float = 1e-6) -> Optimum:
    """Minimise ``σ²‖C‖² + κ·(largest user's Σ|c|)²`` over ``C Z = T``."""
    with single_threaded():
        return _Search(problem, tolerance).run()


class _Search:
    def __init__(self, problem: WeightProblem, tolerance: float) -> None:
        self._problem, self._tolerance = problem, tolerance
        self._C = problem.Z @ problem.T.T / problem.size[0]
        self._value = cost(problem, self._C)
        self._bound = problem.variance * float(np.sum(self._C * self._C))  # the optimum without privacy

    def run(self) -> Optimum:
        n, d = self._problem.size
        with np.errstate(all="ignore"):  # a step that overflows is not taken
            if n * d <= _SMALL:
                self._generate(*_both_signs(np.arange(n * d)))
            elif d > NEWTON:
                self._split()
            else:
                level, point, converged = self._first()
                self._finish(self.descend(level, point) if converged else point)
                if self._gap > max(self._tolerance, _CLOSE):
                    self._split()
        return Optimum(self._C, self._value, self._bound)

    def _finish(self, point: DualPoint) -> None:
        """Let entries enter, if those that are nonzero are few."""
        d = self._problem.size[1]
        if self._gap > self._tolerance and len(point.magnitudes) * d * d <= _FEW:
            held = point.entries.rows * d + point.entries.columns, point.entries.signs
            self._generate(*_merged(held, _both_signs(_basis(self._problem))))

    @property
    def _gap(self) -> float:
        return 1.0 - self._bound / self._value if self._value > 0 else 0.0

    def _account(self, entries: Entries, magnitudes: Floats, M: Floats, *bounds: float) -> None:
        """Take lower bounds, and a candidate: made feasible, ``C ← T (C Z)⁻¹ C``, and kept if it is the best so far."""
        self._bound = max(self._bound, noiseless_bound(self._problem, M), *bounds)
        C = np.zeros(self._problem.size)
        np.add.at(C, (entries.rows, entries.columns), magnitudes * entries.signs)
        self._keep(self._feasible(C))

    def _feasible(self, C: Floats) -> Floats:
        """The closest multiple of ``C`` that meets the constraint; ``C`` itself if there is none."""
        achieved = C.T @ self._problem.Z
        try:
            return np.asarray(C @ np.linalg.solve(achieved.T, self._problem.T.T))
        except np.linalg.LinAlgError:
            return C

    def _keep(self, C: Floats) -> None:
        """Keep a candidate if it is feasible and the best so far."""
        value = cost(self._problem, C)
        if value < self._value:
            error = np.abs(C.T @ self._problem.Z - self._problem.T).max()
            if error <= 1e-9 * np.abs(self._problem.T).max():
                self._C, self._value = C, value

    def _split(self) -> None:
        """The first-order method, until the gap is closed or the work is done."""
        problem = self._problem
        n, d = problem.size
        steps = int(np.clip(_WORK // (n * d * (_PASS + d)), *_STEPS))
        for found in splitting.candidates(problem, self._C, self._value, steps):
            for M in found.duals:
                exact = lower_bound(problem, M) if problem.variance > 0 else 0.0
                self._bound = max(self._bound, noiseless_bound(problem, M), exact)
            self._keep(found.feasible)
            self._keep(self._feasible(found.sparse))
            if self._gap <= self._tolerance:
                return

    def descend(self, level: float, point: DualPoint) -> DualPoint:
        """Lower σ² step by step, from a level and a point there; return the last good point."""
        problem, d = self._problem, self._problem.size[1]
        factor = 1.0
        good = None
        while True:
            last = bool((point.variances <= problem.variance).all())
            reached, converged = climb(problem, point, 1e-12 if last else 3e-2, 12)
            if converged or last or good is None:
                good = reached
                self._account(good.entries, good.magnitudes, good.M, *([good.value] if last else []))
            if last or self._gap <= self._tolerance:
                return good
            if converged:
                factor = 100.0 if good.free > 10 * _SPARSE * d * d else 10.0
            else:  # too far down at once: go back and take a smaller step, a few times
                level, factor = level * factor, math.sqrt(factor)
            if factor < 1.5 or good.free < _SPARSE * d * d:
                return good
            level /= factor
            point = evaluate(problem, good.M, self._smoothing(level), good.theta)

    def _smoothing(self, level: float) -> Floats:
        """σ_j² for this level: larger where a coordinate needs little weight, so that prices are comparable."""
        reach: Floats = np.linalg.norm(self._problem.T, axis=1)
        return np.asarray(np.maximum(self._problem.variance, level * reach.max() / reach))

    def _first(self) -> tuple[float, DualPoint, bool]:
        """The level and dual point to start from, and whether Newton gets on there: near least squares, or for large problems
        what a smaller look-alike suggests."""
        problem = self._problem
        n, d = problem.size
        if n * d > _LARGE:
            part, share = problem.coarse(rows=max(n // 20, _LARGE // (4 * d)))
            small = _Search(part, 1e-2)
            found = small.descend(*small._near_least_squares())
            start = evaluate(problem, share * found.M, found.variances)
            point, converged = climb(problem, start, 3e-2, 6)
            return float(found.variances.min()), point, converged
        return *self._near_least_squares(), True

    def _near_least_squares(self) -> tuple[float, DualPoint]:
        problem = self._problem
        spread = (self._C**2).sum(axis=0)
        private = self._value - problem.variance * float(spread.sum())
        level = 0.1 * private / float(spread @ self._smoothing(1.0))
        smooth = self._smoothing(level)
        return level, evaluate(problem, 2 * smooth[:, None] * problem.T / problem.size[0], smooth)

    def _generate(self, flat: Integers, signs: Floats) -> None:
        """Entries enter as long as their price ``|g_e|`` exceeds their user's threshold."""
        problem, d = self._problem, self._problem.size[1]
        work = 0
        for turn in range(_ROUNDS):
            work += len(flat) * d * d
            if work > _MANY and turn:
                return
            order = np.lexsort((flat, flat % d))
            flat, signs = flat[order], signs[order]
            present = np.zeros(len(problem.counts), dtype=bool)
            present[problem.users[flat // d]] = True
            entries = Entries.of(problem, flat, signs, present)
            solution = interior.solve(entries)
            theta = np.zeros(len(problem.counts))
            theta[present] = solution.theta
            smooth = np.full(d, problem.variance)
            exact = [evaluate(problem, solution.M, smooth, theta).value] if problem.variance > 0 else []
            self._account(entries, solution.p, solution.M, *exact)
            if self._gap <= self._tolerance:
                return
            prices = problem.Z @ solution.M.T
            new = _entering(problem, prices, theta, flat[signs == np.sign(prices.ravel()[flat])], _ENTER * d << turn)
            if not len(new):
                return
            flat = np.concatenate([flat, new])
            signs = np.concatenate([signs, np.sign(prices.ravel()[new])])


def cost(problem: WeightProblem, C: Floats) -> float:
    """The objective at a feasible ``C`` (n × d)."""
    used = np.add.reduceat(np.abs(C).sum(axis=1), problem.offsets)
    return problem.variance * float(np.sum(C * C)) + problem.noise * float(used.max()) ** 2


def noiseless_bound(problem: WeightProblem, M: Floats) -> float:
    """The bound that holds for every σ ≥ 0, tight at 0: ``κ ⟨M, T⟩² / (Σ_l max_e |g_e|)²``."""
    total = float(problem.largest_per_user(np.abs(problem.Z @ M.T)).sum())
    return problem.noise * float(np.sum(M * problem.T)) ** 2 / total**2 if total > 0 else 0.0


def _entering(problem: WeightProblem, prices: Floats, theta: Floats, held: Integers, limit: int) -> Integers:
    """The entries of each user that exceed the threshold most, at most ``limit`` of them."""
    d = problem.size[1]
    excess = np.abs(prices) - (theta * (1 + 1e-7))[problem.users][:, None]
    new = np.setdiff1d(np.flatnonzero(excess > 0), held)
    users = problem.users[new // d]
    order = np.lexsort((-excess.ravel()[new], users))
    new, users = new[order], users[order]
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    rank = np.arange(len(users)) - np.repeat(starts, np.diff(starts, append=len(users)))
    chosen: Integers = new[rank < limit]
    return chosen


def _both_signs(flat: Integers) -> tuple[Integers, Floats]:
    return np.repeat(flat, 2), np.tile([1.0, -1.0], len(flat))


def _merged(one: tuple[Integers, Floats], other: tuple[Integers, Floats]) -> tuple[Integers, Floats]:
    """The union of two sets of signed entries."""
    keys = np.union1d(2 * one[0] + (one[1] > 0), 2 * other[0] + (other[1] > 0))
    return keys // 2, np.where(keys % 2, 1.0, -1.0)


def _basis(problem: WeightProblem) -> Integers:
    """All entries of d independent rows: with them the restricted programme always has a solution."""
    n, d = problem.size
    rows = scattered(n)[:_SAMPLE]
    _, pivots = linalg.qr(problem.Z[rows].T, mode="r", pivoting=True)
    return np.sort((rows[pivots[:d], None] * d + np.arange(d)).ravel())

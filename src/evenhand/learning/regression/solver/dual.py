"""Newton's method on the dual, for the regimes where σ matters.

For multipliers ``M`` of ``C Z = T`` and caps' multipliers ``θ_l ≥ 0`` the dual function is

    D(M, θ) = ⟨M, T⟩ − (Σ_l θ_l)²/(4κ) − ½ Σ_l Σ_{e ∈ l} h_j (|g_e| − θ_l)₊²
    with  g = Z Mᵀ  and  h_j = 1/(2σ_j²),

concave, and with all σ_j = σ *any* (M, θ) gives a lower bound on the optimum. (Coordinates get a σ_j of
their own only on the way there.) Given M, the best θ is found by an active-set iteration: within a user θ_l
is the threshold of a projection on the L1 ball of radius t, and t balances the users. D(M) then has gradient
``T − C Z`` for ``c = h sign(g)(|g| − θ)₊`` and a piecewise constant Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.learning.data.private_values import Floats, Integers
from evenhand.learning.regression.solver.normal_equations import Entries, NormalSystem
from evenhand.learning.regression.solver.problem import WeightProblem

_SLACK = 0.5  # entries below this share of the last threshold are not looked at until the threshold falls below it
_PASSES = 100


@dataclass(frozen=True, eq=False)
class DualPoint:
    """The dual at ``M``, and the primal matrix (not yet feasible) that belongs to it."""

    M: Floats
    variances: Floats
    value: float
    theta: Floats
    residual: Floats
    entries: Entries
    magnitudes: Floats

    @property
    def free(self) -> int:
        """Entries that can move independently: the curvature the dual has here."""
        return len(self.magnitudes) - self.entries.capped


def evaluate(problem: WeightProblem, M: Floats, variances: Floats, guess: Floats | None = None) -> DualPoint:
    """Maximise the dual over θ for this ``M``, with σ_j² per coordinate; ``guess`` is a θ from nearby."""
    G = problem.Z @ M.T
    size = np.abs(G)
    block, theta = UserEntries.thresholds_of(problem, size, 1 / (2 * variances), problem.noise, guess)
    above = block.values > theta[block.users]
    flat, users, columns = block.flat[above], block.users[above], block.columns[above]
    excess = block.values[above] - theta[users]
    active = np.bincount(users, minlength=len(theta)) > 0
    order = np.argsort(columns.astype(np.uint16), kind="stable")
    entries = Entries.of(problem, flat[order], np.sign(G.ravel()[flat[order]]), active & (theta > 0))
    excess = excess[order]
    magnitudes = excess * block.compliance[above][order]
    value = np.sum(M * problem.T) - theta.sum() ** 2 / (4 * problem.noise) - magnitudes @ excess / 2
    residual = problem.T - entries.forward(magnitudes)
    return DualPoint(M, variances, float(value), theta, residual, entries, magnitudes)


def lower_bound(problem: WeightProblem, M: Floats) -> float:
    """The dual function at ``M`` with its best θ, where σ > 0: no feasible matrix costs less."""
    size = np.abs(problem.Z @ M.T)
    compliance = np.full(problem.size[1], 1 / (2 * problem.variance))
    block, theta = UserEntries.thresholds_of(problem, size, compliance, problem.noise)
    excess = np.maximum(block.values - theta[block.users], 0.0)
    paid = theta.sum() ** 2 / (4 * problem.noise) + excess @ excess / (4 * problem.variance)
    return float(np.sum(M * problem.T) - paid)


@dataclass(frozen=True, eq=False)
class UserEntries:
    """The entries above a lower bound of their user's threshold, by row, and where each user's begin."""

    problem: WeightProblem
    size: Floats
    flat: Integers
    columns: Integers
    users: Integers
    values: Floats
    compliance: Floats
    starts: Integers

    @classmethod
    def thresholds_of(
        cls, problem: WeightProblem, size: Floats, compliance: Floats, noise: float, guess: Floats | None = None
    ) -> tuple[UserEntries, Floats]:
        """Every user's threshold for entries of this size, and the entries that were looked at; ``guess`` is from nearby."""
        low = np.zeros(len(problem.counts)) if guess is None else guess * _SLACK
        while True:
            block = cls.above(problem, size, compliance, low)
            theta = block.thresholds(noise, low)
            if (theta >= low).all():
                return block, theta
            low = np.where(theta < low, theta * _SLACK, low)

    @classmethod
    def above(cls, problem: WeightProblem, size: Floats, compliance: Floats, low: Floats) -> UserEntries:
        flat = np.flatnonzero(size > low[problem.users][:, None])
        rows, columns = np.divmod(flat, problem.size[1])
        users = problem.users[rows]
        starts = np.flatnonzero(np.concatenate([[True], users[1:] != users[:-1]])) if len(users) else users
        return cls(problem, size, flat, columns, users, size.ravel()[flat], compliance[columns], starts)

    def thresholds(self, noise: float, theta: Floats) -> Floats:
        """θ, every user's threshold, for the cap t at which the thresholds add up to 2κt."""
        present = self.users[self.starts]
        spans = np.diff(self.starts, append=len(self.users))
        weighted = self.values * self.compliance
        largest: Floats | None = None
        active = self.values > np.repeat(theta[present], spans)
        for _ in range(_PASSES):
            sums, weights = np.zeros(len(theta)), np.zeros(len(theta))
            if len(self.starts):
                sums[present] = np.add.reduceat(weighted * active, self.starts)
                weights[present] = np.add.reduceat(self.compliance * active, self.starts)
            none = weights == 0
            if none.any():  # the threshold went above the largest entry: at any size, come back to it
                largest = self.problem.largest_per_user(self.size) if largest is None else largest
                softest = self.compliance.max(initial=1.0)
                sums[none], weights[none] = softest * largest[none], softest
            cap = _balance(sums, weights, noise)
            theta = np.maximum(0.0, (sums - cap) / weights)
            now = self.values > np.repeat(theta[present], spans)
            if np.array_equal(now, active):
                break
            active = now
        return theta


def _balance(sums: Floats, weights: Floats, noise: float) -> float:
    """The root of ``2κt = Σ (A − t)₊/w``: convex and falling minus rising, so Newton climbs to it from 0."""
    cap, inverse = 0.0, 1 / weights
    while True:
        above = sums > cap
        part = inverse[above]
        step = float(part @ sums[above] / (2 * noise + part.sum()))
        if step <= cap * (1 + 1e-15):
            return cap
        cap = step


def climb(problem: WeightProblem, start: DualPoint, accuracy: float, steps: int) -> tuple[DualPoint, bool]:
    """Newton with backtracking until the predicted gain is below ``accuracy``; False if it never was."""
    point = start
    for _ in range(steps):
        weights = 1 / (2 * point.variances[point.entries.columns])
        direction = NormalSystem(point.entries, weights, point.entries.per_user(weights), ridge=1e-8).solve(
            point.residual
        )
        gain = float(np.sum(direction * point.residual))
        length = 1.0
        while True:
            trial = evaluate(problem, point.M + length * direction, point.variances, point.theta)
            if trial.value >= point.value + 0.05 * length * gain:
                break
            length *= 0.3
            if length < 1e-3:
                return point, False
        point = trial
        if length == 1.0 and gain <= accuracy * abs(point.value):
            return point, True
    return point, False

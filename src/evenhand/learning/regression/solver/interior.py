"""A primal-dual interior-point method on a few entries, for the regimes where privacy noise dominates.

There the optimum is nearly that of a linear programme: a few entries per user, and a dual too flat for Newton.
On the entries ``e`` with their signs, ``c_e = ± p_e``:

    minimise  σ² Σ p_e² + κ t²    subject to   Σ_e p_e a_e = T,   Σ_{e ∈ l} p_e + s_l = t,   p, s ≥ 0.

Mehrotra's predictor-corrector; every step is one `NormalSystem` of d² unknowns. σ = 0 is no special case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.learning.data.private_values import Floats
from evenhand.learning.regression.solver.normal_equations import Entries, NormalSystem


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The unknowns above; ``z`` and ``theta`` belong to p, s ≥ 0, and ``M`` and ``theta`` price all other entries."""

    p: Floats
    s: Floats
    t: float
    z: Floats
    theta: Floats
    M: Floats

    def moved(self, step: Unknowns, length: float) -> Unknowns:
        """A part of the way along ``step``."""
        return Unknowns(**{name: value + length * vars(step)[name] for name, value in vars(self).items()})

    def complementarity(self) -> float:
        """What is left to the optimum."""
        return float(self.p @ self.z + self.s @ self.theta)

    def longest(self, step: Unknowns) -> float:
        """How far along ``step`` all of p, s, z and θ stay positive."""
        pairs = ((self.p, step.p), (self.s, step.s), (self.z, step.z), (self.theta, step.theta))
        return min(_ratio(x, dx) for x, dx in pairs)


def solve(entries: Entries, accuracy: float = 1e-8, steps: int = 80) -> Unknowns:
    """Solve the programme restricted to ``entries`` (every user of an entry counts as capped), as far as it gets."""
    problem = entries.problem
    a, kappa = problem.variance, problem.noise
    state = _start(entries)
    scale = np.abs(problem.T).max()
    for _ in range(steps):
        gap = state.complementarity()
        primal = problem.T - entries.forward(state.p)
        objective = a * float(state.p @ state.p) + kappa * state.t**2
        if gap <= accuracy * objective and np.abs(primal).max() <= 1e-8 * scale:
            break
        newton = _Newton(entries, state, primal)
        predictor = newton.step(-state.p * state.z, -state.s * state.theta)
        if not np.isfinite(predictor.M).all():
            break
        length = state.longest(predictor)
        mean = gap / (len(state.p) + len(state.s))
        centre = mean * (state.moved(predictor, length).complementarity() / gap) ** 3
        corrector = newton.step(
            centre - state.p * state.z - predictor.p * predictor.z,
            centre - state.s * state.theta - predictor.s * predictor.theta,
        )
        length = state.longest(corrector)
        if length < 1e-10:
            break
        state = state.moved(corrector, 1.0 if length >= 1.0 else 0.995 * length)
    return state


class _Newton:
    """The optimality conditions, linearised; entries and users are eliminated, d² unknowns remain."""

    def __init__(self, entries: Entries, state: Unknowns, primal: Floats) -> None:
        problem = entries.problem
        self._entries, self._state, self._primal = entries, state, primal
        self._cap = state.t - entries.per_user(state.p) - state.s
        self._dual = entries.backward(state.M) + state.z - state.theta[entries.groups] - 2 * problem.variance * state.p
        self._total = state.theta.sum() - 2 * problem.noise * state.t
        self._weights = 1 / (2 * problem.variance + state.z / state.p)
        self._curvature = entries.per_user(self._weights) + state.s / state.theta
        self._normal = NormalSystem(entries, self._weights, self._curvature, ridge=1e-14)

    def step(self, on_entries: Floats, on_users: Floats) -> Unknowns:
        """The direction with ``p dz + z dp = on_entries`` and ``s dθ + θ ds = on_users``."""
        entries, state, normal = self._entries, self._state, self._normal
        right = self._dual + on_entries / state.p
        weighted = self._weights * right
        users = entries.per_user(weighted) + on_users / state.theta - self._cap
        base = (self._total + np.sum(users / self._curvature)) / normal.total
        pulled = self._weights * ((users - base) / self._curvature)[entries.groups]
        dM = normal.solve(self._primal - entries.forward(weighted - pulled))
        image = entries.backward(dM)
        dt = float(base + np.sum(normal.r * dM) / normal.total)
        dtheta = (entries.per_user(self._weights * image) + users - dt) / self._curvature
        dp = self._weights * (image - dtheta[entries.groups] + right)
        return Unknowns(
            dp, (on_users - state.s * dtheta) / state.theta, dt, (on_entries - state.z * dp) / state.p, dtheta, dM
        )


def _start(entries: Entries) -> Unknowns:
    """Least squares on the entries, moved well inside the cone."""
    problem = entries.problem
    d = problem.size[1]
    fits = []
    for j in range(d):
        rows = entries.signed_rows(j)
        gram = rows.T @ rows
        gram[np.diag_indices(d)] += 1e-10 * np.trace(gram)
        fits.append(rows @ np.linalg.solve(gram, problem.T[j]))
    fit = np.concatenate(fits)
    p = np.maximum(fit, 0.0) + np.abs(fit).mean()
    used = entries.per_user(p)
    t = 1.1 * float(used.max())
    theta = np.full(entries.capped, 2 * problem.noise * t / entries.capped)
    z = 2 * problem.variance * p + theta[entries.groups]
    return Unknowns(p, t - used, t, z, theta, np.zeros((d, d)))


def _ratio(x: Floats, dx: Floats) -> float:
    falling = dx < 0
    return min(1.0, float((-x[falling] / dx[falling]).min())) if falling.any() else 1.0

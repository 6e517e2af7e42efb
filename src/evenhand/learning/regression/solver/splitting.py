"""A first-order method, for the regimes where Newton is too dear or makes no progress: many coordinates, or a dual full of kinks.

Douglas and Rachford's splitting (ADMM): the programme is the sum of

    f(C) = σ²‖C‖² + κ (largest user's Σ|c|)²      and      the constraint C Z = T.

The proximal step of f is a soft threshold per user, with one cap t for all (`dual.Block`). As ZᵀZ = n·1, the projection on
the constraint is two products, and its multiplier is a dual point ``M``: a step costs little more than reading Z twice, and
memory stays at a few arrays of the size of Z. Each step ends with a feasible matrix. Dual points are rough where there
are many coordinates, so their average over the later steps is priced as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.learning.data.private_values import Floats
from evenhand.learning.regression.solver.dual import UserEntries
from evenhand.learning.regression.solver.problem import WeightProblem

_RELAXED = 1.6  # over-relaxation, from the literature
_FIRST = 0.05  # the first penalty, in units of cost over ‖C‖²
_LOOK = 5  # steps between changes of the penalty, and at first between candidates
_EARLY = 20  # from this step on as many between candidates, whose bounds cost as much as several steps
_SETTLED = 100  # from this step on the penalty stays: with one that always changes, the method need not converge
_UNEVEN = 3.0  # residuals that differ by more than this change the penalty
_FASTEST = 5.0  # by this factor at most


@dataclass(frozen=True, eq=False)
class Candidate:
    """A feasible matrix, a sparser one that is nearly so, and dual points to take bounds from."""

    feasible: Floats
    sparse: Floats
    duals: tuple[Floats, ...]


def candidates(problem: WeightProblem, start: Floats, cost: float, steps: int) -> Iterator[Candidate]:
    """Every few of at most ``steps`` steps a better candidate; ``start`` is feasible and costs ``cost``."""
    Z, T, n = problem.Z, problem.T, problem.size[0]
    P, U = start, np.zeros_like(start)
    theta = np.zeros(len(problem.counts))
    penalty = _FIRST * 2 * cost / max(float(np.sum(P * P)), np.finfo(float).tiny)
    total, counted = np.zeros_like(T), 0
    for step in range(1, steps + 1):
        C, theta = _shrunk(problem, P - U, penalty, theta)
        moved = _RELAXED * C + (1 - _RELAXED) * P + U
        multiplier = (Z.T @ moved - T.T) / n
        U = Z @ multiplier
        last, P = P, moved - U
        if step & (step - 1) == 0:  # the average begins anew at powers of two
            total, counted = np.zeros_like(T), 0
        total, counted = total - penalty * multiplier.T, counted + 1
        if step % (_LOOK if step <= _EARLY else _EARLY) == 0 or step == steps:
            yield Candidate(P, C, (-penalty * multiplier.T, total / counted))
        if step % _LOOK == 0 and step < _SETTLED:
            change = _change(C, P, last, U)
            penalty, U = penalty * change, U / change


def _change(C: Floats, P: Floats, last: Floats, U: Floats) -> float:
    """By how much to change the penalty: it is right when both residuals are equally large, relatively."""
    primal = float(np.linalg.norm(C - P) / max(np.linalg.norm(C), np.finfo(float).tiny))
    dual = float(np.linalg.norm(P - last) / max(np.linalg.norm(U), np.finfo(float).tiny))
    if not (primal > 0 and dual > 0) or 1 / _UNEVEN < primal / dual < _UNEVEN:
        return 1.0
    return float(np.clip(np.sqrt(primal / dual), 1 / _FASTEST, _FASTEST))


def _shrunk(problem: WeightProblem, V: Floats, penalty: float, guess: Floats) -> tuple[Floats, Floats]:
    """The minimiser of ``f(C) + penalty/2 ‖C − V‖²``, and its thresholds."""
    stiff = 2 * problem.variance + penalty
    W = V * (penalty / stiff)
    size = np.abs(W)
    theta = UserEntries.thresholds_of(problem, size, np.ones(problem.size[1]), problem.noise / stiff, guess)[1]
    np.subtract(size, theta[problem.users][:, None], out=size)
    np.maximum(size, 0.0, out=size)
    return np.copysign(size, W), theta

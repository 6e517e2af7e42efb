"""Minimising a regularised convex loss to a gradient norm that holds for *every* table.

Output perturbation releases an approximate minimiser; its sensitivity argument needs ‖∇J‖ ≤ γ whatever the rows
are, so an optimiser that may give up is not allowed. Here Newton's method goes first, because it nearly always
gets there in ten steps; where it does not, Nesterov's accelerated gradient takes over, whose number of steps
suffices by a theorem (docs/proofs/output-perturbation.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEWTON_STEPS = 60
_HALVINGS = 12


@dataclass(frozen=True)
class Objective:
    """``J(f) = Σ ℓ + (Λ/2)‖f‖²`` by its derivatives.

    Args:
        gradient: ``Σ ∇ℓ`` at f.
        hessian: ``Σ ∇²ℓ`` at f.
        regularisation: Λ.
        roundest: a bound on the largest eigenvalue of ``Σ ∇²ℓ`` anywhere.
        size: number of coefficients.
    """

    gradient: Callable[[Floats], Floats]
    hessian: Callable[[Floats], Floats]
    regularisation: float
    roundest: float
    size: int

    def full_gradient(self, f: Floats) -> Floats:
        """∇J."""
        return self.gradient(f) + self.regularisation * f


def minimise(objective: Objective, accuracy: float) -> Floats:
    """A point with ``‖∇J‖ ≤ accuracy``, always.

    The stopping test asks for half of it: the other half is far more than rounding can account for.
    """
    start = np.zeros(objective.size)
    point, norm = _newton(objective, start, accuracy / 2)
    return point if norm <= accuracy / 2 else _accelerated(objective, accuracy / 2)


def _newton(objective: Objective, f: Floats, accuracy: float) -> tuple[Floats, float]:
    """Newton on ∇J = 0, halving the step until the norm of the gradient falls."""
    gradient = objective.full_gradient(f)
    norm = float(np.linalg.norm(gradient))
    ridge = objective.regularisation * np.eye(objective.size)
    for _ in range(_NEWTON_STEPS):
        if norm <= accuracy:
            break
        step = np.linalg.solve(objective.hessian(f) + ridge, gradient)
        for halving in range(_HALVINGS):
            trial = f - step / 2**halving
            trial_gradient = objective.full_gradient(trial)
            trial_norm = float(np.linalg.norm(trial_gradient))
            if trial_norm <= (1 - 0.25 / 2**halving) * norm:
                break
        else:
            break
        f, gradient, norm = trial, trial_gradient, trial_norm
    return f, norm


def steps_needed(objective: Objective, first: float, accuracy: float) -> int:
    """Accelerated steps from 0 after which ``‖∇J‖ ≤ accuracy``, given ``first = ‖∇J(0)‖``.

    With β the smoothness and Λ the convexity of J, K steps bring J within
    ``(1 − √(Λ/β))^K · first²/Λ`` of its minimum, and ``‖∇J‖² ≤ 2β(J − min J)``.
    """
    smooth = objective.roundest + objective.regularisation
    excess = 2 * smooth * first**2 / objective.regularisation
    return max(1, math.ceil(math.sqrt(smooth / objective.regularisation) * math.log(excess / accuracy**2)))


def _accelerated(objective: Objective, accuracy: float) -> Floats:
    f = lead = np.zeros(objective.size)
    smooth = objective.roundest + objective.regularisation
    ratio = math.sqrt(objective.regularisation / smooth)
    momentum = (1 - ratio) / (1 + ratio)
    first = float(np.linalg.norm(objective.full_gradient(f)))
    for _ in range(steps_needed(objective, max(first, accuracy), accuracy)):
        gradient = objective.full_gradient(lead)
        if np.linalg.norm(gradient) <= accuracy:
            return lead
        previous, f = f, lead - gradient / smooth
        lead = f + momentum * (f - previous)
    return f

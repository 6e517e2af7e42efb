"""Minimising a regularised convex loss to a gradient norm that holds for *every* table.

Output perturbation releases an approximate minimiser; its sensitivity argument needs ‖∇J‖ ≤ γ whatever the rows
are, so an optimiser that may give up, raise or run for ever is not allowed. Newton's method goes first, because it nearly
always gets there in ten steps; where it does not, Nesterov's accelerated gradient takes over; and where rounding
stops that too, plain gradient steps, which always get there. The number of steps of each is bounded by the number of
rows and public parameters (docs/proofs/output-perturbation.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.row_sources import Coefficients

_NEWTON_STEPS = 60
_QUICK_STEPS, _EASY_STEPS, _EASIER = 12, 5, 8.0
_TRIALS = 40


@dataclass(frozen=True)
class Objective:
    """``J(f) = Σ ℓ + (Λ/2)‖f‖² + ⟨b, f⟩`` for ``size`` coefficients, by the derivatives of ``Σ ℓ``.

    ``regularisation`` is Λ; ``roundest`` bounds the largest eigenvalue of the Hessian anywhere; ``linear`` is b.
    """

    gradient: Callable[[Coefficients], Floats]
    hessian: Callable[[Coefficients], Floats]
    regularisation: float
    roundest: float
    size: int
    linear: Floats | float = 0.0

    @property
    def smooth(self) -> float:
        """β, the largest curvature of J."""
        return self.roundest + self.regularisation

    def full_gradient(self, f: Coefficients) -> Floats:
        """∇J."""
        return self.gradient(f) + self.linear + self.regularisation * f.floats


def minimise(objective: Objective, accuracy: float) -> Coefficients:
    """A point with ``‖∇J‖ ≤ accuracy``, always, if gradients are computed to within an eighth of it.

    The stopping test asks for half of it, of the gradient as it was computed.
    """
    for method in (_newton, _accelerated, _plain):
        point, norm = method(objective, accuracy / 2)
        if norm <= accuracy / 2:
            break
    return point


def _newton(objective: Objective, accuracy: float) -> tuple[Coefficients, float]:
    """Newton's method from 0; and if that takes long, with much regularisation first and less and less of it.

    With little of it Newton's steps from 0 lead far astray where most rows have no curvature. On the way each minimum need
    not be met well: it is only where the next search starts.
    """
    start = Coefficients.zero(objective.size)
    f, norm = _descend(objective, start, accuracy, _QUICK_STEPS)
    if norm <= accuracy:
        return f, norm
    f, ridge = start, objective.smooth
    while ridge > objective.regularisation:
        easier = replace(objective, regularisation=ridge)
        near = ridge * float(np.linalg.norm(f.floats)) / 10
        f, _ = _descend(easier, f, max(near, accuracy), _EASY_STEPS)
        ridge /= _EASIER
    return _descend(objective, f, accuracy, _NEWTON_STEPS)


def _descend(objective: Objective, f: Coefficients, accuracy: float, steps: int) -> tuple[Coefficients, float]:
    """Newton steps with a line search that goes downhill on J."""
    gradient = objective.full_gradient(f)
    norm = float(np.linalg.norm(gradient))
    for _ in range(steps):
        if norm <= accuracy:
            break
        # Along eigenvectors: a sum of squares has no negative eigenvalue, so nothing is singular beside Λ > 0.
        values, vectors = np.linalg.eigh(objective.hessian(f))
        direction = -vectors @ ((vectors.T @ gradient) / (np.maximum(values, 0.0) + objective.regularisation))
        found = _line(objective, f, direction, float(gradient @ direction), norm)
        if found is None:
            break
        f, gradient, norm = found
    return f, norm


def _line(
    objective: Objective, f: Coefficients, direction: Floats, slope: float, norm: float
) -> tuple[Coefficients, Floats, float] | None:
    """A point along the direction with a smaller gradient, or with a smaller J and less downhill left.

    J is convex: it falls up to the point where its slope along the direction turns positive.
    """
    low, high, length = 0.0, math.inf, 1.0
    for _ in range(_TRIALS):
        trial = f.moved(length * direction)
        gradient = objective.full_gradient(trial)
        size, ahead = float(np.linalg.norm(gradient)), float(gradient @ direction)
        if size <= 0.75 * norm or 0.9 * slope <= ahead <= 0:
            return trial, gradient, size
        low, high = (low, length) if ahead > 0 else (length, high)
        length = (low + high) / 2 if math.isfinite(high) else 2 * length
    return None


def steps_needed(objective: Objective, first: float, accuracy: float) -> int:
    """Accelerated steps from 0 after which ``‖∇J‖ ≤ accuracy``, given ``first = ‖∇J(0)‖``.

    With β the smoothness and Λ the convexity of J, K steps bring J within
    ``(1 − √(Λ/β))^K · first²/Λ`` of its minimum, and ``‖∇J‖² ≤ 2β(J − min J)``.
    """
    ratio = objective.smooth / objective.regularisation
    return max(1, math.ceil(math.sqrt(ratio) * (math.log(2 * ratio) + 2 * math.log(first / accuracy))))


def _accelerated(objective: Objective, accuracy: float) -> tuple[Coefficients, float]:
    ratio = math.sqrt(objective.regularisation / objective.smooth)
    return _gradient_steps(objective, accuracy, (1 - ratio) / (1 + ratio), steps_needed)


def plain_steps(objective: Objective, first: float, accuracy: float) -> int:
    """Gradient steps from 0 after which the computed ``‖∇J‖ ≤ accuracy``, if each is computed to a quarter of that."""
    ratio = objective.smooth / objective.regularisation
    return max(1, math.ceil(1.125 * ratio * (math.log(2 * ratio) + 2 * math.log(first / accuracy))))


def _plain(objective: Objective, accuracy: float) -> tuple[Coefficients, float]:
    return _gradient_steps(objective, accuracy, 0.0, plain_steps)


def _gradient_steps(
    objective: Objective, accuracy: float, momentum: float, enough: Callable[[Objective, float, float], int]
) -> tuple[Coefficients, float]:
    """Steps of length 1/β from 0, at most as many as are ``enough``."""
    f = lead = Coefficients.zero(objective.size)
    gradient = objective.full_gradient(lead)
    norm = float(np.linalg.norm(gradient))
    for _ in range(enough(objective, max(norm, accuracy), accuracy)):
        if norm <= accuracy:
            break
        previous, f = f, lead.moved(-gradient / objective.smooth)
        lead = f.moved(momentum * (f.floats - previous.floats)) if momentum else f
        gradient = objective.full_gradient(lead)
        norm = float(np.linalg.norm(gradient))
    return lead, norm

"""Output perturbation: spherical noise on the minimiser (amin2019, Algorithm 1; docs/proofs/output-perturbation.md); and the problem, which
objective perturbation solves too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np

from evenhand.learning.data.features import FeatureMap
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.row_sources import FINENESS, Coefficients, RowSource
from evenhand.learning.losses import MarginLoss
from evenhand.learning.perturbation.minimise import Objective, minimise
from evenhand.planning.row_choice import RowChoice
from evenhand.release import Opener, Receipt
from evenhand.release.intervals import check_confidence

ACCURACY = Fraction(1, 1000)
"""The optimiser's gradient norm, in units of what one user can do: 0.2 % more noise buys a certain answer."""

MOST_ROWS = 2**31
"""From so many kept rows on, the model is scaled down, to zero at twice as many, where doubles would not be accurate enough."""

LATTICE = 2**20
"""Lattice steps per noise scale."""


@dataclass(frozen=True)
class Problem:
    """Minimise ``Σ ℓ + (Λ/2)‖f‖²`` over at most τ rows of each user, with ``epsilon`` to release the minimiser."""

    source: RowSource
    loss: MarginLoss
    mapped: FeatureMap
    chosen: RowChoice
    epsilon: Decimal

    @property
    def steepest(self) -> Fraction:
        """The largest |ℓ'|, rounded up."""
        return Fraction(self.loss.steepest * (1 + 1e-12))

    @property
    def row(self) -> Fraction:
        """L, the largest norm of a row's gradient, rounded up."""
        return Fraction(self.loss.steepest * self.mapped.norm * (1 + 1e-12))

    @property
    def regularisation(self) -> Fraction:
        """Λ."""
        return Fraction(self.chosen.regularisation)

    def minimiser(
        self, opener: Opener, accuracy: Fraction, most: int, linear: Floats | float = 0.0
    ) -> tuple[Coefficients, Fraction]:
        """A point with a gradient of at most ``accuracy``, and what is left of it: less from ``most`` rows on, nothing at twice as many."""
        mapped, loss, chosen = self.mapped, self.loss, self.chosen
        with self.source.limited(mapped, chosen.tau, opener) as rows:
            left = min(max(2 - Fraction(rows.rows, most), Fraction(0)), Fraction(1))
            if not left:  # there is nothing to minimise
                return Coefficients.zero(mapped.size), left
            gradient, hessian = partial(rows.gradient, loss=loss), partial(rows.hessian, loss=loss)
            roundest = loss.roundest * mapped.norm**2 * rows.rows
            objective = Objective(gradient, hessian, chosen.regularisation, roundest, mapped.size, linear)
            return minimise(objective, float(accuracy)), left


@dataclass(frozen=True)
class Released:
    """Coefficients of the scaled features, and the noise in them.

    Args:
        coefficients: what leaves.
        sensitivity: how far one user moves what the noise is added to.
        noise_scale: the scale of that noise.
    """

    coefficients: Floats
    sensitivity: float
    noise_scale: float


def perturb_output(problem: Problem, receipt: Receipt) -> Released:
    """The minimiser with noise for how far one user moves it."""
    one_user = problem.chosen.tau * problem.row
    accuracy = one_user * ACCURACY
    exact = (problem.source.relation.moves * one_user + 2 * accuracy) / problem.regularisation
    exact += fading(problem.chosen, problem.loss, accuracy)
    exponent = math.floor(math.log2(LATTICE * float(problem.epsilon) / float(exact)))
    # Rounding moves either minimiser by at most half a step per coordinate.
    steps = exact * Fraction(2) ** exponent + math.isqrt(problem.mapped.size) + 1

    def lattice(opener: Opener) -> list[int]:
        found, left = problem.minimiser(opener, accuracy, MOST_ROWS)
        shift = left * Fraction(2) ** (exponent - FINENESS)
        return [math.floor(step * shift + Fraction(1, 2)) for step in found.steps]

    noisy = receipt.vector(lattice, steps, problem.epsilon)
    unit = float(Fraction(2) ** -exponent)
    sensitivity = float(steps) * unit
    coefficients = np.array([float(value) for value in noisy]) * unit
    return Released(coefficients, sensitivity, sensitivity / float(problem.epsilon))


def fading(chosen: RowChoice, loss: MarginLoss, accuracy: Fraction) -> Fraction:
    """How far a user's τ rows move the model by scaling it down: τ/MOST_ROWS of its norm, which public numbers bound.

    No loss is negative, so (Λ/2)‖f‖² is at most the total loss at 0.
    """
    total = 2 * MOST_ROWS * loss.at_zero
    norm = Fraction(math.sqrt(total) * math.sqrt(2 / chosen.regularisation) * (1 + 1e-12))
    return Fraction(chosen.tau, MOST_ROWS) * (norm + accuracy / Fraction(chosen.regularisation))


def spherical_radius(confidence: float, size: int, scale: float) -> float:
    """The distance that one coordinate of spherical noise exceeds with probability 1 − confidence.

    The noise has density ∝ exp(−‖b‖/scale) in ``size`` dimensions: a Gamma(size) radius times a coordinate of a
    uniform direction, whose square is Beta(½, (size−1)/2).
    """
    from scipy import integrate, optimize, stats

    check_confidence(confidence)
    if size == 1:
        return -scale * math.log(1 - confidence)
    share = stats.beta(0.5, (size - 1) / 2)

    def excess(distance: float) -> float:
        tail, _ = integrate.quad(
            lambda r: stats.gamma.pdf(r, size) * share.sf((distance / r) ** 2), distance, math.inf, limit=200
        )
        return float(tail - (1 - confidence))

    return scale * float(optimize.brentq(excess, 1e-9, 40.0 * size))

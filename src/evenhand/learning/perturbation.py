"""What output and objective perturbation have in common: the problem, its approximate minimiser, and what is released."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial

from evenhand.learning.features import FeatureMap
from evenhand.learning.losses import MarginLoss
from evenhand.learning.minimise import Coefficients, Objective, minimise
from evenhand.learning.private_values import Floats
from evenhand.learning.sources import Source
from evenhand.planning.row_choice import RowChoice
from evenhand.release import Opener


@dataclass(frozen=True)
class Problem:
    """Minimise ``Σ ℓ + (Λ/2)‖f‖²`` over at most τ rows of each user, with ``epsilon`` to release the minimiser."""

    source: Source
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

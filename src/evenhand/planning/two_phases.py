"""Objective perturbation in two phases: a first model with a part of ε, and a second one that is regularised toward it.

Λ shrinks coefficients toward a point, and a small Λ leaves little of ε for the noise: hiding how far one user changes the curvature takes the
rest. Toward 0, Λ has to be small where coefficients are large. The first model is a point that is much nearer, so that the second can afford a large Λ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from evenhand.planning.row_choice import RowChoice, Scales, choose_rows
from evenhand.profiles import Array, Support

FIRST = Fraction(1, 4)
"""Of ε, for the first phase."""

_DOUBT = 0.5
"""How far off the guess of what Λ took from a coefficient may be, as a part of it."""

_MOST = 0.5
"""How much of the curvature of all rows Λ may be in a second phase: some features vary less than others."""

_NARROW = 3.0
"""The square of the margins at which losses of classes become flat."""


@dataclass(frozen=True)
class Phase:
    """A choice, with what it is made for: features divided by ``factor``."""

    factor: int
    scales: Scales
    chosen: RowChoice

    @property
    def excess(self) -> float:
        """The forecast excess of the average loss."""
        return self.chosen.excess


@dataclass(frozen=True)
class Expected:
    """Coefficients after a phase, one number of each kind: this part of what was released, give or take an error.

    ``along`` is the curvature of the average loss where they are shrunk.
    """

    part: Array
    error: Array
    along: Array


def best_phase(support: Support, ways: Sequence[tuple[int, Scales]], method: str, tau: int | None) -> Phase:
    """The least forecast, over what features are divided by, τ and Λ."""
    found = [Phase(factor, scales, choose_rows(support, scales, method, tau)) for factor, scales in ways]
    return min(found, key=lambda phase: phase.excess)


def expected(phase: Phase, squares: Array | None = None) -> Expected:
    """What a released first model tells: ``squares``, the mean square of its coefficients of each kind, or what is forecast.

    Each coefficient is shrunk by Λ, then moved by noise. How large they were is what is left of the squares without the noise.
    """
    scales, chosen = phase.scales, phase.chosen
    ridge, along = chosen.regularisation / chosen.kept, scales.bends.copy()
    noise = scales.variance(chosen.tau, chosen.kept, np.array([chosen.regularisation]))[0]
    known = squares is not None
    if squares is None:
        squares = (along / (along + ridge) * scales.coefficients) ** 2 + noise
    signal = np.maximum(squares - noise, noise / (scales.counts + 1))
    if known and scales.flattens:  # as normal margins of this variance would be
        margins = scales.counts[0] * scales.each * signal[0]
        along[0] *= min(1.0, 2 * (1 + margins / _NARROW) ** -1.5)
    kept = along / (along + ridge)
    size = signal / np.maximum(kept, 0.5) ** 2
    part = np.maximum(kept, 0.5) * size / (signal + noise)
    error = size * noise / (signal + noise) + (_DOUBT * (1 - kept)) ** 2 * size
    return Expected(part, np.sqrt(error), along)


def nearer(ways: Sequence[tuple[int, Scales]], first: Phase, known: Expected) -> list[tuple[int, Scales]]:
    """The same ways, for a model that is regularised toward the first."""
    found = []
    for factor, scales in ways:
        stretched = np.ones(len(scales.counts))
        stretched[0] = factor / first.factor  # coefficients of features that are divided by more are larger
        along, off = known.along / stretched**2, known.error * stretched
        found.append((factor, replace(scales, coefficients=off, along=along, gain=np.inf, most=_MOST)))
    return found

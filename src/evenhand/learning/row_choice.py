"""How many rows of each user to keep, and how strongly to regularise, by forecast.

The forecast of the excess of the average loss has three parts: what changing the mix of users does to it
(`profiles/support.py`), what the regulariser does, and what the noise does,

    w·bias(τ)  +  (Λ/2n_τ)·B²  +  ½·c·R²·E‖b‖²,      E‖b‖² = d(d+1)·(Δ/ε)²,  Δ = kτL/Λ,

with B a guess of the norm of the best coefficients, L and c the largest slope and curvature of a row's loss, k = 1
under presence and 2 under values. For each τ the best Λ has a closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.bounding import HETEROGENEITY
from evenhand.learning.base import is_auto, whole_number
from evenhand.profiles import Sums, Support

LARGEST_TAU = 2**20


@dataclass(frozen=True)
class Scales:
    """Public facts of the learning problem that the forecast needs.

    Args:
        size: number of coefficients d.
        slope: L, the largest norm of a row's gradient.
        curvature: c·R², the largest curvature of a row's loss along any direction.
        coefficient_norm: B.
        moves: k, how many users' worth of rows change between neighbours.
        epsilon: what is left for the release.
    """

    size: int
    slope: float
    curvature: float
    coefficient_norm: float
    moves: int
    epsilon: float

    def noise(self, tau: float, regularisation: float) -> float:
        """The excess loss that the noise causes."""
        scale = self.moves * tau * self.slope / (regularisation * self.epsilon)
        return 0.5 * self.curvature * self.size * (self.size + 1) * scale**2

    def shrinkage(self, kept: float, regularisation: float) -> float:
        """The excess loss that the regulariser causes."""
        return regularisation * self.coefficient_norm**2 / (2 * kept)

    def best_regularisation(self, tau: float, kept: float) -> float:
        """The Λ that balances the two."""
        return float((4 * self.noise(tau, 1.0) * kept / self.coefficient_norm**2) ** (1 / 3))


@dataclass(frozen=True)
class RowChoice:
    """τ, Λ and the forecast behind them."""

    tau: int
    regularisation: float
    bias: float
    shrinkage: float
    noise: float
    kept: float

    @property
    def excess(self) -> float:
        """The forecast excess of the average loss."""
        return self.bias + self.shrinkage + self.noise


def choose_rows(
    support: Support, scales: Scales, tau: int | None = None, regularisation: float | None = None
) -> RowChoice:
    """Choose what is not given, from a public or bought support."""
    sums = Sums.of(support)
    tried = [float(tau)] if tau is not None else limits_to_try(min(float(support.sizes.max()), LARGEST_TAU))
    return min((_forecast(sums, scales, size, regularisation) for size in tried), key=lambda one: one.excess)


def rows_per_user(given: int | str) -> int | None:
    """τ as an analyst set it; None if it is left to a forecast."""
    return None if is_auto("rows_per_user", given) else whole_number("rows_per_user", given, LARGEST_TAU)


def limits_to_try(top: float) -> list[float]:
    """Limits from 1 to ``top``, each about a quarter more than the one before."""
    steps = np.arange(0, math.log(max(top, 1.0)) / math.log(1.25) + 1)
    return sorted({max(1.0, min(top, float(math.ceil(1.25**step)))) for step in steps})


def _forecast(sums: Sums, scales: Scales, tau: float, regularisation: float | None) -> RowChoice:
    at = np.array([tau])
    kept = max(float(sums.kept(at)[0]), 1.0)
    chosen = scales.best_regularisation(tau, kept) if regularisation is None else regularisation
    pinsker = math.sqrt(max(math.log(max(sums.support.rows, 1.0) / kept), 0.0) / 2)
    spread = HETEROGENEITY * math.sqrt(float(sums.chi_square(at)[0]))
    size = scales.slope * scales.coefficient_norm
    bias = size * min(float(sums.total_variation(at)[0]), pinsker, spread)
    return RowChoice(math.ceil(tau), chosen, bias, scales.shrinkage(kept, chosen), scales.noise(tau, chosen), kept)

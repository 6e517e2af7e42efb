"""Private selection from a finite set: OpenDP's permute-and-flip, an exact sampler on integers.

It has the exponential mechanism's guarantee and never a larger expected loss (McKenna and Sheldon 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from evenhand.noise import Laplace, seam


def select(scores: Sequence[int], sensitivity: int, epsilon: Decimal, *, monotone: bool) -> int:
    """The index of a score that is probably among the largest.

    Guarantee: ε-differentially private if one user moves every score by at most ``sensitivity``;
    ``monotone`` if all scores move in the same direction, which halves the noise.
    """
    scale = _scale(sensitivity, epsilon, monotone)
    substitute = seam.current()
    if substitute is not None:
        noisy = substitute("noisy max", list(scores), scale)
        return max(range(len(noisy)), key=noisy.__getitem__)
    return int(_sampler(float(scale), monotone)(list(scores)))


def _scale(sensitivity: int, epsilon: Decimal, monotone: bool) -> Fraction:
    # Calibrated like Laplace noise, rounding included: ε = sensitivity/scale, or twice that if not monotone.
    return Laplace.calibrated(sensitivity if monotone else 2 * sensitivity, epsilon).scale


@lru_cache(maxsize=64)
def _sampler(scale: float, monotone: bool) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64", monotonic=monotone)
    return space >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale)

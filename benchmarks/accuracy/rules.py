"""Simple rules for the cap of a user's total, many repetitions at once; other libraries are really run in ``benchmarks/peers``."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Caps = tuple[Array, float]  # the caps, and the ε left for the sum

_LARGEST = 2**24  # public guess of the largest total, in units of a usual row


def median(totals: Array, epsilon: float, repeats: int, rng: np.random.Generator) -> Caps:
    """A cap at the true median, free of charge: a rule of thumb, not private."""
    return np.full(repeats, max(float(np.median(totals)), 1.0)), epsilon


def quantile_95(totals: Array, epsilon: float, repeats: int, rng: np.random.Generator) -> Caps:
    """A cap at the true 95% quantile, free of charge: a rule of thumb, not private."""
    return np.full(repeats, max(float(np.quantile(totals, 0.95)), 1.0)), epsilon


def amin2019(totals: Array, epsilon: float, repeats: int, rng: np.random.Generator) -> Caps:
    """amin2019 §3 literally: the ⌈1/ε⌉-th largest total, found by the exponential mechanism on ranks with ε/2."""
    edges = _powers(totals, 4)
    above = len(totals) - np.searchsorted(np.sort(totals), edges, side="right")
    return edges[_select(-np.abs(above - math.ceil(1 / epsilon)), 1.0, epsilon / 2, repeats, rng)], epsilon / 2


RULES: dict[str, Callable[[Array, float, int, np.random.Generator], Caps]] = {
    "median cap": median,
    "95% cap": quantile_95,
    "amin2019 literally": amin2019,
}


def _usual(totals: Array) -> float:
    """The scale on which public candidates are laid out: what one usual row is worth."""
    return max(2.0 ** math.floor(math.log2(max(float(np.median(totals)), 1.0))) / 16, 1.0)


def _powers(totals: Array, per_octave: int) -> Array:
    octaves = math.log2(_LARGEST)
    return _usual(totals) * 2.0 ** (np.arange(int(octaves * per_octave) + 1) / per_octave)


def _select(
    score: Array, sensitivity: float, epsilon: float, repeats: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """The exponential mechanism, by Gumbel noise."""
    weight = epsilon / (2 * sensitivity)
    return (weight * score + rng.gumbel(size=(repeats, len(score)))).argmax(axis=1)

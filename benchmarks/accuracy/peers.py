"""What others would do to cap a user's total, simulated from their documentation: caps for many repetitions at once.

None of these tools chooses the cap of a user's total by itself, so each entry follows its published advice as closely as it
applies, with half of ε for the choice unless the tool has a default of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.noise import discrete_laplace

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


def pipeline_dp(totals: Array, epsilon: float, repeats: int, rng: np.random.Generator) -> Caps:
    """PipelineDP's private contribution bounds, which exist for the number of partitions, carried over to rows.

    Score −½(noise + dropped rows), exponential mechanism with the sensitivity of a public upper bound (here 10⁴ usual rows),
    one tenth of ε for the choice.
    """
    limit = 1e4 * _usual(totals)
    edges = _powers(totals, 4)
    edges = edges[edges <= limit]
    dropped = np.array([np.maximum(np.minimum(totals, limit) - edge, 0).sum() for edge in edges])
    score = -(math.sqrt(2) * edges / (0.9 * epsilon) + dropped) / 2
    return edges[_select(score, limit, 0.1 * epsilon, repeats, rng, monotone=True)], 0.9 * epsilon


def tumult(totals: Array, epsilon: float, repeats: int, rng: np.random.Generator) -> Caps:
    """Tumult Analytics' get_bounds, then a cap there: the smallest power of two that holds about 95% of the users."""
    edges = _powers(totals, 1)
    inside = np.searchsorted(np.sort(totals), edges, side="right")
    counts = np.diff(np.concatenate([[0], inside, [len(totals)]]))
    noisy = counts + discrete_laplace(rng, 2 / epsilon, (repeats, len(counts)))
    reached = np.cumsum(noisy, axis=1) >= 0.95 * noisy.sum(axis=1, keepdims=True)
    return edges[np.minimum(reached.argmax(axis=1), len(edges) - 1)], epsilon / 2


def opendp(totals: Array, epsilon: float, repeats: int, rng: np.random.Generator) -> Caps:
    """OpenDP's recipe for unknown bounds: a private 95% quantile over candidates with ε/2, then clamp there."""
    edges = _powers(totals, 4)
    below = np.searchsorted(np.sort(totals), edges, side="right")
    score = -np.abs(0.05 * below - 0.95 * (len(totals) - below))
    return edges[_select(score, 0.95, epsilon / 2, repeats, rng)], epsilon / 2


PEERS: dict[str, Callable[[Array, float, int, np.random.Generator], Caps]] = {
    "median cap": median,
    "95% cap": quantile_95,
    "amin2019 literally": amin2019,
    "PipelineDP advice": pipeline_dp,
    "Tumult get_bounds": tumult,
    "OpenDP recipe": opendp,
}


def _usual(totals: Array) -> float:
    """The scale on which public candidates are laid out: what one usual row is worth."""
    return max(2.0 ** math.floor(math.log2(max(float(np.median(totals)), 1.0))) / 16, 1.0)


def _powers(totals: Array, per_octave: int) -> Array:
    octaves = math.log2(_LARGEST)
    return _usual(totals) * 2.0 ** (np.arange(int(octaves * per_octave) + 1) / per_octave)


def _select(
    score: Array, sensitivity: float, epsilon: float, repeats: int, rng: np.random.Generator, monotone: bool = False
) -> npt.NDArray[np.intp]:
    """The exponential mechanism, by Gumbel noise."""
    weight = epsilon / (sensitivity * (1 if monotone else 2))
    return (weight * score + rng.gumbel(size=(repeats, len(score)))).argmax(axis=1)

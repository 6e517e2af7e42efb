"""Which buckets of a noisy histogram hold users: the test that keeps a cap from following the noise.

A false alarm in a bucket at c times the true size costs c times the noise, so evidence must grow with the distance:
a bucket (or a run of 2 or 4 adjacent ones) counts as occupied if its noisy count would arise from noise alone with
probability at most e^-(a + b·ln(edge/reference)). With b ≥ 2 false alarms add little even to a squared error. The
search starts at the fullest bucket and goes up from one clearly occupied bucket to the next with a strict intercept, as often
as it can, then once more with a lenient one, since an alarm next to certain users costs little.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Pairs (a, b): evidence, as −ln of a probability, for a bucket at the reference, and by how much more is needed for each e-fold above it.
STRICT = (5.0, 2.0)
LENIENT = (0.5, 2.6)  # once, next to users who are certain
CAUTIOUS = (2.0, 3.0)  # the same where a wide bound costs more than a narrow one
ANY = (3.0, 1.1)  # for anybody at all, in three buckets together
CLEAR = (6.0, 2.0)  # as `STRICT`, where curves say what lies above
ANY_CLEAR = (8.0, 1.1)  # as `ANY`, likewise
_TAILS = {1: (2, 1, 0, 0, 0), 2: (4, 2, 1, 0, 0), 3: (16, 8, 5, 1, 0), 4: (96, 48, 33, 9, 1)}


def surprise(total: Array, run: int) -> Array:
    """−ln P(sum of ``run`` Laplace(1) variables > total); 0 where the total is not positive.

    The sum of k Laplace variables has tail e^-t times a polynomial of degree k−1 (integrate the bilateral gamma
    density by parts): e^-t/2, e^-t(2+t)/4, e^-t(8+5t+t²)/16, e^-t(48+33t+9t²+t³)/96 for k = 1 to 4.
    """
    t = np.maximum(total, 0.0)
    scale, a, b, c, d = _TAILS[run]
    return np.where(total > 0, t - np.log((a + t * (b + t * (c + t * d))) / scale), 0.0)


def highest_occupied(
    counts: Array, edges: Array, scale: float, unit: float = 1.0, last_step: tuple[float, float] = LENIENT
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The highest occupied bucket of each noisy histogram, and whether any bucket is clearly occupied at all.

    Args:
        counts: noisy counts, one histogram per row; column ``k`` belongs to the bucket that ends at ``edges[k]`` > 0.
        edges: upper edges of those buckets.
        scale: scale of the Laplace noise on each count.
        last_step: intercept and slope of the last step: `LENIENT` where quantiles of the error matter, `CAUTIOUS` where
            squares do.
        unit: a usual contribution (one row): the further above it, the more evidence it takes to believe in any users.
    """
    sums, sizes, fullest, found = _fullest(counts, edges, scale, unit)
    return _climb(sums, sizes, _certain(sums, sizes, fullest, STRICT, (1, 2)), last_step, (1, 2, 4)), found


def last_occupied(
    counts: Array, edges: Array, scale: float, unit: float = 1.0
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The last bucket that stands out, alone or with the one before it, and whether any users do: what a curve is laid through.

    Users beyond it are for the curve to say, so there is no lenient step; a false alarm comes about once in 600 profiles.
    """
    sums, sizes, fullest, found = _fullest(counts, edges, scale, unit, ANY_CLEAR)
    last = _certain(sums, sizes, fullest, CLEAR, (1, 2))
    # A pair of buckets may owe it all to its first one.
    rows, before = np.arange(len(last)), np.maximum(last - 1, 0)
    alone = (counts[rows, last] < 3 * scale) & (counts[rows, last] < counts[rows, before]) & (last > fullest)
    return np.where(alone, before, last), found


def _fullest(
    counts: Array, edges: Array, scale: float, unit: float, any_need: tuple[float, float] = ANY
) -> tuple[Array, Array, npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Sums of the evidence, logarithms of the edges, the fullest bucket, and whether it holds users."""
    repeats, width = counts.shape
    evidence, sizes = counts / scale, np.log(edges)
    sums = np.concatenate([np.zeros((repeats, 1)), np.cumsum(evidence, axis=1)], axis=1)
    rows = np.arange(repeats)
    # The fullest bucket inside the fullest run of three: one noisy bucket far up rarely wins against real neighbours.
    left, right = np.maximum(np.arange(width) - 1, 0), np.minimum(np.arange(width) + 2, width)
    threes = sums[:, right] - sums[:, left]
    crowd = threes.argmax(axis=1)
    near = np.clip(crowd[:, None] + np.array([-1, 0, 1]), 0, width - 1)
    fullest = near[rows, np.take_along_axis(evidence, near, axis=1).argmax(axis=1)]
    found = surprise(threes[rows, crowd], 3) >= any_need[0] + any_need[1] * np.maximum(sizes[crowd] - np.log(unit), 0.0)
    return sums, sizes, fullest, found


def _certain(
    sums: Array, sizes: Array, start: npt.NDArray[np.intp], need: tuple[float, float], runs: tuple[int, ...]
) -> npt.NDArray[np.intp]:
    """From one clearly occupied bucket to the next, as often as possible."""
    certain, before = _climb(sums, sizes, start, need, runs), start
    while (certain > before).any():
        certain, before = _climb(sums, sizes, certain, need, runs), certain
    return certain


def _climb(
    sums: Array, sizes: Array, start: npt.NDArray[np.intp], need: tuple[float, float], runs: tuple[int, ...]
) -> npt.NDArray[np.intp]:
    top, width = start.copy(), len(sizes)
    for run in runs:
        if run > width:
            continue
        ends = np.arange(run - 1, width)
        distance = sizes[ends][None, :] - sizes[start][:, None]
        occupied = surprise(sums[:, run:] - sums[:, :-run], run) >= need[0] + np.log(len(runs)) + need[1] * distance
        occupied &= (ends - run + 1)[None, :] > start[:, None]
        last = len(ends) - 1 - occupied[:, ::-1].argmax(axis=1)
        top = np.maximum(top, np.where(occupied.any(axis=1), ends[last], 0))
    return top

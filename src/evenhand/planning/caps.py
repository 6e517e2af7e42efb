"""The private choice of a total cap for counts and sums, from a noisy histogram of users by contribution.

The contract: the caller buys a histogram over `Buckets` with ``split(epsilon, PROFILE_SHARE)`` (each user in one bucket;
discrete Laplace noise of scale sensitivity/ε₁ on every count), hands the noisy integers to `choose_total_cap`, and
releases ``Σ clip(x, ±T)`` with what is left. The choice reads released numbers only, so it costs nothing more
(post-processing). The obvious alternative, an exponential mechanism on the rank 1/ε, is a trap: the exponent's gap
between the wanted rank and "nobody above" is a constant, so absurd caps are chosen with constant probability.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import UsageError
from evenhand.planning.buckets import Buckets
from evenhand.planning.choice import Choice
from evenhand.planning.occupied import highest_occupied

PROFILE_SHARE = Decimal("0.35")
"""Share of ε that buys the profile. Found by simulation; flat between 0.3 and 0.4."""

_HIDDEN_TAIL = 1.2  # users too few to be seen add to the bias that the visible ones show

Array = npt.NDArray[np.float64]


def choose_total_cap(
    buckets: Buckets,
    counts: npt.ArrayLike,
    epsilon_profile: Decimal | float,
    epsilon: Decimal | float,
    sensitivity: int = 1,
    two_sided: int = 1,
) -> Choice:
    """Choose the cap ``T`` on each user's total that minimises forecast noise and bias together.

    Guarantee: reads only the noisy histogram; private by post-processing.

    Edge cases: if no bucket is clearly occupied (few users, tiny ε, an empty table) the cap is what one row
    can be worth, so that what is released is small noise around a small number.

    Args:
        buckets: the public raster.
        counts: the noisy histogram, one integer a bucket.
        epsilon_profile: ε with which the histogram was bought.
        epsilon: ε left for the capped sum.
        sensitivity: how far one user moves the histogram: 1 (presence) or 2 (values).
        two_sided: how many times ``T`` one user moves the capped sum: 1, or 2 for signed values under replacement.

    Example:
        >>> many = [0, 0, 0, 2000, 0, 0, 0, 0]
        >>> choose_total_cap(Buckets((0, 1, 2, 4, 6, 10, 16)), many, 0.5, 0.5).parameter
        4

    Reference: amin2019 §3; method.md §2.
    """
    noisy = np.asarray(counts, dtype=np.float64)
    if noisy.shape != (buckets.size,):
        raise UsageError(f"counts has {noisy.size} entries; expected one for each of the {buckets.size} buckets.")
    caps, biases, found = total_caps(
        buckets, noisy[None, :], float(epsilon_profile), float(epsilon), sensitivity, two_sided
    )
    cap, bias = int(caps[0]), float(biases[0])
    noise_sd = math.sqrt(2) * two_sided * cap / float(epsilon)
    return Choice(
        strategy="total cap",
        parameter=cap,
        noise_sd=noise_sd,
        bias=bias,
        basis="a noisy histogram of users by contribution, bought with part of ε"
        if found[0]
        else "no users visible at this ε",
        words=_words(cap, noise_sd, bias, bool(found[0])),
        epsilon_sum=Decimal(str(epsilon)),
        visible=bool(found[0]),
    )


def total_caps(
    buckets: Buckets,
    counts: Array,
    epsilon_profile: float,
    epsilon: float,
    sensitivity: int = 1,
    two_sided: int = 1,
) -> tuple[npt.NDArray[np.int64], Array, npt.NDArray[np.bool_]]:
    """`choose_total_cap` for many noisy histograms at once (one a row): caps, forecast biases, and whether users were seen."""
    edges = np.array(buckets.edges[1:], dtype=np.float64)
    inner = counts[:, 1:-1]  # neither the users at or below 0 nor the open bucket can carry a cap
    top, found = highest_occupied(inner, edges, sensitivity / epsilon_profile, buckets.unit)
    at_most_top = np.arange(len(edges))[None, :] <= top[:, None]
    users = np.where(at_most_top, inner, 0.0)
    below = np.concatenate([[0.0], edges[:-1]])
    middle = (below + 1 + edges) / 2  # the mean of the integers in the bucket
    above = _sum_above(users)
    bias = np.maximum(_sum_above(users * middle) - above * edges, 0.0)
    squared = 2 * (two_sided * edges / epsilon) ** 2 + (_HIDDEN_TAIL * bias) ** 2
    best = np.where(at_most_top, squared, np.inf).argmin(axis=1)
    best = np.where(found, best, int(np.searchsorted(edges, buckets.unit)))
    caps = np.array(buckets.edges[1:], dtype=np.int64)[best]
    return caps, np.where(found, bias[np.arange(len(best)), best], 0.0), found


def _sum_above(values: Array) -> Array:
    """For each column, the sum of the columns to its right."""
    return np.cumsum(values[:, ::-1], axis=1)[:, ::-1] - values


def _words(cap: int, noise_sd: float, bias: float, found: bool) -> str:
    if not found:
        return "No group of users stands out from the noise at this ε, so each user counts as at most one row."
    return (
        f"Each user counts up to {cap:,}. A higher cap would need more noise for everybody (now ±{noise_sd:,.0f}); a "
        f"lower one would cut more off the largest users (now about {bias:,.0f})."
    )

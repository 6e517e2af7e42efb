"""The private choice for a mean: a located mean where users can be located, smooth weights otherwise.

The contract. Rows are integers in [L, H] on a public grid; user l has s rows that sum to X.

- *Located mean* with centre C and caps a, b (integers): contribution ``clip(X − s·C, −a, b)``, one user moves the sum by
  max(a, b) (presence) or a + b (values). Mean = C + (sum + noise)/D. Under values D = Σs is public; under presence D = Σ min(s, H) is
  released beside it: its error counts only in proportion to the distance of the mean from C, so it gets little of ε.
- *Smooth weights* with h: under values Σ min(h,s)·X/s over the public Σ min(h,s); under presence the pair of
  method.md §3, whose L1 sensitivity is h.

Clipping around a located centre is the centred interval of rameshwar2024 with its centre moved to where the users are.
What is cut on one side makes up for the other, so most of the bias cancels (`clipping.py`).
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from evenhand.guarantee import Relation, split
from evenhand.planning.choice import Choice
from evenhand.planning.clipping import cut_bias, cuts
from evenhand.planning.location import Location
from evenhand.planning.weights import HETEROGENEITY, ROW_SD, Sums, Support, smooth_bound

MEAN_SHARE = Decimal("0.25")
"""Share of ε that buys the profile of row counts for a mean; the rest locates and releases it."""

ROWS_SHARE = Decimal("0.2")
_OFF_CENTRE = 0.22  # distance of the mean from the centre, in root mean squared distances of user means from it
_USUAL_CENTRE = 0.25  # of the range, when nothing was found
_CAPS = 96


def choose_mean(
    support: Support,
    bounds: tuple[int, int],
    epsilon: Decimal,
    relation: Relation,
    location: Location | None = None,
    heterogeneity: float | None = None,
) -> Choice:
    """Choose strategy and bound for a mean by forecast error.

    Guarantee: reads public facts and bought ones only.

    Args:
        support: users by number of rows: public under values, bought under presence.
        bounds: L and H, the integer bounds of one row.
        epsilon: what is left for the release.
        relation: the neighbour relation.
        location: what `locate` found; None if nothing was bought or found.
        heterogeneity: ρτ as a part of H − L, if the analyst states it.

    Reference: method.md §3.
    """
    length = float(bounds[1] - bounds[0])
    smooth = _smooth(support, length, epsilon, relation, location, heterogeneity)
    if location is None:
        return smooth
    located = _located(support, bounds, epsilon, relation, location)
    return located if located.error <= smooth.error else smooth


def _smooth(
    support: Support,
    length: float,
    epsilon: Decimal,
    relation: Relation,
    location: Location | None,
    heterogeneity: float | None,
) -> Choice:
    differ, moved = _differ(location, heterogeneity), _pair_shape(relation, location)
    h = smooth_weights_for_mean(support, float(epsilon), relation, location, heterogeneity)
    support = support.spread_out()
    sums, at = Sums.of(support), np.array([float(h)])
    kept = float(sums.kept(at)[0])
    noise_sd = math.sqrt(2) * length * moved * float(h) / (float(epsilon) * kept)
    bias = length * differ * math.sqrt(float(sums.chi_square(at)[0]))
    cut = float(support.users[support.sizes > float(h)].sum())
    return Choice(
        strategy="smooth weights",
        parameter=h,
        noise_sd=noise_sd,
        bias=bias,
        basis=_basis(relation),
        words=(
            f"A user with more than {float(h):,.4g} rows weighs as much as one with {float(h):,.4g}; this touches about {cut:,.0f} "
            "users. To touch fewer would need more noise; to touch more would bias the mean if busy users differ from others."
        ),
        epsilon_sum=epsilon,
    )


def smooth_weights_for_mean(
    support: Support,
    epsilon: float,
    relation: Relation,
    location: Location | None = None,
    heterogeneity: float | None = None,
) -> Fraction:
    """The bound ``h`` of smooth weights that forecasts the smallest error of a mean; arguments as for `choose_mean`."""
    moved, differ = _pair_shape(relation, location), _differ(location, heterogeneity)
    h = smooth_bound(support.spread_out(), ROW_SD**2, moved, epsilon, differ)
    return Fraction(h).limit_denominator(1000)


def _differ(location: Location | None, heterogeneity: float | None) -> float:
    """ρτ, how far busy users differ from others, as a part of the range."""
    if heterogeneity is not None:
        return heterogeneity
    if location is None:
        return HETEROGENEITY
    return max(HETEROGENEITY, location.spread / 5)  # ρ = 1/5 of the spread that was found


def _pair_shape(relation: Relation, location: Location | None) -> float:
    """How much of the range the noise of smooth weights spans.

    Under presence the mean is a/(a + b) of two noisy sums, so its noise is that of (1 − m)·a − m·b.
    """
    if relation is not Relation.PRESENCE:
        return 1.0
    centre = _USUAL_CENTRE if location is None else location.centre
    return math.hypot(centre, 1 - centre)


def _located(
    support: Support, bounds: tuple[int, int], epsilon: Decimal, relation: Relation, location: Location
) -> Choice:
    low, high = bounds
    length = float(high - low)
    centre = round(low + location.centre * length)
    for_rows, for_sum = (Decimal(0), epsilon)
    rows, rows_cap, denominator = support.rows, None, 0.0
    reach = float(support.sizes[-1] * np.abs(location.offsets).max() * length)
    caps = np.geomspace(max(reach * 1e-5, 1.0), max(reach, 1.0), _CAPS)
    if relation is Relation.PRESENCE:
        for_rows, for_sum = split(epsilon, ROWS_SHARE)
        rows_cap = max(1, math.ceil(rows_cap_for(support, float(for_rows))))
        denominator = rows_noise(support, location, length, float(for_rows))
        lower = upper = np.arange(_CAPS)  # the larger of the two is paid for, so both may be as large
        moved = caps
    else:
        lower, upper = np.indices((_CAPS, _CAPS)).reshape(2, -1)
        moved = caps[lower] + caps[upper]
    below, above = cuts(support, location, length, caps)
    bias = cut_bias(below.at(lower), above.at(upper))
    noise = math.sqrt(2) * moved / float(for_sum)
    best = int((noise**2 + bias**2).argmin())
    return Choice(
        strategy="located mean",
        parameter=max(1, math.ceil(caps[upper[best]])),
        below=max(1, math.ceil(caps[lower[best]])),
        noise_sd=math.hypot(float(noise[best]) / rows, denominator),
        bias=float(bias[best]) / rows,
        basis=_basis(relation) + ", and a noisy histogram of user means",
        words=(
            "User means lie close together, so each user's total is clipped narrowly around their common centre: far less noise than "
            "the whole range would need."
        ),
        centre=centre,
        epsilon_sum=for_sum,
        epsilon_rows=for_rows,
        rows_cap=rows_cap,
        rows=rows,
    )


def rows_cap_for(support: Support, epsilon: float) -> float:
    """The cap on rows that minimises noise and cut of Σ min(s, H) together."""
    sums, caps = Sums.of(support), support.sizes
    error2 = 2 * (caps / epsilon) ** 2 + (support.rows - sums.kept(caps)) ** 2
    return float(caps[error2.argmin()])


def rows_noise(support: Support, location: Location, length: float, epsilon: float) -> float:
    """What the noise of a secret number of rows adds to a located mean: as much as the mean lies off the centre."""
    off = _OFF_CENTRE * location.spread * length
    return off * math.sqrt(2) * rows_cap_for(support, epsilon) / (epsilon * support.rows)


def _basis(relation: Relation) -> str:
    if relation is Relation.PRESENCE:
        return "a noisy histogram of users by number of rows, bought with part of ε"
    return "the public number of rows of each user"

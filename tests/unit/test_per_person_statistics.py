"""Standard deviations, averages over users and ratios: without noise, the numbers of their formulas."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from statistics import fmean, pstdev
from typing import Any

import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.guarantee import EvenhandError, Relation
from evenhand.ledger import Cost
from evenhand.noise import Laplace
from evenhand.release import Additive, Exact, Quotient
from evenhand.session import Drafts
from evenhand.statistics import Std
from watch import watch

SHOPS = ("a", "b")
SALES: list[tuple[str | None, str, float | None]] = [
    ("one", "a", 3.0), ("one", "a", None), ("two", "a", 4.0), ("two", "b", -1.0), ("two", "b", 0.25),
    *[("many", "a", 3.75)] * 40, ("refund", "b", 900.0), ("refund", "b", -880.0), (None, "a", 4.0), ("none", "b", None),
    ("far", "b", math.inf), ("far", "b", 1.0),
]  # fmt: skip
TABLE = pa.table({name: [row[place] for row in SALES] for place, name in enumerate(("u", "g", "v"))})
Values = dict[tuple[str, ...], list[float]]


def released(ask: Any, relation: str = "presence") -> Any:
    public = ["g"] if relation == "values" else []
    return watch(eh.read(TABLE, user="u", protects=relation, public=public), ask).outcome


def rows(low: float, high: float, by: bool = False, filled: float | None = None) -> Values:
    """The clamped values of each user, or of each user in each group."""
    found: Values = defaultdict(list)
    for user, group, value in SALES:
        if user is not None and (value is not None or filled is not None):
            number = filled if value is None else value
            assert number is not None
            found[(user, group) if by else (user,)].append(min(max(number, low), high))
    return found


def test_the_mean_over_users_of_their_means() -> None:
    expected = fmean(fmean(values) for values in rows(-1, 4).values())
    found = released(lambda ask: ask.per_user_mean("v", bounds=(-1, 4), epsilon=1, bounding=eh.TotalCap(4)))
    assert found.value == pytest.approx(expected, abs=1e-6)
    capped = fmean(min(fmean(values), 2.5) for values in rows(-1, 4).values())
    found = released(lambda ask: ask.per_user_mean("v", bounds=(-1, 4), epsilon=1, bounding=eh.TotalCap("2.5")))
    assert found.value == pytest.approx(capped, abs=1e-6)


def test_the_mean_over_users_of_their_totals_clamps_totals_and_not_rows() -> None:
    totals = {user: min(max(sum(values), 0), 160) for (user,), values in rows(-math.inf, math.inf).items()}
    assert totals["refund"] == 20
    assert totals["far"] == 160
    found = released(
        lambda ask: ask.per_user_mean("v", bounds=(0, 160), of="total", epsilon=1, bounding=eh.TotalCap(160))
    )
    assert found.value == pytest.approx(fmean(totals.values()), abs=1e-5)


def test_under_values_a_missing_number_is_nothing_in_a_total_and_the_middle_in_a_mean() -> None:
    totals = [min(sum(values), 160) for values in rows(-math.inf, math.inf, filled=0.0).values()]
    found = released(
        lambda ask: ask.per_user_mean("v", bounds=(0, 160), of="total", epsilon=1, bounding=eh.TotalCap(160)), "values"
    )
    assert found.value == pytest.approx(fmean(totals), abs=1e-5)
    means = [fmean(values) for values in rows(-1, 4, filled=1.5).values()]
    found = released(lambda ask: ask.per_user_mean("v", bounds=(-1, 4), epsilon=1, bounding=eh.TotalCap(4)), "values")
    assert found.value == pytest.approx(fmean(means), abs=1e-6)


@pytest.mark.parametrize("of", ["mean", "total"])
def test_by_group_a_user_has_one_value_in_each(of: str) -> None:
    high = 4.0 if of == "mean" else 160.0
    found = released(
        lambda ask: ask.per_user_mean(
            "v", bounds=(-1, high), of=of, by="g", keys=list(SHOPS), epsilon=1, bounding=eh.NormClip(2)
        )
    ).value
    values = rows(-1, high, by=True) if of == "mean" else rows(-math.inf, math.inf, by=True)
    for shop, released_value in zip(SHOPS, found.per_user_mean, strict=True):
        own = [
            fmean(each) if of == "mean" else min(max(sum(each), -1), high)
            for (_, g), each in values.items()
            if g == shop
        ]
        assert released_value == pytest.approx(fmean(own), abs=2e-3)


@pytest.mark.parametrize(("low", "high"), [(1e6, 1e6 + 1), (-3e-7, 1e-9), (-1e140, 1e140)])
def test_totals_within_awkward_bounds(low: float, high: float) -> None:
    middle = low / 2 + high / 2
    table = eh.read(pa.table({"u": [1, 1, 2], "v": [middle / 4, middle * 3 / 4, high]}), user="u")
    cap = eh.TotalCap(max(abs(low), abs(high)))
    found = watch(table, lambda ask: ask.per_user_mean("v", bounds=(low, high), of="total", epsilon=1, bounding=cap))
    assert found.outcome.value == pytest.approx((middle + high) / 2, abs=(high - low) * 1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"of": "median"}, "expected of='mean'"),
        ({"bounding": eh.RowLimit(2)}, "counts each user once"),
        ({"bounding": eh.SmoothWeights(1)}, "counts each user once"),
        ({"bounding": eh.Auto(profile=eh.Profile.pareto(users=100, rows=500, alpha=2))}, "counts each user once"),
        ({"bounds": (5, 10), "bounding": eh.TotalCap(4)}, "lies below bounds"),
        ({"bounds": (1e15, 1e15 + 1), "of": "total"}, "too close together"),
    ],
    ids=repr,
)
def test_refused_before_anything_is_read(options: dict[str, Any], words: str) -> None:
    with pytest.raises(eh.UsageError, match=words):
        Drafts(eh.read(TABLE, user="u")).per_user_mean("v", **{"bounds": (0, 4), "epsilon": 1, **options})


def test_a_standard_deviation_is_the_root_of_the_variance_and_never_negative() -> None:
    numbers = [value for values in rows(-1, 4).values() for value in values]
    std = released(lambda ask: ask.std("v", bounds=(-1, 4), epsilon=1, bounding=eh.NormClip(50)))
    assert std.value == pytest.approx(pstdev(numbers), abs=1e-3)
    constant = {"above": 500 * 2**15, "below": 500 * 2**15, "square": -300, "rest": 1000 * 3 * 2**16}
    estimate = Std("v", (-1, 4)).read(constant, Laplace(Fraction(10**5)))
    assert estimate.value == 0
    assert estimate.interval.at(0.95)[0] == 0
    assert 0 < estimate.noise < 5


def test_a_ratio_of_two_statistics() -> None:
    values = rows(-1, 4)
    total, people = sum(sum(each) for each in values.values()), len(values)
    cap = eh.TotalCap(1000)
    found = released(lambda ask: ask.ratio(eh.sum("v", bounds=(-1, 4)), eh.users(), epsilon=100, bounding=cap))
    # A number of users counts those without a number too, as `users` does.
    assert found.value == pytest.approx(total / (people + 1), abs=1e-5)
    public = released(lambda ask: ask.ratio(eh.count(), eh.users(), epsilon=1), "values")
    assert public.value == (len(SALES) - 1) / 6
    assert public.interval.at(0.95) == (public.value, public.value)
    by = released(
        lambda ask: ask.ratio(
            eh.count(), eh.users(), by="g", keys=["a", "b", "empty"], epsilon=1000, bounding=eh.NormClip(50)
        )
    ).value.ratio
    assert by[0] == pytest.approx(43 / 3, abs=1e-3)
    assert math.isnan(by[2])


def test_the_two_of_a_ratio_share_epsilon_and_a_public_one_takes_none() -> None:
    ratio, one = eh.ratio(eh.sum("v", bounds=(0, 4)), eh.users()), Decimal(1)
    assert ratio.shares(Relation.PRESENCE, one) == (Decimal("0.8"), Decimal("0.2"))
    assert ratio.shares(Relation.VALUES, one)[0] == 1
    assert eh.ratio(eh.count(), eh.sum("v", bounds=(0, 4))).shares(Relation.PRESENCE, one) == (one / 2, one / 2)
    with pytest.raises(EvenhandError, match="more privacy budget"):  # the receipt counts down: two whole ε are refused
        watch(
            eh.read(TABLE, user="u"),
            lambda ask: replace(ask.ratio(eh.count(), eh.users(), epsilon=1), cost=Cost.pure("0.9")),
        )


@pytest.mark.parametrize("part", ["count", eh.mean("v", bounds=(0, 1)), None, eh.count], ids=repr)
def test_a_ratio_is_of_counts_users_and_sums(part: Any) -> None:
    with pytest.raises(eh.UsageError, match=r"expected eh\.count\(\), eh\.users\(\)"):
        Drafts(eh.read(TABLE, user="u")).ratio(eh.count(), part, epsilon=1)


def test_a_quotient_at_its_limits() -> None:
    noise = Laplace(Fraction(10))
    lost = Quotient(Additive(500.0, noise, 1.0), Additive(3.0, noise, 1.0), nonnegative=True)
    assert math.isnan(lost.value)
    low, high = lost.at(0.95)
    assert 0 < low < 500 / 3
    assert high == math.inf
    assert "does not stand out" in lost.covers
    signed = Quotient(Additive(500.0, noise, 1.0), Additive(-3.0, noise, 1.0), nonnegative=False)
    assert signed.at(0.95) == (-math.inf, math.inf)
    assert Quotient(Exact(6), Exact(4), True).at(0.95) == (1.5, 1.5)
    assert Quotient(Exact(6), Exact(0), True).at(0.95) == (0.0, math.inf)
    negative = Quotient(Additive(-5.0, noise, 1.0), Additive(1e6, noise, 1.0), nonnegative=True)
    assert negative.value == 0
    assert negative.at(0.95)[0] == 0
    exact_above = Quotient(Exact(10**6), Additive(1000.0, noise, 1.0), nonnegative=True)
    low, high = exact_above.at(0.95)
    radius = noise.radius(0.95) + 1
    assert low == pytest.approx(10**6 / (1000 + radius), rel=2e-3)
    assert high == pytest.approx(10**6 / (1000 - radius), rel=2e-3)

"""The posterior over contributions: which bound, what it cuts off, and that it reads nothing but noisy counts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from evenhand.noise import Laplace
from evenhand.population import Cut, CutTotal, Population, row_buckets, total_buckets
from evenhand.release import Additive
from evenhand.release.intervals import covers, why_not
from evenhand.statistics.believing import Corrected, corrected

BUCKETS = row_buckets()


def test_the_same_counts_give_the_same_answer() -> None:
    counts = BUCKETS.histogram(np.arange(1, 300)) + np.random.default_rng(1).laplace(0, 3, BUCKETS.size)
    one, two = (Population.behind(BUCKETS, counts, 3.0) for _ in range(2))
    assert one.best(2.0) == two.best(2.0)
    assert (one.cut(50).amounts == two.cut(50).amounts).all()


def test_without_noise_what_a_cap_cuts_off_is_known() -> None:
    rows = np.random.default_rng(2).integers(1, 101, 5000)
    cut = Population.behind(BUCKETS, BUCKETS.histogram(rows), 1e-6).cut(40)
    exact = np.maximum(rows - 40, 0).sum()
    assert abs(cut.median - exact) < 0.05 * exact
    assert cut.quantile(0.01) < exact < cut.quantile(0.99)


def test_a_higher_cap_cuts_off_less() -> None:
    rows = np.ceil(np.random.default_rng(3).lognormal(2, 1.5, 5000)).astype(np.int64)
    believed = Population.behind(
        BUCKETS, BUCKETS.histogram(rows) + np.random.default_rng(4).laplace(0, 5, BUCKETS.size), 5.0
    )
    medians = [believed.cut(cap).median for cap in (16, 64, 256, 4096)]
    assert medians == sorted(medians, reverse=True)
    assert believed.cut(2**39).median == 0


def test_more_noise_means_a_lower_cap() -> None:
    rows = np.ceil(np.random.default_rng(3).lognormal(2, 1.5, 5000)).astype(np.int64)
    believed = Population.behind(BUCKETS, BUCKETS.histogram(rows), 1.0)
    caps = [believed.best(noise) for noise in (0.1, 1.0, 10.0, 100.0)]
    assert caps == sorted(caps, reverse=True)
    assert caps[0] > caps[-1]


@pytest.mark.parametrize("unit", [80, 2**30])
def test_noise_alone_never_gives_a_cap_far_above_what_is_usual(unit: int) -> None:
    """200 people with one row each and bounds set far too wide: a false alarm would multiply the noise."""
    rng, buckets = np.random.default_rng(5), total_buckets(unit)
    counts = buckets.histogram(np.full(200, max(unit // 100, 1)))
    for _ in range(12):
        believed = Population.behind(buckets, counts + np.rint(rng.laplace(0, 30, buckets.size)), 30.0)
        assert believed.best(15.0) <= 20 * unit


@pytest.mark.parametrize("value", [0, -(10**6), 10**12])
def test_any_counts_give_finite_amounts(value: int) -> None:
    believed = Population.behind(BUCKETS, [value] * BUCKETS.size, 1.0)
    cut = believed.cut(believed.best(1.0))
    assert np.isfinite(cut.amounts).all()
    assert cut.weights.sum() == pytest.approx(1)


def test_amounts_of_either_sign_have_no_median_and_the_other_sign_turns_them() -> None:
    cut = Cut.of(np.array([1.0, 2.0, 4.0]), np.array([0.25, 0.5, 0.25]))
    assert cut.median == 2
    assert cut.times(-1).median == -2
    assert cut.times(-1).quantile(0.01) == -4
    assert cut.of_either_sign().median == 0


def test_a_power_law_that_begins_above_a_crowd_of_people_who_are_alike_is_seen() -> None:
    """9,500 people with about 18 rows and 500 of a heavy kind: a curve through all of them would end far too early."""
    rng = np.random.default_rng(6)
    rows = np.ceil(np.concatenate([rng.gamma(6, 3, 9500), 12 * (1 + rng.pareto(1.5, 500))])).astype(np.int64)
    believed = Population.behind(BUCKETS, BUCKETS.histogram(rows) + rng.laplace(0, 1, BUCKETS.size), 1.0)
    cut, exact = believed.cut(161), np.maximum(rows - 161, 0).sum()
    assert cut.quantile(0.05) < exact < cut.quantile(0.95)


def test_a_crowd_far_above_all_others_is_feared_as_far_as_the_counts_say() -> None:
    """90 robots among 5,000 people, noise of scale 10: too few to stand out, too many for noise. The noise itself is left out."""
    people = BUCKETS.histogram(np.random.default_rng(7).geometric(0.1, 5000))
    robots = BUCKETS.histogram(np.random.default_rng(8).integers(2000, 4001, 90))
    without, with_robots = (Population.behind(BUCKETS, counts, 10.0) for counts in (people, people + robots))
    assert with_robots.last == without.last
    assert with_robots.cut(101).quantile(0.975) > 90 * 2000
    assert without.cut(101).quantile(0.975) < 5000


def test_a_crowd_that_may_be_noise_is_named_and_so_is_how_many_may_hide() -> None:
    scale = 10.0
    people = np.random.default_rng(2).geometric(0.1, 5_000)
    counts = BUCKETS.histogram(people).astype(np.float64)

    def released(noisy: npt.NDArray[np.float64]) -> Corrected:
        believed = Population.behind(BUCKETS, noisy, scale)
        cut = believed.cut(believed.best(math.sqrt(2) / 0.2))
        return corrected(Additive(float(people.sum()), Laplace(Fraction(200)), 1.0), cut, whole=True)

    ordinary, suspicious = counts.copy(), counts.copy()
    suspicious[BUCKETS.index(np.array([3_000]))] += 9 * scale
    assert why_not(released(ordinary).interval) == ""
    assert "up to about 80 users far above all others could be missed" in covers(released(ordinary).interval)
    assert why_not(released(suspicious).interval)
    assert (
        Population.behind(BUCKETS, ordinary, scale).crowd < 0.025 < Population.behind(BUCKETS, suspicious, scale).crowd
    )


def test_on_top_of_people_who_are_alike_a_power_law_is_expected() -> None:
    """All below the last visible bucket are alike: what lies above is of another kind, and may go on for long."""
    scale = 10.0
    rng = np.random.default_rng(3)
    alike = 1 + rng.poisson(15, 7_000)
    tail = np.ceil(30 * (1 + rng.pareto(1.6, 300))).astype(np.int64)
    upper = []
    for rows in (np.concatenate([alike, tail]), rng.geometric(1 / 16, 7_300)):
        believed = Population.behind(BUCKETS, BUCKETS.histogram(rows), scale)
        upper.append(believed.cut(100).quantile(0.975))
    lost = float(np.maximum(tail - 100, 0).sum())
    assert upper[0] > 2 * lost
    assert upper[0] > 3 * upper[1]


def test_a_crowd_that_no_bucket_shows_shows_in_the_total() -> None:
    """200 of 4,000 are busy, over three buckets, and the noise hides them there: each adds the bound to the total."""
    rng, scale, bound = np.random.default_rng(11), 28.6, 6
    people, busy = rng.integers(1, 6, 3800), rng.integers(100, 400, 200)
    counts = BUCKETS.histogram(people) + BUCKETS.histogram(busy)
    believed = Population.behind(BUCKETS, counts, scale)
    measured = float(people.sum())
    alone, together = (believed.given(total, bound, 92.0) for total in (measured, measured + 200 * bound))
    assert 10 * alone.crowd < together.crowd
    assert alone.cut(bound).quantile(0.99) < 0.01 * busy.sum() < 0.5 * busy.sum() < together.cut(bound).quantile(0.99)


@pytest.mark.parametrize("value", [0.0, -1e12, 1e18])
def test_any_total_gives_finite_amounts(value: float) -> None:
    for counts in (np.zeros(BUCKETS.size), BUCKETS.histogram(np.arange(1, 300))):
        believed = Population.behind(BUCKETS, counts, 3.0)
        cut = CutTotal(believed, 10).given(value, 2.0)
        assert np.isfinite(cut.amounts).all()
        assert cut.weights.sum() == pytest.approx(1)


def test_a_negative_total_says_the_same_and_one_of_either_sign_says_nothing() -> None:
    believed = Population.behind(BUCKETS, BUCKETS.histogram(np.random.default_rng(12).geometric(0.1, 2000)), 5.0)
    positive, negative = CutTotal(believed, 25, 0.5), CutTotal(believed, 25, -0.5)
    one, other = positive.given(17_000, 100.0), negative.given(-17_000, 100.0)
    assert (one.amounts == -other.amounts[::-1]).all()
    assert one.median != positive.expected.median
    either = CutTotal(believed, 25, 0.5, either_sign=True)
    assert either.given(17_000, 100.0) is either.expected


def test_within_a_bucket_users_lie_as_its_neighbours_say() -> None:
    """Most users of a steep law have the least that their bucket allows; halfway would be too much."""
    rows = np.ceil(1 + np.random.default_rng(13).pareto(2.0, 200_000)).astype(np.int64)
    believed = Population.behind(BUCKETS, BUCKETS.histogram(rows), 1.0)
    each = believed.weights @ believed.means
    for bucket in range(2, 7):
        inside = rows[(rows >= believed.lows[bucket]) & (rows <= believed.highs[bucket])].mean()
        assert abs(each[bucket] - inside) < 0.6 * (believed.sizes[bucket] - inside)

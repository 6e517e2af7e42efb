"""What bounding takes from groups: the model, its correction, and how it reaches releases."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.bounding import ONCE_EACH, Breadth, Lost, MovedWeight, fitted_breadths, losses_by_group
from evenhand.bounding.cut_distances import _EDGES, ONE_SIDED, CutDistances, Distances, part_lost
from evenhand.noise import Gaussian, Laplace, seam
from evenhand.profiles import Histogram, Population, Support, norm_buckets, support_of_counts, users_by_place
from evenhand.release import Additive, Believed, Unknown
from evenhand.release.believed import Widened, ends_of
from evenhand.release.intervals import Quotient, judged, noise_only, why_not
from evenhand.statistics import located_groups
from evenhand.statistics.believed_groups import MOSTLY, REFUTED, TOTALS, believed_distances, believed_totals
from evenhand.statistics.believed_ratios import believed_quotient, measured_quotient
from evenhand.statistics.count import Count
from evenhand.statistics.pairs import ROW
from evenhand.statistics.statistic import Estimate

TENTH = [(0.0, Population.exactly(Support(np.array([0.1]), np.ones(1))))]  # everybody lies a tenth of the range away


def test_l2_norms_and_what_a_user_adds_are_inverse() -> None:
    added = np.array([1.0, 3.0, 50.0, 4000.0])
    for breadth in (*ONCE_EACH, Breadth(1, 1.0, 1.0), Breadth(1, 1.0, 0.05)):
        assert breadth.added(breadth.l2(added)) == pytest.approx(added)
    assert ONCE_EACH[0].l2(added) == pytest.approx(np.sqrt(added))  # once in each of v groups
    assert Breadth(1, 1.0, 1.0).l2(added) == pytest.approx(added)  # everything in one group


def test_how_users_spread_over_groups_is_read_off_both_histograms() -> None:
    rng = np.random.default_rng(1)
    rows = np.ceil(rng.lognormal(3, 1, 20_000))
    buckets = norm_buckets()
    for true in (Breadth(1, 1.0, 1.0), Breadth(1, 1.0, 0.02), *ONCE_EACH):
        l1, l2 = (
            Histogram(buckets, buckets.histogram(np.ceil(norm).astype(np.int64)).tolist(), 1.0, "")
            for norm in (rows, true.l2(rows))
        )
        best = fitted_breadths(l1.smoothed, l2, 50)[0]
        assert best.concentration == pytest.approx(true.concentration, rel=0.6)


def test_where_rows_are_public_the_loss_is_exact() -> None:
    lost = Lost.of(Population.exactly(support_of_counts([1, 5, 20])), ONCE_EACH, 4.0, gaussian=False)
    assert lost.total.tolist() == [17.0]
    assert lost.kept.tolist() == [9.0]
    assert lost.per_group.tolist() == pytest.approx([1 / 5 + 256 / 20])


def test_losses_add_up_and_a_correction_stays_below_them() -> None:
    lost = Lost(np.ones(1), np.array([600.0]), np.array([6000.0]), np.array([900.0]), np.array([30.0]))
    released = np.array([3000.0, 2000.0, 900.0, 100.0])
    found = losses_by_group(lost, released, 10.0)
    means = found.amounts @ found.weights
    assert means.sum() == pytest.approx(600, rel=0.05)
    assert means == pytest.approx(600 * released / 6000, rel=0.1)
    assert (found.sure < means).all()
    assert found.sure.sum() > 100
    assert (found.mostly < 0.01).all()


def test_a_group_that_may_be_mostly_cut_is_told() -> None:
    lost = Lost(np.ones(1), np.array([9000.0]), np.array([3000.0]), np.array([9e4]), np.array([9e3]))
    assert (losses_by_group(lost, np.full(10, 300.0), 5.0).mostly > 0.5).all()


def test_outcomes_that_explain_the_released_total_are_believed() -> None:
    both = np.array([0.5, 0.5])
    lost = Lost(both, np.array([100.0, 5000.0]), np.array([1000.0, 3000.0]), np.full(2, 1e3), np.full(2, 1e3))
    light, heavy = (losses_by_group(lost, np.full(5, total / 5), 5.0) for total in (1000.0, 3000.0))
    assert float((light.amounts @ light.weights).sum()) == pytest.approx(100, rel=0.1)
    assert float((heavy.amounts @ heavy.weights).sum()) == pytest.approx(5000, rel=0.1)


def test_groups_that_hold_far_more_than_the_profile_says_refute_it() -> None:
    """A hidden crowd at the bound: how much it lost is anybody's guess, so no group is usable."""
    lost = Lost(np.ones(1), np.array([100.0]), np.array([1000.0]), np.full(1, 1e3), np.full(1, 1e3))
    assert not losses_by_group(lost, np.full(5, 210.0), 5.0).refuted
    assert not losses_by_group(lost, np.full(5, 10.0), 5.0).refuted
    found = losses_by_group(lost, np.full(5, 4000.0), 5.0)
    assert found.refuted
    assert float((found.amounts @ found.weights).sum()) == pytest.approx(2000, rel=0.1)
    believed = believed_totals(
        Count(), [Estimate(4000, Additive(4000, Laplace(Fraction(4)), 1), 5.0) for _ in range(5)], lost
    )
    assert {why_not(one.interval) for one in believed} == {REFUTED}


@pytest.mark.parametrize("noise", [Laplace(Fraction(300)), Gaussian(Fraction(400))])
def test_many_ends_at_once_are_those_of_each(noise: Laplace | Gaussian) -> None:
    rng = np.random.default_rng(2)
    weights = np.full(9, 1 / 9)
    each = [
        Believed(Additive(float(value), noise, 0.01), np.sort(rng.exponential(3.0, 9)), weights, "")
        for value in rng.normal(50, 20, 30)
    ]
    for confidence in (0.5, 0.95):
        alone = np.array([one.at(confidence) for one in each])
        assert np.array(ends_of(each, confidence)) == pytest.approx(alone, abs=1e-3)
    assert ends_of([each[0], each[0].noise_only], 0.95) == [each[0].at(0.95), each[0].noise_only.at(0.95)]


def test_a_widened_interval_adds_squares_and_keeps_to_what_is_possible() -> None:
    noise = Additive(3.0, Gaussian(Fraction(100)), 0.01)
    low, high = Widened(noise, 3.0, 1.0, "").at(0.95)
    assert (high - 3, 3 - low) == pytest.approx((1.96 * math.sqrt(2),) * 2, rel=0.02)
    assert Widened(noise, 3.0, 1.0, "", (2.0, 4.0)).at(0.95) == (2.0, 4.0)
    assert Widened(noise, 3.0, 0.0, "").at(0.95) == pytest.approx(noise.at(0.95))


def test_a_ratio_holds_what_its_parts_leave_possible() -> None:
    above, below = Additive(900.0, Laplace(Fraction(1)), 1.0), Additive(100.0, Laplace(Fraction(1)), 1.0)
    believed = Believed(above, [0.0, 200.0], [0.5, 0.5], "words", "a reason")
    value, interval = believed_quotient(believed, below, nonnegative=True)
    low, high = interval.at(0.95)
    assert value == 9.0  # what is as likely nothing is not added
    assert low < 9.0
    assert high > 10.9
    assert why_not(interval) == "a reason"
    assert measured_quotient(interval)[0] == 9.0
    given = believed_quotient(Unknown(above, "", None, math.inf), below, nonnegative=True)[1]
    assert given.at(0.95)[1] == math.inf
    assert judged(given) == noise_only(given) == Quotient(above, below, True)
    assert math.isnan(believed_quotient(believed, Additive(0.5, Laplace(Fraction(10)), 1.0), True)[0])


def test_the_law_of_a_quotient_is_that_of_its_interval() -> None:
    """With nothing cut off, what is believed is the noise: ends from the law agree with those by Fieller's method."""
    above, below = Additive(900.0, Laplace(Fraction(40)), 1.0), Additive(1000.0, Laplace(Fraction(60)), 1.0)
    quotient = Quotient(above, below, nonnegative=True)
    nothing = Believed(quotient, [0.0, 1e-12], [0.5, 0.5], "words")
    for confidence in (0.5, 0.95, 0.999):
        assert nothing.at(confidence) == pytest.approx(quotient.at(confidence), rel=0.01)


def test_weight_moves_only_where_users_are_cut_and_matters_more_in_small_groups() -> None:
    users = Population.exactly(support_of_counts([1] * 50 + [40] * 10))
    nothing = MovedWeight.of(users, 40.0)
    assert nothing.deviation(np.array([0.5, 0.01])).tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    large, small = MovedWeight.of(users, 4.0).deviation(np.array([0.5, 0.01])).tolist()
    assert 0 < large < small


def test_distances_are_cut_above_the_bound_only() -> None:
    rows = Population.exactly(Support(np.array([1.0, 10.0]), np.array([100.0, 10.0])))
    assert CutDistances.of(rows, TENTH, 1.0, 1.0).amounts.tolist() == [0.0] * 41
    cut = CutDistances.of(rows, TENTH, 0.5, 1.0)
    assert cut.amounts == pytest.approx(np.full(41, 10 * (1.0 - 0.5)))
    few, many = (cut.by_group(np.array([size]), np.array([0.5])).deviation[0] for size in (100.0, 1000.0))
    assert many < few
    assert part_lost(rows, 5.0) == pytest.approx(50 / 200)
    assert set(CutDistances.of(rows, None, 0.5, 1.0).amounts.round(9)) == {0.0, 5.0, 20.0}  # by the prior


def test_nearly_all_that_is_cut_may_lie_on_one_side_and_rows_that_a_profile_missed_are_cut_too() -> None:
    rows, groups, centres = (
        Population.exactly(Support(np.array([10.0]), np.array([1000.0]))),
        np.full(2, 5000.0),
        np.full(2, 0.5),
    )
    some, all = (CutDistances.of(rows, TENTH, bound, 1.0) for bound in (0.5, 1e-6))
    assert some.by_group(groups, centres).deviation == pytest.approx(
        np.full(2, 0.05 * (ONE_SIDED + (1 - ONE_SIDED) / 4)), rel=0.01
    )
    assert all.by_group(groups, centres).deviation == pytest.approx(np.full(2, 0.1), rel=0.01)
    missed = CutDistances.of(Population.exactly(Support(np.array([10.0]), np.ones(1))), TENTH, 1e-6, 1.0)
    assert missed.by_group(groups, centres).deviation == pytest.approx(np.full(2, 0.1), rel=0.1)


def test_a_distance_that_is_possible_on_one_side_only_has_a_sign() -> None:
    rows = Population.exactly(Support(np.array([10.0]), np.array([100.0])))
    cut = CutDistances.of(rows, TENTH, 0.5, 1.0)
    assert cut.side(np.array([0.04, 0.08, 0.5, 0.96])) == pytest.approx([1.0, 0.25, 0.0, -1.0])
    moved = cut.by_group(np.array([500.0, 500.0]), np.array([0.02, 0.98]))
    assert (np.diff(moved.amounts) >= 0).all()
    # 100 users lose half a row each, of 1,000, or up to three times as much.
    assert moved.amounts.mean(axis=1) == pytest.approx([0.0825, -0.0825], rel=0.1)
    shown = believed_distances(eh.mean("v", bounds=(0, 10)), [_estimate(0.2), _estimate(9.8)], moved)
    assert 0.2 < shown[0].value < 0.7
    assert shown[1].value == pytest.approx(10 - shown[0].value)
    low, high = shown[0].interval.at(0.95)
    assert 0.2 < low < 0.7 < 1.2 < high


def test_an_interval_that_lies_outside_what_is_possible_says_nothing() -> None:
    interval = Widened(Additive(-50.0, Laplace(Fraction(5)), 1.0), -50.0, 1.0, "", feasible=(0.0, 400.0))
    assert interval.at(0.95) == (0.0, 400.0)


def test_a_long_tail_that_is_cut_is_believed_to_be_there() -> None:
    """Most users lie near 0 and a few far above, where no bucket stands out alone."""
    rng, scale = np.random.default_rng(5), 30.0
    wanted = Distances(1.0, scale, _EDGES)
    far = np.minimum(0.01 * rng.lognormal(0.0, 1.3, 4_000), 0.9)
    counts = np.bincount(np.searchsorted(_EDGES, far), minlength=wanted.size) + rng.laplace(0, scale, wanted.size)
    rows = Population.exactly(Support(np.array([1.0]) * ROW, np.array([4_000.0])))
    cut = CutDistances.of(rows, wanted.laws(counts), 0.08, ROW)
    true = float(np.maximum(far - 0.08, 0.0).sum())
    assert cut.amounts[2] < true < cut.amounts[-2]
    assert cut.side(np.array([0.023]))[0] > 0.95


def _estimate(value: float) -> Estimate:
    return Estimate(value, Additive(value, Gaussian(Fraction(10)), 1e-4), 1e-3)


@pytest.fixture
def session(tmp_path: object) -> eh.Session:
    rng = np.random.default_rng(3)
    rows = np.ceil(rng.lognormal(1.5, 1.2, 3_000)).astype(int)
    user = np.repeat(np.arange(3_000), rows)
    frame = {"user": user, "g": rng.integers(0, 5, len(user)), "v": rng.uniform(0, 10, len(user))}
    import pandas as pd

    return eh.Session(eh.read(pd.DataFrame(frame), user="user"), eh.Ledger(f"{tmp_path}/l.db", epsilon=100))


def test_releases_by_group_name_the_model_and_keep_the_exact_interval(session: eh.Session) -> None:
    keys = list(range(5))
    release = session.aggregate(
        by="g",
        keys=keys,
        epsilon=3,
        rows=eh.count(),
        mean=eh.mean("v", bounds=(0, 10)),
        std=eh.std("v", bounds=(0, 10)),
    )
    assert TOTALS in release.covers
    wide, exact = release.interval(), release.noise_interval()
    for name in ("rows", "mean", "std"):
        assert (wide[f"{name}_high"] - wide[f"{name}_low"] >= exact[f"{name}_high"] - exact[f"{name}_low"] - 1e-9).all()
    corrected = "correction" in release.details  # unless the bound that was chosen probably cut nobody
    added = release.details["correction"]["added"]["rows"] if corrected else [0.0] * 5
    middle = (exact["rows_low"] + exact["rows_high"]) / 2
    assert (release.value["rows"] - middle).tolist() == pytest.approx(added, abs=1)
    assert ("was added over all groups" in release.explain()) == corrected
    assert "the interval     covers the noise and what users above the bound lost" in release.explain()


def test_under_a_given_bound_the_interval_is_open_where_it_cuts(session: eh.Session) -> None:
    keys = list(range(5))
    count = session.count(by="g", keys=keys, epsilon=1, bounding=eh.SmoothWeights(5))
    assert np.isinf(count.interval()["count_high"]).all()
    assert np.isfinite(count.interval()["count_low"]).all()
    assert "not known" in count.covers
    mean = session.mean("v", bounds=(0, 10), by="g", keys=keys, epsilon=1, bounding=eh.SmoothWeights(5))
    assert mean.interval()[["mean_low", "mean_high"]].to_numpy().tolist() == [[0.0, 10.0]] * 5
    assert np.isfinite(mean.noise_interval()["mean_high"]).all()
    assert MOSTLY not in count.why


def test_every_user_asked_for_a_distance_is_at_one_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Busy users at places of their own: who is at none, or beyond the last, would be missing from the counts."""
    found: list[tuple[list[int], int]] = []

    def recorded(*given: Any) -> Any:
        measured = users_by_place(*given)
        found.append((measured.integers().reveal(), given[3]))
        return measured

    monkeypatch.setattr(located_groups, "users_by_place", recorded)
    users = np.repeat(np.arange(2_000), np.where(np.arange(2_000) < 500, 40, 2))
    values = np.where(users < 500, 90.0, 10.0)
    rows = pd.DataFrame({"u": users, "x": values, "g": np.where(np.arange(len(users)) % 2, "a", "b")})
    session = eh.Session(eh.read(rows, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=100))
    with seam.replaced(seam.silent):
        session.mean("x", bounds=(0, 100), by="g", keys=["a", "b"], epsilon=20)
    counts, size = found[-1]
    assert size == len(counts) == 2 * (len(_EDGES) + 1)
    assert sum(counts) == 2_000
    assert sum(counts[size // 2 :]) == 500

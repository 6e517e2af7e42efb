"""Smooth weights, row limit and centred interval: exact minimisers, the papers' numbers, the proven bias bounds."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.shapes import extreme, geometric
from hypothesis import given
from hypothesis import strategies as st

from evenhand.bounding import BusyUsers, Family, bound_for_quantiles, smooth_bound
from evenhand.bounding.busy_users import Belief
from evenhand.bounding.centred_interval import centred_bound
from evenhand.bounding.row_limit import row_limit_bound, row_limit_variance
from evenhand.bounding.smooth_weights import smooth_variance
from evenhand.planning import plan
from evenhand.profiles import Basis, Profile, Sums, Support, support_of_counts

COUNTS = [1, 2, 3, 10, 100]
some_counts = st.lists(st.integers(1, 300), min_size=2, max_size=30)


@pytest.mark.parametrize(
    ("sigma2", "epsilon", "h", "v", "limit", "v_limit"),
    [(1, 1, 1.359003, 0.1553757, 3, 0.2083333), (25, 2, 33.33333, 0.5067568, 100, 0.5870987)],
)
def test_epasto2020_numbers(sigma2: float, epsilon: float, h: float, v: float, limit: int, v_limit: float) -> None:
    support = support_of_counts(COUNTS)
    found = smooth_bound(support, sigma2, 1.0, epsilon)
    assert found == pytest.approx(h, rel=1e-6)
    sums = Sums.of(support)
    assert smooth_variance(sums, np.array([found]), sigma2, 1.0, epsilon)[0] == pytest.approx(v, rel=1e-6)
    assert row_limit_bound(support, sigma2, 1.0, epsilon) == limit
    assert row_limit_variance(sums, np.array([float(limit)]), sigma2, 1.0, epsilon)[0] == pytest.approx(
        v_limit, rel=1e-6
    )


@pytest.mark.parametrize(
    ("counts", "epsilon", "width", "worst"),
    [
        (geometric(), 0.1, 4, 20.0223),
        (geometric(), 0.5, 16, 10.4464),
        (geometric(), 1, 32, 6.9643),
        (geometric(), 2, 64, 4.6429),
        (extreme(), 0.1, 1, 8.5682),
        (extreme(), 1, 1, 3.25),
    ],
)
def test_rameshwar2024_numbers(counts: np.ndarray, epsilon: float, width: float, worst: float) -> None:
    support = support_of_counts(counts)
    assert centred_bound(support, 65, epsilon) == 65 * width
    profile = Profile(support, Basis.PRIOR, "given")
    made = plan("mean", profile, epsilon, (0, 65), "values", points=300, objective="worst case").curve(
        "CentredInterval"
    )
    assert made.worst_case.min() == pytest.approx(worst, abs=6e-5)


def test_a_centred_interval_with_too_few_users_is_a_constant() -> None:
    assert centred_bound(support_of_counts([5, 5]), 65, 0.1) == 0


@given(some_counts, st.floats(0, 50), st.floats(0.05, 8), st.floats(0, 0.5))
def test_no_bound_beats_the_exact_minimiser(counts: list[int], sigma2: float, epsilon: float, differ: float) -> None:
    support = support_of_counts(counts)
    sums = Sums.of(support)
    h = np.linspace(min(counts), max(counts), 400)

    def goal(bounds: np.ndarray) -> np.ndarray:
        return smooth_variance(sums, bounds, sigma2, 1.0, epsilon) + differ**2 * sums.chi_square(bounds)

    best = goal(np.array([smooth_bound(support, sigma2, 1.0, epsilon, differ)]))[0]
    assert best <= goal(h).min() * (1 + 1e-9)


@given(some_counts, st.floats(0.01, 50), st.floats(0.05, 8), st.floats(0, 0.5))
def test_no_row_limit_beats_the_integer_minimiser(
    counts: list[int], sigma2: float, epsilon: float, differ: float
) -> None:
    support = support_of_counts(counts)
    sums, h = Sums.of(support), np.arange(1, max(counts) + 1, dtype=float)
    goal = row_limit_variance(sums, h, sigma2, 1.0, epsilon) + differ**2 * sums.chi_square(h)
    assert goal[row_limit_bound(support, sigma2, 1.0, epsilon, differ) - 1] <= goal.min() * (1 + 1e-9)


@given(some_counts, st.floats(1, 300), st.integers(0, 2**32 - 1))
def test_the_bias_never_exceeds_its_proven_bounds(counts: list[int], h: float, seed: int) -> None:
    s = np.array(counts, dtype=float)
    means = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], len(s))
    r, q = s / s.sum(), np.minimum(s, h) / np.minimum(s, h).sum()
    bias = abs(float((q - r) @ means))
    sums, at = Sums.of(support_of_counts(counts)), np.array([h])
    between = float(r @ (means - r @ means) ** 2)
    assert bias <= sums.total_variation(at)[0] + 1e-12
    assert bias <= np.sqrt(between * sums.chi_square(at)[0]) + 1e-7
    assert sums.chi_square(at)[0] <= s.sum() / np.minimum(s, h).sum() - 1 + 1e-9


def test_the_chi_square_bound_is_reached() -> None:
    s = np.array([1.0, 4.0, 20.0])
    r, q = s / s.sum(), np.minimum(s, 3) / np.minimum(s, 3).sum()
    means = (q - r) / r  # the case of equality in Cauchy–Schwarz
    bias = float((q - r) @ means)
    between = float(r @ (means - r @ means) ** 2)
    assert bias == pytest.approx(np.sqrt(between * Sums.of(support_of_counts(s)).chi_square(np.array([3.0]))[0]))


def test_heterogeneity_raises_the_bound() -> None:
    support = support_of_counts(np.random.default_rng(1).zipf(1.8, 3000))
    bounds = [smooth_bound(support, 1 / 16, 1.0, 1.0, differ) for differ in (0.0, 0.01, 0.02, 0.1)]
    assert bounds == sorted(bounds)
    assert bounds[-1] > 3 * bounds[0]


def test_heaviest_counts_users_from_the_top() -> None:
    support = Support(np.array([1.0, 5.0, 9.0]), np.array([10.0, 4.0, 2.0]))
    assert support.heaviest(3) == (5, 6.0)
    assert support.heaviest(1e9) == (1, 16.0)
    assert support.largest(2) == 9
    assert support.largest(17) == 0


def test_a_bound_for_quantiles_grows_with_epsilon_and_knows_whom_it_cuts() -> None:
    family = Family.of_support(support_of_counts(np.random.default_rng(1).zipf(1.8, 3000)))
    found = [bound_for_quantiles(family, [0.5], epsilon, [2.5]) for epsilon in (0.01, 1.0, 100.0)]
    assert found[0].bound <= found[1].bound <= found[2].bound
    assert found[0].bound < found[2].bound
    nobody = BusyUsers.of(family, float(family.sizes[-1]))
    assert not nobody.can_measure
    shift = nobody.moved(0.5, Belief.beforehand())
    assert [shift.by, shift.below, shift.above] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_what_is_measured_about_busy_users_is_believed_as_far_as_its_error_allows() -> None:
    """Half of the weight is of users with 100 rows, cut to one: 60% of their rows are below the median, of the others' 40%."""
    busy = BusyUsers.of(Family(np.array([1.0, 100.0]), np.array([[500.0, 500.0]]), np.ones(1)), 1.0)
    assert [busy.weight, busy.cut, busy.apart] == pytest.approx([1000, 0.5, 2.0])
    assert busy.measured((200.0, 300.0), (300.0, 200.0)) == pytest.approx(0.2)
    assert Belief.after(0.2, 1e-6).mean == pytest.approx(0.2, rel=1e-3)
    assert abs(Belief.after(0.2, 10.0).mean) < 1e-3
    known, doubted = (busy.moved(0.5, Belief.after(0.1, error)) for error in (1e-6, 0.1))
    assert -0.05 * busy.lost < known.by < -0.04 * busy.lost  # a little less: what is lost is in doubt
    assert known.by < doubted.by <= 0
    assert 0 < known.below < doubted.below


def test_an_interval_of_ranks_reaches_to_what_was_measured_where_it_is_half_believed() -> None:
    """Either busy users hardly differ or about as measured: the interval holds both, and more."""
    busy = BusyUsers.of(Family(np.array([1.0, 100.0]), np.array([[500.0, 500.0]]), np.ones(1)), 1.0)
    shift = busy.moved(0.5, Belief.after(0.06, 0.03))
    measured = -0.03 * busy.lost
    assert measured < shift.by < 0
    assert shift.by - shift.below < measured < 0 < shift.by + shift.above

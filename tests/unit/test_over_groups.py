"""The bound over groups and its noise, by forecast."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.bounding import best_bound, roots
from evenhand.profiles import Support, norm_buckets, support_of_counts
from evenhand.statistics.allocation import gaussian_can_win, share_for

ROWS = np.random.default_rng(1).lognormal(2, 1, 5_000)
L1, L2 = support_of_counts(np.ceil(ROWS)), support_of_counts(np.sqrt(np.ceil(ROWS)))


def test_more_noise_asks_for_a_smaller_bound() -> None:
    amounts = [best_bound(L1, None, 50, noise, None).amount for noise in np.geomspace(0.01, 1e4, 12)]
    assert amounts == sorted(amounts, reverse=True)
    assert amounts[0] > 20 * amounts[-1]


@given(st.integers(0, 20), st.sampled_from([1, 30, 5_000]))
def test_the_unit_of_the_norm_does_not_matter(exponent: int, groups: int) -> None:
    unit = 2.0**exponent
    l1, l2 = (Support(support.sizes * unit, support.users) for support in (L1, L2))
    here, there = best_bound(L1, L2, groups, 1.4, 3.0), best_bound(l1, l2, groups, 1.4, 3.0)
    assert there.gaussian is here.gaussian
    assert there.amount == pytest.approx(here.amount * unit, rel=1e-9)
    assert there.error(groups) == pytest.approx(here.error(groups) * unit, rel=1e-9)


def test_the_forecast_counts_what_is_lost_not_norms() -> None:
    """400 users, one row in each of 400 groups: an L2 bound of 6 loses 280 of 400 rows each."""
    everywhere = Support(np.array([20.0]), np.array([400.0]))
    found = best_bound(Support(np.array([400.0]), np.array([400.0])), everywhere, 400, 1e9, 1.0)
    assert found.gaussian
    assert found.amount > 19  # a norm-based forecast would be content with much less: (20 − T)·400 / 400 groups
    assert found.lost <= 400 * 400 * 0.05


def test_the_noise_with_the_smaller_forecast_is_taken() -> None:
    one = Support(np.array([5.0]), np.array([1_000.0]))
    assert not best_bound(one, one, 300, math.sqrt(2), 5.0).gaussian  # one group each: both norms are the same
    many = Support(np.array([100.0]), np.array([1_000.0]))
    assert best_bound(many, roots(many), 300, math.sqrt(2), 5.0).gaussian  # 100 groups each: 141 against 50


def test_without_delta_there_is_no_gaussian_noise() -> None:
    assert not best_bound(L1, L2, 10**5, 1e9, None).gaussian
    assert not best_bound(L1, None, 10**5, 1e9, 1e-9).gaussian


def test_where_noise_drowns_everything_the_bound_goes_below_one_row() -> None:
    assert best_bound(L1, None, 27_000, 1e4, None).amount < 1


@pytest.mark.parametrize("sizes", [[1.0], [1e-6, 1e12], [3.0] * 1])
def test_few_users_and_one_giant(sizes: list[float]) -> None:
    support = Support(np.array(sizes), np.ones(len(sizes)))
    for groups in (1, 2, 10**6):
        found = best_bound(support, support, groups, 1.0, 1.0)
        assert 0 < found.amount <= max(sizes) * (1 + 1e-9)
        assert math.isfinite(found.error(groups))


def test_nobody_is_in_more_groups_than_there_are() -> None:
    assert norm_buckets(12).edges == (0, 1, 2, 3, 4, 5, 6, 10, 11, 12)
    assert norm_buckets(2).edges == (0, 1, 2)
    assert norm_buckets(1).edges == (0, 1)
    assert norm_buckets().edges[:9] == (0, 1, 2, 3, 4, 5, 6, 10, 16)


def test_more_groups_pay_less_for_the_choice() -> None:
    shares = [share_for(groups) for groups in (1, 2, 10, 100, 1_000, 10**6)]
    assert shares == sorted(shares, reverse=True)
    assert 0.05 < shares[-1] < shares[0] <= 0.5


def test_gaussian_noise_is_ruled_out_by_public_facts_only_where_it_cannot_win() -> None:
    assert not gaussian_can_win(Decimal(1), Decimal("1e-6"), 2)
    assert gaussian_can_win(Decimal(1), Decimal("1e-6"), 1_000)
    assert not gaussian_can_win(Decimal(1), Decimal(0), 1_000)

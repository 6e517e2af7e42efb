"""epasto2020's bounds and gaps: numbers by hand, and no integer row limit that closes the gap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reproductions.epasto2020.theorem3 import LARGEST_GAP, larger_gap, smooth_against_limit

from evenhand.guarantee import UsageError
from evenhand.planning.weighted_risk import Weighted, best_weights, published_weights, theorem_4, theorem_5, trade_off
from evenhand.profiles import support_of_counts

COUNTS = [1, 1, 2, 8]


def test_weights_by_hand() -> None:
    weighted = Weighted.of(COUNTS, 4)
    rows = np.repeat([1 / 8, 1 / 8, 1 / 8, 4 / 8 / 8], COUNTS)  # n_h = 1 + 1 + 2 + 4
    assert rows.sum() == 1
    assert weighted.squares == pytest.approx(float(rows @ rows))
    assert (weighted.largest, weighted.users, weighted.rows) == (0.5, 4, 12)
    assert Weighted.of(COUNTS, 100).squares == pytest.approx(1 / 12)
    assert Weighted.of(COUNTS, 100).largest == pytest.approx(8 / 12)


def test_theorems_4_and_5_by_hand() -> None:
    weighted = Weighted.of(COUNTS, 4)
    squares, risk = weighted.squares, theorem_4(weighted, 2, 0.1, 3, lipschitz=2, radius=5)
    inside = math.log(40) ** 4 * 0.25 / 4 + math.log(3) * math.log(12) * squares
    assert risk == pytest.approx(10 * math.sqrt(3 * inside))
    assert theorem_5(weighted, 0.1, 3) == pytest.approx(math.sqrt(3 * math.log(30) * math.log(12) * squares))


@pytest.mark.parametrize("A", [0.01, 1, 30])
def test_no_bound_beats_the_best_weights(A: float) -> None:
    best = best_weights(support_of_counts(COUNTS), A)
    tried = [trade_off(Weighted.of(COUNTS, h), A) for h in np.linspace(0.5, 9, 200)]
    assert trade_off(best, A) <= min(tried) + 1e-12


def test_theorem_4_is_least_where_its_trade_off_is() -> None:
    """The two are one formula up to a factor, with the A that the paper names."""
    counts, epsilon, delta, d = [1] * 3000 + [200] * 30, 300.0, 1e-3, 5
    A = math.log(d) * math.log(9000) * epsilon**2 / math.log(3030 / delta) ** 4
    best = best_weights(support_of_counts(counts), A)
    risks = [theorem_4(Weighted.of(counts, best.h * factor), epsilon, delta, d) for factor in (0.5, 0.9, 1, 1.1, 2)]
    assert 1 < best.h < 200
    assert published_weights(support_of_counts(counts), epsilon, delta, d).h == best.h
    assert risks[2] == pytest.approx(min(risks))


@pytest.mark.parametrize("g", [2, 7, 50])
def test_theorem_2_to_the_last_digit(g: int) -> None:
    counts, price = smooth_against_limit(g)
    assert _smooth(counts, price, g) == pytest.approx((2 * g + 1) / (4 * g * g))
    assert min(_limit(counts, price, h) for h in range(1, g * g + 1)) == pytest.approx(3 / (4 * g))


def test_the_larger_gap_against_every_row_limit() -> None:
    counts, _, epsilon = larger_gap(2000)
    price = 2 / epsilon**2
    best = min(_limit(counts, price, h) for h in [*range(1, 2000), 10**4, 10**5, 10**6, 10**7])
    assert LARGEST_GAP - 1e-3 < best / _smooth(counts, price, 1.2466) < LARGEST_GAP
    assert LARGEST_GAP > 25 / 16


def _smooth(counts: np.ndarray, price: float, h: float) -> float:
    kept = np.minimum(counts, h)
    return float((kept**2 / counts).sum() + price * h * h) / float(kept.sum()) ** 2


def _limit(counts: np.ndarray, price: float, h: float) -> float:
    kept = float(np.minimum(counts, h).sum())
    return 1 / kept + price * (h / kept) ** 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: Weighted.of([0, 0], 1),
        lambda: Weighted.of([1], 0),
        lambda: theorem_4(Weighted.of([1], 1), 0, 0.1, 2),
        lambda: theorem_4(Weighted.of([1], 1), 1, 0.1, 1),
        lambda: theorem_5(Weighted.of([1], 1), 1.0, 2),
    ],
)
def test_bad_input_is_refused(call: object) -> None:
    with pytest.raises(UsageError):
        call()  # type: ignore[operator]

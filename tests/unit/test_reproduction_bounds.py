"""Bounds for learning: the papers' formulas at numbers that can be worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evenhand.guarantee import UsageError
from evenhand.planning.excess_risk import (
    Capped,
    Participation,
    amin2018_convex,
    amin2018_corollary_1,
    amin2018_lemma_1,
    amin2018_theorem_1,
    bias,
    bias_proposition_1,
    chaudhuri,
    corollary_1,
    proposition_5,
    theorem_1,
)

CAPPED = Capped([10, 2, 2, 2], tau=4)  # n = 16, n_τ = 10


def test_shares_before_and_after() -> None:
    assert (CAPPED.n, CAPPED.n_tau, CAPPED.users_capped) == (16, 10, 1)
    assert CAPPED.total_variation == pytest.approx(10 / 16 - 4 / 10)
    assert CAPPED.chi_square == pytest.approx(0.4**2 / (10 / 16) + 3 * 0.2**2 / (2 / 16) - 1)


def test_the_tighter_bound_is_tighter_and_vanishes_with_the_cap() -> None:
    assert bias(CAPPED, 0.01) < bias_proposition_1(CAPPED, 0.01)
    nothing_cut = Capped([10, 2, 2, 2], tau=10)
    assert bias(nothing_cut) == 0
    assert bias_proposition_1(nothing_cut, 0.01) == 0
    assert math.sqrt(2 * 0.01) > 0  # which the paper's second term alone would leave


def test_the_bounds_hold_for_random_losses() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        capped = Capped(rng.zipf(1.7, 30), tau=float(rng.integers(1, 20)))
        losses = rng.random(30)
        r, q = capped.n_j / capped.n, np.minimum(capped.n_j, capped.tau) / capped.n_tau
        variance = float(r @ (losses - r @ losses) ** 2)
        assert abs((q - r) @ losses) <= bias(capped, min(variance, 0.25)) + 1e-9


def test_theorem_1_and_corollary_1_by_hand() -> None:
    risk = theorem_1(CAPPED, epsilon=1, delta=0.1, dimension=2)
    assert risk.sampling == pytest.approx(math.sqrt(2 * math.log(160) / 10))
    assert risk.privacy == pytest.approx((0.4 * math.log(30)) ** 2)
    assert risk.bias == 2 * bias(CAPPED)
    assert risk.total == risk.bias + risk.sampling + risk.privacy
    loose = corollary_1(CAPPED, epsilon=1, delta=0.1, dimension=2)
    assert loose.bias == pytest.approx(2 * math.sqrt(6 / 16))
    assert loose.privacy == pytest.approx((0.4 * math.log(10)) ** 2)
    assert chaudhuri(2.0)(0.5, 1.0, math.e) == pytest.approx(0.5)


def test_corollary_1_refuses_what_it_does_not_cover() -> None:
    with pytest.raises(UsageError, match="25%"):
        corollary_1(Capped([100, 1], tau=1), 1, 0.1, 1)


def test_proposition_5_holds_on_samples_and_needs_a_cap_of_one_example() -> None:
    shares, rng = np.r_[0.3, 0.1, np.full(60_000, 0.6 / 60_000)], np.random.default_rng(3)
    for tau0 in (0.001, 0.02, 0.2):
        bound = proposition_5(shares, tau0, 1000, 1e-9)
        counts = rng.multinomial(1000, shares, size=20)
        kept = np.minimum(counts, tau0 * 1000).sum(axis=1) / 1000
        assert bound < kept.min()
        assert bound >= tau0 * (shares > tau0).sum() / 4 - math.sqrt(math.log(1e9) / 2000)  # as the paper prints it
    # Caps below one example: everybody is rarer than one in n, and the printed bound is above what is kept.
    n, users, tau0 = 100_000, 1_000_000, 0.05 / 100_000
    kept = tau0 * n * len(np.unique(rng.integers(users, size=n))) / n
    assert kept < tau0 * users / 4 - math.sqrt(math.log(100) / (2 * n))
    with pytest.raises(UsageError, match="one example or more"):
        proposition_5([0.5, 0.5], tau0, n, 0.01)


def test_amin2018_counts_heavy_users() -> None:
    risk = amin2018_corollary_1(Participation([0.4, 0.4, 0.2], 0.3), n=1e6, epsilon=2, delta=0.1, dimension=3)
    assert risk.privacy == pytest.approx(3 / (2 * 2))
    assert risk.bias == pytest.approx(2 * 2 * (0.4 - 0.3 / 0.8))
    # The paper's example: with γ = 1/N nobody has more than that, so its K(γ) is 0 and not N.
    example = amin2018_corollary_1(Participation([0.5, 0.5], 0.5), 1e6, 1, 0.1, 1)
    assert math.isinf(example.privacy)
    assert example.vacuous
    assert amin2018_corollary_1(Participation([0.5, 0.5], 0.45), 1e6, 1, 0.1, 1).privacy == 0.5


def test_amin2018_by_hand() -> None:
    drawn = Participation([0.5, 0.3, 0.2], 0.3)
    assert drawn.q == pytest.approx([0.375, 0.375, 0.25])
    assert drawn.total_variation == pytest.approx(0.125)
    assert drawn.bias_proposition_1() == pytest.approx(math.sqrt(math.log(1 / 0.3) / 2))
    assert drawn.bias_proposition_2(0.1) == pytest.approx(math.sqrt(0.2 / 0.3))
    chi_square = 0.375**2 / 0.5 + 0.375**2 / 0.3 + 0.25**2 / 0.2 - 1
    assert drawn.bias(0.01) == pytest.approx(math.sqrt(0.01 * chi_square))
    assert chi_square <= 1 / 0.3 - 1
    assert amin2018_theorem_1(drawn, 1000, 5) == pytest.approx(math.sqrt(5 * math.log(200) / 1000) / 0.09)
    assert amin2018_lemma_1(2, 100, 0.5, 3) == pytest.approx(16 / 50 * 4 * math.log(3))
    assert amin2018_lemma_1(2, 100, 0.5, 3, delta=0.1) == pytest.approx(16 / 50 * (4 * math.log(3) + math.log(10)))
    assert amin2018_convex(2, 100, 0.5, 3) == pytest.approx(12 / 50)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Capped([], 1),
        lambda: Capped([1, -1], 1),
        lambda: Capped([1], 0),
        lambda: bias(CAPPED, 0.3),
        lambda: theorem_1(CAPPED, 0, 0.1, 1),
        lambda: theorem_1(CAPPED, 1, 1.0, 1),
        lambda: Participation([0.5, 0.6], 0.1),
    ],
)
def test_bad_input_is_refused(call: object) -> None:
    with pytest.raises(UsageError):
        call()  # type: ignore[operator]

"""Which groups pass: thresholds against tails computed independently, coins against their law, and the audit by exact laws."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest

from evenhand.audit import Pair, audit
from evenhand.audit.mechanism import KnownLaw
from evenhand.audit.selecting import broken, chance, honest
from evenhand.noise import UNIT, NormalThreshold, TruncatedGeometric, Way
from evenhand.noise.normal import decided, exact_upper_tail, normal_multiplier, quantile, reached, upper_tail
from evenhand.noise.passing import FIRST

GIVEN = [(1, "1", "1e-6"), (3, "0.1", "1e-9"), (50, "20", "0.1"), (700, "0.5", "1e-12"), (2, "1e4", "0.3")]
HONEST, BROKEN = list(honest()), list(broken())


def counted(way: Way) -> TruncatedGeometric:
    (look,) = way.rounds
    assert isinstance(look, TruncatedGeometric)
    return look


def weighted(way: Way) -> list[NormalThreshold]:
    return [look for look in way.rounds if isinstance(look, NormalThreshold)]


@pytest.mark.parametrize(("k", "epsilon", "delta"), GIVEN)
def test_the_truncated_law_pays_delta_for_its_last_step_and_no_more(k: int, epsilon: str, delta: str) -> None:
    """Every step of the law loses ε/k, but the last, which has at most δ/k; a shorter reach would have more."""
    look = counted(TruncatedGeometric.way(k, Decimal(epsilon), Decimal(delta)))
    assert k / look.scale <= Fraction(epsilon)
    with mpmath.workdps(80):
        q = mpmath.exp(-mpmath.mpf(look.scale.denominator) / look.scale.numerator)

        def last(reach: int) -> mpmath.mpf:
            return q**reach * (1 - q) / (1 + q - 2 * q ** (reach + 1))

        assert k * last(look.reach) <= mpmath.mpf(delta)
        assert look.reach == 1 or k * last(look.reach - 1) > mpmath.mpf(delta)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.3", "1e-6"), ("1", "1e-9"), ("2", "0.01")])
def test_for_one_group_it_is_as_good_as_the_best_there_is(epsilon: str, delta: str) -> None:
    """The optimum obeys π(n+1) = min(e^ε·π(n) + δ, 1 − e^−ε·(1 − π(n) − δ), 1); rounding the reach up costs one supporter."""
    look = counted(TruncatedGeometric.way(1, Decimal(epsilon), Decimal(delta)))
    factor, d, best = math.exp(float(epsilon)), float(delta), [0.0]
    while best[-1] < 1:
        p = best[-1]
        best.append(min(factor * p + d, 1 - (1 - p - d) / factor, 1.0))
    drawn = [chance(look, n) for n in range(len(best) + 3)]
    assert all(mine <= most + 1e-12 for mine, most in zip(drawn, best, strict=False))
    assert all(mine >= most - 1e-12 for mine, most in zip(drawn[1:], best[:-1], strict=False))


@pytest.mark.parametrize(("epsilon", "delta"), [("0.3", "1e-3"), ("2", "0.01")])
def test_truncated_draws_follow_their_law(epsilon: str, delta: str) -> None:
    """Shares of 4,000 draws within five standard deviations: a false alarm in one of 10⁶ runs."""
    look = counted(TruncatedGeometric.way(1, Decimal(epsilon), Decimal(delta)))
    for support in (look.reach // 2, look.reach, look.reach + 2):
        p = chance(look, support)
        passed = len(look.passing([support] * 4_000))
        assert abs(passed - 4_000 * p) <= 5.2 * math.sqrt(4_000 * p * (1 - p)) + 5
    assert look.passing([0, 2 * look.reach + 1, -5]) == [1], (
        "a group without support never passes; this much always does"
    )


@pytest.mark.parametrize(("k", "epsilon", "delta"), GIVEN)
@pytest.mark.parametrize("rounds", [1, 2])
def test_normal_noise_and_thresholds_hold_in_eighty_digits(k: int, epsilon: str, delta: str, rounds: int) -> None:
    way = NormalThreshold.way(k, Decimal(epsilon), Decimal(delta), rounds)
    looks = weighted(way)
    with mpmath.workdps(80):
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)

        def tail(z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(z / mpmath.sqrt(2)) / 2

        loss = mpmath.fsum(
            (UNIT / mpmath.mpf(look.scale)) ** 2 for look in looks
        )  # Gaussian mechanisms compose: μ² adds up
        mu = mpmath.sqrt(loss)
        gaussian = tail(e / mu - mu / 2) - mpmath.exp(e) * tail(e / mu + mu / 2)
        lonely = [
            max(t * tail((look.threshold - look.weight(t)) / mpmath.mpf(look.scale)) for t in range(1, k + 1))
            for look in looks
        ]
        if rounds == 2:
            assert gaussian + mpmath.fsum(lonely) <= d
            assert mpmath.fsum(lonely) > d * mpmath.mpf("0.3"), "δ is not left unused"
        else:
            assert loss <= 2 * (mpmath.sqrt(1 + e**2) - 1), "δ is convex in μ² up to here"
            for j in range(k + 1):  # j of k groups are nobody else's
                share = mpmath.mpf(j) / k
                mu_j = mpmath.sqrt(loss * (1 - share))
                part = tail(e / mu_j - mu_j / 2) - mpmath.exp(e) * tail(e / mu_j + mu_j / 2) if j < k else 0
                assert part + share * lonely[0] <= d
            assert lonely[0] > d * mpmath.mpf("0.99")


def test_weights_are_whole_and_their_squares_add_up_to_the_unit_at_most() -> None:
    look = weighted(NormalThreshold.way(2, Decimal(1), Decimal("1e-6")))[0]
    for t in (*range(1, 2_000), 4_096, 9_999, 10_000):
        assert t * look.weight(t) ** 2 <= UNIT**2 < t * (look.weight(t) + 1) ** 2
    assert look.l2_squared == UNIT**2
    assert 0 < FIRST < 1


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "1", "30", "5000"])
@pytest.mark.parametrize("delta", ["1e-30", "1e-6", "0.3"])
def test_the_multiplier_is_enough_and_hardly_more(epsilon: str, delta: str) -> None:
    sigma = normal_multiplier(Decimal(epsilon), Decimal(delta))
    with mpmath.workdps(120):
        e = mpmath.mpf(epsilon)

        def exact(s: mpmath.mpf) -> mpmath.mpf:
            a, b = 1 / (2 * s) - e * s, -1 / (2 * s) - e * s
            return (mpmath.erfc(-a / mpmath.sqrt(2)) - mpmath.exp(e) * mpmath.erfc(-b / mpmath.sqrt(2))) / 2

        assert exact(mpmath.mpf(sigma)) <= mpmath.mpf(delta)
        if float(epsilon) < 300 and (epsilon, delta) != ("1e-6", "1e-30"):  # there the margin for rounding costs 0.3%
            assert exact(mpmath.mpf(sigma) * (1 - mpmath.mpf("1e-4"))) > mpmath.mpf(delta)


@pytest.mark.parametrize("chance_of", [0.4, 1e-3, 1e-9, 1e-60, 0.99])
def test_a_quantile_is_on_the_safe_side(chance_of: float) -> None:
    with mpmath.workdps(50):
        z = mpmath.mpf(quantile(chance_of))
        assert mpmath.erfc(z / mpmath.sqrt(2)) / 2 <= chance_of
        assert mpmath.erfc(z * (1 - mpmath.sign(z) * mpmath.mpf("1e-6")) / mpmath.sqrt(2)) / 2 > chance_of


def test_tails_in_a_hundred_digits() -> None:
    with mpmath.workdps(170):
        for z in ("0", "0.3", "-2.5", "7", "19.99", "-19.99"):
            error = mpmath.mpf(str(exact_upper_tail(Decimal(z)))) - mpmath.erfc(mpmath.mpf(z) / mpmath.sqrt(2)) / 2
            assert abs(error) < mpmath.mpf("1e-120")


def test_a_coin_that_doubles_leave_open_is_decided_exactly() -> None:
    """Around the exact probability, far closer than doubles can tell; and far out, where the probability is next to none."""
    with mpmath.workdps(170):
        exact = int(mpmath.floor(mpmath.erfc(mpmath.mpf(3) / 7 / mpmath.sqrt(2)) / 2 * mpmath.mpf(2) ** 384))
    assert decided(3, 7.0, exact)
    assert not decided(3, 7.0, exact + 1)
    assert decided(-3, 7.0, 2**384 - exact - 2)
    assert not decided(-3, 7.0, 2**384 - exact)
    assert not decided(10**9, 1.0, 0)
    assert decided(-(10**9), 1.0, 2**384 - 1)


def test_coins_fall_as_the_noise_would() -> None:
    """Shares of 20,000 coins within five standard deviations."""
    sigma, threshold = 1_000.0, 5_000
    for value in (3_000, 5_000, 5_500):
        p = upper_tail((threshold - value) / sigma)
        assert abs(sum(reached([value] * 20_000, sigma, threshold)) - 20_000 * p) <= 5.2 * math.sqrt(
            20_000 * p * (1 - p)
        )
    look = weighted(NormalThreshold.way(4, Decimal(1), Decimal("1e-6")))[0]
    assert look.passing([0, 100 * look.threshold, 0, -1, 100 * look.threshold]) == [1, 4]


def test_thresholds_grow_with_the_groups_that_count() -> None:
    ways = [NormalThreshold.way(k, Decimal(1), Decimal("1e-6")) for k in (1, 4, 16, 64, 256)]
    assert all(a.rounds[1].threshold <= b.rounds[1].threshold for a, b in pairwise(ways))  # type: ignore[attr-defined]


@pytest.mark.parametrize(("mechanism", "pairs"), HONEST, ids=[case[0].name for case in HONEST])
def test_exact_laws_keep_their_claims(mechanism: KnownLaw, pairs: tuple[Pair, ...]) -> None:
    finding = audit(mechanism, pairs)
    assert not finding.refuted, finding


@pytest.mark.parametrize(("mechanism", "pairs"), BROKEN, ids=[case[0].name for case in BROKEN])
def test_broken_selections_are_caught(mechanism: KnownLaw, pairs: tuple[Pair, ...]) -> None:
    finding = audit(mechanism, pairs)
    assert finding.refuted, finding

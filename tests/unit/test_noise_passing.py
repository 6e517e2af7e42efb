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
from evenhand.noise import UNIT, NormalThreshold, ShownCounts, TruncatedGeometric, Way
from evenhand.noise.counted import BITS, law
from evenhand.noise.normal import decided, exact_upper_tail, normal_multiplier, quantile, reached, upper_tail
from evenhand.noise.shown_counts import chances
from evenhand.noise.weighted import FIRST

GIVEN = [(1, "1", "1e-6"), (3, "0.1", "1e-9"), (50, "20", "0.1"), (70, "0.5", "1e-12"), (2, "1e4", "0.3")]
HONEST, BROKEN = list(honest()), list(broken())


def counted(way: Way) -> TruncatedGeometric:
    (look,) = way.rounds
    assert isinstance(look, TruncatedGeometric)
    return look


def shown_counts(k: int, epsilon: str, delta: str) -> ShownCounts:
    way = ShownCounts.way(k, Decimal(epsilon), Decimal(delta), 2**12)
    assert way is not None
    (look,) = way.rounds
    assert isinstance(look, ShownCounts)
    return look


def weighted(way: Way) -> list[NormalThreshold]:
    return [look for look in way.rounds if isinstance(look, NormalThreshold)]


@pytest.mark.parametrize(("k", "epsilon", "delta"), GIVEN)
def test_chances_are_private_step_by_step_in_exact_fractions(k: int, epsilon: str, delta: str) -> None:
    """(ε/k, δ/k) between n and n + 1 supporters, in all four directions, with no tolerance."""
    look = counted(TruncatedGeometric.way(k, Decimal(epsilon), Decimal(delta)))
    chances = [Fraction(chance, 2**BITS) for chance in (*law(look.factor, look.step), 2**BITS, 2**BITS)]
    factor, step = look.factor, Fraction(delta) / k
    with mpmath.workdps(130):
        assert mpmath.mpf(factor.numerator) / factor.denominator <= mpmath.exp(mpmath.mpf(epsilon) / k)
    assert chances[0] == 0
    for one, more in pairwise(chances):
        assert one <= more <= factor * one + step
        assert 1 - one <= factor * (1 - more) + step


@pytest.mark.parametrize(("epsilon", "delta"), [("0.3", "1e-6"), ("1", "1e-9"), ("2", "0.01")])
def test_chances_are_the_largest_there_are(epsilon: str, delta: str) -> None:
    """π(n+1) = min(e^ε·π(n) + δ, 1 − e^−ε·(1 − π(n) − δ), 1) in 60 digits; what rounding costs is next to nothing."""
    look = counted(TruncatedGeometric.way(1, Decimal(epsilon), Decimal(delta)))
    chances = law(look.factor, look.step)
    with mpmath.workdps(60):
        factor, d, best = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta), mpmath.mpf(0)
        for chance_of in chances:
            mine = mpmath.mpf(chance_of) / mpmath.mpf(2) ** BITS
            assert best - mpmath.mpf("1e-40") <= mine <= best + mpmath.mpf("1e-55")
            best = min(factor * best + d, 1 - (1 - best - d) / factor, mpmath.mpf(1))
        assert best == 1
    half = next(n for n, chance_of in enumerate(chances) if 2 * chance_of >= 2**BITS)
    assert half - 1 <= look.needed <= half + 0.5


@pytest.mark.parametrize(("epsilon", "delta"), [("0.3", "1e-3"), ("2", "0.01")])
def test_counted_groups_pass_as_often_as_they_should(epsilon: str, delta: str) -> None:
    """Shares of 4,000 draws within five standard deviations: a false alarm in one of 10⁶ runs."""
    look = counted(TruncatedGeometric.way(1, Decimal(epsilon), Decimal(delta)))
    middle = round(look.needed)
    for support in (middle // 2, middle, middle + 2):
        p = chance(look, support)
        passed = len(look.passing([support] * 4_000))
        assert abs(passed - 4_000 * p) <= 5.2 * math.sqrt(4_000 * p * (1 - p)) + 5
    always = len(law(look.factor, look.step))
    assert look.passing([0, always, -5]) == [1], "a group without support never passes; this much always does"


@pytest.mark.parametrize(
    ("k", "epsilon", "delta"), [(1, "1", "1e-6"), (4, "0.3", "1e-3"), (1, "20", "0.1"), (2, "0.05", "1e-9")]
)
def test_shown_numbers_are_private_in_exact_fractions(k: int, epsilon: str, delta: str) -> None:
    """Name and number of a group are (ε/k, δ/k)-private between n and n + 1 supporters, whatever set of outputs, with no tolerance."""
    look = shown_counts(k, epsilon, delta)
    assert look.l2_squared == k
    weights = chances(look.factor, look.reach)
    with mpmath.workdps(130):
        assert mpmath.mpf(look.factor.numerator) / look.factor.denominator <= mpmath.exp(mpmath.mpf(epsilon) / k)

    def law_of(n: int) -> dict[int | None, int]:
        shown: dict[int | None, int] = {
            n + x: w for x, w in enumerate(weights, -look.reach) if n and n + x > look.reach
        }
        return shown | {None: sum(weights) - sum(shown.values())}

    for n in {0, 1, 2, look.reach // 2, look.reach, 2 * look.reach, 2 * look.reach + 1, 3 * look.reach + 2}:
        for one, other in ((law_of(n), law_of(n + 1)), (law_of(n + 1), law_of(n))):
            beyond = sum(max(Fraction(0), one[value] - look.factor * other.get(value, 0)) for value in one)
            assert beyond <= Fraction(delta) / k * sum(weights)
    shorter = chances(look.factor, look.reach - 1)
    assert shorter[0] > Fraction(delta) / k * sum(shorter), "one supporter less would do"


def test_shown_numbers_have_the_noise_that_is_said() -> None:
    """4,000 draws, five standard deviations; and a group is shown from one more than the noise reaches."""
    look = shown_counts(1, "0.5", "1e-6")
    drawn = [value - 100 for value in look.counts([100] * 4_000).values()]
    assert len(drawn) == 4_000
    assert max(map(abs, drawn)) <= look.reach
    assert abs(sum(drawn)) <= 5.2 * math.sqrt(4_000 * look.noise.variance)
    assert sum(value**2 for value in drawn) / 4_000 == pytest.approx(look.noise.variance, rel=0.25)
    assert look.counts([0, -1, 2 * look.reach + 1]).keys() == {2}
    assert ShownCounts.way(1, Decimal("1e-9"), Decimal("1e-9"), 100) is None


@pytest.mark.parametrize(("k", "epsilon", "delta"), GIVEN)
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("numbers", [Fraction(0), Fraction(1, 5)])
def test_normal_noise_and_thresholds_hold_in_forty_digits(
    k: int, epsilon: str, delta: str, rounds: int, numbers: Fraction
) -> None:
    """The inequalities of docs/proofs/key-selection.md, computed independently."""
    way = NormalThreshold.way(k, Decimal(epsilon), Decimal(delta), rounds, numbers)
    looks = weighted(way)
    with mpmath.workdps(40):
        e, d = min(mpmath.mpf(epsilon), mpmath.mpf(300)), mpmath.mpf(delta)

        def tail(z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(z / mpmath.sqrt(2)) / 2

        def gaussian(y: mpmath.mpf, e: mpmath.mpf) -> mpmath.mpf:
            mu = mpmath.sqrt(y)
            if not mu:
                return max(0, 1 - mpmath.exp(e))
            return tail(e / mu - mu / 2) - mpmath.exp(e) * tail(e / mu + mu / 2)

        third = 2 * mpmath.mpf(way.rho.numerator) / way.rho.denominator
        losses = [(UNIT / mpmath.mpf(look.scale)) ** 2 for look in looks]
        lonely = [
            max(t * tail((look.threshold - look.weight(t)) / mpmath.mpf(look.scale)) for t in range(1, k + 1))
            for look in looks
        ]
        if rounds == 1:
            assert losses[0] + third <= 2 * (mpmath.sqrt(1 + e**2) - 1), "δ is convex in μ² up to here"
            for share in (mpmath.mpf(step) / 20 for step in range(21)):  # of the groups that are nobody else's
                assert gaussian(losses[0] * (1 - share) + third, e) + share * lonely[0] <= d
            assert abs(third / (losses[0] + third) - numbers) < mpmath.mpf("1e-6")
            assert (d - gaussian(third, e)) * mpmath.mpf("0.98") < lonely[0] <= d
            return
        first, second = losses
        convex = mpmath.sqrt(second + third + (second + third) ** 2 / 4)

        def worst(z: mpmath.mpf) -> mpmath.mpf:
            left = e - first / 2 - z * mpmath.sqrt(first)
            noise, alone = gaussian(second + third, left), gaussian(third, left)
            return mpmath.npdf(z) * (max(noise, alone + lonely[1]) if left >= convex else noise + lonely[1])

        both = mpmath.quad(worst, [-14, -6, -3, -1, 0, 1, 2, 3, 5, 8, 14], maxdegree=5)
        assert d * mpmath.mpf("0.9") < both + lonely[0] <= d


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

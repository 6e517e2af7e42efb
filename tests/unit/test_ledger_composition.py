"""The arithmetic of a ledger: exact sums, and an ε from the Rényi rule that is never below the truth."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.guarantee import UsageError
from evenhand.ledger import Budget, Cost, composition, mechanism_delta
from evenhand.ledger.composition import Account, renyi_cost


def account(epsilon: str, delta: str = "0") -> Account:
    return Account.open(Budget(Decimal(epsilon), Decimal(delta)))


def spend(start: Account, cost: Cost, most: int = 10**6) -> tuple[Account, int]:
    """Debit the same cost until it no longer fits."""
    for times in range(most):
        after = start.after(cost)
        if after is None:
            return start, times
        start = after
    raise AssertionError("never refused")


def test_ten_tenths_are_exactly_one() -> None:
    full, times = spend(account("1.0"), Cost.pure(0.1))
    assert times == 10
    assert full.spent == Budget(Decimal(1))
    assert full.remaining == Budget(Decimal(0))


@given(st.lists(st.decimals("1e-9", "100", allow_nan=False, places=18), min_size=1, max_size=50))
def test_sums_are_exact_in_any_order(costs: list[Decimal]) -> None:
    forward = backward = account("1e9")
    for one, other in zip(costs, reversed(costs), strict=True):
        forward, backward = forward.after(Cost.pure(one)), backward.after(Cost.pure(other))  # type: ignore
    assert forward.spent == backward.spent
    assert forward.spent.epsilon * 10**18 == sum(int(cost * 10**18) for cost in costs)


def test_grants_of_delta_add_up_to_the_whole() -> None:
    grant = Decimal("1e-7")
    full, times = spend(account("100", "1e-6"), Cost.approximate("0.1", mechanism_delta(grant)))
    assert times == 10
    assert full.spent.delta == Decimal("1e-6")
    whole = account("1", "1e-6").after(Cost.approximate(1, mechanism_delta(Decimal("1e-6"))))
    assert whole is not None
    assert whole.remaining == Budget(Decimal(0), Decimal(0))


def test_a_mechanism_that_uses_its_whole_grant_is_refused_when_nothing_is_left_for_composition() -> None:
    assert account("1", "1e-6").after(Cost.approximate("0.5", "1e-6")) is None


def test_many_gaussian_releases_cost_far_less_than_their_sum() -> None:
    # (0.1, 9e-8) is what Gaussian noise of ρ = 1.65e-4 gives by itself: ten of them by summing.
    full, times = spend(account("1", "1e-6"), Cost.zcdp("1.65e-4", epsilon="0.1", delta="9e-8"))
    assert times > 100
    assert not full.summing
    assert full.spent.epsilon <= 1
    assert full.spent.delta <= Decimal("1e-6")


def test_key_selection_still_pays_its_delta_under_the_renyi_rule() -> None:
    many, _ = spend(account("1", "1e-6"), Cost.pure("0.01"))
    assert not many.summing
    assert many.after(Cost.approximate("1e-9", "9.1e-7")) is None
    after = many.after(Cost.approximate("1e-9", "9e-7"))
    assert after is not None
    assert after.spent.delta == Decimal("1e-6")


def test_delta_charged_under_the_sum_rule_stays_charged() -> None:
    """Else outcomes could be steered: bad Gaussian luck keeps the sum rule, good luck spends δ again."""
    start = account("1", "1e-6").after(Cost.zcdp("1e-4", epsilon="0.1", delta="9e-7"))
    assert start is not None
    for _ in range(10):
        after = start.after(Cost.zcdp("1e-4", epsilon="0.1", delta="9e-7"))
        assert after is not None
        start = after
    assert not start.summing
    assert start.after(Cost.approximate("0.001", "1e-9")) is None


def test_spent_never_shrinks_and_never_exceeds_the_total() -> None:
    state = account("1", "1e-6")
    costs = [
        Cost.pure("0.02"),
        Cost.zcdp("1e-4", epsilon="0.08", delta="1e-8"),
        Cost.approximate("0.01", "1e-9"),
    ]
    for turn in range(500):
        after = state.after(costs[turn % 3])
        if after is not None:
            assert state.spent.epsilon <= after.spent.epsilon or state.summing != after.summing
            assert state.spent.delta <= after.spent.delta <= state.total.delta
            assert after.spent.epsilon <= state.total.epsilon
            state = after
    assert not state.summing


# Thresholds: a mechanism that is ρ-zCDP but for an event of probability ``beyond``, which no ρ covers.

SELECTION = Cost.zcdp("1.5e-4", epsilon="0.1", delta="9e-8", beyond="4.5e-8")


def test_thresholds_are_charged_under_the_renyi_rule() -> None:
    """85 selections of (0.1, 1e-7) used to fit (1, 1e-6), though half their δ alone adds up to 3.8e-6."""
    full, times = spend(account("1", "1e-6"), SELECTION)
    assert times < 20
    assert Decimal("4.5e-8") * times <= full.spent.delta <= Decimal("1e-6")
    alone, more = spend(account("1", "1e-6"), Cost.zcdp("1.5e-4", epsilon="0.1", delta="9e-8"))
    assert more > 100, "noise alone is not charged"
    assert alone.price(SELECTION).delta == Decimal("4.5e-8")


def costs() -> st.SearchStrategy[Cost]:
    parts = st.tuples(st.integers(1, 60), st.integers(0, 30), st.integers(0, 30), st.sampled_from(["pure", "δ", "ρ"]))

    def cost(drawn: tuple[int, int, int, str]) -> Cost:
        epsilon, gaussian, threshold, kind = Decimal(drawn[0]) / 100, *map(Decimal, drawn[1:3]), drawn[3]
        if kind == "pure":
            return Cost.pure(epsilon)
        if kind == "δ":
            return Cost.approximate(epsilon, threshold * Decimal("1e-8"))
        delta = (gaussian + threshold + 1) * Decimal("1e-8")
        return Cost.zcdp(epsilon**2 / 60, epsilon=epsilon, delta=delta, beyond=threshold * Decimal("1e-8"))

    return parts.map(cost)


@given(st.lists(costs(), min_size=1, max_size=80), st.sampled_from(["1e-6", "3e-7", "1e-5"]))
def test_spent_is_never_below_the_sum_of_what_no_rho_covers(asked: list[Cost], delta: str) -> None:
    state, thresholds, declared = account("2", delta), Decimal(0), Decimal(0)
    for cost in asked:
        price = state.price(cost)
        after = state.after(cost)
        if after is None:
            continue
        thresholds, declared = thresholds + cost.uncovered, declared + cost.delta
        assert price.delta >= cost.uncovered
        assert state.spent.delta <= after.spent.delta <= after.total.delta
        state = after
        assert state.spent.delta >= thresholds
        assert state.delta >= thresholds, "also within the part of δ that is kept for what is declared"
        if state.summing:
            assert state.delta == declared


@pytest.mark.parametrize(("total", "delta"), [("1", "1e-6"), ("0.5", "1e-9"), ("4", "1e-5")])
@pytest.mark.parametrize("part", [3, 40, 1000])
def test_the_total_really_holds_for_gaussian_releases_with_a_threshold(total: str, delta: str, part: int) -> None:
    """Each of k releases tells everything with probability b, else it is Gaussian: exact δ = 1 − (1−b)^k·(1 − δ_gauss(kρ))."""
    rho, b = float(total) ** 2 * 1e-4, float(delta) / part

    def true_delta(beyond: float) -> float:
        cost = Cost.zcdp(rho, epsilon=float(total) / 5, delta=2 * b, beyond=beyond)
        _, times = spend(account(total, delta), cost)
        told = -math.expm1(times * math.log1p(-b))
        return told + (1 - told) * gaussian_delta(times * rho, float(total))

    assert true_delta(b) <= float(delta)
    if part == 40:
        assert true_delta(0) > float(delta), "the broken twin: a ρ that is said to cover the threshold"


def test_a_threshold_has_no_rho_between_distant_tables() -> None:
    """Group privacy of zCDP does not extend to thresholds: two users together may be alone in a group."""
    doubled = SELECTION.for_group(2)
    assert doubled.rho is None
    assert doubled.uncovered == doubled.delta > 2 * SELECTION.delta
    assert SELECTION.for_group(1) is SELECTION


@pytest.mark.parametrize(("rho", "beyond"), [("0.1", "2e-6"), (None, "1e-7"), ("0.1", "-1e-7")])
def test_beyond_is_a_part_of_delta(rho: str | None, beyond: str) -> None:
    with pytest.raises(UsageError, match="beyond="):
        Cost(Decimal(1), Decimal("1e-6"), None if rho is None else Decimal(rho), Decimal(beyond))


# The truth to compare with: the exact δ(ε) of k-fold randomised response, the worst ε-private mechanism.


def randomised_response_delta(times: int, each: float, at: float) -> float:
    likely = 1 / (1 + math.exp(-each))
    total = 0.0
    for flips in range(times + 1):
        loss = (times - 2 * flips) * each
        if loss > at:
            log_mass = (
                math.lgamma(times + 1)
                - math.lgamma(flips + 1)
                - math.lgamma(times - flips + 1)
                + (times - flips) * math.log(likely)
                + flips * math.log1p(-likely)
            )
            total += math.exp(log_mass) * -math.expm1(at - loss)
    return total


def gaussian_delta(rho: float, at: float) -> float:
    """δ(ε) of Gaussian noise (Balle and Wang 2018, Theorem 8)."""
    shift = math.sqrt(2 * rho)

    def normal(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return normal(shift / 2 - at / shift) - math.exp(at) * normal(-shift / 2 - at / shift)


@pytest.mark.parametrize(("total", "delta"), [("1", "1e-6"), ("0.5", "1e-9"), ("8", "1e-5"), ("3", "0.01")])
@pytest.mark.parametrize("each", ["0.003", "0.01", "0.05", "0.3"])
def test_the_total_really_holds_for_laplace_like_releases(total: str, delta: str, each: str) -> None:
    _, times = spend(account(total, delta), Cost.pure(each))
    assert randomised_response_delta(times, float(each), float(total)) <= float(delta) / 10


@pytest.mark.parametrize(("total", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("8", "1e-5"), ("3", "0.01")])
def test_the_total_really_holds_for_gaussian_releases(total: str, delta: str) -> None:
    rho = float(total) ** 2 * 1e-4
    _, times = spend(account(total, delta), Cost.zcdp(rho, epsilon=10 * float(total), delta=delta))
    used = times * rho
    assert gaussian_delta(used, float(total)) <= float(delta) / 10
    assert gaussian_delta(1.5 * used, float(total)) > float(delta) / 10  # within half of what is possible


def test_the_comparison_catches_a_renyi_cost_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(cost: Cost, order: Decimal) -> Decimal:
        return renyi_cost(cost, order) / 2

    monkeypatch.setattr(composition, "renyi_cost", half)
    _, times = spend(account("1", "1e-6"), Cost.pure("0.01"))
    assert randomised_response_delta(times, 0.01, 1.0) > 1e-7


@given(st.floats(1e-6, 50), st.floats(1.001, 200))
def test_renyi_cost_lies_below_both_simple_bounds_and_above_the_divergence(epsilon: float, order: float) -> None:
    cost = renyi_cost(Cost.pure(epsilon), Decimal(repr(order)))
    assert cost <= Decimal(repr(epsilon))
    assert float(cost) <= order * epsilon**2 / 2 * (1 + 1e-9)
    top = max(order * epsilon, 0.0)
    moment = math.log(math.exp(order * epsilon - top) + math.exp((1 - order) * epsilon - top)) + top
    exact = (moment - epsilon - math.log1p(math.exp(-epsilon))) / (order - 1)
    assert float(cost) >= exact - 1e-9 * max(1.0, exact) / (order - 1)


def test_two_steps_of_a_neighbour_relation() -> None:
    doubled = Cost.zcdp("0.01", epsilon="0.5", delta="1e-6").for_group(2)
    assert doubled.epsilon == 1
    assert doubled.rho == Decimal("0.04")
    assert 0 <= float(doubled.delta) - 1e-6 * (1 + math.exp(0.5)) < 1e-20
    assert Cost.pure("0.1").for_group(2) == Cost.pure("0.2")


@pytest.mark.parametrize("bad", ["x", float("nan"), float("inf"), -0.1, "1e-90", None, 1e20])
def test_a_cost_that_is_no_amount_is_refused(bad: object) -> None:
    with pytest.raises(UsageError, match="epsilon="):
        Cost.pure(bad)  # type: ignore[arg-type]


def test_a_cost_is_never_a_refund() -> None:
    with pytest.raises(UsageError, match="epsilon=-1 is out of range"):
        Cost(Decimal(-1))


def test_a_zcdp_cost_needs_a_delta() -> None:
    with pytest.raises(UsageError, match="delta=0"):
        Cost.zcdp(0.1, epsilon=1, delta=0)

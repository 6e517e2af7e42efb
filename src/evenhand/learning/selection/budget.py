"""Fits inside a larger release: what they may cost, and what they pay from.

To a fit a `FitBudget` looks like its ledger: it was debited once, beforehand, for all of them, and never gives more than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from sklearn.base import clone

from evenhand.guarantee import EvenhandError, Guarantee, UsageError
from evenhand.learning.linear_model import LinearModel
from evenhand.ledger import Cost, mechanism_delta
from evenhand.noise import rho_for

SEARCH_SHARE = Fraction(1, 4)
"""The part of the budget that goes into the search where the winner is fitted again with the rest."""


Model: TypeAlias = Any
"""A fitted estimator of this package."""

Payer: TypeAlias = Any
"""What a fit debits: a ledger, a purse or a quote."""


@dataclass(frozen=True)
class Division:
    """How a search divides its budget: amounts of ε if ``pure``, else of ρ; users who judge don't train, so both are paid at once.

    Args:
        search: what all candidates together use, and at most what judging them uses.
        refit: what the last fit uses, on all users.
        judging: the ε of the choice.
        cost: of everything.
    """

    search: Fraction
    refit: Fraction
    judging: Decimal
    cost: Cost
    pure: bool

    @classmethod
    def of(cls, epsilon: Decimal, delta: Decimal, refit: bool) -> Division:
        """Divide (ε, δ)."""
        share = SEARCH_SHARE if refit else Fraction(1)
        if not delta:
            search = Fraction(epsilon) * share
            return cls(search, Fraction(epsilon) - search, rounded_down(search), Cost.pure(epsilon), pure=True)
        usable = mechanism_delta(delta)
        rho = _tidy(rho_for(epsilon, usable))
        search = rho * share
        # A choice with ε is ε²/2-zCDP.
        judging = min(rounded_down(Fraction(math.isqrt(int(2 * search * 10**36)), 10**18)), epsilon)
        cost = Cost.zcdp(Decimal(f"{rho * 10**24}e-24"), epsilon=epsilon, delta=usable)
        return cls(search, rho - search, judging, cost, pure=False)


@dataclass(frozen=True)
class _Event:
    """What stands for a ledger's event."""

    id: str


class FitBudget:
    """An amount of ε (pure) or of ρ (zero-concentrated), counted down exactly by the fits that debit it."""

    def __init__(self, amount: Fraction, pure: bool, event: str) -> None:
        self.left = amount
        self._pure = pure
        self._event = event

    def debit(self, cost: Cost, query: Mapping[str, Any], guarantee: Guarantee, table: str | None = None) -> _Event:
        """Take what a fit costs; more than is left is a defect, found before the fit reads a row."""
        taken = price(cost, self._pure)
        if taken > self.left:
            raise EvenhandError(
                "a fit inside a search tried to use more privacy budget than was set aside for it; this is a defect in "
                "Evenhand, please report it."
            )
        self.left -= taken
        return _Event(self._event)


def price(cost: Cost, pure: bool) -> Fraction:
    """What a cost takes from a purse: its ε, or its ρ."""
    if pure and not cost.delta:
        return Fraction(cost.epsilon)
    if not pure and cost.rho is not None and not cost.beyond:
        return Fraction(cost.rho)
    raise UsageError(
        "delta=0: expected delta > 0, such as 1e-6: the estimator's noise is Gaussian."
        if pure
        else "delta > 0: expected delta=0 for an estimator that is purely private; only costs with a ρ can be divided exactly."
    )


@dataclass
class PaidFit:
    """A ledger whose debit was made before, for one fit at just this cost.

    Args:
        cost: what was debited.
        event: the id of the debit; empty once a fit has taken it.
    """

    cost: Cost
    event: str

    def debit(self, cost: Cost, query: Mapping[str, Any], guarantee: Guarantee, table: str | None = None) -> _Event:
        """What stands for the debit; another cost, or a second fit, is a defect, found before the fit reads a row."""
        taken, self.event = self.event, ""
        if not taken or cost != self.cost:
            raise EvenhandError(
                "a fit is not the one that was paid for; this is a defect in Evenhand, please report it."
            )
        return _Event(taken)


class _Asked(Exception):  # noqa: N818
    """Ends a fit at its debit."""


@dataclass
class Quote:
    """A ledger that ends the fit at its debit and remembers what it would have paid.

    What a fit costs depends on public facts only, so a fit without rows tells it.
    """

    cost: Cost | None = None
    guarantee: Guarantee | None = None
    query: Mapping[str, Any] | None = None

    def debit(self, cost: Cost, query: Mapping[str, Any], guarantee: Guarantee, table: str | None = None) -> _Event:
        """Remember, and stop."""
        self.cost, self.guarantee, self.query = cost, guarantee, query
        raise _Asked

    @classmethod
    def of(cls, fit: Callable[[Quote], object]) -> Quote:
        """What ``fit``, given a ledger, would debit; nothing is read or drawn."""
        quote = cls()
        try:
            fit(quote)
        except _Asked:
            return quote
        raise UsageError(
            "the estimator did not debit a ledger before it was fitted; expected BoundedERM or WeightedERM of evenhand.learning."
        )


def largest_epsilon(quoted: Callable[[Decimal], Cost], amount: Fraction, first: Decimal, pure: bool) -> Decimal:
    """About the largest ε of a fit whose cost fits ``amount``; ``first`` is tried first."""
    if pure:
        return rounded_down(amount)
    low, high, middle = Fraction(0), Fraction(10_000), first
    for _ in range(80):
        taken, tried = price(quoted(middle), pure), Fraction(middle)
        low, high = (tried, high) if taken <= amount else (low, tried)
        if amount * Fraction(99, 100) <= taken <= amount:
            return middle
        # ρ grows roughly like ε²: a step along that law, kept inside the bracket.
        guess = tried * Fraction(0.998 * math.sqrt(amount / taken))
        middle = rounded_down(guess if low < guess < high else (low + high) / 2)
    if low:
        return rounded_down(low)
    raise UsageError(
        "epsilon= is too small to be divided among so many candidates; give a smaller grid or a larger epsilon."
    )


def rounded_down(amount: Fraction) -> Decimal:
    """An amount to 18 decimals, from text: the program's own precision has no say."""
    return Decimal(f"{amount.numerator * 10**18 // amount.denominator}e-18")


def fitted(
    estimator: LinearModel,
    setting: Mapping[str, Any],
    epsilon: Decimal,
    delta: Decimal,
    payer: Payer,
    rows: Sequence[Any],
) -> Model:
    """A copy of the estimator with these settings, fitted on these rows, and paid by ``payer``."""
    budget = {"epsilon": epsilon, "ledger": payer} | ({"delta": delta} if delta else {})
    known = estimator.get_params(deep=False)
    if delta and "delta" not in known:
        raise UsageError(f"delta={delta}: {type(estimator).__name__} is purely private; give delta=0 to the search.")
    return clone(estimator).set_params(**setting).set_params(**budget).fit(*rows)


def quote(
    estimator: LinearModel, setting: Mapping[str, Any], epsilon: Decimal, delta: Decimal, rows: Sequence[Any]
) -> Quote:
    return Quote.of(lambda ledger: fitted(estimator, setting, epsilon, delta, ledger, rows))


def amounts(
    estimator: LinearModel,
    candidates: Sequence[Mapping[str, Any]],
    rows: Sequence[Any],
    delta: Decimal,
    division: Division,
    amount: Fraction | None = None,
) -> list[Decimal]:
    """The ε of each fit, so that all of them together cost ``amount``, or what the division has for the search."""
    own = (division.search if amount is None else amount) / len(candidates)
    found: list[Decimal] = []
    for setting in candidates:

        def quoted(epsilon: Decimal, setting: Mapping[str, Any] = setting) -> Cost:
            cost = quote(estimator, setting, epsilon, delta, rows).cost
            assert cost is not None
            return cost

        epsilon = largest_epsilon(quoted, own, found[-1] if found else division.judging, division.pure)
        assert price(quoted(epsilon), division.pure) <= own
        found.append(epsilon)
    return found


def _tidy(rho: Fraction) -> Fraction:
    """ρ to 24 decimals, rounded down, so that a decimal holds it exactly."""
    return Fraction(rho.numerator * 10**24 // rho.denominator, 10**24)

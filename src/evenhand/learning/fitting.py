"""What all estimators share: how parameters are checked, how a release is paid for, and how a fit runs.

The linear algebra here is small or bound by memory, and a BLAS whose threads wait for each other on busy cores slows it down tenfold:
fits keep it to one thread.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Concatenate, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from evenhand.guarantee import Guarantee, UsageError, suggest, told
from evenhand.learning.data.private_values import unwarned
from evenhand.ledger import Cost, Ledger
from evenhand.pages.progress import watched
from evenhand.planning.checking import WORST_CASE
from evenhand.release import Receipt, debit

S = TypeVar("S")
R = TypeVar("R")
P = ParamSpec("P")


def pay(ledger: Ledger | None, guarantee: Guarantee, cost: Cost, query: Mapping[str, Any]) -> Receipt:
    """Debit the ledger, if there is one, before anything is drawn.

    Without a ledger the release still has its guarantee, but nobody adds it up with others.
    """
    if ledger is None:
        return Receipt(cost.epsilon, cost.delta, "not recorded: no ledger was given")
    return debit(ledger, guarantee, cost, query)


def accounting(ledger: Ledger | None) -> str:
    """Where the release is added up with others, in one line."""
    if ledger is None:
        return "Nothing is accounted: the fit had no ledger=, so no total holds for this model together with other releases."
    return f"Debited from {ledger.location}, {ledger.remaining} left of {ledger.total}."


def admit(ledger: Ledger | None, guarantee: Guarantee) -> None:
    """Ask the ledger before public features are read: what is public for the learner may be what the ledger protects."""
    if ledger is not None:
        ledger.can_afford(Cost.pure(guarantee.epsilon), guarantee)


def choice(name: str, given: object, known: tuple[str, ...]) -> str:
    """Check a parameter that takes one of a few words."""
    if given not in known:
        raise UsageError(
            f"{name}={told(given)} is not known; expected one of {list(known)}.{suggest(told(given), known)}"
        )
    return str(given)


def public_number(
    name: str, given: object, *, zero: bool = False, smallest: float = 0.0, largest: float = math.inf
) -> float:
    """Check a finite, positive number that the analyst must choose without looking at the data."""
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        least = "at least 0" if zero else "above 0"
        raise UsageError(f"{name}={told(given)}; expected a finite number {least}, chosen without looking at the data.")
    if not smallest <= value <= largest:
        raise UsageError(
            f"{name}={told(given)} is too extreme; expected a number from {smallest:.3g} to {largest:.3g}, chosen without "
            "looking at the data."
        )
    return value


def is_auto(name: str, given: object, *others: str) -> bool:
    """Whether a number is left to a forecast; no other words are known."""
    return isinstance(given, str) and choice(name, given, ("auto", *others)) == "auto"


def is_worst_case(given: object) -> bool:
    """Whether a bound on users is to make what is proved least, as the papers choose it, and not a forecast."""
    return isinstance(given, str) and given == WORST_CASE


def whole_number(name: str, given: object, largest: int) -> int:
    """Check a whole number from 1 on."""
    try:
        value: int = int(given)  # type: ignore[call-overload]
        sound = value == given and 1 <= value <= largest
    except (TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        raise UsageError(
            f"{name}={given!r}; expected a whole number from 1 to {largest}, or 'auto' where there is a choice."
        )
    return value


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep BLAS to one thread for a while."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def fitting(fit: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A ``fit`` that says after two seconds what is being fitted, and for how long; not how far it is, which rows decide."""

    quiet: Callable[Concatenate[S, P], R] = unwarned(fit)

    @functools.wraps(fit)
    def told(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with watched(type(self).__name__):
            return quiet(self, *args, **kwargs)

    return told


def halved(high_enough: Callable[[float], bool], low: float, high: float, times: int = 30) -> tuple[float, float]:
    """The ends of the interval in which a test begins to hold, after so many halvings."""
    for _ in range(times):
        tried = (low + high) / 2
        low, high = (low, tried) if high_enough(tried) else (tried, high)
    return low, high

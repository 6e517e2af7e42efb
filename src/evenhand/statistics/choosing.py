"""Choosing the bound: buy a small private profile out of the same ε, or reuse one, and let planning decide."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from evenhand.bounding import Auto, Strategy, Summary, TotalCap
from evenhand.guarantee import split
from evenhand.planning import PROFILE_SHARE, choose_total_cap, row_buckets, total_buckets
from evenhand.release import Bounding, Error, Measurement, Receipt
from evenhand.statistics.request import Request
from evenhand.statistics.totals import bucket_counts


@dataclass(frozen=True)
class Chosen:
    """A strategy with its bound, what is left of ε, and what is known about the bias.

    Args:
        strategy: bounds the users.
        bounding: how the choice appears in the release.
        epsilon: what is left for the release itself.
        bias: the forecast bias in the unit of the value; None if nothing is known.
        basis: where that forecast comes from.
        added_back: an estimate of what the bound cut off, in the unit of the value.
    """

    strategy: Strategy
    bounding: Bounding
    epsilon: Decimal
    bias: float | None = None
    basis: str = Error(None).basis
    added_back: float = 0.0

    def error(self, noise: float) -> Error:
        """The forecast error once the noise is known."""
        return Error(noise, self.bias, self.basis)


def pending(auto: Auto, request: Request) -> Bounding:
    """How a bound that will be chosen appears before anything is spent."""
    strategy = auto.strategy.title if auto.strategy else "auto"
    if request.relation.counts_are_public:
        return Bounding(strategy, None, "the bound will be chosen from the public counts", "auto, free of charge")
    if auto.profile is not None:
        return Bounding(strategy, None, "the bound will be chosen from the given profile", "auto, free of charge")
    part, _ = split(request.epsilon, auto.share or PROFILE_SHARE)
    return Bounding(strategy, None, "the bound will be chosen privately", "auto", part)


def cap_from_profile(
    request: Request, auto: Auto, receipt: Receipt, users: Any, summary: Summary, unit: float
) -> Chosen:
    """The cap on a user's total that a private histogram of totals forecasts to be best."""
    if summary.grid is None:
        buckets, quantity, key = row_buckets(), summary.rows, "rows"
    else:
        buckets, quantity, key = total_buckets(summary.grid.reach), summary.total.abs(), repr(summary.grid)
    share = auto.share or PROFILE_SHARE
    profile, left, paid = _profile(request, receipt, bucket_counts(request.table, users, quantity, buckets), key, share)
    choice = choose_total_cap(buckets, profile.counts, profile.epsilon, left)
    cap = TotalCap(Fraction(choice.parameter) / steps_per_unit(summary))
    bounding = Bounding(cap.title, float(cap.T), cap.describe(), f"chosen from {choice.basis}", paid or None)
    return Chosen(cap, bounding, left, choice.bias * unit, "estimated from the profile")


@dataclass(frozen=True)
class Bought:
    """A noisy histogram of users, and what it cost."""

    counts: list[int]
    epsilon: Decimal


def _profile(
    request: Request, receipt: Receipt, measurement: Measurement, key: str, share: Any
) -> tuple[Bought, Decimal, Decimal]:
    """A histogram from the session's shelf, or one bought now; and what is left of ε and what was paid."""
    place = (key, request.table.snapshot)
    if place in request.shelf and request.table.snapshot is not None:
        return request.shelf[place], request.epsilon, Decimal(0)
    paid, left = split(request.epsilon, share)
    bought = Bought(receipt.release(measurement, paid).values, paid)
    request.shelf[place] = bought
    return bought, left, paid


def steps_per_unit(summary: Summary) -> Fraction:
    """How many integer steps make one unit of the statistic."""
    return summary.grid.steps_per_unit if summary.grid else Fraction(1)


def mean_from_profile(request: Request, auto: Auto, receipt: Receipt, users: Any, summary: Summary) -> Chosen:
    raise NotImplementedError

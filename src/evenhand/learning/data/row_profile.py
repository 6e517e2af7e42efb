"""How many rows users have, from which bounds are chosen: given, public, or bought with a share of ε."""

from __future__ import annotations

import warnings
from dataclasses import replace
from decimal import Decimal

from evenhand.guarantee import UsageError, split
from evenhand.learning.data.sources import RowSource
from evenhand.learning.fitting import is_auto, is_worst_case, whole_number
from evenhand.planning.checking import WORST_CASE
from evenhand.planning.row_choice import LARGEST_TAU
from evenhand.planning.worth import AgainstConstant
from evenhand.profiles import About, Profile, Support, Wanted, row_buckets
from evenhand.release import Receipt

PROFILE_SHARE = Decimal("0.1")
"""The part of ε that a profile of rows per user takes when their number is secret."""


def rows_per_user(given: int | str) -> int | None:
    """τ as an analyst set it; None if it is left to a forecast, or to what is proved."""
    if is_auto("rows_per_user", given, WORST_CASE) or is_worst_case(given):
        return None
    return whole_number("rows_per_user", given, LARGEST_TAU)


def require_public(profile: Profile | None) -> None:
    """Refuse the exact profile of a table."""
    if profile is not None and profile.mark:
        raise UsageError(
            "profile= is the exact profile of a table, which is not private; expected a public prior or a bought one."
        )


def profile_price(source: RowSource, profile: Profile | None, epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """What a profile of rows per user takes of ε, and what it leaves."""
    bought = profile is None and not source.relation.counts_are_public
    return split(epsilon, PROFILE_SHARE) if bought else (Decimal(0), epsilon)


def rows_support(source: RowSource, profile: Profile | None, epsilon: Decimal, receipt: Receipt) -> Support:
    """Users by number of rows; what has to be bought costs `profile_price`."""
    if profile is not None:
        require_public(profile)
        return profile.support
    if source.relation.counts_are_public:
        return receipt.public(source.public_support(), source.relation)
    buckets = row_buckets()
    paid, _ = profile_price(source, profile, epsilon)
    return Wanted(About("rows")).get(receipt, buckets, source.histogram(buckets), paid).support


def known_profile(profile: Profile) -> Profile:
    """What it says of rows and users, whatever it was bought under: a fit adds what it cost to its own guarantee."""
    return replace(profile, guarantee=None)


def warn_of(plan: AgainstConstant) -> None:
    """Say, while nothing has been paid or read, that a model is not worth its price."""
    if not plan.usable:
        warnings.warn(f"the model is not likely to be worth its ε: {plan.why}.", UserWarning, stacklevel=6)

"""How many rows users have, from which bounds are chosen: given, public, or bought with a share of ε."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from evenhand.guarantee import Relation, UsageError, split
from evenhand.learning.data.sources import RowSource
from evenhand.learning.fitting import is_auto, is_worst_case, whole_number
from evenhand.planning.checking import WORST_CASE
from evenhand.planning.models import ModelPlan, plan_model
from evenhand.planning.row_choice import LARGEST_TAU
from evenhand.planning.rows_plan import RowsPlan, plan_rows
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


def planned(
    profile: Profile | None,
    loss: str | None,
    epsilon: Decimal,
    delta: Decimal,
    relation: Relation,
    features: int,
    classes: Sequence[Any],
    prior: Sequence[float] | None,
) -> ModelPlan | None:
    """Whether a model by clamped gradients will beat a constant one; said while nothing has been paid or read."""
    if profile is None:
        return None
    if loss is None:
        raise UsageError(
            "profile= is for clip='lipschitz', or for a forecast, which is made for a named loss; leave it out for a loss of your own."
        )
    if prior is not None and len(prior) != len(classes):
        raise UsageError(
            f"class_prior={prior!r}; expected one part for each of the {len(classes)} classes, in their order."
        )
    kind = "squared" if loss == "squared" else "logistic"
    plan = plan_model(_known(profile), epsilon, delta, features, relation, kind, prior or len(classes))
    _warn_of(plan)
    return plan


def planned_rows(
    profile: Profile | None, loss: str, epsilon: Decimal, relation: Relation, features: int
) -> RowsPlan | None:
    """The same for at most τ rows per user and pure ε, for classes of equal size."""
    if profile is None:
        return None
    require_public(profile)
    plan = plan_rows(_known(profile), epsilon, features, relation, loss)
    _warn_of(plan)
    return plan


def _known(profile: Profile) -> Profile:
    """What it says of rows and users, whatever it was bought under: a fit adds what it cost to its own guarantee."""
    return replace(profile, guarantee=None)


def _warn_of(plan: AgainstConstant) -> None:
    if not plan.usable:
        warnings.warn(f"the model is not likely to be worth its ε: {plan.why}.", UserWarning, stacklevel=6)

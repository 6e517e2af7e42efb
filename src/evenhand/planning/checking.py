"""What a plan is asked with, checked."""

from __future__ import annotations

import math

from evenhand.guarantee import Relation, UsageError, suggest, told
from evenhand.profiles import Profile
from evenhand.statistics import STATISTICS

EXPECTED, WORST_CASE = OBJECTIVES = ("expected", "worst case")
"""What a plan makes small: the forecast error, or what is proved whatever the values are, as the papers choose."""


def parse_objective(given: str | None) -> str:
    """What a plan makes small."""
    if given is None:
        return EXPECTED
    if given not in OBJECTIVES:
        raise UsageError(
            f"objective={given!r} is not known; expected one of {list(OBJECTIVES)}.{suggest(str(given), OBJECTIVES)}"
        )
    return given


def relation_of(profile: Profile, protects: Relation | str | None) -> Relation:
    """What is protected: as given, or as the profile was bought."""
    own = profile.guarantee.relation if profile.guarantee else Relation.PRESENCE
    relation = own if protects is None else Relation.parse(protects)
    profile.for_relation(relation)
    return relation


def require_presence(profile: Profile, protects: Relation | str | None) -> None:
    """Refuse plans by groups where the size of a group is public."""
    if relation_of(profile, protects) is not Relation.PRESENCE:
        raise UsageError(
            "plans by groups are for protects='presence'; where row counts are public, so is the size of a group."
        )


def parse_value_bounds(statistic: str, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    """The range of values; none for a count."""
    if STATISTICS[statistic].planned_as == "count":
        return None
    if bounds is None:
        raise UsageError(
            f"a plan for a {statistic} needs bounds=(lowest, highest): the range that values are clamped to, such as (0, 5). "
            "A release can find them in its table, for 15% of its ε; a plan has none to look at."
        )
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise UsageError(f"bounds={told(bounds)} is not a range; expected two numbers such as (0, 5).") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"bounds=({low:g}, {high:g}) is not a range; expected finite numbers, the lower one first.")
    return low, high


def part_of_range(name: str, given: float | None, length: float, default: float) -> float:
    """A given number as a part of the range."""
    if given is None:
        return default
    if not (math.isfinite(given) and 0 <= given <= length):
        raise UsageError(
            f"{name}={given:g} is out of range; expected a number between 0 and the length of the bounds, {length:g}."
        )
    return given / length


def parse_dimension(dimension: int | None) -> int:
    """How many features a planned model has."""
    if dimension is None or isinstance(dimension, bool) or not 1 <= dimension <= 10**6:
        raise UsageError(
            f"dimension={dimension!r}; a plan for a model needs the number of features, such as dimension=20."
        )
    return int(dimension)


def parse_apart(given: float | None, default: float) -> float:
    """How far the average slope of busy users is from that of others, in standard deviations of a row's."""
    if given is None:
        return default
    if not (math.isfinite(given) and 0 <= given <= 10):
        raise UsageError(
            f"heterogeneity={given:g} is out of range; expected how far the average slope of busy users is from that of others, in standard deviations "
            f"of a row's slope, such as {default:g}; 0 if users are alike."
        )
    return float(given)

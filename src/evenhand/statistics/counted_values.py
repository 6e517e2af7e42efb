"""What a release says about the values it counts: those beyond given bounds, and those that are missing, do not count as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.guarantee import Relation
from evenhand.pages.numbers import written
from evenhand.statistics.per_user_mean import PerUserMean
from evenhand.statistics.ranks import OfRanks
from evenhand.statistics.share import ShareOfRows, ShareOfUsers
from evenhand.statistics.statistic import OfColumn, Statistic
from evenhand.tables.grid import parse_open_bounds

_DIGITS = 12


def counted_values(statistics: Mapping[str, Statistic], relation: Relation) -> dict[str, Any]:
    """By name, for a release's details; empty where all values count as they are, or the release says which bounds were found."""
    every = [part for statistic in statistics.values() for part in _parts(statistic)]
    parts = [part for part in every if not isinstance(part, ShareOfRows | ShareOfUsers)]
    told = ["a condition that is null counts as false"] if len(parts) < len(every) else []
    within = dict.fromkeys(text for part in parts for text in _within(part))
    if within:
        told.append(f"{', '.join(within)}; values beyond count as the nearest end")
    columns = dict.fromkeys(column for part in parts for column in part.reads)
    if columns and relation.counts_are_public:
        missing = f"where {' or '.join(columns)} is missing it counts as the middle of the bounds"
        told.append(f"{missing}: which values are missing is private")
    return {"values": {"words": "; ".join(told)}} if told else {}


def in_words(bounds: Sequence[float | None], digits: int) -> str:
    """Bounds of which either end may be open."""
    low, high = (None if end is None else written(end, digits) for end in bounds)
    if low is None or high is None:
        return f"at least {low}" if high is None else f"at most {high}"
    return f"from {low} to {high}"


def _parts(statistic: Statistic) -> list[Statistic]:
    return [part for part, _ in statistic.components.values()] or [statistic]


def _within(statistic: Statistic) -> Iterator[str]:
    if not isinstance(statistic, OfColumn | OfRanks):
        return
    bounds = parse_open_bounds(statistic.bounds)
    of_totals = isinstance(statistic, PerUserMean) and statistic.of == "total"
    if bounds != (None, None):
        what = f"users' totals of {statistic.column}" if of_totals else statistic.column
        yield f"{what} {in_words(bounds, _DIGITS)}"

"""What a question leaves out and the facts about columns say: bounds and keys; and units for what it releases.

What the analyst gives wins, end by end. The question is then the one that somebody would have asked who typed the facts in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from evenhand.guarantee import Relation, UsageError
from evenhand.pages.numbers import written
from evenhand.release import Receipt
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.found_bounds import By
from evenhand.statistics.per_user_mean import PerUserMean
from evenhand.statistics.ranks import OfRanks
from evenhand.statistics.share import ShareOfRows, ShareOfUsers
from evenhand.statistics.statistic import OfColumn, Statistic
from evenhand.statistics.wanted_bounds import WantedBounds
from evenhand.tables import OpenBounds, Table
from evenhand.tables.columns import schema_bounds
from evenhand.tables.grid import parse_open_bounds

S = TypeVar("S", bound=Statistic)


@dataclass
class Stated:
    """The facts that one question uses.

    Args:
        table: with its facts.
        used: what was filled in, by column.
    """

    table: Table
    used: dict[str, dict[str, Any]] = field(default_factory=dict)

    def bounded(self, statistics: Mapping[str, Statistic]) -> dict[str, Statistic]:
        """The statistics with the bounds that are stated for their columns."""
        return {name: self._bounded(statistic) for name, statistic in statistics.items()}

    def _bounded(self, statistic: Statistic) -> Statistic:
        wants = statistic.wants_bounds
        filled = [self._filled(want) for want in wants]
        given = [want.given for want in wants]
        return statistic if filled == given else statistic.with_bounds(filled)

    def _filled(self, want: WantedBounds) -> OpenBounds:
        if want.total:  # what is known is about one value
            return want.given
        facts = self.table.facts.get(want.column)
        if facts is None or facts.bounds is None:
            return self._by_type(want)
        low, high = (known if given is None else given for given, known in zip(want.given, facts.range, strict=True))
        if low is not None and high is not None and low >= high:
            raise UsageError(
                f"bounds={want.given} of {want.column!r} leave nothing between them and {facts.range}, which are stated for the "
                "column; give both bounds."
            )
        if (low, high) != want.given:
            self._note(want.column, "bounds", list(facts.range))
        return low, high

    def _by_type(self, want: WantedBounds) -> OpenBounds:
        """Bounds that the type of the column, or the expression that made it, leaves no choice about."""
        known = schema_bounds(self.table, want.column)
        if known is None or want.given != (None, None):
            return want.given
        self._note(want.column, "bounds", list(known))
        return known

    def keys(self, by: By, given: object) -> object:
        """The keys that are stated for the group columns, if all have some and none are given."""
        columns = (by,) if isinstance(by, str) else tuple(by or ())
        stated = {name: self.table.facts[name].keys for name in columns if name in self.table.facts}
        if given is not None or not columns or any(stated.get(name) is None for name in columns):
            return given
        for name in columns:
            self._note(name, "keys", len(stated[name] or ()))
        return stated

    def told(self, draft: Draft, statistics: Mapping[str, Statistic]) -> Draft:
        """The draft with units and the table's name, and with what was filled in, for the ledger and the release."""
        units = self._units(statistics)
        additive = tuple(name for name, one in statistics.items() if one.additive)
        draft = replace(draft, units=units, additive=additive, source=self.table.source, engine=self.table.engine)
        details = counted_values(statistics, self.table.relation)
        if self.used:
            details["facts"] = {**self.used, "words": _words(self.used)}
            draft = replace(draft, query={**draft.query, "facts": self.used})
        if not details:
            return draft

        def run(receipt: Receipt) -> Outcome:
            outcome = draft.run(receipt)
            return replace(outcome, details={**outcome.details, **details})

        return replace(draft, run=run)

    def _units(self, statistics: Mapping[str, Statistic]) -> dict[str, str]:
        """The unit of each released number, where any has one."""
        known = {column: facts.unit for column, facts in self.table.facts.items() if facts.unit}
        units = {name: _unit(statistic, known) for name, statistic in statistics.items()}
        return units if any(units.values()) else {}

    def _note(self, column: str, fact: str, value: object) -> None:
        self.used.setdefault(column, {})[fact] = value


def _unit(statistic: Statistic, known: Mapping[str, str]) -> str:
    unit = known.get(getattr(statistic, "column", ""), "") if statistic.unit_power else ""
    return unit and unit + ("²" if statistic.unit_power == 2 else "")


def _words(used: Mapping[str, Mapping[str, Any]]) -> str:
    told = []
    for column, facts in used.items():
        if "bounds" in facts:
            told.append(f"{column} {in_words(facts['bounds'], 3)}")
        if "keys" in facts:
            told.append(f"{facts['keys']:,} keys of {column}")
    return f"stated with the table: {', '.join(told)}"


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

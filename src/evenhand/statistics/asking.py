"""From a question to a draft: which road it takes, and what it is grouped by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from evenhand.guarantee import UsageError
from evenhand.statistics.draft import Draft
from evenhand.statistics.keys import UNGROUPED, Keys, parse_by, parse_keys
from evenhand.statistics.per_row import PerRow
from evenhand.statistics.request import Request
from evenhand.statistics.selection import parse_groups_per_user
from evenhand.statistics.several import ask_several
from evenhand.statistics.statistic import OfColumn, Statistic
from evenhand.tables import Table

By: TypeAlias = str | Sequence[str] | None


def ask_one(request: Request, statistic: Statistic, by: By, keys: object, other: str | None, limit: object) -> Draft:
    """One statistic: a number, or a frame when grouped."""
    if not isinstance(statistic, Statistic):
        raise UsageError(f'ask({statistic!r}): expected a statistic such as eh.mean("rating", bounds=(0.5, 5)).')
    statistic.check(request.table)
    alone = statistic.ungrouped(request) if by is None and keys is None else None
    if alone is not None:
        return alone
    parts = {statistic.shown_as or statistic.name: statistic}
    return _by_row(request, parts, by, keys, other, limit, listed=by is None and statistic.aggregates)


def ask_columns(
    request: Request, columns: Mapping[str, OfColumn], by: By, keys: object, other: str | None, limit: object
) -> Draft:
    """One statistic of several columns: a list of numbers, or a frame with a column for each."""
    for statistic in columns.values():
        statistic.check(request.table)
    alone = by is None and keys is None and next(iter(columns.values())).ungrouped(request) is not None
    if alone:
        return ask_several(request, columns)
    return _by_row(request, columns, by, keys, other, limit, listed=by is None)


def ask_together(
    request: Request, given: Mapping[str, object], by: By, keys: object, other: str | None, limit: object
) -> Draft:
    """Several statistics in one pass: a frame."""
    example = 'for example aggregate(by="genre", epsilon=0.5, n=eh.count(), average=eh.mean("rating", bounds=(0.5, 5)))'
    if not given:
        raise UsageError(f"aggregate() was given no statistic; {example}.")
    parts: dict[str, Statistic] = {}
    for name, statistic in given.items():
        if not isinstance(statistic, Statistic) or not statistic.aggregates:
            raise UsageError(
                f"aggregate({name}={statistic!r}): expected eh.count(), eh.sum(), eh.mean() or eh.variance(); {example}."
            )
        statistic.check(request.table)
        parts[name] = statistic
    return _by_row(request, parts, by, keys, other, limit, listed=False)


def of_columns(kind: type[OfColumn], columns: Sequence[str], bounds: object) -> dict[str, OfColumn]:
    """One statistic for each column; ``bounds`` is one pair for all, or a list of pairs."""
    if not columns or len(set(columns)) < len(columns):
        raise UsageError(f"columns {list(columns)}: expected one or more different names.")
    several: list[Any] = list(bounds) if isinstance(bounds, Sequence) else [bounds] * len(columns)
    if len(several) == 2 and all(isinstance(bound, int | float) for bound in several):
        several = [tuple(several)] * len(columns)
    if len(several) != len(columns):
        raise UsageError(
            f"bounds= holds {len(several)} pairs for {len(columns)} columns; expected one pair for all, or one pair per column."
        )
    return {column: kind(column, pair) for column, pair in zip(columns, several, strict=True)}


def _by_row(
    request: Request,
    parts: Mapping[str, Statistic],
    by: By,
    keys: object,
    other: str | None,
    limit: object,
    listed: bool,
) -> Draft:
    table, first = request.table, next(iter(parts.values()))
    for statistic in parts.values():
        statistic.check(table, by_row=True)
        statistic.check_integers(request.relation)
    columns = parse_by(table, by)
    per_user = parse_groups_per_user(limit)
    public: Keys | None = None
    if not columns or keys is not None or not first.selects_keys:
        public = first.placed(_public_keys(table, columns, keys, other), table)
    road = (first.alone_by_group(request) if columns and len(parts) == 1 else first.road) or PerRow
    return road(request, parts, columns, public, other, per_user, listed).draft()


def _public_keys(table: Table, columns: tuple[str, ...], keys: object, other: str | None) -> Keys:
    if not columns:
        if keys is not None:
            raise UsageError("keys= without by=: which column are these the keys of? For example by='genre'.")
        return UNGROUPED
    if keys is None:
        raise UsageError(
            f"by={list(columns)} needs public keys here: give keys=[...]. Keys can be selected privately by count, users, "
            "sum, mean, variance and aggregate; release those keys first, then use them."
        )
    return parse_keys(table, columns, keys, other)

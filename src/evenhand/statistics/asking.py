"""From a question to a draft: which road it takes, and what it is grouped by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from evenhand.guarantee import UsageError, parse_fraction
from evenhand.statistics.draft import Draft
from evenhand.statistics.formula import Formula, Formulas
from evenhand.statistics.found_bounds import By, with_bounds
from evenhand.statistics.keys import UNGROUPED, Keys, parse_by, parse_keys
from evenhand.statistics.per_row import PerRow
from evenhand.statistics.request import Request
from evenhand.statistics.selection import parse_groups_per_user
from evenhand.statistics.several import ask_several
from evenhand.statistics.stated import Stated
from evenhand.statistics.statistic import OfColumn, Statistic
from evenhand.statistics.totals import REST, with_totals
from evenhand.tables import Table

__all__ = ["By", "ask_columns", "ask_one", "ask_together", "of_columns", "parse_weights"]


def ask_one(
    request: Request,
    statistic: Statistic,
    by: By,
    keys: object,
    other: str | None,
    limit: object,
    name: str | None = None,
    totals: bool = False,
) -> Draft:
    """One statistic: a number, or a frame when grouped, with the column ``name``."""
    if totals:
        return _with_totals(request, statistic, by, keys, other, limit, name)
    if not isinstance(statistic, Statistic):
        raise UsageError(f'ask({statistic!r}): expected a statistic such as eh.mean("rating", bounds=(0.5, 5)).')
    if statistic.groups_by:
        if by is not None:
            raise UsageError(f"{statistic.name}() has groups of its own, {list(statistic.groups_by)}; leave by= out.")
        by = statistic.groups_by
    made, statistic = statistic.on(request.table)
    request = replace(request, table=made)
    name, facts = name or statistic.shown_as or statistic.name, Stated(request.table)
    parts, keys = facts.bounded({name: statistic}), facts.keys(by, keys)

    def asked(request: Request, parts: Mapping[str, Statistic]) -> Draft:
        one = parts[name]
        one.check(request.table)
        alone = one.ungrouped(request) if by is None and keys is None else None
        if alone is not None:
            return alone
        return _by_row(request, parts, by, keys, other, limit, listed=by is None and one.aggregates)

    unbounded = parts[name].without_bounds(request) if by is None and keys is None else None
    if unbounded is not None:
        return facts.told(unbounded, parts)
    return facts.told(with_bounds(request, parts, by, asked), parts)


def _with_totals(
    request: Request, statistic: Statistic, by: By, keys: object, other: str | None, limit: object, name: str | None
) -> Draft:
    columns = parse_by(request.table, by)
    if not columns:
        raise UsageError("totals=True without by=: of which groups is this the total? For example by='month'.")
    facts = Stated(request.table)
    keys, statistic = facts.keys(by, keys), next(iter(facts.bounded({"": statistic}).values()))
    listed = None if keys is None else parse_keys(request.table, columns, keys, None).rows
    labels = {str(cell) for row in listed or () for cell in row}
    rest = other or (REST if REST not in labels else f"({REST})")

    def ask(request: Request, by_group: bool) -> Draft:
        if by_group:
            return ask_one(request, statistic, by, keys, rest, limit, name)
        return ask_one(request, statistic, None, None, None, None)

    return with_totals(
        request, statistic, ask, [*statistic.reads, *columns], len(listed or ()) or None, {*labels, rest}
    )


def ask_columns(
    request: Request, columns: Mapping[str, OfColumn], by: By, keys: object, other: str | None, limit: object
) -> Draft:
    """One statistic of several columns: a list of numbers, or a frame with a column for each."""
    facts = Stated(request.table)
    bounded, keys = facts.bounded(columns), facts.keys(by, keys)

    def asked(request: Request, columns: Mapping[str, Statistic]) -> Draft:
        for statistic in columns.values():
            statistic.check(request.table)
        alone = by is None and keys is None and next(iter(columns.values())).ungrouped(request) is not None
        if alone:
            return ask_several(request, columns)
        return _by_row(request, columns, by, keys, other, limit, listed=by is None)

    return facts.told(with_bounds(request, bounded, by, asked), bounded)


def ask_together(
    request: Request,
    given: Mapping[str, object],
    by: By,
    keys: object,
    other: str | None,
    limit: object,
    weights: Mapping[str, float] | None = None,
) -> Draft:
    """Several statistics in one pass: a frame."""
    example = 'for example aggregate(by="genre", epsilon=0.5, n=eh.count(), average=eh.mean("rating", bounds=(0.5, 5)))'
    if not given:
        raise UsageError(f"aggregate() was given no statistic; {example}.")
    parts: dict[str, Statistic] = {}
    formulas = Formulas(given)
    if any(isinstance(one, Formula) for one in given.values()):
        given = formulas.asked
        if weights is not None:
            raise UsageError("weights= can't be given with formulas: the statistics in them share ε equally.")
    for name, statistic in given.items():
        if not isinstance(statistic, Statistic) or not statistic.aggregates:
            raise UsageError(
                f"aggregate({name}={statistic!r}): expected eh.count(), eh.users(), eh.sum(), eh.mean(), eh.variance() "
                f"or eh.quantiles(); {example}."
            )
        made, parts[name] = statistic.on(request.table)
        request = replace(request, table=made)
    shares, facts = parse_weights(weights, parts), Stated(request.table)
    bounded, keys = facts.bounded(parts), facts.keys(by, keys)

    def asked(request: Request, parts: Mapping[str, Statistic]) -> Draft:
        for statistic in parts.values():
            statistic.check(request.table)
        return _by_row(request, parts, by, keys, other, limit, listed=False, weights=shares)

    draft = facts.told(with_bounds(request, bounded, by, asked), bounded)
    if given is formulas.given:
        return draft
    words = {name: one.words for name, one in formulas.given.items() if isinstance(one, Formula)}
    return replace(draft, query={**draft.query, "computed": words}, finish=formulas.of_release)


def parse_weights(given: Mapping[str, float] | None, parts: Mapping[str, Statistic]) -> dict[str, Fraction]:
    """Read ``weights=``: a positive number for each statistic; one that is left out weighs 1."""
    expected = f"expected a positive number for each of {list(parts)}, such as weights={{{next(iter(parts))!r}: 2}}"
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not set(given) <= set(parts):
        raise UsageError(f"weights={given!r}: {expected}.")
    try:
        weights = {name: parse_fraction(weight) for name, weight in given.items()}
    except ValueError:
        raise UsageError(f"weights={given!r}: {expected}.") from None
    if not all(Fraction(1, 1000) <= weight <= 1000 for weight in weights.values()):
        raise UsageError(f"weights={given!r}: {expected}, between 0.001 and 1000.")
    return weights


def of_columns(kind: type[OfColumn], columns: Sequence[str], bounds: object) -> dict[str, OfColumn]:
    """One statistic for each column; ``bounds`` is one pair for all, or a list of pairs."""
    if not columns or len(set(columns)) < len(columns):
        raise UsageError(f"columns {list(columns)}: expected one or more different names.")
    several: list[Any] = list(bounds) if isinstance(bounds, Sequence) else [bounds] * len(columns)
    if len(several) == 2 and all(bound is None or isinstance(bound, int | float) for bound in several):
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
    weights: Mapping[str, Fraction] | None = None,
) -> Draft:
    table = request.table
    for statistic in parts.values():
        statistic.check(table, by_row=True)
        statistic.check_integers(request.relation)
    columns = parse_by(table, by)
    per_user = parse_groups_per_user(limit)
    public: Keys | None = None
    if not columns or keys is not None or not all(statistic.selects_keys for statistic in parts.values()):
        public = _public_keys(table, columns, keys, other)
    own = next(iter(parts.values())).own_road
    if own is not None:
        return own(request, parts, columns, public, other, per_user, listed).draft()
    return PerRow(request, parts, columns, public, other, per_user, listed, weights or {}).draft()


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

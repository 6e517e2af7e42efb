"""From a query to a draft: a view of the table, statistics of it, and the order of what is released."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from evenhand.guarantee import Amount, UsageError
from evenhand.profiles import Shelf
from evenhand.release import Release
from evenhand.release.arithmetic import operand, operands, released
from evenhand.release.operands import Operand, computed
from evenhand.sql.arithmetic import Released, columns_of, combine
from evenhand.sql.ordering import ordered
from evenhand.sql.selecting import Select
from evenhand.statistics import Draft, Outcome, Request, ask_beside, ask_one, ask_together
from evenhand.tables import Part, PublicTable, Table
from evenhand.tables.queries.options import Options
from evenhand.tables.queries.parsing import parse_query, unnested
from evenhand.tables.queries.sources import Names, own_names
from evenhand.tables.views.joins import LARGEST_FAN_OUT


def parsed_options(text: str) -> Options:
    """What a query says about its own price, for callers that need to know it before they open the table."""
    return parse_query(text).options


def ask_sql(
    table: Table,
    text: str,
    epsilon: Amount | None,
    delta: Amount | None,
    bounding: object,
    shelf: Shelf | None,
    keys: object = None,
    other: str | None = None,
    tables: Mapping[str, Table | Part | PublicTable] | None = None,
    fan_out: int = LARGEST_FAN_OUT,
) -> Draft:
    """The draft of a query. Nothing is read."""
    query = parse_query(text)
    given, written = query.options, query.normalised
    _check_unit(table, given)
    request_epsilon = _agreed("epsilon", epsilon, given.epsilon)
    with unnested():
        names = Names(own_names(table), tables or {}, fan_out=fan_out).with_views(query)
        asked = Select(query, names.source(query))
        asked.read()
        order, test = asked.order(), asked.having()  # these may ask for more
    request = Request.parse(asked.view(), request_epsilon, _agreed("delta", delta, given.delta) or 0, bounding, shelf)
    by = list(asked.groups) or None
    keys = asked.keys() if keys is None and by else keys
    statistics, limit = asked.statistics, given.groups_per_user
    alone = next(iter(statistics.values())) if len(statistics) == 1 else None
    if alone is not None and (by is None or not alone.aggregates):
        draft = ask_one(request, alone, by, keys, other, limit, name=next(iter(statistics)) if by else None)
    elif all(one.aggregates for one in statistics.values()):
        draft = ask_together(request, statistics, by, keys, other, limit)
    else:
        draft = ask_beside(request, statistics, by, keys, other, limit)
    limited = {"fan_out": fan_out} if fan_out != LARGEST_FAN_OUT else {}
    draft = replace(draft, query={**draft.query, "sql": written, **limited})
    return shown(ordered(draft, order, asked.limit(), test, _unneeded(asked)), asked)


def _unneeded(asked: Select) -> list[str]:
    """What only ORDER BY and HAVING needed."""
    used = {column for value in asked.values.values() for column in columns_of(value)}
    return [name for name in asked.statistics if name not in used]


def shown(draft: Draft, asked: Select) -> Draft:
    """The draft with the columns that SELECT names, each worked out from the releases of what was asked."""
    if all(isinstance(value, Released) for value in asked.values.values()):
        return draft

    def finish(release: Release, outcome: Outcome) -> Release:
        columns = operands(draft.finish(release, outcome))
        if len(columns) == 1 and len(asked.statistics) == 1:
            columns = dict(zip(asked.statistics, columns.values(), strict=True))
        made = {label: combine(value, columns, _OF_OPERANDS) for label, value in asked.values.items()}
        if not asked.groups and len(made) == 1:
            made = {label: one.picked(0, one.words) for label, one in made.items()}
        return released(release, made, release.event)

    words = {label: asked.query.shown(node) for label, node in asked.shown if label in asked.values}
    return replace(draft, query={**draft.query, "computed": words}, finish=finish)


def _operator(symbol: str) -> Callable[[object, object], Operand]:
    return lambda one, other: computed(
        symbol, *(part if isinstance(part, Operand) else operand(part) for part in (one, other))
    )


_OF_OPERANDS: dict[str, Callable[..., Operand]] = {
    **{symbol: _operator(symbol) for symbol in "+-/"},
    "*": _operator("×"),
    "negative": lambda one: computed("×", operand(-1), one),
    "total": lambda one: one.total(),
}


def _check_unit(table: Table, given: Options) -> None:
    if given.user is not None and (given.user.casefold(),) != tuple(name.casefold() for name in table.user):
        raise UsageError(
            f"privacy_unit_column = {given.user}, but the table's users are told apart by {list(table.user)}; read the table with "
            f"user={given.user!r}, or leave the option out."
        )


def _agreed(name: str, outside: Amount | None, inside: str | None) -> Amount | None:
    """What is given beside the query, or in it; both must agree."""
    if inside is None or outside is None:
        return outside if inside is None else inside
    if str(outside) != inside and float(outside) != float(inside):
        raise UsageError(f"{name}={outside} is given, but the query says {name} = {inside}; leave one of them out.")
    return outside

"""Views over two tables: joins with public rows and with parts, joins and unions of tables of the same users."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.guarantee import Relation, UsageError
from evenhand.tables.columns import keys_of
from evenhand.tables.expressions import Column, Rows
from evenhand.tables.public import PublicTable
from evenhand.tables.spelling import group_key
from evenhand.tables.views.operand import Kind, entered, widest_range
from evenhand.tables.views.ordering import total_order, user_window
from evenhand.tables.views.reached import MOST_REACHED, reached, reached_together, require_reachable
from evenhand.tables.views.rows import Facts, require_movable, require_public, viewed

if TYPE_CHECKING:
    from evenhand.tables.engines import Engine
    from evenhand.tables.parts import On, Part
    from evenhand.tables.table import Table

LARGEST_FAN_OUT = 1000
"""Of one join, and of all joins and unions of a table together: more would let one row make a query fail or last."""
_HOW = ("inner", "left")


def join(table: Table, other: Table | Part | PublicTable, on: On | None, how: str, fan_out: int | None = None) -> Table:
    """The rows beside those of another table."""
    from evenhand.tables.parts import Part, key_pairs

    pairs = key_pairs(on)
    keys = [key for key, _ in pairs]
    require_movable(table)
    if how not in _HOW:
        raise UsageError(f"how={how!r} is not a join that keeps users apart; expected one of {list(_HOW)}.")
    fan_out = (LARGEST_FAN_OUT if isinstance(other, Part) else 1) if fan_out is None else fan_out
    if isinstance(fan_out, bool) or not isinstance(fan_out, int) or not 1 <= fan_out <= LARGEST_FAN_OUT:
        raise UsageError(
            f"fan_out={fan_out!r}: expected a whole number between 1 and {LARGEST_FAN_OUT}, how many rows one row may meet."
        )
    if isinstance(other, Part):
        return _with_part(table, other, pairs, how, fan_out)
    for key in keys:
        require_public(table, table.expression[table.require(key, "join column")], "a join", "which rows there are")
    if isinstance(other, PublicTable):
        return _with_public(table, _renamed(other, pairs), keys, how, fan_out)
    if any(one != two for one, two in pairs):
        raise UsageError(
            f"on={on!r}: tables of people are joined by columns of one name; derive the name in one of them first."
        )
    return _with_private(table, other, keys, how, fan_out)


def _with_public(table: Table, public: PublicTable, keys: list[str], how: str, fan_out: int) -> Table:
    if not keys:
        raise UsageError("a join with a public table needs on=, the columns that both have; expected on='product_id'.")
    for key in keys:
        public.require(key)
    largest = public.largest_group(keys)
    if largest > fan_out:
        raise UsageError(
            f"{largest} rows of {public.name} have the same {keys}, so that one row of the table would become as many; fan_out={fan_out} allows "
            f"fewer. Make the keys unique, or give fan_out={largest} (at most {LARGEST_FAN_OUT})."
        )
    growth = _grown(table, max(largest, 1))
    added = [name for name in public.columns if name not in keys]
    _require_apart(table, added)
    right = table.engine.hold(public, public.rows)
    rows = _joined(table.engine, table.expression, right, [(key, key) for key in keys], added, how)
    known = {**table.facts, **keys_of(public.rows, added)}
    changes: Facts = {
        "public": (*table.public, *added),
        "holds": (*table.holds, public),
        "facts": known,
        **growth,
    }
    return viewed(table, rows, changes)


def _renamed(public: PublicTable, pairs: list[tuple[str, str]]) -> PublicTable:
    """The public table with the columns that are joined by under the names of the other one, too."""
    rows = public.rows
    for name, theirs in pairs:
        public.require(theirs)
        if name != theirs:
            if name in public.columns:
                raise UsageError(
                    f"{public.name} has a column {name!r} too, beside {theirs!r} that is to be equal to it; rename one."
                )
            rows = rows.append_column(name, rows[theirs])
    return public if rows is public.rows else PublicTable(rows, public.name)


def _with_part(table: Table, part: Part, pairs: list[tuple[str, str]], how: str, fan_out: int) -> Table:
    reach = require_reachable(table, part, pairs, how)
    _require_one_engine(table.engine, part.rows.engine, "join")
    engine, rows = table.engine.joined(part.rows.engine), part.expression
    same = [theirs for own, theirs in pairs if own == theirs]
    added = [name for name in part.columns if name not in same]
    _require_apart(table, added)
    owner, theirs = {}, {}
    for place, (one, two) in enumerate(pairs):
        name = f"evenhand_on_{place}"
        owner[name], theirs[name] = _key(engine, table.expression, one), _key(engine, rows, two)
        _require_one_type(table.expression, rows, one, two, owner[name], theirs[name], "Store both as one type.")
    names, most = set(added), table.per_person and table.per_person * fan_out
    changes: Facts = {
        "engine": engine,
        "text": table.text | (part.rows.text & names),
        "derived": {**table.derived, **{name: known for name, known in part.rows.derived.items() if name in names}},
        "snapshot": _both(table, part.rows),
        "facts": {**table.facts, **{name: known for name, known in part.rows.facts.items() if name in names}},
        "per_person": None if most is None or most > MOST_REACHED else most,
        "reached": (*table.reached, reach),
        "places": table.places | part.rows.places,
        "parts": {name: other for name, other in table.parts.items() if name != part.name},
    }
    whole = replace(table, engine=engine)
    found = reached(whole, replace(part.rows, engine=engine), owner, theirs, added, how, fan_out)
    joined = viewed(replace(table, **changes), found)
    for step in part.steps:
        joined = join(joined, step.other, step.on, step.how, step.fan_out)
    return joined


def _with_private(table: Table, other: Table, keys: list[str], how: str, fan_out: int) -> Table:
    _require_same_people(table, other, "join")
    fan_out = min(fan_out, other.per_person or fan_out)
    growth = _grown(table, fan_out)
    for key in keys:
        require_public(other, other.expression[other.require(key, "join column")], "a join", "which rows there are")
    added = [name for name in other.columns if name not in (*keys, *other.user)]
    _require_apart(table, added)
    engine = table.engine.joined(other.engine)
    right = _first_rows(other, keys, fan_out)
    pairs = [*zip(table.user, other.user, strict=True), *((key, key) for key in keys)]
    rows = _joined(engine, table.expression, right, pairs, added, how, users=len(table.user))
    names = set(added)
    changes: Facts = {
        "engine": engine,
        "public": (*table.public, *(name for name in other.public if name in names)),
        "text": table.text | (other.text & names),
        "derived": {**table.derived, **{name: known for name, known in other.derived.items() if name in names}},
        "holds": (*table.holds, *other.holds),
        "declared": tuple(dict.fromkeys((*table.promised, *other.promised))),
        "reached": reached_together(table, other),
        "places": table.places | other.places,
        "snapshot": _both(table, other),
        "facts": {**table.facts, **{name: known for name, known in other.facts.items() if name in names}},
        **growth,
    }
    return viewed(replace(table, **changes), rows)


def _grown(table: Table, times: int) -> Facts:
    """What is known of the number of rows once each of the table's may have become so many; refuses more than a query may make."""
    growth = table.growth * times
    if growth > LARGEST_FAN_OUT:
        raise UsageError(
            f"one row may become {table.growth:,} by earlier joins and unions, and {times:,} times as many by this join: {growth:,}; expected at most "
            f"{LARGEST_FAN_OUT:,} in all. Give joins a smaller fan_out=, with a product of at most {LARGEST_FAN_OUT:,}, or join what has one row per "
            "user: per_user(...), in SQL a subquery with GROUP BY."
        )
    return {"growth": growth, "per_person": table.per_person and table.per_person * times}


def _joined(
    engine: Engine, left: Rows, right: Rows, pairs: list[tuple[str, str]], added: list[str], how: str, users: int = 0
) -> Rows:
    """Rows of both sides where all pairs of columns are equal; the first ``users`` pairs name users."""
    matches, names = [], {}
    for place, (_, other) in enumerate(pairs):
        names[f"evenhand_on_{place}"] = _user_key(engine, right[other]) if place < users else _key(engine, right, other)
    keyed = right.select(*added, **names)
    for place, (one, other) in enumerate(pairs):
        key = _user_key(engine, left[one]) if place < users else _key(engine, left, one)
        _require_one_type(left, right, one, other, key, keyed[f"evenhand_on_{place}"])
        matches.append(key == keyed[f"evenhand_on_{place}"])
    joined = left.join(keyed, matches, how=how)
    return joined.select(*left.columns, *added)


def _require_one_type(
    left: Rows, right: Rows, one: str, other: str, key: Column, theirs: Column, advice: str | None = None
) -> None:
    if str(key.type()) != str(theirs.type()):
        raise UsageError(
            f"the columns {one!r} and {other!r} hold {left[one].type()} and {right[other].type()}, and are never equal; expected one type. "
            + (advice or f"Derive a column of that type first: derive({one}=_.{one}.cast('int64')).")
        )


def _key(engine: Engine, rows: Rows, name: str) -> Column:
    """A column to join by: numbers, dates and UUIDs by value, text byte by byte."""
    operand = entered(engine, rows[name])
    if operand.kind is Kind.TEXT:
        return engine.spelled(operand.value)
    if rows[name].type().is_uuid():
        return group_key(engine, rows[name])
    if operand.kind not in (Kind.WHOLE, Kind.DATE):
        raise UsageError(
            f"the column {name!r} holds {operand.kind.value}, which can't be joined by; expected whole numbers, text, dates or UUIDs."
        )
    return operand.value


def _user_key(engine: Engine, column: Column) -> Column:
    """A user id, byte by byte; whole numbers by value."""
    return column.cast("int64") if column.type().is_signed_integer() else group_key(engine, column)


def _first_rows(other: Table, keys: list[str], fan_out: int) -> Rows:
    """At most ``fan_out`` rows for each user and key: the first in an order that leaves nothing to chance."""
    import ibis

    window = ibis.window(group_by=user_window(other, keys), order_by=total_order(other))
    ranked = other.expression.mutate(evenhand_place=ibis.row_number().over(window))
    return ranked.filter(ranked.evenhand_place < fan_out).drop("evenhand_place")


def union(table: Table, other: Table) -> Table:
    """The rows of both tables."""
    require_movable(table)
    _require_same_people(table, other, "union")
    theirs = dict(zip(other.user, table.user, strict=True))
    renamed = other.expression.select(**{theirs.get(name, name): other.expression[name] for name in other.columns})
    if set(renamed.columns) != set(table.columns):
        different = sorted(set(renamed.columns) ^ set(table.columns))
        raise UsageError(
            f"a union needs the same columns in both tables; {different} are in one only. Use select or derive first."
        )
    renamed = renamed.select(*table.columns)
    one, two = table.expression.schema(), renamed.schema()
    text = {theirs.get(name, name) for name in other.text}
    different = [name for name in table.columns if one[name] != two[name] or (name in table.text) != (name in text)]
    if different:
        raise UsageError(
            f"a union needs the same types in both tables; {different} differ. Cast them with derive first."
        )
    derived = {
        name: widest_range(known, other.derived[name]) for name, known in table.derived.items() if name in other.derived
    }
    growth = table.growth + other.growth
    if growth > LARGEST_FAN_OUT:
        raise UsageError(
            f"one row may become {table.growth:,} in one of these tables and {other.growth:,} in the other, by joins and unions: {growth:,} together; "
            f"expected at most {LARGEST_FAN_OUT:,}. Leave out what is there twice, or give joins a smaller fan_out=."
        )
    public = tuple(name for name in table.public if name in other.public or name in table.user)
    engine = table.engine.joined(other.engine)
    changes: Facts = {
        "engine": engine,
        "public": public,
        "derived": derived,
        "holds": (*table.holds, *other.holds),
        "declared": tuple(dict.fromkeys((*table.promised, *other.promised))),
        "reached": reached_together(table, other),
        "places": table.places | other.places,
        "snapshot": _both(table, other),
        "facts": {name: known for name, known in table.facts.items() if other.facts.get(name) == known},
        "growth": growth,
        "per_person": table.per_person and other.per_person and table.per_person + other.per_person,
    }
    return viewed(
        replace(table, **changes), _of_plain_text(engine, table.expression).union(_of_plain_text(engine, renamed))
    )


def _of_plain_text(engine: Engine, rows: Rows) -> Rows:
    """The rows with their text under no collation or length: what two types of text are united to may be compared in a third way."""
    if engine.bytewise:
        return rows
    return rows.mutate(**{name: engine.plain(rows[name]) for name, dtype in rows.schema().items() if dtype.is_string()})


def _require_same_people(table: Table, other: object, role: str) -> None:
    from evenhand.tables.table import Table

    if not isinstance(other, Table):
        raise UsageError(
            f"{role} got a {type(other).__name__}; expected a table of the same people, from eh.read(..., user=...), a public one, from "
            "eh.read_public(...), or rows that belong to it by a key, from eh.read_part(...)."
        )
    require_movable(other)
    if table.relation is not other.relation:
        raise UsageError(
            f"the tables protect {table.relation.value!r} and {other.relation.value!r}; expected the same in both: eh.read(..., protects=...)."
        )
    if table.relation is Relation.LABELS:
        raise UsageError(
            f"with protects='labels' a {role} of two tables is not possible; prepare one table for learning."
        )
    if table.unit != other.unit:
        raise UsageError(
            f"the tables are about {list(table.unit)} and {list(other.unit)}; a {role} needs the same people. If they are, say so: "
            "eh.read(..., population='customers') for both."
        )
    if len(table.user) != len(other.user):
        raise UsageError(
            f"the user columns are {list(table.user)} and {list(other.user)}; expected as many in both tables."
        )
    for one, two in zip(table.user, other.user, strict=True):
        kinds = table.expression[one].type(), other.expression[two].type()
        integers = all(kind.is_signed_integer() for kind in kinds)
        if kinds[0].copy(nullable=True) != kinds[1].copy(nullable=True) and not integers:
            raise UsageError(
                f"the user columns {one!r} and {two!r} hold {kinds[0]} and {kinds[1]}; ids are compared byte by byte, so expected one type in both."
            )
    _require_one_engine(table.engine, other.engine, role)


def _require_one_engine(engine: Engine, other: Engine, role: str) -> None:
    if not engine.shares(other):
        raise UsageError(
            f"a {role} runs in one statement, and the tables are on {engine.name!r} and {other.name!r} or on different connections. Read "
            "both with the same engine, or as Ibis tables of one connection."
        )


def _require_apart(table: Table, added: list[str]) -> None:
    both = [name for name in added if name in table.columns]
    if both:
        raise UsageError(
            f"both tables have the columns {both}; rename them in one: derive a new name, then select the columns to keep."
        )


def _both(table: Table, other: Table) -> str | None:
    return None if table.snapshot is None or other.snapshot is None else f"{table.snapshot}+{other.snapshot}"

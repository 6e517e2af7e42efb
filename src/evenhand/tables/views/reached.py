"""Rows that users reach through a key: a part joined to the rows of users.

What becomes of a user's rows depends on these rows and on the part rows that they reach, and on nothing else: which part rows a row meets is
decided among the rows with its key, and how many a user's rows may meet among the rows of the user. Both limits cut, and never refuse: a refusal
would tell how many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from evenhand.guarantee import Reach, Relation, UsageError
from evenhand.tables.engines.scans import scans
from evenhand.tables.expressions import Column, Operation, Rows
from evenhand.tables.views.ordering import sort_keys

if TYPE_CHECKING:
    from evenhand.tables.engines import Engine
    from evenhand.tables.parts import Part
    from evenhand.tables.table import Table

MOST_REACHED = 1_000_000
"""Rows that one join with a part makes of all rows of a user."""
_SIZE, _TAKEN, _PLACE = "evenhand_size", "evenhand_taken", "evenhand_place"


def require_reachable(table: Table, part: Part, keys: list[tuple[str, str]], how: str) -> Reach:
    """Check that the rows of a part may be reached from those of a table by these columns, and say how they are."""
    own, theirs = [one for one, _ in keys], [other for _, other in keys]
    told = f"the part {part.name!r}"
    table.engine.require_views()
    if table.relation is not Relation.PRESENCE:
        raise UsageError(
            f"the table was read with protects={table.relation.value!r}, and {told} has rows that come and go with those of people; expected "
            'protects="presence".'
        )
    if not keys:
        raise UsageError(f"a join with {told} needs on=, the columns that both have; expected on='order_id'.")
    if len(set(own)) < len(own) or len(set(theirs)) < len(theirs):
        raise UsageError(f"on={keys!r} names a column twice; name each once.")
    for name in own:
        table.require(name, "join column")
    for name in theirs:
        part.rows.require(name, f"join column of {told}")
    owned = [name for name in part.stored if name.casefold() in {user.casefold() for user in table.user}]
    if owned:
        raise UsageError(
            f"{told} has the user column {owned[0]!r}, so its rows say themselves whose they are; read it as a table of these people: "
            f"eh.read(..., user={owned[0]!r})."
        )
    twice = table.places & part.rows.places or _sources(table) & _sources(part.rows)
    if twice or part.name in {each.part for each in table.reached}:
        raise UsageError(
            f"{told} is part of this table already, so that its rows would be reached from themselves; join each part once. If this is another "
            "table, give it a name of its own: eh.read_part(..., name=...)."
        )
    inner = next((step for step in part.steps if how == "left" and step.how == "inner"), None)
    if inner is not None:
        raise UsageError(
            f"how='left' keeps rows that meet nothing, and inside of {told} a table is joined with how='inner', which leaves such rows out; "
            "expected how='left' in both."
        )
    stored = [origins(each.engine, each.expression, names) for each, names in ((table, own), (part.rows, theirs))]
    for names, rows, found in ((own, "the table", stored[0]), (theirs, told, stored[1])):
        made = [name for name, origin in zip(names, found, strict=True) if origin is None]
        if made:
            raise UsageError(
                f"the columns {made} of {rows} were made by a view, or come from a public table; whose rows a part's are has to follow from stored "
                "columns, or everybody could reach every row. Join by columns as they were read, before a union; store the result of a computation "
                "as a column first."
            )
    columns, owner = ([origin for origin in found if origin is not None] for found in (stored[1], stored[0]))
    of = list(dict.fromkeys(filter(None, (table.engine.name_of(source) for source, _ in owner))))
    reach = Reach(part.name, tuple(name for _, name in columns), tuple(name for _, name in owner), " and ".join(of))
    pairs = set(zip(reach.owner, reach.columns, strict=True))
    if part.keys is not None and pairs != set(part.keys.items()):
        raise UsageError(
            f"{told} may be joined by {part.keys} only (columns of its owner, and its own), as they are stored; {dict(pairs)} was given."
        )
    return reach


def reached_together(table: Table, other: Table) -> tuple[Reach, ...]:
    """How the parts of two tables of the same people are reached; each by the same columns in both."""
    both = tuple(dict.fromkeys((*table.reached, *other.reached)))
    names = [each.part for each in both]
    twice = next((each for each in both if names.count(each.part) > 1), None)
    if twice is not None:
        raise UsageError(
            f"both tables reach rows of the part {twice.part!r}, by different columns; expected the same in both, or whose rows these are would be "
            "open."
        )
    return both


def _sources(table: Table) -> set[Operation]:
    """The sources that the rows of a table are taken from; its engine may know more, which are joined later."""
    return {source for source in table.engine._sources if scans(table.expression.op(), source)}


Origin: TypeAlias = tuple[Operation, str]
"""The source that a column is stored in, and its name there."""


def origins(engine: Engine, rows: Rows, names: Iterable[str]) -> list[Origin | None]:
    """Where columns are stored; None for one that was computed, or that is not of a source of the engine."""
    return [_origin(engine, rows.op(), name) for name in names]


def _origin(engine: Engine, node: Operation, name: str) -> Origin | None:
    import ibis.expr.operations as ops

    while node not in engine._sources:
        if isinstance(node, ops.Project | ops.JoinChain):
            value = node.values[name]
            while isinstance(value, ops.Alias):
                value = value.arg
            if not isinstance(value, ops.Field):
                return None
            node, name = value.rel, value.name
        elif isinstance(
            node, ops.Union
        ):  # rows that were parted and put together again: the same ones, or nobody can say whose
            left, right = (_origin(engine, side, name) for side in (node.left, node.right))
            return left if left == right else None
        elif isinstance(node, ops.JoinReference | ops.Filter | ops.Sort | ops.Limit | ops.DropColumns):
            node = node.parent
        else:
            return None
    return node, name


def reached(
    table: Table,
    part: Table,
    owner: Mapping[str, Column],
    theirs: Mapping[str, Column],
    added: list[str],
    how: str,
    fan_out: int,
) -> Rows:
    """The rows of users beside the part rows that they reach.

    Args:
        table: the rows of users.
        part: the rows of the part.
        owner: the columns of the first that are compared, by names of the framework's own.
        theirs: the columns of the second, by the same names.
        added: the columns of the part that are kept.
        how: ``"inner"`` or ``"left"``.
        fan_out: how many rows of the part one row may meet.
    """
    keys, keyed = list(owner), part.expression.mutate(**theirs)
    keyed = keyed.filter(*(keyed[key].notnull() for key in keys))
    rows = table.expression.mutate(**table.user_keys(table.expression), **owner)
    met = _first_of_each_key(part, keyed, keys, [*added, *keys], fan_out)
    kept = _first_of_each_user(table, rows, keyed, keys, how, fan_out)
    named = met.select(*added, **{f"{key}_met": met[key] for key in keys})
    joined = kept.join(named, [kept[key] == named[f"{key}_met"] for key in keys], how=how)
    return joined.select(*table.columns, *added)


def _first_of_each_key(part: Table, keyed: Rows, keys: list[str], names: list[str], fan_out: int) -> Rows:
    """The part rows that are met: of each key the first in the order of all columns. Few keys have too many, so only their rows are sorted."""
    import ibis

    full = _crowded(part.engine, keyed, keys, fan_out)
    many = keyed.semi_join(full, keys)
    order = sort_keys(part, many, part.columns)
    many = many.mutate(**{_PLACE: ibis.row_number().over(ibis.window(group_by=keys, order_by=order))})
    return keyed.anti_join(full, keys).select(*names).union(many.filter(many[_PLACE] < fan_out).select(*names))


def _crowded(engine: Engine, keyed: Rows, keys: list[str], fan_out: int) -> Rows:
    """The keys that more than ``fan_out`` rows have.

    Keys are many and their rows few, so counting rows by key costs about as much as a join. Where an engine can put keys into few buckets, it counts
    by bucket first: a key of a bucket with few rows has few.
    """
    looked = keyed.select(*keys)
    bucket = engine.bucket([keyed[key] for key in keys])
    if bucket is not None:
        looked = keyed.select(*keys, evenhand_bucket=bucket)
        full = looked.group_by("evenhand_bucket").aggregate(**{_SIZE: looked.count()})
        looked = looked.semi_join(full.filter(full[_SIZE] > fan_out).select("evenhand_bucket"), "evenhand_bucket")
    counted = looked.group_by(keys).aggregate(**{_SIZE: looked.count()})
    return counted.filter(counted[_SIZE] > fan_out).select(*keys)


def _first_of_each_user(table: Table, rows: Rows, keyed: Rows, keys: list[str], how: str, fan_out: int) -> Rows:
    """The rows of users that are joined: of each user the first, until they make `MOST_REACHED`. Only users with many rows can make more."""
    import ibis

    most = MOST_REACHED // fan_out
    if table.per_person is not None and table.per_person <= most:
        return rows
    users = list(table.user_names)
    counted = rows.group_by(users).aggregate(**{_SIZE: rows.count()})
    busy = counted.filter(counted[_SIZE] > most).select(*users)
    theirs = rows.semi_join(busy, users)
    met = keyed.semi_join(theirs.select(*keys).distinct(), keys)
    sizes = met.group_by(keys).aggregate(**{_SIZE: met.count()})
    named = sizes.select(_SIZE, **{f"{key}_met": sizes[key] for key in keys})
    beside = theirs.left_join(named, [theirs[key] == named[f"{key}_met"] for key in keys])
    alone = ibis.literal(1 if how == "left" else 0, "int64")
    met_by = ibis.least(ibis.coalesce(beside[_SIZE].cast("int64"), alone), ibis.literal(fan_out, "int64"))
    beside = beside.select(*rows.columns, **{_SIZE: met_by})
    order = sort_keys(table, beside, [name for name in table.columns if name not in table.user])
    so_far = ibis.window(group_by=users, order_by=order, rows=(None, 0))
    beside = beside.mutate(**{_TAKEN: beside[_SIZE].sum().over(so_far)})
    few = beside.filter(beside[_TAKEN] <= MOST_REACHED).select(*rows.columns)
    return rows.anti_join(busy, users).select(*rows.columns).union(few)

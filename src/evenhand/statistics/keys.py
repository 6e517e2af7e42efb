"""Public group keys: what may appear in a grouped release, stated without looking at the data."""

from __future__ import annotations

import datetime
import ipaddress
import itertools
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.release import Receipt
from evenhand.tables import Secret, Table
from evenhand.tables.engines import Engine
from evenhand.tables.expressions import ArrowColumn, DataType, Rows
from evenhand.tables.objects import text_of
from evenhand.tables.spelling import group_key, label, leaving, order, stored
from evenhand.tables.summaries import known
from evenhand.tables.table import key_names

if TYPE_CHECKING:
    import pyarrow as pa


MOST_KEYS = 10_000_000
_most: ContextVar[int] = ContextVar("evenhand_most_keys", default=MOST_KEYS)
ID = "evenhand_group"
"""The column that numbers the groups inside a query."""

PLACE = "evenhand_place"
"""The column that numbers keys found in a table before it is known which of them may be shown."""


@contextmanager
def at_most_keys(most: int) -> Iterator[None]:
    """Within this block a question may name so many keys: a server has many questions at a time."""
    token = _most.set(min(most, _most.get()))
    try:
        yield
    finally:
        _most.reset(token)


@dataclass(frozen=True)
class Labels:
    """The keys of all groups as a release shows them, and nothing else: `Keys` also say where they stand in the table.

    Args:
        columns: the group columns.
        rows: one tuple of key values per group, the one for the rest last.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Key, ...], ...]


@dataclass(frozen=True)
class Keys:
    """The groups of a release, numbered 0, 1, ... in the order given.

    Args:
        columns: the group columns; none for an ungrouped release, which is one group.
        rows: one tuple of key values per group.
        other: the label of the group for rows with any other key; None if those rows are dropped.
        arrays: the key values of each column as Arrow arrays, in the form in which the column's group keys are compared.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Key, ...], ...]
    other: str | None = None
    arrays: tuple[Key, ...] = field(default=(), repr=False, compare=False, kw_only=True)

    @property
    def groups(self) -> int:
        """How many groups the release has."""
        return len(self.rows) + (self.other is not None)

    @property
    def labels(self) -> Labels:
        """What may be kept of these keys."""
        rest = () if self.other is None else ((self.other,) * len(self.columns),)
        return Labels(self.columns, (*self.rows, *rest))

    def attach(self, table: Table, rows: Rows) -> Rows:
        """Number each row's group in the column `ID`, in a copy of the rows made by `Table.once`; rows of no group are dropped."""
        import ibis

        if not self.columns:
            return rows.mutate(**{ID: ibis.literal(0, "int64")})
        names = key_names(len(self.columns))
        numbered = self.numbered(table)
        on = [rows[name] == numbered[_of_group(name)] for name in names]
        joined = rows.join(numbered, on, how="inner" if self.other is None else "left").drop(*map(_of_group, names))
        if self.other is None:
            return joined
        return joined.mutate(**{ID: joined[ID].fill_null(len(self.rows))})

    def numbered(self, table: Table) -> Rows:
        """The keys and their numbers in the engine, one row per group; ``table`` is the copy that they are joined to."""
        import pyarrow as pa

        schema, names = table.expression.schema(), key_names(len(self.columns))
        columns = dict(zip(map(_of_group, names), self.arrays, strict=True))
        held = table.engine.hold(self, pa.table({**columns, ID: pa.array(range(len(self.rows)), type=pa.int64())}))
        # Arrow has no type for some columns (uuid), and Postgres compares none of them with text.
        return held.select(ID, **{_of_group(name): held[_of_group(name)].cast(schema[name]) for name in names})


@dataclass(frozen=True)
class FoundKeys(Keys):
    """Keys that were found in the table; they are joined in the engine, as they are there.

    No release may hold them: the place of a group among all groups depends on every name of the table, shown or not.

    Args:
        found: the distinct keys in the engine, numbered by `PLACE`.
        places: where each of the groups stands among them.
    """

    found: Rows = field(default=None, repr=False, compare=False)
    places: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def numbered(self, table: Table) -> Rows:
        import pyarrow as pa

        numbers = {PLACE: pa.array(self.places, pa.int64()), ID: pa.array(range(len(self.places)), type=pa.int64())}
        shown = self.found.join(table.engine.hold(self, pa.table(numbers)), PLACE, how="inner")
        return shown.select(ID, **{_of_group(name): shown[name] for name in key_names(len(self.columns))})


def _of_group(name: str) -> str:
    return f"{name}_of_group"


UNGROUPED = Keys((), ((),))


def parse_by(table: Table, by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Read ``by=`` as column names."""
    columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if len(set(columns)) < len(columns):
        raise UsageError(f"by={list(columns)} names a column twice.")
    table.require_groupable(columns)
    return columns


def parse_keys(table: Table, columns: tuple[str, ...], keys: object, other: str | None = None) -> Keys:
    """Read ``keys=``: a list for one column, a list of tuples, a frame, or a mapping of column to list (their product)."""
    readers = [key_reader(table, column) for column in columns]
    rows = [tuple(read(value) for read, value in zip(readers, row, strict=True)) for row in _rows(columns, keys)]
    if not rows:
        raise UsageError(
            "keys= is empty; expected at least one key, or leave keys out and give delta to select them privately."
        )
    arrays = tuple(
        key_column(table, column, values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)
    )
    if _different(arrays) < len(rows):
        raise UsageError("keys= holds a key more than once; each group is released once.")
    if other is not None and any(all(str(value) == other for value in row) for row in rows):
        raise UsageError(
            f"other={other!r} is also one of the keys, so two groups would have the same label; give other= a label of its own."
        )
    return Keys(columns, tuple(rows), other, arrays=arrays)


def _different(arrays: Sequence[Any]) -> int:
    """How many different keys there are as stored: 0.1 and its neighbour may be one and the same key of a column."""
    import pyarrow as pa

    names = [str(index) for index, _ in enumerate(arrays)]
    return int(pa.table(dict(zip(names, arrays, strict=True))).group_by(names).aggregate([]).num_rows)


def occurring(table: Table, columns: Sequence[str]) -> Rows:
    """Users and keys that occur in a copy made by `Table.once`, as an expression; rows without user or key don't count."""
    rows = table.expression
    names = [*table.user_names, *key_names(len(columns))]
    return rows.filter(*(known(table, rows[name]) for name in names)).select(*names)


def placed(keys: Rows) -> Rows:
    """Distinct keys numbered by `PLACE`, in an order of no meaning; what keeps the result keeps the numbers."""
    import ibis

    window = ibis.window(order_by=[keys[name] for name in keys.columns])
    return keys.mutate(**{PLACE: ibis.row_number().over(window).cast("int64")})


def found_keys(original: Table, columns: tuple[str, ...], found: Rows, places: Sequence[int]) -> Secret[FoundKeys]:
    """The keys at these places, in order. Only they are turned into Python values."""
    engine, names = original.engine, key_names(len(columns))
    schema = original.expression.schema()

    def in_order(left: pa.Table) -> FoundKeys:
        labels = [
            [label(schema[column], value) for value in left[name].to_pylist()]
            for column, name in zip(columns, names, strict=True)
        ]
        ordered = sorted(
            zip(zip(*labels, strict=True), left[PLACE].to_pylist(), strict=True), key=lambda pair: order(pair[0])
        )
        rows, shown = tuple(row for row, _ in ordered), tuple(place for _, place in ordered)
        return FoundKeys(columns, rows, found=found, places=shown)

    with holding(engine, {PLACE: places}) as wanted:
        chosen = found.join(wanted, PLACE, how="inner")
        return engine.fetch(chosen.select(PLACE, **{name: leaving(engine, chosen[name]) for name in names})).map(
            in_order
        )


@contextmanager
def holding(engine: Engine, integers: Mapping[str, Sequence[int]]) -> Iterator[Rows]:
    """Public integers in the engine for a while, as a table for joins."""
    import pyarrow as pa

    owner = _Owner()
    yield engine.hold(owner, pa.table({name: pa.array(column, pa.int64()) for name, column in integers.items()}))
    del owner


class _Owner:
    """Something for a held table to belong to."""


@contextmanager
def public_keys(original: Table, copy: Table, columns: tuple[str, ...], receipt: Receipt) -> Iterator[FoundKeys]:
    """All keys that occur, sorted; only for group columns that are public."""
    names = key_names(len(columns))
    with original.engine.kept(placed(occurring(copy, columns).select(*names).distinct())) as found:
        held = original.engine.fetch(found.select(PLACE)).map(lambda table: table[PLACE].to_pylist())
        places = receipt.public(held, original.relation)
        yield receipt.public(found_keys(original, columns, found, places), original.relation)


def _listed(column: str, keys: Any) -> Sequence[Key]:  # noqa: ANN401 - told apart here
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise UsageError(f"keys={{{column!r}: {keys!r:.40}}}: expected a list of keys for each column.")
    return keys if isinstance(keys, Sequence) else list(keys)


def _few(keys: int) -> None:
    """Refuse more keys than a release may have; a product is known before anything is made of it."""
    most = _most.get()
    if keys > most:
        raise UsageError(
            f"keys= holds {keys:,} keys; at most {most:,} fit one release here. Split them, or group more coarsely."
        )


def _rows(columns: tuple[str, ...], keys: Any) -> Iterable[tuple[Key, ...]]:  # noqa: ANN401 - told apart here
    expected = (
        f"expected for by={list(columns)} a list of {'keys' if len(columns) == 1 else 'tuples'}, a frame with these columns, "
        "or a mapping from each column to a list"
    )
    if hasattr(keys, "to_pandas"):
        keys = keys.to_pandas()
    if hasattr(keys, "columns") and hasattr(keys, "itertuples"):
        missing = [column for column in columns if column not in list(keys.columns)]
        if missing:
            raise UsageError(f"keys= is a frame without the columns {missing}; {expected}.")
        return list(keys[list(columns)].itertuples(index=False, name=None))
    if isinstance(keys, Mapping):
        if set(keys) != set(columns):
            raise UsageError(f"keys= names {sorted(map(str, keys))}; {expected}.")
        listed = {column: _listed(column, keys[column]) for column in columns}
        _few(math.prod(map(len, listed.values())))
        return list(itertools.product(*listed.values()))
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise UsageError(f"keys= of type {type(keys).__name__} can't be read; {expected}.")
    rows = [row if isinstance(row, tuple | list) else (row,) for row in keys]
    _few(len(rows))
    if any(len(row) != len(columns) for row in rows):
        raise UsageError(f"keys= does not hold one value for each of {list(columns)}; {expected}.")
    return [tuple(row) for row in rows]


Key: TypeAlias = Any
"""One value of a key, of whatever type a column may hold; each reader checks its own."""


def key_reader(table: Table, column: str) -> Callable[[Key], Key]:
    """What reads a key in the type of its column, so that '7' from a command line finds 7."""
    dtype, read = table.expression.schema()[column], _reader(table, column)

    def key_value(given: Key) -> Key:
        value = _plain(given)
        if value is None:
            raise UsageError(
                f"keys= holds a missing value for {column!r}; rows without a key are dropped and can't be a group."
            )
        try:
            return read(value)
        except (TypeError, ValueError, ArithmeticError):
            raise _unreadable(table, column, dtype, value) from None

    return key_value


def _unreadable(table: Table, column: str, dtype: DataType, value: Key) -> UsageError:
    if column in table.text or dtype.is_string():
        hint = f"column {column!r}, which holds text: give the key as the text that stands there"
    elif _readers(dtype) is _exact_text:
        hint = f"column {column!r}: give the key as the text that a release by this column shows"
    else:
        hint = f"column {column!r}"
    return UsageError(f"keys= holds {value!r}, which is no {dtype} like the {hint}.")


def key_column(table: Table, column: str, values: Sequence[Key]) -> ArrowColumn:
    """Keys read by `key_reader` as the Arrow array that the group keys of the column are compared with."""
    import pyarrow as pa

    dtype = table.expression.schema()[column]
    kind = group_key(table.engine, table.expression[column]).type()
    try:
        return _array(kind, [stored(kind, value) for value in values])
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError):
        pass
    unfit = next((value for value in values if not _fits(kind, value)), values[0])
    raise UsageError(
        f"keys= holds {unfit!r}, which the column {column!r} of type {dtype} can't hold; "
        "expected keys within its range and precision."
    )


def _fits(kind: DataType, value: Key) -> bool:
    import pyarrow as pa

    try:
        _array(kind, [stored(kind, value)])
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError):
        return False
    return True


def _array(kind: DataType, values: list[Key]) -> ArrowColumn:
    import pyarrow as pa

    arrow = kind.to_pyarrow()
    if kind.is_timestamp():  # Arrow cuts Python's microseconds off without a word, but not its own
        return pa.array(values, pa.timestamp("us", arrow.tz)).cast(arrow)
    array = pa.array(values, arrow)
    if kind.is_floating() and np.isinf(array.to_numpy().astype("float64")).sum() > np.isinf(values).sum():
        raise OverflowError
    return array


def _plain(value: Key) -> Key:
    """A scalar of NumPy or pandas as Python's own value; None if it is missing."""
    if isinstance(value, np.datetime64 | np.timedelta64):  # as text: their item() may be a bare count of nanoseconds
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ == "NAType":
        return None
    return None if isinstance(value, float | Decimal | datetime.date) and value != value else value


def _reader(table: Table, column: str) -> Callable[[Key], Key]:
    dtype = table.expression.schema()[column]
    if column in table.text and not table.positional:
        return _object_text
    if column in table.text or dtype.is_string():
        return _text
    if dtype.is_inet() and table.engine.spells_networks:
        return _address
    return _readers(dtype)


def _readers(dtype: DataType) -> Callable[[Key], Key]:
    readers: list[tuple[bool, Callable[[Key], Key]]] = [
        (dtype.is_boolean(), _boolean),
        (dtype.is_integer(), _whole),
        (dtype.is_floating(), _double),
        (dtype.is_decimal(), _decimal),
        (dtype.is_timestamp(), _timestamp),
        (dtype.is_date(), _date),
        (dtype.is_time(), _time),
        (dtype.is_uuid(), lambda given: uuid.UUID(str(given))),
        (dtype.is_binary(), _bytes),
        (dtype.is_inet(), _refuse),  # written with or without its mask, as the engine likes
    ]
    return next((read for applies, read in readers if applies), _exact_text)


def _text(given: Key) -> str:
    """Text, or what has one spelling as text. Truth values and fractions have several: True and true, 1.5 and 1.50."""
    whole = isinstance(given, int) and not isinstance(given, bool)
    day = isinstance(given, datetime.date) and not isinstance(given, datetime.datetime)
    return _exact_text(str(given)) if whole or day or isinstance(given, uuid.UUID) else _exact_text(given)


def _object_text(given: Key) -> str:
    """As `evenhand.tables.objects` writes the same object in the column, but for decimals: 1.5 is equal to 1.50 there."""
    if isinstance(given, Decimal):
        raise TypeError
    return _exact_text(given if isinstance(given, str) else text_of(given))


def _exact_text(given: Key) -> str:
    if not isinstance(given, str):
        raise TypeError
    given.encode()  # half of a surrogate pair is in no column
    return given


def _boolean(given: Key) -> bool:
    names = {"true": True, "false": False, "1": True, "0": False}
    if str(given).lower() not in names:
        raise ValueError
    return names[str(given).lower()]


def _whole(given: Key) -> int:
    number = int(given)
    if not isinstance(given, str) and number != given:
        raise ValueError
    return number


def _double(given: Key) -> float:
    number = float(given)
    if number != number:
        raise ValueError
    return number


def _decimal(given: Key) -> Decimal:
    number = Decimal(str(given))
    if number.is_nan():
        raise ValueError
    return number


def _timestamp(given: Key) -> datetime.datetime:
    text = str(given)
    _microseconds(text)
    return datetime.datetime.fromisoformat(text)


def _date(given: Key) -> datetime.date:
    found = datetime.datetime.fromisoformat(str(given))
    if found.time() != datetime.time() or found.tzinfo is not None:
        raise ValueError
    return found.date()


def _time(given: Key) -> datetime.time:
    text = str(given)
    _microseconds(text)
    return datetime.time.fromisoformat(text)


def _microseconds(text: str) -> None:
    """Refuse what Python would cut off: digits after the sixth."""
    digits = text.partition(".")[2]
    fraction = digits[: next((place for place, char in enumerate(digits) if not char.isdigit()), len(digits))]
    if fraction[6:].strip("0"):
        raise ValueError


def _bytes(given: Key) -> bytes:
    return given.encode() if isinstance(given, str) else bytes(memoryview(given))


def _address(given: Key) -> str:
    """As Postgres casts it to text: always with the length of the network."""
    found = ipaddress.ip_interface(str(given))
    if getattr(found, "ipv4_mapped", None) is not None:  # spelled by two rules
        raise ValueError
    return found.with_prefixlen


def _refuse(given: Key) -> Key:
    raise TypeError

"""Running expressions where the rows are.

A release is about one reading of its table: the bound on a user is a statement about one table, and a source that is read
twice may be two. So every release evaluates one statement that names the source, once, and works on its result from there
on (`Table.once` copies the rows inside the engine where one aggregate is not enough). `one_reading` enforces it.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar

from evenhand.guarantee import DataError, EngineError, EvenhandError, UsageError
from evenhand.tables.secret import Secret

T = TypeVar("T")
_names = (f"evenhand_{os.getpid()}_{number}" for number in itertools.count())
_readings: ContextVar[list[None] | None] = ContextVar("evenhand_readings", default=None)


class Engine(Protocol):
    """Something that evaluates Ibis expressions over one source."""

    name: str

    def fetch(self, expression: Any) -> Secret[Any]:
        """Evaluate to an Arrow table, wrapped so that nothing prints it."""

    def kept(self, expression: Any) -> AbstractContextManager[Any]:
        """Evaluate once and keep the result in the engine for a while; yields an expression over it."""

    def hold(self, owner: object, public: Any) -> Any:
        """Make a public Arrow table available for joins as long as ``owner`` lives; returns an expression over it."""

    def spelled(self, value: Any) -> Any:
        """The bytes that spell a value as text, as an expression that is defined for every value."""

    def require_unchanged(self) -> None:
        """Raise if the source was replaced or written since it was opened, as far as that can be known."""


@contextmanager
def one_reading() -> Iterator[None]:
    """Within this block the source may be read by one statement only; another is a defect and raises."""
    if _readings.get() is not None:
        yield
        return
    token = _readings.set([])
    try:
        yield
    finally:
        _readings.reset(token)


class IbisEngine:
    """Any backend that Ibis drives.

    Args:
        source: the rows, as an Ibis table.
        backend: what evaluates expressions over them.
        identity: a public mark of the source's files; None where there are no files.
    """

    def __init__(self, source: Any, backend: Any, identity: Callable[[], str | None] | None = None) -> None:
        self.backend = backend
        self.name: str = backend.name
        self._source = source.op()
        self._identity = identity
        self._held: dict[int, Any] = {}
        self._unowned: list[Callable[[], Any]] = []
        self._opened = self.identity()
        self._turn = turns(backend)

    def check_source(self) -> None:
        """Refuse, before anything is read, a source that is not a function of stored rows."""
        refuse_unstable(self._source)

    def identity(self) -> str | None:
        return None if self._identity is None else self._identity()

    def require_unchanged(self) -> None:
        """Refuse a source whose files are not those that were opened: names and places of columns come from them."""
        if self.identity() != self._opened:
            raise DataError(
                "a file of the table was written or replaced since it was opened. Open it again with eh.read; if that "
                "happens while a release reads it, read from a copy that nobody writes to (what was debited stays spent)."
            )

    def fetch(self, expression: Any) -> Secret[Any]:
        with self._statement(expression):
            return Secret(quietly(self.name, lambda: self._to_arrow(expression)))

    @contextmanager
    def kept(self, expression: Any) -> Iterator[Any]:
        name = fresh_name()
        with self._statement(expression):
            drop = quietly(self.name, lambda: self._keep(name, expression))
            table = self._table(name, expression)
        try:
            yield table
        finally:
            with self._turn:
                quietly(self.name, drop)

    def hold(self, owner: object, public: Any) -> Any:
        with self._turn:
            while self._unowned:
                with suppress(Exception):  # the connection may be gone
                    self._unowned.pop()()
            if id(owner) not in self._held:
                name = fresh_name()
                drop = quietly(self.name, lambda: self._publish(name, public))
                self._held[id(owner)] = self._table(name, public)
                weakref.finalize(owner, _forget, self._held, id(owner), self._unowned, drop)
            return self._held[id(owner)]

    def spelled(self, value: Any) -> Any:
        return value.cast("string")

    def _to_arrow(self, expression: Any) -> Any:
        return self.backend.to_pyarrow(expression)

    def _keep(self, name: str, expression: Any) -> Callable[[], Any]:
        """Evaluate into a table of that name; returns how to drop it."""
        self._run(f"CREATE TEMPORARY TABLE {name} AS {self.backend.compile(expression)}")
        return partial(self._run, f"DROP TABLE {name}")

    def _publish(self, name: str, public: Any) -> Callable[[], Any]:
        """Make an Arrow table a table of that name; returns how to drop it."""
        self.backend.create_table(name, public, temp=True)
        return partial(self._run, f"DROP TABLE {name}")

    def _table(self, name: str, like: Any) -> Any:
        """An expression over a table that was made here."""
        return self.backend.table(name)

    def _run(self, sql: str) -> None:
        """Execute a statement that gives no rows."""
        self.backend.raw_sql(sql)

    def _reseed(self) -> None:
        """Start the engine's random numbers from a fresh secret seed, whatever its user had them start from."""

    @contextmanager
    def _statement(self, expression: Any) -> Iterator[None]:
        """Around every statement: its turn, fresh random numbers, and one reading of a source that stays as it is."""
        import ibis.expr.operations as ops

        nodes = expression.op()
        reads = any(node == self._source for node in nodes.find(type(self._source)))
        if reads:
            _count_reading()
        with self._turn:
            if nodes.find(ops.RandomScalar):
                self._reseed()
            if reads:
                self.require_unchanged()
            yield
            if reads:
                self.require_unchanged()


DUCKDB_TURNS = threading.RLock()
"""For all of DuckDB: whether a relation and a backend share a connection can't be told."""


def turns(backend: Any) -> threading.RLock:
    """A connection runs one statement at a time: threads that share one take turns."""
    if backend.name == "duckdb":
        return DUCKDB_TURNS
    lock: threading.RLock = backend.__dict__.setdefault("evenhand_turn", threading.RLock())
    return lock


def _count_reading() -> None:
    readings = _readings.get()
    if readings is None:
        return
    if readings:
        raise EvenhandError(
            "a release tried to read its table a second time; this is a defect in Evenhand, please report it."
        )
    readings.append(None)


def refuse_unstable(source: Any) -> None:
    """Refuse an Ibis expression that gives other rows each time it is evaluated."""
    import ibis.expr.operations as ops

    order = (
        *(ops.RowNumber, ops.NTile, ops.Lag, ops.Lead, ops.First, ops.Last, ops.NthValue, ops.Arbitrary, ops.RowID),
        *(ops.ArrayCollect, ops.GroupConcat, ops.Mode, ops.ArgMin, ops.ArgMax, ops.ApproxQuantile, ops.ApproxMedian),
    )
    reasons: dict[tuple[type, ...], str] = {
        (ops.Sample,): "a random sample",
        (ops.RandomScalar, ops.RandomUUID): "random numbers",
        (ops.TimestampNow, ops.DateNow): "the current time",
        (ops.Limit,): "a limited number of rows",
        order: "the order in which rows happen to be read",
    }
    for kinds, reason in reasons.items():
        if source.find(kinds):
            raise unstable(reason)


def unstable(reason: str) -> UsageError:
    """The refusal of a source whose rows are not determined by what is stored."""
    return UsageError(
        f"the source depends on {reason}, so each reading may be another table, and no bound on a user would hold. Expected "
        "a source that is a function of stored rows: store its result as a table or a Parquet file first, and read that."
    )


def _forget(held: dict[int, Any], key: int, unowned: list[Callable[[], Any]], drop: Callable[[], Any]) -> None:
    """Note that a public table's owner is gone. It is dropped later: this may run in any thread, amid another statement."""
    held.pop(key, None)
    unowned.append(drop)


def quietly(engine: str, work: Callable[[], T]) -> T:
    """Run engine work; turn its failures into errors that hold nothing from the rows.

    Engines quote the offending value in their messages, so only the kind of failure is passed on, and the
    original exception is not chained.
    """
    from evenhand.tables.spark import unlogged

    try:
        with unlogged() if engine == "spark" else nullcontext():
            return work()
    except EvenhandError:
        raise
    except MemoryError:
        failure = "it ran out of memory"
    except Exception as error:
        failure = f"it reported {type(error).__name__}"
    raise EngineError(
        f"the {engine} engine could not evaluate the query: {failure}. The message is withheld because it may quote "
        "rows. Check that the source is still readable and unchanged, and that the engine has enough memory and disk."
    )


def fresh_name() -> str:
    """A name that no other view of this process has."""
    return next(_names)

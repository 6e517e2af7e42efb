"""Running expressions where the rows are.

A release is about one reading of its table: the bound on a user is a statement about one table, and a source that is read
twice may be two. So every release evaluates one statement that names the source, once, and works on its result from there
on (`Table.once` copies the rows inside the engine where one aggregate is not enough). `one_reading` enforces it.
"""

from __future__ import annotations

import copy
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar, TypeVar

from evenhand.guarantee import DataError, EngineError, EvenhandError, UsageError
from evenhand.tables.engines.compiled import compiled
from evenhand.tables.engines.dialect import Dialect
from evenhand.tables.engines.ibis_tables import ibis_backend, is_ibis
from evenhand.tables.engines.pruning import pruned
from evenhand.tables.engines.scans import scans
from evenhand.tables.engines.stable import refuse_unstable
from evenhand.tables.engines.stopping import spared, statement
from evenhand.tables.expressions import ArrowTable, Backend, Operation, Rows
from evenhand.tables.files import Declared, FileSource
from evenhand.tables.secret import Secret

T = TypeVar("T")
Drop = Callable[[], object]
_names = (f"evenhand_{os.getpid()}_{number}" for number in itertools.count())
_readings: ContextVar[list[None] | None] = ContextVar("evenhand_readings", default=None)
_emptied: ContextVar[bool] = ContextVar("evenhand_emptied", default=False)


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


GIVE_THE_ROWS = (
    "Give Evenhand the rows instead: eh.read(table.to_pyarrow(), ...) of an Ibis table, or a Parquet file of them."
)
"""What helps wherever an engine can't do what is asked for."""


@contextmanager
def emptied() -> Iterator[None]:
    """Within this block statements see their sources without rows: no row is read, so failures may be told in full."""
    token = _emptied.set(True)
    try:
        yield
    finally:
        _emptied.reset(token)


class Engine(Dialect):
    """Where the rows are, and what evaluates expressions over them: any backend that Ibis drives.

    An engine is added by a subclass that says in what its backend differs, and `evenhand.tables.engines.register`. From then
    on `evenhand.read` takes Ibis tables of the backend called ``ibis_name`` (and what else `takes` says), and, where
    ``compressions`` is set, ``engine=name`` for paths. What it overrides: the methods of `Dialect`; `check_source`, `folded`, `takes`, `open`,
    `open_files`, `holds_tables`, `open_table`; `evaluate`, `store`, `publish`, `stored`, `sql`, `run`, `reseed`, `unlogged`.

    The guarantee rests on what an engine promises:

    - One statement that names the source once sees one state of it, and `store` keeps a result that is never computed again.
    - Nothing raises, and nothing is left out, because of a value: arithmetic saturates or is exact, as `Dialect` says.
    - Doubles follow IEEE 754: ``+``, ``*``, ``/``, ``floor`` and comparisons give the same bits everywhere. Sums of whole doubles below
      2^53 are exact in any order; ``least`` and ``greatest`` of numbers that are not null are exact.
    - Users and group keys are told apart by the bytes of `spelled`, whatever a collation takes for equal; text as it is only where
      `bytewise` says that it comes to the same.
    - Every row has its own ``random()``, and `reseed` starts them from a secret seed if the backend's user can set one.
    - `check_source` refuses every source that is not a function of stored rows (see `stable`).

    ``tests/engines`` compares the integers that engines hand over; ``tests/stranger/test_engine.py`` adds one from outside.

    Args:
        rows: the source, as an Ibis table.
        backend: what evaluates expressions over it.
        identity: a public mark of the source's files; None where there are no files.
    """

    name: str = ""
    """What people call it."""
    ibis_name: ClassVar[str] = ""
    """What Ibis calls the backend."""
    objects: ClassVar[str] = "Ibis tables"
    """The objects that it takes, in words."""
    tested: ClassVar[bool] = False
    """Whether this package's own tests hold the engine to all of this, whatever is asked of it. Of any other, releases are tried before each
    debit (`evenhand.release.rehearsal`), and models are not learned."""
    views: ClassVar[bool] = True
    """Whether rows may be filtered, computed with and joined: every operation then gives what it gives elsewhere, and never raises."""
    inside: ClassVar[bool] = False
    """Whether statements run in this process."""
    compressions: ClassVar[tuple[str, ...] | None] = None
    """The endings of compressed text files that it unpacks; None if it reads no files."""

    def __init__(self, rows: Rows, backend: Backend, identity: Callable[[], str | None] | None = None) -> None:
        self.rows, self.backend = rows, backend
        self.name = self.name or backend.name
        self._sources: tuple[Operation, ...] = (rows.op(),)
        self._steady: frozenset[Operation] = (
            frozenset()
        )  # of which one statement sees one state, however often it names them
        self._names: dict[Operation, str] = {}
        self._identity = identity
        self._held: dict[int, Rows] = {}
        self._unowned: list[Drop] = []
        self._opened = self.identity()
        self._turn = self.turns()

    @classmethod
    def takes(cls, source: object) -> bool:
        """Whether `open` takes an object, told from its type alone."""
        return is_ibis(source) and ibis_backend(source).name == cls.ibis_name

    @classmethod
    def open(cls, source: Rows) -> Engine:
        """An engine over an object that it takes."""
        ibis_backend(source)._register_in_memory_tables(source)  # memtables have no home until a backend takes them in
        return cls(source, ibis_backend(source))

    @classmethod
    def open_files(cls, source: FileSource, declared: Declared) -> Engine:
        """An engine over files; columns of CSV and JSON are text."""
        raise NotImplementedError(f"{cls.__name__} names compressions, so it reads files and needs open_files")

    @classmethod
    def holds_tables(cls, source: object) -> bool:
        """Whether a source is a database of this engine, of which `open_table` reads a table; told from a name or type alone."""
        return False

    @classmethod
    def open_table(cls, source: Any, table: str | None) -> Engine:  # noqa: ANN401 - what `holds_tables` accepts
        """An engine over one table of a database."""
        raise NotImplementedError(f"{cls.__name__} holds tables, so it needs open_table")

    def turns(self) -> threading.RLock:
        """A connection runs one statement at a time: threads that share one take turns."""
        lock: threading.RLock = self.backend.__dict__.setdefault("evenhand_turn", threading.RLock())
        return lock

    def check_source(self) -> None:
        """Refuse, before anything is read, a source that is not a function of stored rows."""
        refuse_unstable(self.rows.op())

    def folded(self) -> frozenset[str]:
        """The columns of the source that are known to take different spellings for equal, so that none of them can name users."""
        return frozenset()

    def identity(self) -> str | None:
        return None if self._identity is None else self._identity()

    def require_unchanged(self) -> None:
        """Refuse a source whose files are not those that were opened: names and places of columns come from them."""
        if self.identity() != self._opened:
            raise DataError(
                "a file of the table was written or replaced since it was opened. Open it again with eh.read; if that "
                "happens while a release reads it, read from a copy that nobody writes to (what was debited stays spent)."
            )

    def named(self, name: str) -> None:
        """Note what the sources are called, for guarantees."""
        self._names = dict.fromkeys(self._sources, name)

    def name_of(self, source: Operation) -> str:
        """What a source is called; empty where that is not known."""
        return self._names.get(source, "")

    def shares(self, other: Engine) -> bool:
        """Whether one statement can read from both."""
        return self is other or (self.backend is not None and self.backend is other.backend)

    def joined(self, other: Engine) -> Engine:
        """An engine for expressions over the sources of both, which `shares` says it can read."""
        both = copy.copy(self)
        both.bytewise = self.bytewise and other.bytewise
        both._sources = tuple(dict.fromkeys((*self._sources, *other._sources)))
        both._steady = self._steady | other._steady
        both._names = self._names | other._names
        both._identity = lambda: f"{self.identity()} {other.identity()}"
        both._opened = f"{self._opened} {other._opened}"
        return both

    def require_tested(self, what: str) -> None:
        """Refuse what is not rehearsed before its debit."""
        if not self.tested:
            raise UsageError(
                f"{what} can't read from the {self.name} engine; expected a table on DuckDB, Spark or Postgres. Nothing was read or spent. "
                + GIVE_THE_ROWS
            )

    def require_views(self) -> None:
        """Refuse to compute with rows where that is not known to be safe."""
        if not self.views:
            raise UsageError(
                f"rows on the {self.name} engine can't be filtered, computed with or joined: some of its operations may fail because of a "
                "value. " + GIVE_THE_ROWS
            )

    def fetch(self, expression: Rows) -> Secret[ArrowTable]:
        """Evaluate, wrapped so that nothing prints the result."""
        expression = self._visible(expression)
        with self._statement(expression), self._scanned_once(expression) as once:
            return Secret(self.quietly(lambda: self.evaluate(once)))

    @contextmanager
    def kept(self, expression: Rows, lasting: bool = False) -> Iterator[Rows]:
        """Evaluate once and keep the result in the engine for a while; yields an expression over it.

        ``lasting`` says that other releases may want the same result, for engines over a copy that nobody changes.
        """
        name, expression = fresh_name(), self._visible(expression)
        with self._statement(expression), self._scanned_once(expression) as once:
            drop = self.quietly(lambda: self.store(name, once))
            table = self.quietly(lambda: self.stored(name, once))
        try:
            yield table
        finally:
            with spared(), self._turn:
                self.quietly(drop)

    def held(self, expression: Rows) -> AbstractContextManager[Rows]:
        """What is kept of an expression already, for as long as the block lasts; else the expression itself."""
        return nullcontext(expression)

    def remembered(self, asked: Hashable, build: Callable[[], T]) -> T:
        """What ``build`` makes of ``asked``, which is all that it depends on; from memory where summaries last."""
        return build()

    def hold(self, owner: object, public: ArrowTable) -> Rows:
        """Make public rows available for joins as long as ``owner`` lives; returns an expression over them."""
        with self._turn:
            while self._unowned:
                with suppress(Exception):  # the connection may be gone
                    self._unowned.pop()()
            if id(owner) not in self._held:
                name = fresh_name()
                drop = self.quietly(lambda: self.publish(name, public))
                self._held[id(owner)] = self.stored(name, public)
                weakref.finalize(owner, _forget, self._held, id(owner), self._unowned, drop)
            return self._held[id(owner)]

    def evaluate(self, expression: Rows) -> ArrowTable:
        """The result of a query."""
        return self.backend.to_pyarrow(expression)

    def store(self, name: str, expression: Rows) -> Drop:
        """Evaluate into a temporary table of that name; returns how to drop it."""
        self.run(f"CREATE TEMPORARY TABLE {name} AS {self.sql(expression)}")
        return partial(self.run, f"DROP TABLE {name}")

    def publish(self, name: str, public: ArrowTable) -> Drop:
        """Make public rows a temporary table of that name; returns how to drop it."""
        self.backend.create_table(name, public, temp=True)
        return partial(self.run, f"DROP TABLE {name}")

    def stored(self, name: str, like: Rows | ArrowTable) -> Rows:
        """An expression over a table that `store` or `publish` made of ``like``."""
        return self.backend.table(name)

    def sql(self, expression: Rows) -> str:
        """A query in the backend's own words."""
        return compiled(expression, type(self.backend), lambda rows: str(self.backend.compile(rows)))

    def run(self, sql: str) -> None:
        """Execute a statement that gives no rows."""
        self.backend.raw_sql(sql)

    def interrupt(self) -> None:
        """Break off the statement that runs, from another thread; what it has done so far is undone. Nothing, where a backend can't."""

    def reseed(self) -> None:
        """Start the engine's random numbers from a fresh secret seed, whatever its user had them start from."""

    def unlogged(self) -> AbstractContextManager[None]:
        """A block in which the backend prints and logs nothing: its messages may quote rows."""
        return nullcontext()

    def quietly(self, work: Callable[[], T]) -> T:
        """Run engine work; turn its failures into errors that hold nothing from the rows.

        Engines quote the offending value in their messages, so only the kind of failure is passed on, and the
        original exception is not chained.
        """
        try:
            with self.unlogged():
                return work()
        except EvenhandError:
            raise
        except MemoryError:
            failure = "it ran out of memory"
        except Exception as error:
            if _emptied.get():
                raise EngineError(f"the {self.name} engine can't evaluate it ({_first_line(error)}).") from None
            failure = f"it reported {type(error).__name__}"
        raise EngineError(
            f"the {self.name} engine could not evaluate the query: {failure}. The message is withheld because it may quote "
            "rows. Check that the source is still readable and unchanged, and that the engine has enough memory, disk and time "
            "(eh.limit_duckdb sets DuckDB's)."
        )

    def _visible(self, expression: Rows) -> Rows:
        """What a statement may see: all of it, or within `emptied` the same without the rows of the sources."""
        if not _emptied.get():
            return expression
        return (
            expression.op().replace({source: source.to_expr().filter(False).op() for source in self._sources}).to_expr()
        )

    @contextmanager
    def _statement(self, expression: Rows) -> Iterator[None]:
        """Around every statement: its turn, fresh random numbers, and one reading of a source that stays as it is."""
        import ibis.expr.operations as ops

        nodes = expression.op()
        reads = any(node in self._sources for node in nodes.find(tuple({type(source) for source in self._sources})))
        if reads:
            _count_reading()
        with self._turn:
            if nodes.find(ops.RandomScalar):
                self.reseed()
            if reads:
                self.require_unchanged()
            with statement(self.interrupt, self.inside):
                yield
            if reads:
                self.require_unchanged()

    @contextmanager
    def _scanned_once(self, expression: Rows) -> Iterator[Rows]:
        """The expression without what it never uses, with a copy in the place of each source that it would have scanned more than once, unless
        one statement sees one state of it anyway.
        """
        copies: dict[Operation, Operation] = {}
        statement = pruned(expression.op())
        drops: list[Drop] = []
        try:
            for source in self._sources:
                if source not in self._steady and scans(statement, source) > 1:
                    name, rows = fresh_name(), self._visible(source.to_expr())
                    drops.append(self.quietly(partial(self.store, name, rows)))
                    copies[source] = self.quietly(partial(self.stored, name, rows)).op()
            yield (statement.replace(copies) if copies else statement).to_expr()
        finally:
            with spared():
                for drop in drops:
                    self.quietly(drop)


def _count_reading() -> None:
    readings = _readings.get()
    if readings is None or _emptied.get():
        return
    if readings:
        raise EvenhandError(
            "a release tried to read its table a second time; this is a defect in Evenhand, please report it."
        )
    readings.append(None)


def _forget(held: dict[int, Rows], key: int, unowned: list[Drop], drop: Drop) -> None:
    """Note that a public table's owner is gone. It is dropped later: this may run in any thread, amid another statement."""
    held.pop(key, None)
    unowned.append(drop)


def _first_line(error: Exception) -> str:
    """What an engine says of a statement over no rows."""
    said = " ".join(str(error).strip().partition("\n")[0].split())
    return f"{type(error).__name__}: {said[:200]}" if said else type(error).__name__


def fresh_name() -> str:
    """A name that no other view of this process has."""
    return next(_names)

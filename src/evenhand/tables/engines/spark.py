"""Spark, through Ibis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from evenhand.tables.engines.base import Drop, Engine, fresh_name
from evenhand.tables.engines.spark_files import file_rows
from evenhand.tables.engines.spark_session import spark_backend, unlogged
from evenhand.tables.engines.spark_text import collated, readable_frame
from evenhand.tables.engines.stable import unstable
from evenhand.tables.expressions import ArrowTable, Backend, Rows
from evenhand.tables.files import Declared, FileSource

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

_LIMITS = dict.fromkeys(("GlobalLimit", "LocalLimit", "Tail", "Offset"), "a limited number of rows")
_UNSTABLE = {"Sample": "a random sample", **_LIMITS}
_TIMES = ("current_timestamp(", "current_date(", "now(", "localtimestamp(")
_ORDERS = (
    *("row_number(", "ntile(", "lag(", "lead(", "nth_value(", "first(", "last(", "any_value(", "collect_list("),
    *("max_by(", "min_by(", "mode(", "listagg(", "percentile_approx(", "approx_percentile("),
)


class SparkEngine(Engine):
    """A Spark session."""

    name = "spark"
    tested = True
    ibis_name = "pyspark"
    objects = "Spark DataFrames"
    compressions = (".gz", ".bz2")
    _folded: frozenset[str] | None = None
    """Known where a frame or file was opened: its text has lost its collation since."""

    @classmethod
    def takes(cls, source: object) -> bool:
        return _is_frame(source) or super().takes(source)

    @classmethod
    def open(cls, source: DataFrame | Rows) -> Engine:
        from evenhand.tables.engines.spark_connect import ConnectEngine, is_connected, refusal, require_stored

        if not _is_frame(source):
            opened = super().open(source)
            if is_connected(opened.backend._session):
                raise refusal("it is an Ibis table")
            return opened
        if is_connected(source):
            require_stored(source)
        backend = spark_backend(source.sparkSession)
        engine = (ConnectEngine if is_connected(source) else cls)(_view(backend, readable_frame(source)), backend)
        engine.bytewise, engine._folded = True, collated(source)
        return engine

    @classmethod
    def open_files(cls, source: FileSource, declared: Declared) -> Engine:
        backend = spark_backend()
        rows = _view(backend, file_rows(backend._session, source, declared))
        engine = cls(rows, backend, lambda: source.snapshot)
        engine.bytewise, engine._folded = True, frozenset()
        return engine

    def folded(self) -> frozenset[str]:
        if self._folded is None:  # an Ibis table
            self._folded = self.quietly(lambda: collated(self.backend._session.sql(self.sql(self.rows))))
            self.bytewise = not self._folded
        return self._folded

    def check_source(self) -> None:
        super().check_source()
        session, sql = self.backend._session, self.sql(self.rows)
        plan = self.quietly(lambda: session.sql(sql)._jdf.queryExecution().analyzed())
        for node in _walk(plan):
            if node.nodeName() in _UNSTABLE:
                raise unstable(_UNSTABLE[node.nodeName()])
            text = node.simpleString(10_000)
            if any(name in text for name in _TIMES):
                raise unstable("the current time")
            partial_keys = node.nodeName() == "Deduplicate" and node.keys().size() < node.output().size()
            if partial_keys or any(name in text for name in _ORDERS):
                raise unstable("the order in which rows happen to be read")
        if not plan.deterministic():
            raise unstable("a function that gives another value each time")

    def shares(self, other: Engine) -> bool:
        return isinstance(other, SparkEngine) and self.backend._session is other.backend._session

    def evaluate(self, expression: Rows) -> ArrowTable:
        # Ibis goes through pandas, which holds all rows once more and makes doubles of integers beside nulls.
        from ibis.formats.pyarrow import PyArrowData

        found = self.backend._session.sql(self.sql(expression)).toArrow()
        return PyArrowData.convert_table(found, expression.schema())

    def store(self, name: str, expression: Rows) -> Drop:
        # A checkpoint, and now: what is merely persisted is read again, as it is then, once it has been evicted. Of
        # a checkpoint nothing can be read again: a lost block fails the query.
        rows = self.backend._session.sql(self.sql(expression)).localCheckpoint(eager=True)
        rows.createOrReplaceTempView(name)
        return partial(self._let_go, name, rows)

    def _let_go(self, name: str, rows: DataFrame) -> None:
        self.backend._session.catalog.dropTempView(name)
        rows._jdf.logicalPlan().rdd().unpersist(False)

    def publish(self, name: str, public: ArrowTable) -> Drop:
        session = self.backend._session
        frame = session.createDataFrame(public)
        frame.createOrReplaceTempView(name)
        return partial(session.catalog.dropTempView, name)

    def unlogged(self) -> AbstractContextManager[None]:
        return unlogged()


def _is_frame(source: object) -> TypeGuard[DataFrame]:
    return type(source).__module__.partition(".")[0] == "pyspark" and hasattr(source, "createOrReplaceTempView")


def _view(backend: Backend, frame: DataFrame) -> Rows:
    """A Spark frame as an Ibis table."""
    name = fresh_name()
    frame.createOrReplaceTempView(name)
    return backend.table(name)


def _walk(plan: JavaObject) -> Iterator[JavaObject]:
    """A Catalyst plan and everything below it, the plans of subqueries included."""
    yield plan
    for several in (plan.children(), plan.subqueries()):
        for index in range(several.size()):
            yield from _walk(several.apply(index))

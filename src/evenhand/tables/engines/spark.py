"""Spark, through Ibis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from evenhand.tables.engines.base import IbisEngine, quietly, unstable

_UNSTABLE = {
    "Sample": "a random sample",
    "GlobalLimit": "a limited number of rows",
    "LocalLimit": "a limited number of rows",
    "Tail": "a limited number of rows",
    "Offset": "a limited number of rows",
}
_TIMES = ("current_timestamp(", "current_date(", "now(", "localtimestamp(")
_ORDERS = (
    *("row_number(", "ntile(", "lag(", "lead(", "nth_value(", "first(", "last(", "any_value(", "collect_list("),
    *("max_by(", "min_by(", "mode(", "listagg(", "percentile_approx(", "approx_percentile("),
)


class SparkEngine(IbisEngine):
    """A Spark session."""

    def __init__(self, source: Any, backend: Any, identity: Callable[[], str | None] | None = None) -> None:
        super().__init__(source, backend, identity)
        self.name = "spark"

    def check_source(self) -> None:
        super().check_source()
        sql = str(self.backend.compile(self._source.to_expr()))
        plan = quietly(self.name, lambda: self.backend._session.sql(sql)._jdf.queryExecution().analyzed())
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

    def spelled(self, value: Any) -> Any:
        return value.cast("string").cast("binary")

    def _keep(self, name: str, expression: Any) -> Callable[[], Any]:
        # A checkpoint, and now: what is merely persisted is read again, as it is then, once it has been evicted. Of
        # a checkpoint nothing can be read again: a lost block fails the query.
        rows = self.backend._session.sql(str(self.backend.compile(expression))).localCheckpoint(eager=True)
        rows.createOrReplaceTempView(name)
        return partial(self._let_go, name, rows)

    def _let_go(self, name: str, rows: Any) -> None:
        self.backend._session.catalog.dropTempView(name)
        rows._jdf.logicalPlan().rdd().unpersist(False)

    def _publish(self, name: str, public: Any) -> Callable[[], Any]:
        from pyspark.sql.pandas.types import from_arrow_schema

        session = self.backend._session
        frame = session.createDataFrame(public.to_pandas(), schema=from_arrow_schema(public.schema))
        frame.createOrReplaceTempView(name)
        return partial(session.catalog.dropTempView, name)


def _walk(plan: Any) -> Iterator[Any]:
    """A Catalyst plan and everything below it, the plans of subqueries included."""
    yield plan
    for several in (plan.children(), plan.subqueries()):
        for index in range(several.size()):
            yield from _walk(several.apply(index))

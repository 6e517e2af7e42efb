"""Spark Connect: a session whose driver runs elsewhere.

The plans of such a session can't be walked through from here, so a frame is taken only if it is nothing but stored rows: Parquet files, or a table
made of them. That is told from the request that the client would send. Filters, columns and joins are then made with views.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import EngineError
from evenhand.tables.engines.base import Drop
from evenhand.tables.engines.spark import SparkEngine
from evenhand.tables.expressions import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STORED = ("MANAGED", "EXTERNAL")


class ConnectEngine(SparkEngine):
    """A Spark Connect session."""

    def check_source(self) -> None:
        """Nothing is left to check: `require_stored` has seen the frame, and other sources are refused."""

    def store(self, name: str, expression: Rows) -> Drop:
        session = self.backend._session
        rows = session.sql(self.sql(expression)).localCheckpoint(eager=True)
        rows.createOrReplaceTempView(name)
        return partial(self._drop, name, rows)

    def _drop(self, name: str, rows: DataFrame) -> None:  # the server lets the rows go once nothing here refers to them
        self.backend._session.catalog.dropTempView(name)


def is_connected(thing: object) -> bool:
    """Whether a frame or session belongs to Spark Connect, told from its type."""
    return type(thing).__module__.startswith("pyspark.sql.connect")


def require_stored(frame: Any) -> None:  # noqa: ANN401 - a Connect frame, of which the private plan is read
    """Refuse a frame that is more than Parquet files or a table of them."""
    session = frame.sparkSession
    relation = frame._plan.to_proto(session.client).root
    if relation.WhichOneof("rel_type") != "read" or relation.read.is_streaming:
        raise refusal(f"it is a {relation.WhichOneof('rel_type')} of other frames")
    read = relation.read
    if read.WhichOneof("read_type") == "named_table":
        _require_stored_table(session, read.named_table)
        return
    source = read.data_source
    if source.format.lower() != "parquet" or not source.paths:
        raise refusal(f"it reads {source.format or 'an unnamed format'}")
    if source.schema or source.options or source.predicates or source.source_name:
        raise refusal("it reads Parquet with a schema, options or conditions of its own")


def _require_stored_table(session: SparkSession, named: Any) -> None:  # noqa: ANN401 - a message of the protocol
    if named.options:
        raise refusal("it reads a table with options of its own")
    kind = session.catalog.getTable(named.unparsed_identifier).tableType
    if kind not in _STORED:
        raise refusal(f"{named.unparsed_identifier!r} is a view ({kind})")
    described = session.sql(f"DESCRIBE TABLE EXTENDED {named.unparsed_identifier}").collect()
    # The last one: columns come first, and one of them may be called so.
    provider = [row["data_type"] for row in described if row["col_name"] == "Provider"][-1:]
    if [name.lower() for name in provider] != ["parquet"]:
        raise refusal(f"the table {named.unparsed_identifier!r} is stored as {provider or 'something unknown'}")


def refusal(why: str) -> EngineError:
    """A source of a Spark Connect session that can't be judged, and what to give instead."""
    return EngineError(
        f"this source belongs to a Spark Connect session and can't be used: {why}. Its plan can't be looked at from here, so it can't be told whether "
        "each reading gives the same rows. Expected spark.read.parquet(path) or spark.table(name) of a Parquet table as it is; filter and derive "
        "with Evenhand's views. Or run Evenhand where the driver is, or write the frame to Parquet and read that."
    )

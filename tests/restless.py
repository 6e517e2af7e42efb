"""Sources that change while a release reads them: other clients commit between any two statements of the engine.

`between_statements` hooks the client libraries (DuckDB, psycopg, PySpark), not Evenhand: whatever path a release takes, something
else happens before each statement that it sends. `while_running` does the same from a thread, so also inside a statement.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any
from unittest import mock

Change = Callable[[], None]

STATEMENTS = {
    "duckdb.DuckDBPyConnection": ("sql", "query", "execute", "from_query", "fetchall", "to_arrow_table"),
    "duckdb.DuckDBPyRelation": (
        "query", "to_arrow_table", "to_arrow_reader", "fetchall", "df", "create", "to_table", "materialize", "to_parquet",
    ),
    "psycopg.Cursor": ("execute", "executemany"),
    "psycopg.ServerCursor": ("execute", "executemany"),
    "pyspark.sql.classic.dataframe.DataFrame": (
        "toArrow", "toPandas", "collect", "count", "checkpoint", "localCheckpoint", "_collect_as_arrow", "foreachPartition",
    ),
    "pyspark.sql.readwriter.DataFrameWriter": ("save", "parquet", "saveAsTable"),
}  # fmt: skip
"""The methods through which a statement reaches an engine; on Spark, those that start a job."""


class Statements:
    """Counts the statements of a run, and lets the change happen before each.

    Statements of the change itself don't count, nor those that a client library sends on behalf of another one.
    """

    def __init__(self, change: Change) -> None:
        self.count = 0
        self._change = change
        self._busy = False

    def run(self, work: Callable[[], Any]) -> Any:
        """Let the change happen, then run a statement."""
        if self._busy:
            return work()
        self._busy = True
        try:
            self.count += 1
            self._change()
            return work()
        finally:
            self._busy = False


@contextmanager
def between_statements(change: Change, *libraries: str) -> Iterator[Statements]:
    """Run ``change`` before every statement that is sent through these client libraries.

    Args:
        change: what other clients do.
        libraries: such as ``"duckdb"``, ``"psycopg"``, ``"pyspark"``.
    """
    statements = Statements(change)
    with ExitStack() as stack:
        for path, names in STATEMENTS.items():
            module, _, kind = path.rpartition(".")
            if path.partition(".")[0] in libraries:
                owner = getattr(import_module(module), kind)
                for name in names:
                    if hasattr(owner, name):
                        stack.enter_context(mock.patch.object(owner, name, _hooked(getattr(owner, name), statements)))
        yield statements


def _hooked(method: Any, statements: Statements) -> Any:
    def hooked(self: Any, *arguments: Any, **options: Any) -> Any:
        # DuckDB looks for unknown names among the globals of whoever calls it: it has to be the same module as ever.
        work = partial(FunctionType(_call.__code__, sys._getframe(1).f_globals), method, self, arguments, options)
        if any(isinstance(argument, str) and argument.startswith(_HARMLESS) for argument in arguments):
            return work()
        return statements.run(work)

    return hooked


def _call(method: Any, owner: Any, arguments: Any, options: Any) -> Any:
    return method(owner, *arguments, **options)


_HARMLESS = ("DESCRIBE ", "DROP ", "SET ")
"""Statements that read no rows, left out to save time."""


@contextmanager
def while_running(change: Change) -> Iterator[None]:
    """Run ``change`` again and again in another thread: it happens between statements and inside them."""
    over, failed = threading.Event(), []

    def work() -> None:
        try:
            while not over.is_set():
                change()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not failed, f"the source stopped changing: {failed[0]!r}"

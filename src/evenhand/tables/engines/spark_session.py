"""A Spark session for Evenhand: the active one, else a local one."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evenhand.guarantee import EngineError
from evenhand.tables.expressions import Backend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Java never compiles a method of more bytes, and to interpret one takes longer than to run it in parts.
    "spark.sql.codegen.hugeMethodLimit": "8000",
}

_PANDAS_WARNING = "PySpark does not yet fully support pandas"


def spark_backend(session: SparkSession | None = None) -> Backend:
    """An Ibis backend on the given, the active, or a new local Spark session."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineError(
            "engine='spark' needs PySpark, which is not installed; install evenhand[spark], "
            "or leave engine out to use DuckDB."
        ) from None
    # By name: PySpark says so at every turn, and nothing here goes through the part of pandas that it means.
    warnings.filterwarnings("ignore", _PANDAS_WARNING, FutureWarning)
    if session is None:
        session = SparkSession.getActiveSession() or _local_session(SparkSession)
        if type(session).__module__.startswith("pyspark.sql.connect"):
            raise EngineError(
                "engine='spark' reads paths where the driver is, and the active session is one of Spark Connect. Give the frame itself: "
                "eh.read(spark.read.parquet(path), user=...)."
            )
    import ibis

    return ibis.pyspark.connect(session)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep PySpark from logging, or warning about, a failed query: its message quotes the offending value."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _local_session(spark: type[SparkSession]) -> SparkSession:
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise EngineError(
            "engine='spark' needs Java 17 or later, and no `java` was found on PATH nor by JAVA_HOME; "
            "install a JDK, or leave engine out to use DuckDB."
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = spark.builder.master("local[*]").appName("evenhand")
    builder = builder.config("spark.driver.memory", os.environ.get("EVENHAND_SPARK_MEMORY", "4g"))
    for key, value in _LOCAL.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise EngineError(
            f"a local Spark session could not be started ({type(error).__name__}); check that Java 17 or later runs."
        ) from None
    session.sparkContext.setLogLevel("OFF")
    return session

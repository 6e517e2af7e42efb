"""A Spark session for Evenhand: the active one, else a local one."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from evenhand.guarantee import EngineError

_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def spark_backend(session: Any = None) -> Any:
    """An Ibis backend on the given, the active, or a new local Spark session."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineError(
            "engine='spark' needs PySpark, which is not installed; install evenhand[spark], "
            "or leave engine out to use DuckDB."
        ) from None
    session = session or SparkSession.getActiveSession() or _local_session(SparkSession)
    import ibis

    return ibis.pyspark.connect(session)


def _local_session(spark: Any) -> Any:
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

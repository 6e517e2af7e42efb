"""Tumult Analytics on local Spark."""

from __future__ import annotations

import math
import os
import sys
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession
from tmlt import analytics as ta

from benchmarks.peers.runners.protocol import Answer, Job, serve

# Spark's workers must be this environment's interpreter.
os.environ["PYSPARK_PYTHON"] = sys.executable


@lru_cache(maxsize=1)
def _spark() -> Any:
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    spark = builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _budget(job: Job, share: float = 1.0, delta: float = 0.0) -> Any:
    if job["hidden"]:
        return ta.ApproxDPBudget(job["epsilon"] * share, delta)
    rho = job["parameters"].get("rho")
    return ta.RhoZCDPBudget(rho * share) if rho else ta.PureDPBudget(job["epsilon"] * share)


def _bounded(job: Job) -> Any:
    """The constraints of the tutorial "Working with privacy IDs": rows, or groups and rows in each."""
    given, query = job["parameters"], ta.QueryBuilder("table")
    if "rows" in given:
        return query.enforce(ta.MaxRowsPerID(given["rows"]))
    query = query.enforce(ta.MaxGroupsPerID(job["by"], given["l0"]))
    return query.enforce(ta.MaxRowsPerGroupPerID(job["by"], given["linf"]))


def _asked(job: Job, grouped: Any, quantile: float | None = None) -> Any:
    low, high = job["bounds"]
    if job["statistic"] == "count":
        return grouped.count(name="x")
    if job["statistic"] == "users":
        return grouped.count_distinct(["user"], name="x")
    if job["statistic"] == "sum":
        return grouped.sum("value", low, high, name="x")
    if job["statistic"] == "mean":
        return grouped.average("value", low, high, name="x")
    return grouped.quantile("value", quantile, low, high, name="x")


def _read(frame: Any, by: str | None) -> dict[int, float]:
    rows = frame.toPandas().to_dict("records")
    return {int(row[by]) if by else 0: math.nan if row["x"] is None else float(row["x"]) for row in rows}


def answer(job: Job) -> Answer:
    """One release."""
    by, delta = job["by"], job["delta"]
    columns = ["user", "value", *([by] if by else [])]
    frame = _spark().read.parquet(job["path"]).select(*columns)
    whole = _budget(job, delta=delta)
    session = ta.Session.from_dataframe(whole, "table", frame, protected_change=ta.AddRowsWithID(id_column="user"))
    grouped, share = _bounded(job), 1.0
    if job["hidden"]:
        found = session.evaluate(_bounded(job).get_groups([by]), _budget(job, 0.5, delta)).toPandas()[by]
        if found.empty:
            return {}
        keys, share = [int(key) for key in found], 0.5
        grouped = grouped.groupby(ta.KeySet.from_dict({by: keys}))
    elif by:
        grouped = grouped.groupby(ta.KeySet.from_dict({by: list(range(job["groups"]))}))
    if job["statistic"] != "quantiles":
        return {
            key: [number]
            for key, number in _read(session.evaluate(_asked(job, grouped), _budget(job, share)), by).items()
        }
    part = _budget(job, share / len(job["quantiles"]))
    each = [_read(session.evaluate(_asked(job, grouped, q), part), by) for q in job["quantiles"]]
    return {key: [one[key] for one in each] for key in each[0]}


if __name__ == "__main__":
    serve(answer)

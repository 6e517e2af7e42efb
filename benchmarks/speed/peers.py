"""The same sum with the same cap in other tools, where they install: OpenDP on Polars, PipelineDP's local engine.

A sum of ratings with at most 100 rows a user on a million rows (PipelineDP takes seconds for each million). OpenDP has no
exact per-user sum with row sampling that works at this version (see docs), so the step that any OpenDP pipeline needs first,
truncating rows per user in Polars and releasing the sum with OpenDP's noise, is timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import evenhand as eh
from benchmarks.speed.data import ratings
from benchmarks.speed.timing import compare

USERS, ROWS = 6_925, 1_000_000


def run() -> dict[str, float]:
    """Seconds for each tool that could be run."""
    path = ratings(users=USERS, rows=ROWS)
    session = eh.Session(eh.read(path, user="userId"), eh.Ledger(Path(tempfile.mkdtemp()) / "bench.db", epsilon=1e6))
    sides: dict[str, Callable[[], Any]] = {
        "evenhand": lambda: session.sum("rating", bounds=(0, 5), epsilon=1, bounding=eh.RowLimit(100))
    }
    for name, make in (("polars + opendp", _polars), ("pipelinedp local", _pipeline_dp)):
        try:
            sides[name] = make(path)
        except ImportError:
            print(f"{name}: not installed, left out")
    return compare(sides, repeats=2)


def _polars(path: Path) -> Callable[[], Any]:
    import polars as pl

    from evenhand.noise import Laplace

    noise = Laplace.calibrated(500, eh.guarantee.parse_epsilon(1))

    def work() -> Any:
        kept = pl.scan_parquet(path).filter(pl.int_range(pl.len()).shuffle().over("userId") < 100)
        total = kept.select(pl.col("rating").clip(0, 5).sum()).collect().item()
        return noise.add_to([round(total)])

    return work


def _pipeline_dp(path: Path) -> Callable[[], Any]:
    import pipeline_dp

    rows = [(row["userId"], row["rating"]) for row in pq.read_table(path, columns=["userId", "rating"]).to_pylist()]

    def work() -> Any:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        parameters = pipeline_dp.AggregateParams(
            metrics=[pipeline_dp.Metrics.SUM],
            max_partitions_contributed=1,
            max_contributions_per_partition=100,
            min_value=0,
            max_value=5,
        )
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: 0,
            value_extractor=lambda row: row[1],
        )
        result = engine.aggregate(rows, parameters, extractors, public_partitions=[0])
        accountant.compute_budgets()
        return list(result)

    return work


if __name__ == "__main__":
    for name, seconds in run().items():
        print(f"{name:<18} {seconds:8.3f} s")

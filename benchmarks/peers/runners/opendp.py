"""OpenDP's Polars interface.

``truncate_num_groups`` fails on one grouping column at version 0.16 (two fields get one name), and its other forms keep one
group less than they state, so users are bounded in rows: at most linf in each group, then at most k altogether.
"""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.peers.runners.protocol import Answer, Job, serve

dp: Any = importlib.import_module("opendp.prelude")
pl: Any = importlib.import_module("polars")  # OpenDP adds its expressions when it is imported; types do not know them

LONGEST = 10_000_000  # public: more rows than any of these tables has
STEPS = 512  # candidates of a quantile

dp.enable_features("contrib")


def _candidates(largest: float) -> list[int]:
    """Widely spaced: powers of two."""
    return [2**k for k in range(max(int(largest).bit_length(), 1) + 1)]


class _Queries:
    """A context for the ε of one release, split evenly where a bound is estimated first."""

    def __init__(self, job: Job, queries: int) -> None:
        given = job["parameters"]
        amount = {"rho": given["rho"]} if "rho" in given else {"epsilon": job["epsilon"]}
        if job["hidden"]:
            amount["delta"] = given.get("delta", job["delta"])
        self.context = dp.Context.compositor(
            data=pl.scan_parquet(job["path"]),
            privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user")),
            privacy_loss=dp.loss_of(**amount),
            split_evenly_over=queries,
            margins=[dp.polars.Margin(max_length=LONGEST)],
        )

    def high(self, of: Any, largest: float) -> int:
        """A private 95% quantile of something about each user."""
        per_user = self.context.query().group_by("user").agg(of.alias("n"))
        asked = per_user.select(
            pl.col("n").cast(pl.Int64, strict=False).fill_null(1).dp.quantile(0.95, _candidates(largest))
        )
        return int(asked.release().collect().item())


def _value(job: Job) -> Any:
    return pl.col("value").fill_nan(job["bounds"][0]).fill_null(job["bounds"][0])


def _alone(job: Job) -> Answer:
    """Count or sum: one row per user, its total clamped."""
    given = job["parameters"]
    total = pl.len() if job["statistic"] == "count" else pl.col("value").sum()
    queries = _Queries(job, 1 if "total" in given else 2)
    bound = given["total"] if "total" in given else queries.high(total, 1e5)
    per_user = queries.context.query().group_by("user").agg(total.alias("n"))
    if job["statistic"] == "count":
        asked = per_user.select(pl.col("n").cast(pl.Int64).dp.sum((0, int(bound))))
    else:
        asked = per_user.select(pl.col("n").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, float(bound))))
    return {0: [float(asked.release().collect().item())]}


def _expressions(job: Job) -> list[Any]:
    if job["statistic"] in ("count", "users"):
        return [dp.len(signed=True)]
    low, high = job["bounds"]
    if job["statistic"] == "mean":
        return [_value(job).dp.sum((low, high)), dp.len(signed=True)]
    grid = [low + (high - low) * k / STEPS for k in range(STEPS + 1)]
    return [_value(job).dp.quantile(q, grid).alias(f"q{k}") for k, q in enumerate(job["quantiles"])]


def answer(job: Job) -> Answer:
    """One release."""
    if job["by"] is None and job["statistic"] in ("count", "sum"):
        return _alone(job)
    given, by = job["parameters"], job["by"]
    queries = _Queries(job, 1 if "rows" in given else 2)
    counted = pl.col(by).n_unique() if by and job["statistic"] == "users" else pl.len()
    rows = given["rows"] if "rows" in given else queries.high(counted, 1e4)
    query = queries.context.query()
    if by:
        query = query.truncate_per_group(given["linf"], by=[by])
    query = query.truncate_per_group(rows)
    if by is None:
        frame = query.select(*_expressions(job)).release().collect()
    else:
        grouped = query.group_by(by).agg(*_expressions(job))
        keys = pl.LazyFrame({by: list(range(job["groups"]))})
        frame = (grouped if job["hidden"] else grouped.with_keys(keys)).release().collect()
    found: Answer = {}
    for row in frame.iter_rows(named=True):
        key = int(row.pop(by)) if by else 0
        numbers = [float(number) if number is not None else float("nan") for number in row.values()]
        found[key] = [numbers[0] / max(numbers[1], 1.0)] if job["statistic"] == "mean" else numbers
    return found


if __name__ == "__main__":
    serve(answer)

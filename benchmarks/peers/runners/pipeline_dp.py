"""PipelineDP on its local backend, which its examples call the fastest for tables of this size."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pipeline_dp as dp
import pyarrow.parquet as pq

from benchmarks.peers.runners.protocol import Answer, Job, serve

Rows = list[tuple[Any, ...]]


@lru_cache(maxsize=1)
def _columns(path: str, by: str | None) -> Rows:
    names = ["user", by or "user", "value"]
    table = pq.read_table(path, columns=sorted(set(names)))
    user, group, value = (table[name].to_pylist() for name in names)
    return list(zip(user, group if by else [0] * len(user), value, strict=True))


def _extractors() -> Any:
    return dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )


def _groups_per_user(job: Job, rows: Rows, noise: Any) -> tuple[int, float]:
    """Its private choice of max_partitions_contributed, and the ε that is left."""
    share = job["parameters"].get("choose")
    if share is None:
        return job["parameters"]["l0"], job["epsilon"]
    spent = share * job["epsilon"]
    accountant = dp.NaiveBudgetAccountant(job["epsilon"], job["delta"])
    parameters = dp.CalculatePrivateContributionBoundsParams(
        noise, job["epsilon"] - spent, job["delta"], spent, job["groups"]
    )
    engine = dp.DPEngine(accountant, dp.LocalBackend())
    bounds = engine.calculate_private_contribution_bounds(rows, parameters, _extractors(), list(range(job["groups"])))
    return int(next(iter(bounds)).max_partitions_contributed), job["epsilon"] - spent


def _metrics(job: Job) -> list[Any]:
    if job["statistic"] == "quantiles":
        return [dp.Metrics.PERCENTILE(100 * q) for q in job["quantiles"]]
    names = {"count": "COUNT", "users": "PRIVACY_ID_COUNT", "sum": "SUM", "mean": "MEAN"}
    return [getattr(dp.Metrics, names[job["statistic"]])]


def _aggregate(job: Job, rows: Rows, epsilon: float, delta: float, public: list[int] | None, **given: Any) -> Answer:
    given["metrics"] = _metrics(job)
    if "total" in job["parameters"]:
        given |= {"min_sum_per_partition": 0, "max_sum_per_partition": job["parameters"]["total"]}
    elif job["statistic"] in ("sum", "mean", "quantiles"):
        given |= {"min_value": job["bounds"][0], "max_value": job["bounds"][1]}
    accountant = dp.NaiveBudgetAccountant(epsilon, delta)
    engine = dp.DPEngine(accountant, dp.LocalBackend())
    result = engine.aggregate(rows, dp.AggregateParams(**given), _extractors(), public_partitions=public)
    accountant.compute_budgets()
    return {int(key): [float(number) for number in values] for key, values in result}


def answer(job: Job) -> Answer:
    """One release."""
    rows, given = _columns(job["path"], job["by"]), job["parameters"]
    noise = dp.NoiseKind[given["noise"].upper()]
    groups, epsilon = _groups_per_user(job, rows, noise)
    common: dict[str, Any] = {
        "noise_kind": noise,
        "max_partitions_contributed": groups,
        "max_contributions_per_partition": given["linf"],
    }
    if not job["hidden"]:
        return _aggregate(job, rows, epsilon, job["delta"], list(range(job["groups"])), **common)
    strategy = dp.PartitionSelectionStrategy[given["selection"].upper().replace(" ", "_")]
    common |= {"partition_selection_strategy": strategy, "post_aggregation_thresholding": given.get("together", False)}
    return _aggregate(job, rows, epsilon, job["delta"], None, **common)


if __name__ == "__main__":
    serve(answer)

"""Reports that lie on Spark fold to exactly what they fold to elsewhere, duplicates and forgeries included."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.recommender import Campaign
from evenhand.recommender.at_server import Batch
from evenhand.recommender.at_server.spark import fold_on_spark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("pool", [None, 50])
def test_spark_folds_like_one_machine(pool: int | None) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    assert spark is not None
    campaign = Campaign((f"item {n}" for n in range(30)), "maxsense", 1, 5, users=3000, pool=pool)
    campaign.open("beacon")
    random = np.random.default_rng(0)
    serials = np.concatenate((np.arange(3000), np.arange(500))).astype(np.uint32)  # 500 come twice
    answers = random.integers(0, 2, 3500, np.uint32)
    answers[3000:] = answers[:500]
    tags = campaign.issuer.tags(serials)
    tags[:7] += np.uint64(1)  # forged
    tags[3000:3007] += np.uint64(1)
    here = campaign.fold()
    here.add(Batch(serials, answers, tags))
    columns = (serials.astype(np.int64), answers.astype(np.int64), tags.view(np.int64))
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    frame = spark.createDataFrame(rows, "serial long, answer long, tag long").repartition(4)
    there = fold_on_spark(campaign.task, frame, campaign.issuer, partitions=3)
    assert there.counts == here.counts
    assert (here.counts.accepted, here.counts.duplicate, here.counts.forged) == (2993, 493, 14)
    ours, theirs = here.sums(), there.sums()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)

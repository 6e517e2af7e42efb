"""Folding reports that lie on Spark: every partition folds its own, and the folds are merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.recommender.at_server.fold import Fold
from evenhand.recommender.at_server.sketches import RatedSets
from evenhand.recommender.at_server.tokens import Issuer
from evenhand.recommender.messages import Task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def fold_on_spark(
    task: Task, frame: DataFrame, issuer: Issuer | None = None, rated: RatedSets | None = None, partitions: int = 8
) -> Fold:
    """The fold of a Spark DataFrame of reports.

    Edge cases:
        Reports are first brought together by serial, so that one that comes twice is dropped wherever its copies
        lie.

    Args:
        frame: has whole-number columns ``serial`` and ``answer`` and, with an issuer, ``tag``.
        partitions: how many folds are made side by side.
    """
    import pyarrow as pa

    def fold_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = Fold(task, issuer, rated)
        for batch in batches:
            part.add_arrow(batch)
        yield pa.RecordBatch.from_pydict({"fold": [part.to_bytes()]})

    total = Fold(task, issuer, rated)
    for row in frame.repartition(partitions, "serial").mapInArrow(fold_partition, "fold binary").toLocalIterator():
        part = Fold(task, issuer, rated)
        part.restore(bytes(row.fold))
        total.merge(part)
    return total

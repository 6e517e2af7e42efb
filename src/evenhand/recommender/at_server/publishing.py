"""From a fold to the published model."""

from __future__ import annotations

import numpy as np

from evenhand.guarantee import DataError
from evenhand.recommender.at_server.clustering import cluster
from evenhand.recommender.at_server.fold import Fold
from evenhand.recommender.messages import PublishedModel


def publish(fold: Fold, clusters: int | None = None) -> PublishedModel:
    """Cluster the items and say what is known about them.

    Guarantee:
        Post-processing of reports that are private already: publishing costs no ε.

    Edge cases:
        A model in which nothing stood out of the noise says so in its notes. Without any report there is no model.

    Args:
        clusters: how many clusters; None to choose from the sums and their known noise.
    """
    if not fold.counts.accepted:
        raise DataError("No report was accepted yet: there is nothing to publish.")
    task = fold.task
    reading = fold.sketch.reading(fold.sums(), clusters)
    labels = cluster(reading, clusters)
    guesses = (
        f"Nothing stood out of the noise of {fold.counts.accepted} reports: the clusters below are guesses. "
        "More people, or a larger ε, are needed."
    )
    embedding = () if reading.embedding is None else tuple(map(tuple, np.round(reading.embedding, 6).tolist()))
    popularity = () if reading.popularity is None else tuple(np.round(reading.popularity, 6).tolist())
    return PublishedModel(
        task=task.id,
        items=task.items,
        clusters=tuple(labels.tolist()),
        embedding=embedding,
        popularity=popularity,
        reports=fold.counts.accepted,
        epsilon=task.epsilon,
        public_rated=task.public_rated,
        notes=() if reading.signals else (guesses,),
    )

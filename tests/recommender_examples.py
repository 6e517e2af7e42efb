"""Messages that several tests begin from."""

from __future__ import annotations

from decimal import Decimal

from evenhand.recommender.messages import PublishedModel

MODEL = PublishedModel(
    task=bytes(32),
    items=("a", "b", "ç"),
    clusters=(0, 1, 0),
    embedding=((0.5, -1.0), (0.25, 1.0), (0.0, 0.75)),
    popularity=(0.5, 0.25, 1.0),
    reports=12,
    epsilon=Decimal("0.5"),
    notes=("a note",),
)

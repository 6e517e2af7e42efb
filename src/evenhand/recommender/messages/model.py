"""The published model: what everyone may know, and all that is needed to recommend at home."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from evenhand.guarantee import DataError, UsageError, parse_epsilon
from evenhand.recommender.messages import wire
from evenhand.recommender.messages.promise import LocalGuarantee

_MAGIC = b"EHM1"

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PublishedModel:
    """Clusters of items, and an embedding or popularity where the sketch can see one.

    Guarantee:
        Computed from randomised reports only, so `guarantee` holds for everyone who answered, whatever else
        is known and however the model is used.

    Args:
        task: the id of the task it was learnt from.
        items: the catalogue.
        clusters: the cluster of each item, numbered from 0.
        embedding: a vector per item whose inner products say who is liked together; empty if there is none.
        popularity: the estimated share of raters who like each item, which noise may carry beyond 0 and 1;
            empty if the sketch is blind to it.
        reports: how many reports it was learnt from.
        epsilon: the ε of each report.
        public_rated: whether which items a person rated was treated as public.
        notes: what a reader should know, such as that nothing stood out of the noise.
    """

    task: bytes
    items: tuple[str, ...] = field(repr=False)
    clusters: tuple[int, ...] = field(repr=False)
    embedding: Rows = field(repr=False)
    popularity: tuple[float, ...] = field(repr=False)
    reports: int
    epsilon: Decimal
    public_rated: bool = False
    notes: tuple[str, ...] = ()

    @property
    def guarantee(self) -> LocalGuarantee:
        """What was promised to everyone who answered."""
        return LocalGuarantee(self.epsilon, self.public_rated)

    @property
    def dimensions(self) -> int:
        """The length of each item's vector; 0 without an embedding."""
        return len(self.embedding[0]) if self.embedding else 0

    def _facts(self) -> dict[str, Any]:
        return {
            "task": self.task.hex(),
            "items": list(self.items),
            "clusters": list(self.clusters),
            "reports": self.reports,
            "epsilon": f"{self.epsilon:f}",
            "public_rated": self.public_rated,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """The model as one line of JSON."""
        numbers = {"embedding": [list(row) for row in self.embedding], "popularity": list(self.popularity)}
        return wire.to_json("model", {**self._facts(), **numbers})

    @classmethod
    def from_json(cls, data: str | bytes) -> PublishedModel:
        """Read what `to_json` wrote."""
        return cls._received(wire.from_json(data, "model", {**_FACTS, "embedding": list, "popularity": list}))

    def to_bytes(self) -> bytes:
        """The model as bytes: the facts as JSON, the numbers as 32-bit floats."""
        embedding = wire.floats([number for row in self.embedding for number in row])
        head = wire.text(wire.to_json("model", self._facts()))
        sizes = wire.u32(self.dimensions) + wire.u8(bool(self.popularity))
        return _MAGIC + head + sizes + embedding + wire.floats(self.popularity)

    @classmethod
    def from_bytes(cls, data: bytes) -> PublishedModel:
        """Read what `to_bytes` wrote."""
        reader = wire.Reader(data, "model", _MAGIC)
        found = wire.from_json(reader.text(), "model", _FACTS)
        count = len(found["items"])
        dimensions, has_popularity = reader.u32(), reader.u8()
        found["embedding"] = [list(reader.floats(dimensions)) for _ in range(count)] if dimensions else []
        found["popularity"] = list(reader.floats(count)) if has_popularity else []
        reader.end()
        return cls._received(found)

    @classmethod
    def _received(cls, found: dict[str, Any]) -> PublishedModel:
        items, clusters, embedding = found["items"], found["clusters"], found["embedding"]
        popularity = found["popularity"]
        widths = {len(row) if isinstance(row, list) else 0 for row in embedding}
        sound = (
            all(isinstance(item, str) for item in items)
            and len(clusters) == len(items)
            and all(isinstance(cluster, int) and cluster >= 0 for cluster in clusters)
            and (not embedding or (len(embedding) == len(items) and len(widths) == 1 and 0 not in widths))
            and len(popularity) in (0, len(items))
            and all(_is_number(number) for row in (*embedding, popularity) for number in row)
            and all(isinstance(note, str) for note in found["notes"])
        )
        if not sound:
            raise DataError("The model's parts do not fit together: it is damaged. Fetch it again.")
        try:
            epsilon = parse_epsilon(found["epsilon"])
        except UsageError as error:
            raise DataError(f"The model is not valid: {error}") from None
        return cls(
            task=wire.from_hex(found["task"], 32, "model"),
            items=tuple(items),
            clusters=tuple(clusters),
            embedding=tuple(tuple(map(float, row)) for row in embedding),
            popularity=tuple(map(float, popularity)),
            reports=found["reports"],
            epsilon=epsilon,
            public_rated=found["public_rated"],
            notes=tuple(found["notes"]),
        )


_FACTS: dict[str, type] = {
    **dict.fromkeys(("items", "clusters", "notes"), list),
    **dict.fromkeys(("task", "epsilon"), str),
    "reports": int,
    "public_rated": bool,
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

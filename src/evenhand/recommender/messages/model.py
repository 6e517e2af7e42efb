"""The published model: what everyone may know, and all that is needed to recommend at home."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from evenhand.guarantee import MessageError, UsageError, parse_epsilon
from evenhand.recommender.messages import wire
from evenhand.recommender.messages.task import MOST_TOKENS, LocalGuarantee, Task, check_catalogue

_MAGIC = b"EHM1"

_LARGEST_FLOAT = (2 - 2**-23) * 2.0**127  # of 32 bits: what the binary message can hold
_LONGEST_NOTE = 10_000

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

    def __post_init__(self) -> None:
        check_catalogue(self.items)
        object.__setattr__(self, "epsilon", parse_epsilon(self.epsilon))
        count, widths = len(self.items), {len(row) for row in self.embedding}
        sound = (
            wire.is_bytes(self.task, 32)
            and len(self.clusters) == count
            and all(wire.is_count(cluster, 0, count - 1) for cluster in self.clusters)
            and (not self.embedding or (len(self.embedding) == count and len(widths) == 1 and 0 not in widths))
            and len(self.popularity) in (0, count)
            and all(_is_number(number) for row in (*self.embedding, self.popularity) for number in row)
            and wire.is_count(self.reports, 0, MOST_TOKENS)
            and isinstance(self.public_rated, bool)
            and all(wire.is_text(note, _LONGEST_NOTE) for note in self.notes)
        )
        if not sound:
            raise UsageError(
                "The model's parts do not fit together: expected a cluster for every item, numbered from 0, vectors of "
                "one length and popularities for all items or for none, and finite numbers."
            )
        object.__setattr__(self, "embedding", tuple(tuple(map(float, row)) for row in self.embedding))
        object.__setattr__(self, "popularity", tuple(map(float, self.popularity)))

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
            "epsilon": wire.to_decimal(self.epsilon),
            "public_rated": self.public_rated,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        numbers = {"embedding": [list(row) for row in self.embedding], "popularity": list(self.popularity)}
        return wire.to_json("model", {**self._facts(), **numbers})

    @classmethod
    def from_json(cls, data: str | bytes) -> PublishedModel:
        """Read what `to_json` wrote; anything else is a `MessageError`."""
        return cls._received(wire.from_json(data, "model", {**_FACTS, "embedding": list, "popularity": list}))

    def to_bytes(self) -> bytes:
        """The model as bytes: the facts as JSON, the numbers as 32-bit floats."""
        embedding = wire.floats([number for row in self.embedding for number in row])
        head = wire.text(wire.to_json("model", self._facts()))
        sizes = wire.u32(self.dimensions) + wire.u8(bool(self.popularity))
        return _MAGIC + head + sizes + embedding + wire.floats(self.popularity)

    @classmethod
    def from_bytes(cls, data: bytes) -> PublishedModel:
        """Read what `to_bytes` wrote; anything else is a `MessageError`."""
        reader = wire.ByteReader(data, "model", _MAGIC)
        found = wire.from_json(reader.text(), "model", _FACTS)
        count = len(found["items"])
        dimensions, has_popularity = reader.u32(), reader.flag()
        found["embedding"] = [list(reader.floats(dimensions)) for _ in range(count)] if dimensions else []
        found["popularity"] = list(reader.floats(count)) if has_popularity else []
        reader.end()
        return cls._received(found)

    @classmethod
    def _received(cls, found: dict[str, Any]) -> PublishedModel:
        if not all(isinstance(row, list) for row in found["embedding"]):
            raise MessageError("The model's embedding is not a list of numbers for each item: it is damaged.")
        with wire.receiving("model"):
            return cls(
                task=wire.from_hex(found["task"], 32, "model"),
                items=tuple(found["items"]),
                clusters=tuple(found["clusters"]),
                embedding=tuple(map(tuple, found["embedding"])),
                popularity=tuple(found["popularity"]),
                reports=found["reports"],
                epsilon=wire.from_decimal(found["epsilon"], "model", "epsilon"),
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
    # Comparing is safe for whole numbers of any size, and false for NaN.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST_FLOAT


_MARK = re.compile(r"; side ([0-9]{1,3}) of model ([0-9a-f]{32})")


def epoch_after(model: PublishedModel, axis: int, epoch: str) -> str:
    """The epoch of a second round, asked on the sides of a model's axis (numbered from 1): it names the model, so that the task's id is bound to it."""
    if not 1 <= axis <= model.dimensions:
        raise UsageError(
            f"axis={axis} is out of range: the first round's model has {model.dimensions} axes. Sides need one that "
            "stood out of the noise, as projection and pairwise find."
        )
    return f"{epoch}; side {axis} of model {_digest(model)}"


def is_second_round(task: Task) -> bool:
    """Whether people turn their ratings over by side before they answer."""
    return _MARK.search(task.epoch) is not None


def axis_of(task: Task, model: PublishedModel) -> list[float]:
    """The axis that a second round is about; an error if the model is not that of its first."""
    found = _MARK.search(task.epoch)
    if found is None or found[2] != _digest(model) or model.items != task.items:
        raise UsageError("The task is not a second round after this model: use the model that was published with it.")
    place = int(found[1]) - 1
    if not 0 <= place < model.dimensions:
        raise UsageError("The task names an axis that the model does not have: do not answer it.")
    return [vector[place] for vector in model.embedding]


def _digest(model: PublishedModel) -> str:
    """Of the binary message, which is the same however the model was read."""
    return hashlib.sha256(model.to_bytes()).hexdigest()[:32]

"""The bipartite stochastic block model: classes of people, classes of items, and who likes what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import UsageError, suggest

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tastes:
    """A person of class k likes an item of class l with probability ``like[k][l]``.

    Args:
        like: like probabilities, a row per class of people, a column per class of items.
        people: the share of people in each class; equal if left out.
        items: the share of items in each class; equal if left out.

    Reference: banerjee, section 2.1.
    """

    like: tuple[tuple[float, ...], ...]
    people: tuple[float, ...] = ()
    items: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rows = tuple(tuple(float(value) for value in row) for row in self.like)
        widths = {len(row) for row in rows}
        if len(widths) != 1 or not all(0 <= value <= 1 for row in rows for value in row):
            raise UsageError(f"like={self.like}: expected rows of equal length, of probabilities from 0 to 1.")
        object.__setattr__(self, "like", rows)
        for name, count in (("people", len(rows)), ("items", widths.pop())):
            object.__setattr__(self, name, _shares(name, getattr(self, name), count))

    @property
    def clusters(self) -> int:
        """The number of classes of items."""
        return len(self.items)

    @property
    def like_rates(self) -> Floats:
        """The share of likes among ratings, for each class of people."""
        return np.asarray(np.array(self.like) @ np.array(self.items))

    @property
    def second_moment(self) -> Floats:
        """E[x_i x_j] over people who rated both, for each pair of item classes, a like being 1, a dislike -1."""
        signed = 2 * np.array(self.like) - 1
        return np.asarray((signed.T * np.array(self.people)) @ signed)

    def labels(self, items: int) -> NDArray[np.int64]:
        """The class of each of ``items`` items, in shares as close as whole numbers allow, spread evenly."""
        steps = (np.arange(items) * 0.6180339887498949) % 1.0  # a low-discrepancy order: any stretch is mixed
        ranks = np.argsort(np.argsort(steps))
        edges = np.round(np.cumsum(self.items)[:-1] * items)
        return np.searchsorted(edges, ranks, side="right")


def _shares(name: str, given: Sequence[float], count: int) -> tuple[float, ...]:
    shares = tuple(float(share) for share in given) or (1 / count,) * count
    if len(shares) != count or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise UsageError(f"{name}={tuple(given)}: expected {count} positive shares that add up to 1.")
    return shares


PRESETS = {
    "popular": Tastes(((0.8, 0.2),)),
    "mirrored": Tastes(((0.8, 0.2), (0.2, 0.8))),
    "three": Tastes(((0.9, 0.5, 0.1), (0.5, 0.9, 0.1))),
}
"""Popular: everybody likes the same half. Mirrored: half the people like what the other half dislikes."""


def preset(name: str) -> Tastes:
    if name not in PRESETS:
        raise UsageError(f"tastes={name!r} is unknown; expected one of {list(PRESETS)}.{suggest(name, PRESETS)}")
    return PRESETS[name]

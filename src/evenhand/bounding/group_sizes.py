"""How large groups are, as assumed or as publicly known: never read off the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.bounding.over_groups import concentration
from evenhand.guarantee import UsageError
from evenhand.profiles import Array, Support

_LISTED = 1000  # groups that are listed one by one; smaller ones differ little from their neighbours
_STEEPEST = 3.0  # with a steeper law the largest group holds nearly everything, more than any κ that is assumed
_TYPICAL = {"small": 0.9, "middling": 0.5, "large": 0.1}  # ranks of the groups that a forecast shows


@dataclass(frozen=True)
class GroupSizes:
    """Groups by the part of all rows that they hold: ``groups[k]`` of them ``parts[k]`` each, the largest first.

    Args:
        parts: what one group holds of all rows.
        groups: how many groups are of this size.
        words: where they come from.
    """

    parts: Array
    groups: Array
    words: str

    @classmethod
    def assumed(cls, count: int) -> GroupSizes:
        """The j-th largest group has rows in proportion to j^−a, with the a whose κ is the one that bounds are chosen for."""
        first = np.unique(
            np.concatenate([np.arange(1, min(count, _LISTED) + 1), np.geomspace(1, count, _LISTED)]).astype(int)
        )
        groups = np.diff(np.append(first, count + 1)).astype(np.float64)
        rank = np.sqrt(first * (first + groups - 1))
        low, high, goal = 0.0, _STEEPEST, concentration(count)
        for _ in range(60):
            middle = (low + high) / 2
            parts = _normalised(rank**-middle, groups)
            low, high = (middle, high) if count * float(groups @ parts**2) < goal else (low, middle)
        words = f"group sizes are assumed to fall like rank^−{low:.2g}"
        return cls(_normalised(rank**-low, groups), groups, words if count > 1 else "one group")

    @classmethod
    def given(cls, sizes: Sequence[float]) -> GroupSizes:
        """Groups whose sizes are public, or a public guess; only their proportions count."""
        found = np.sort(np.asarray(sizes, dtype=np.float64).ravel())[::-1]
        if not found.size or not np.isfinite(found).all() or not (found > 0).all():
            raise UsageError(
                f"groups={list(sizes)[:5]}: expected how many groups there are, such as groups=300, or the size of each, all above 0."
            )
        different, count = np.unique(-found, return_counts=True)
        groups = count.astype(np.float64)
        return cls(_normalised(-different, groups), groups, "group sizes are as given")

    @property
    def count(self) -> int:
        """How many groups."""
        return round(float(self.groups.sum()))

    def typical(self) -> dict[str, int]:
        """Where a small, a middling and a large group stand: a tenth of the groups are smaller, half, and all but a tenth."""
        upto = np.cumsum(self.groups)
        return {name: int(np.searchsorted(upto, max(rank * self.count, 0.5))) for name, rank in _TYPICAL.items()}

    def visited(self, rows: Array) -> Array:
        """In how many groups a user with so many rows is, if rows fall into groups by their size; on average."""
        return np.concatenate(
            [_inside(self.parts, some).T @ self.groups for some in np.array_split(rows, len(rows) // 64 + 1)]
        )

    def users(self, support: Support, limit: int | None = None) -> Array:
        """How many users a group of each size has; with a limit, of how many users it is among the so many groups that they support."""
        weight = support.users
        if limit is not None:
            weight = weight * np.minimum(1.0, limit / np.maximum(self.visited(support.sizes), 1.0))
        return np.concatenate(
            [_inside(some, support.sizes) @ weight for some in np.array_split(self.parts, len(self.parts) // 64 + 1)]
        )


def _inside(parts: Array, rows: Array) -> Array:
    """The probability that a user with so many rows has one in a group of this size."""
    with np.errstate(divide="ignore"):  # one group holds everything
        result: Array = -np.expm1(rows[None, :] * np.log1p(-np.minimum(parts, 1.0))[:, None])
    return result


def _normalised(sizes: Array, groups: Array) -> Array:
    result: Array = sizes / float(groups @ sizes)
    return result

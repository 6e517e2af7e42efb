"""What bounding users' distances from the centres does to means by group.

A user with s rows lies s times a distance per row from the centres; what exceeds the bound is cut. In which direction is not known: users
may cancel each other, or heavy ones may lie on one side. The model: by chance each user's cut has either sign, and on average
heavy users' cuts have `ONE_SIDED` of their length in common, in every group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.bounding.lost_over_groups import NOT_KNOWN, Lost
from evenhand.bounding.moved_weight import FARTHEST, USERS_DIFFER, likely_root_mean_square
from evenhand.profiles import Array, Posterior, Support

ONE_SIDED = 0.4
"""A prior: which part of what is cut from all users together is left after opposite directions cancel."""


@dataclass(frozen=True)
class CutDistances:
    """What is cut, in parts of the range times rows.

    Args:
        total: in all groups together, without signs.
        per_group: Σ of squared cuts of users, each divided by the user's number of groups.
    """

    total: float
    per_group: float

    @classmethod
    def of(
        cls, rows: Posterior | Support, distances: tuple[Array, Array] | None, bound: float, unit: float
    ) -> CutDistances:
        """What a bound cuts off from users who have so many rows.

        Args:
            rows: users by number of rows, in ``unit`` to a row.
            distances: per row, and which part of the users has each; a prior if None.
            bound: on rows × distance.
            unit: how many steps of ``rows`` are one row.
        """
        lengths, parts = (np.array([USERS_DIFFER]), np.ones(1)) if distances is None else distances
        total, squares = np.zeros(1), np.zeros(1)
        weights = np.ones(1)
        for length, part in zip(lengths.tolist(), (parts / parts.sum()).tolist(), strict=True):
            most = bound / length * unit
            if isinstance(rows, Support):
                lost = Lost.exactly(rows, NOT_KNOWN, most)
            else:
                lost = Lost.of(rows, NOT_KNOWN, most, gaussian=False)
            if not lost.total.any():  # nobody with this distance is cut
                continue
            total = total + part * length / unit * lost.total
            squares = squares + part * (length / unit) ** 2 * lost.per_group
            weights = lost.weights
        return cls(likely_root_mean_square(total, weights), likely_root_mean_square(np.sqrt(squares), weights) ** 2)

    def deviation(self, rows: Array, spread: float = 1.0) -> Array:
        """For groups with so many rows: how far the cut moves their mean, as a part of the range.

        ``spread`` says by how much a cut norm stands for more in all groups together: 1 for L1, √k for L2 norms of users in k groups.
        """
        present = np.maximum(rows, 1.0)
        whole = float(present.sum())
        result: Array = np.sqrt(self.per_group / (whole * present) + (ONE_SIDED * spread * self.total / whole) ** 2)
        return np.minimum(result, FARTHEST)


def part_lost(rows: Posterior | Support, bound: float) -> float:
    """Which part of all rows users above a bound on their rows lose."""
    lost = Lost.exactly(rows, NOT_KNOWN, bound) if isinstance(rows, Support) else Lost.of(rows, NOT_KNOWN, bound, False)
    return likely_root_mean_square(lost.total / np.maximum(lost.total + lost.kept, 1e-9), lost.weights)

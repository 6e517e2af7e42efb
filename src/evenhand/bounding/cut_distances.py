"""What bounding users' distances from the centres does to means by group.

A user with s rows lies s times a distance per row from the centres; what exceeds the bound is cut. Rows and distances are known from noisy
histograms, those too few to be seen included, and where in its bucket everybody lies is not: each combination gives an amount.

In which direction is known for some of it: a distance larger than the centre's from an end of the range lies on the other side. So in a
column with a long tail (pay, spending, visits), whose centres are near the lower bound, nearly all that is cut lies above. For the rest, by chance each user's
cut has either sign, and on average heavy users' cuts have `ONE_SIDED` of their length in common, in every group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.bounding.lost_by_group import HETEROGENEITY
from evenhand.bounding.lost_over_groups import NOT_KNOWN, Lost
from evenhand.bounding.moved_weight import FARTHEST, likely_root_mean_square
from evenhand.bounding.residual_norms import UNSEEN
from evenhand.population import Array, Population, evenly

ONE_SIDED = 0.8
"""A prior: which part of what is cut from all users together is left after opposite directions cancel, where the sign is not known. Those who are cut are the
busiest, and may be of one kind (machines)."""

BUSIER = {1.0: 0.55, 2.0: 0.25, 3.0: 0.2}
"""A prior: how many times more is cut on the side that is known than if busy users lay as far out as others; who stays long often earns more."""

_MOST = 3.0  # times the usual that a group is believed to lose
_INSIDE = np.array([1 / 6, 1 / 2, 5 / 6])  # where in its bucket everybody may lie
_CURVES = 24  # of rows and of distances that stand for all
_AMOUNTS = 41
_APART = np.exp(HETEROGENEITY * np.array([-1.7320508, 0.0, 1.7320508]) - HETEROGENEITY**2 / 2)  # Gauss–Hermite
_FACTORS = np.outer([*BUSIER], _APART).ravel()
_FACTOR_WEIGHTS = np.outer([*BUSIER.values()], [1 / 6, 2 / 3, 1 / 6]).ravel()


@dataclass(frozen=True)
class Moved:
    """How far bounding moved the mean of each group, as parts of the range.

    Args:
        amounts: by group, increasing, what to add where it is known on which side users were cut: as likely one as the other.
        deviation: by group, of what has either sign.
    """

    amounts: Array
    deviation: Array


@dataclass(frozen=True)
class CutDistances:
    """What is cut, in parts of the range times rows.

    Args:
        amounts: in all groups together, without signs: as likely one as the other.
        rows: of all users, in each of these cases.
        part: of all distances, that is cut: as likely more as less.
        per_group: Σ of squared cuts of users, each divided by the user's number of groups.
        lengths: distances per row of those who are cut.
        parts: of all that is cut, which part is theirs.
    """

    amounts: Array
    rows: Array
    part: float
    per_group: float
    lengths: Array
    parts: Array

    @classmethod
    @np.errstate(all="ignore")  # a warning would show what was released
    def of(
        cls,
        rows: Population,
        distances: Sequence[tuple[float, Population]] | None,
        bound: float,
        unit: float,
    ) -> CutDistances:
        """What a bound cuts off from users who have so many rows.

        Args:
            rows: users by number of rows, in ``unit`` to a row.
            distances: from how many rows on, and users by distance per row, in ``unit`` to the range; a prior if None.
            bound: on rows × distance.
            unit: how many steps are one row, and one range.
        """
        users, user_weights, many = _law(rows, unit)
        spread = np.mean([1 / one.groups(many) for one in NOT_KNOWN], axis=0)
        laws = [_lengths(None, unit)] if distances is None else [_lengths(law, unit) for _, law in distances]
        starts = [0.0] if distances is None else [start for start, _ in distances]
        total = squares = far = np.zeros((1, 1, len(users), 1))
        weights, parts = user_weights[:, None], list[Array]()
        for (shares, share_weights, lengths), start, end in zip(laws, starts, [*starts[1:], math.inf], strict=True):
            own = np.where((many[1] >= start) & (many[1] < end), users, 0.0)
            # By place inside the buckets of rows and of distances, then by bucket of each.
            away = many[:, None, :, None] * lengths[:, None, :]
            cut = np.maximum(away - bound, 0.0)
            total = _each_with_each(total, own @ cut @ shares.T)
            far = _each_with_each(far, own @ away @ shares.T)
            squares = _each_with_each(squares, own @ (cut**2 * spread[:, None, :, None]) @ shares.T)
            weights = np.multiply.outer(weights, share_weights).reshape(len(users), -1)
            parts.append((user_weights @ own @ cut.mean(axis=0) * (share_weights @ shares)).ravel())
        every, mass = np.broadcast_to(weights, total.shape).ravel(), np.concatenate(parts)
        chosen = evenly(total.ravel(), every, _AMOUNTS)
        everybody = np.broadcast_to((many @ users.T)[:, None, :, None], total.shape).ravel()
        return cls(
            total.ravel()[chosen],
            everybody[chosen],
            float(np.median((total / np.maximum(far, 1e-300)).ravel()[chosen])),
            likely_root_mean_square(np.sqrt(squares.ravel()), every) ** 2,
            np.concatenate([lengths.ravel() for _, _, lengths in laws]),
            mass / max(float(mass.sum()), 1e-300),
        )

    def side(self, centres: Array) -> Array:
        """For groups with such centres, as parts of the range: which part of what is cut surely lies above, less what lies below."""
        above, below = (
            np.clip(self.lengths / np.maximum(end[:, None], 1e-9) - 1, 0.0, 1.0) for end in (centres, 1 - centres)
        )
        side: Array = (above - below) @ self.parts
        return side

    def by_group(self, rows: Array, centres: Array, spread: float = 1.0) -> Moved:
        """For groups with so many rows around such centres, as parts of the range.

        ``spread`` says by how much a cut norm stands for more in all groups together: 1 for L1, √k for L2 norms of users in k groups.
        """
        present, side = np.maximum(rows, 1.0), self.side(centres)
        whole = float(present.sum())
        # If there are more rows than the profile says, they lost the same part.
        believed = np.clip(self.rows, 1e-9, whole)
        each = spread * self.amounts / believed
        different = np.outer(each, _FACTORS).ravel()
        usual = different[evenly(different, np.tile(_FACTOR_WEIGHTS, len(each)), _AMOUNTS)]
        # Of groups, one with larger values has more of those that are cut.
        ends = np.where(side > 0, centres, 1 - centres)
        larger = np.clip(ends * whole / max(float(present @ ends), 1e-9), 1 / _MOST, _MOST)
        amounts = np.sort(np.clip(np.outer(side * larger, usual), -1.0, 1.0), axis=1)
        # Where nearly all is cut the centres are hardly put right, so that all may lie on one side of them.
        common = ONE_SIDED + (1 - ONE_SIDED) * self.part**2
        unknown = common * (1 - np.abs(side)) * likely_root_mean_square(each, np.ones(len(each)))
        by_chance = self.per_group / (np.median(believed) * present)
        return Moved(amounts, np.minimum(np.sqrt(by_chance + unknown**2), FARTHEST))


def _lengths(law: Population | None, unit: float) -> tuple[Array, Array, Array]:
    """The part of the users at each distance, by curve; the weights of the curves; and the distances."""
    if law is None:
        return np.eye(len(UNSEEN[0])), UNSEEN[1], UNSEEN[0][None, :]
    shares, weights, lengths = _law(law, unit)
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9), weights, np.minimum(lengths, 1.0)


def _each_with_each(first: Array, second: Array) -> Array:
    """Sums over the curves of two classes, along the last axis."""
    both: Array = first[..., :, None] + second[..., None, :]
    return both.reshape(*both.shape[:-2], -1)


def _law(law: Population, unit: float) -> tuple[Array, Array, Array]:
    """Users by table and bucket, the weights of the tables, and by place inside them where the buckets' users are."""
    some = law.few(_CURVES, law.users @ law.sizes) if len(law.weights) > _CURVES else law
    low = np.maximum(law.lows - np.where(law.highs > law.lows, 0.5, 0.0), 1e-9)
    places: Array = low * (law.highs / low) ** _INSIDE[:, None] / unit
    return some.users, some.weights, places


def part_lost(rows: Population, bound: float) -> float:
    """Which part of all rows users above a bound on their rows lose."""
    lost = Lost.of(rows, NOT_KNOWN, bound, False)
    return likely_root_mean_square(lost.total / np.maximum(lost.total + lost.kept, 1e-9), lost.weights)

"""The steps of a located mean by group: rough means, then distances from centres, twice (see `group_means.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from evenhand.bounding import (
    UNSEEN,
    CutDistances,
    Distances,
    Moved,
    best_groups_bound,
    best_residual_bound,
    best_rows_bound,
    norms_of,
    part_lost,
    shrunken_ratios,
    shrunken_steps,
)
from evenhand.noise import LARGEST_SCALE, IntegerNoise, rho_for
from evenhand.profiles import (
    Array,
    Buckets,
    Population,
    Support,
    support_of_histogram,
    total_buckets,
    users_by_bucket,
    users_by_place,
)
from evenhand.release import Measurement, Noisy, Receipt, ResidualMean
from evenhand.statistics.pairs import OCTAVES, PART, ROW, Centres, Pairs, picked
from evenhand.statistics.weighted_rows import FULL
from evenhand.tables.expressions import Column, Integers, Rows

_FAINT = 1e-9  # the scale of the noise of public counts
_SIZES = Buckets((0, *(edge for edge in total_buckets(ROW).edges if ROW >> OCTAVES <= edge <= ROW << 20)), ROW)
_REFUTED = 10  # times fewer rows, in usual ones, than users have groups: they were missed
_EXACT = 2**52  # capacities up to here make exact weights


@dataclass(frozen=True)
class Around:
    """What was released around the centres of one round.

    Args:
        centres: the centres.
        distances: by group, in grid steps × usual rows × `FULL`.
        bound: on a user's distances, as a part of the range × usual rows.
        rows: by group, in usual rows, where they were released with the distances.
        laws: from how many rows on, and users by distance per row, those too few to be seen included; None if none stood out from noise.
    """

    centres: Centres
    distances: Noisy
    bound: float
    laws: Sequence[tuple[float, Population]] | None
    rows: Noisy | None = None


@dataclass(frozen=True)
class LocatedGroups:
    """Everything that the steps need.

    Args:
        pairs: of user and group.
        purse: what is left, in shares.
        shares: of the steps.
        groups_per_user: as far as is known.
        typical: groups of a typical user.
        receipt: for public facts.
    """

    pairs: Pairs
    purse: Purse
    shares: Shares
    groups_per_user: Support
    typical: float
    receipt: Receipt

    @property
    def public(self) -> bool:
        """Whether row counts and groups are public."""
        return self.pairs.table.relation.counts_are_public

    @property
    def moves(self) -> int:
        """How many times the bound one user moves a bounded sum: a user whose values change may turn from one end to the other."""
        return self.pairs.table.relation.moves

    def estimates(self, users: Rows) -> tuple[list[ResidualMean], float, Moved, list[float | None]]:
        """The means of all groups, the bound on a user's distances, what that did, and the rows by group if they are public.

        ``users`` holds the number of groups of each user.
        """
        centres, weights = self._rough(users)
        noise, placed = None, self.pairs.about(centres)
        with self._norms(placed) as users:
            support, rows = self._support(users)
            capacity = self._rows(support) if weights is None else None
            first = self._around(centres, placed, users, support, 0, capacity)
        missing = 0.0
        if weights is None:
            assert first.rows is not None
            assert capacity is not None
            weights, noise = np.array(first.rows.values) / (FULL * ROW), first.rows.noise
            missing = part_lost(rows, capacity / FULL)
        better = self._moved(first, weights, noise)
        placed = self.pairs.about(better)
        with self._norms(placed) as users:
            second = self._around(better, placed, users, support, 1)
        means = self._means(first, second, weights, noise)
        cut = CutDistances.of(rows, second.laws, second.bound, ROW)
        moved = cut.by_group(weights, better.centres / self.pairs.grid.width, self._spread)
        # Rows that are missing count as far as the centres were off: where they ended, and by how much the second moved.
        off = np.array([math.hypot(mean.fraction, mean.gap) for mean in means]) / self.pairs.grid.width
        deviation = np.minimum(np.hypot(moved.deviation, missing * off), 0.5)
        sizes = np.rint(weights / centres.scales).tolist() if self.public else [None] * len(means)
        return means, second.bound, replace(moved, deviation=deviation), sizes

    def _norms(self, placed: Rows) -> AbstractContextManager[Rows]:
        return self.pairs.users(placed, rows_norm=placed.size, residual_norm=placed.residual)

    def _rough(self, users: Rows) -> tuple[Centres, Array | None]:
        """A centre for each group, and how many rows a user there usually has; where they are public, also the rows, so counted."""
        pairs, purse, share = self.pairs, self.purse, self.shares.rough
        reach = (1, 1.0) if self.public else (2, math.sqrt(2))
        bound = best_groups_bound(
            self.groups_per_user, purse.deviation(share, *reach), pairs.keys.groups, purse.squared
        )
        capacity = self._capacity(share, math.sqrt(bound) if purse.squared else bound, PART)
        norm, parts = "root" if purse.squared else "groups", pairs.parts()
        if self.public:
            return self._rough_public(users, parts, norm, capacity)
        sums = pairs.sums(users, [(name, capacity, norm) for name in parts], **parts)
        most = PART * capacity
        noisy = purse.draw(Measurement(picked(sums, *parts), 2 * most, 2 * most**2), share)
        above, below, octave = np.array(noisy.values, dtype=np.float64).reshape(3, -1) / (PART * FULL)
        weights, noise = above + below, math.sqrt(noisy.noise.variance) / (PART * FULL)
        middle = min(max(float(above.sum()) / max(float(weights.sum()), 1.0), 0.0), 1.0)
        centres = shrunken_ratios(above, weights, noise * math.hypot(middle, 1 - middle), noise)
        octaves = shrunken_ratios(octave, weights, noise, noise)
        return self._centres(centres, 2.0 ** (-OCTAVES * octaves)), None

    def _rough_public(self, users: Rows, parts: dict[str, Integers], norm: str, capacity: int) -> tuple[Centres, Array]:
        """Where row counts are public only the means of pairs are hidden."""
        pairs, share = self.pairs, self.shares.rough
        one = parts["above"] * 0 + 1
        sums = pairs.sums(
            users,
            [("above", capacity, norm), ("weight", capacity, norm)],
            above=parts["above"],
            weight=one,
            pairs=one,
            size=pairs.rows["count"] + 0,
        )
        most = PART * capacity
        noisy = self.purse.draw(Measurement(picked(sums, "above"), most, most**2), share)
        known = self.receipt.public(picked(sums, "weight", "pairs", "size")(), pairs.table.relation)
        weight, count, rows = np.array(known, dtype=np.float64).reshape(3, -1)
        noise = math.sqrt(noisy.noise.variance) / (PART * FULL)
        centres = shrunken_ratios(np.array(noisy.values) / (PART * FULL), weight / FULL, noise, 0.0)
        scales = np.where(rows > 0, count / np.maximum(rows, 1), 1.0)
        return self._centres(centres, scales), rows * scales

    def _centres(self, parts: Array, scales: Array) -> Centres:
        width = self.pairs.grid.width
        return Centres(np.clip(np.rint(parts * width), 0, width).astype(np.int64), np.minimum(scales, 1.0))

    def _support(self, users: Rows) -> tuple[Support, Population]:
        """Users by rows, in usual rows: public, or as a noisy histogram shows them; and in steps, with those too few to be seen."""
        table, buckets = self.pairs.table, _SIZES
        measured = users_by_bucket(table, users, _whole(users.rows_norm), buckets)
        if self.public:
            counts, scale = self.receipt.public(measured.integers(), table.relation), _FAINT
        else:
            counts = self.purse.draw(measured, self.shares.rows_profile).values
            scale = self.purse.deviation(self.shares.rows_profile, 1, 1) / math.sqrt(2)
        found = support_of_histogram(buckets, counts, scale)
        rows = Population.behind(buckets, counts, scale)
        if _REFUTED * found.rows / ROW < self.groups_per_user.rows:  # it shows noise
            return self.groups_per_user, rows
        return Support(found.sizes / ROW, found.users, None if found.lowest is None else found.lowest / ROW), rows

    def _rows(self, support: Support) -> int:
        """The capacity of rows by group, in usual rows."""
        share = self.shares.rows
        bound = best_rows_bound(support, self.purse.deviation(share, 1, 1), self.pairs.keys.groups, self._spread)
        return self._capacity(share, bound * ROW)

    def _around(
        self, centres: Centres, placed: Rows, users: Rows, support: Support, turn: int, rows: int | None = None
    ) -> Around:
        """Distances from the centres by group, bounded for each user; with a capacity, ``rows`` by group from the same pass."""
        purse, share, width = self.purse, self.shares.sums[turn], self.pairs.grid.width
        wanted, counts = self._distances(users, support, self.shares.distances[turn])
        seen, noise = wanted.norms(support, counts), purse.deviation(share, self.moves, self.moves)
        norms = norms_of(support, UNSEEN) if seen is None else seen
        bound = best_residual_bound(norms, noise, self.pairs.keys.groups, self._spread)
        capacity = self._capacity(share, bound * width)
        moved = self.moves * capacity
        counted = [] if rows is None else [("size", rows, "rows_norm")]
        sums = self.pairs.sums(users, [("residual", capacity, "residual_norm"), *counted], placed)
        distances = purse.draw(Measurement(picked(sums, "residual"), moved, moved**2), share)
        found = None
        if rows is not None:
            found = purse.draw(Measurement(picked(sums, "size"), rows, rows**2), self.shares.rows)
        laws = None if seen is None else wanted.laws(counts)
        return Around(centres, distances, capacity / (width * FULL), laws, found)

    def _distances(self, users: Rows, support: Support, share: Fraction) -> tuple[Distances, Sequence[int]]:
        """A noisy histogram of distances per row of users with many rows, the busiest apart: each user is at one place of it."""
        import ibis

        scale = self.purse.deviation(share, self.moves, math.sqrt(self.moves)) / math.sqrt(2)
        wanted = Distances.of(support, scale)
        asked = users.filter(users.rows_norm >= max(math.floor(wanted.rows * ROW), 1))
        unit = ibis.literal(ROW / self.pairs.grid.width, "float64")
        distance = asked.residual_norm.cast("float64") * unit / asked.rows_norm.cast("float64")
        place = _place(distance, wanted.buckets)
        if math.isfinite(wanted.busy):
            busy = asked.rows_norm >= max(math.floor(wanted.busy * ROW), 1)
            place = place + busy.ifelse(ibis.literal(wanted.buckets, "int64"), ibis.literal(0, "int64"))
        measured = users_by_place(self.pairs.table, asked, place, wanted.size, self.moves)
        return wanted, self.purse.draw(measured, share).values

    def _moved(self, first: Around, weights: Array, noise: IntegerNoise | None) -> Centres:
        """Better centres, as far as the distances from the first ones stand out from their noise."""
        steps = shrunken_steps(
            np.array(first.distances.values) / FULL,
            weights,
            math.sqrt(first.distances.noise.variance) / FULL,
            0.0 if noise is None else math.sqrt(noise.variance) / (FULL * ROW),
        )
        moved = np.clip(np.rint(first.centres.centres + steps), 0, self.pairs.grid.width)
        return Centres(moved.astype(np.int64), first.centres.scales)

    def _means(self, first: Around, second: Around, weights: Array, noise: IntegerNoise | None) -> list[ResidualMean]:
        grid, unit, width = self.pairs.grid, self.pairs.grid.units(1), self.pairs.grid.width
        noises = (first.distances.noise, second.distances.noise, noise)
        more = max(second.bound / first.bound, 1.0)  # what the first cut, if it is narrower, is not believed
        return [
            ResidualMean(
                before / FULL,
                after / FULL,
                float(centre - start),
                float(rows),
                (more / FULL, 1 / FULL, 1 / (FULL * ROW)),
                noises,
                (float(-centre), float(width - centre)),
                grid.low + unit * centre,
                unit,
            )
            for before, after, start, centre, rows in zip(
                first.distances.values,
                second.distances.values,
                first.centres.centres.tolist(),
                second.centres.centres.tolist(),
                weights.tolist(),
                strict=True,
            )
        ]

    @property
    def _spread(self) -> float:
        """By how much a cut norm stands for more in all groups together."""
        return math.sqrt(self.typical) if self.purse.squared else 1.0

    def _capacity(self, share: Fraction, bound: float, reach: int = 1) -> int:
        """A bound in integer steps as what the weighted steps of one user add up to, at most; noise for it fits 64 bits.

        Any bound is safe, so those that would not fit are lowered, never refused once ε is spent.
        """
        return max(1, min(int(bound * FULL), _EXACT, self.purse.largest(share) // reach))


def _place(distance: Column, size: int) -> Integers:
    """The bucket of a distance among edges 4^(i/3) that end at 1, by its logarithm: one of ``size``, whatever a logarithm gives.

    Slightly lowered, so that engines whose logarithms differ in the last bit agree on distances at an edge.
    """
    import ibis

    lowered = ibis.greatest(distance * ibis.literal(1 - 1e-9, "float64"), ibis.literal(1e-12, "float64"))
    steps = (lowered.ln() * ibis.literal(3 / math.log(4), "float64")).ceil().cast("int64")
    return ibis.least(ibis.greatest(steps + (size - 2), 0), size - 1)


def _whole(norm: Column) -> Integers:
    return norm.cast("float64").ceil().cast("int64")


GROUPS_SHARE = Decimal("0.03")
"""Of ε, for the histogram of groups per user, which decides about the noise and about the other shares: a few noisy counts are enough."""

TOO_ROUGH = 0.06
"""The noise of a rough mean, with all that is left, as a part of the range, above which nothing is located: too few people. Users differ by about
a tenth of the range, so a centre that is off by more than about half of that locates nothing."""

_SHARPEST = 0.035  # noise of a rough mean that is good enough, as a part of the range: a third of how far users differ
_ROUGH = (
    0.05,
    0.2,
)  # shares for rough means, and for rows: at least this much, and at most, so that most is left for the sums
_FIRST = 0.12  # for distances from the rough centres: with them the centres are found anew
_EVIDENCE = 400.0  # users × ε that a histogram of distances should hold: ten in each of ten buckets stand out
_FIRST_DISTANCES, _DISTANCES = (
    (0.015, 0.06),
    (0.03, 0.12),
)  # shares for the two histograms: the second chooses the bound that stays
_FEW_GROUPS = 0.1  # over √G, for the histogram of rows: few groups share the cost of a bad bound
_LEAST_ROWS = 0.02  # the least share for it: with less noise hides everybody


@dataclass(frozen=True)
class Purse:
    """What is left for the steps, in shares of ε with Laplace noise or of ρ with Gaussian noise."""

    epsilon: Decimal
    delta: Decimal
    draw: Callable[[Measurement, Fraction], Noisy]

    @classmethod
    def of(cls, receipt: Receipt, epsilon: Decimal, delta: Decimal) -> Purse:
        """Everything that is left; with δ the noise is Gaussian."""
        return cls(epsilon, delta, receipt.numbers_by_share(epsilon, delta))

    @property
    def squared(self) -> bool:
        """Whether L2 norms are bounded."""
        return bool(self.delta)

    def deviation(self, share: float | Fraction, l1: float, l2: float) -> float:
        """The standard deviation of the noise that a share buys for a sensitivity."""
        if self.squared:
            return l2 / math.sqrt(2 * float(rho_for(self.epsilon, self.delta)) * float(share))
        return math.sqrt(2) * l1 / (float(self.epsilon) * float(share))

    def largest(self, share: Fraction) -> int:
        """The largest sensitivity whose noise fits 64 bits, in integers that are multiplied by no more than 4."""
        return max(1, int(LARGEST_SCALE / (4 * self.deviation(share, 1, 1))))


@dataclass(frozen=True)
class Shares:
    """The parts of what is left: they add up to 1.

    Args:
        rough: for rough means by group.
        rows_profile: for the histogram of users by rows, and ``rows`` for rows by group; 0 where rows are public.
        distances: for the two histograms of distances per row.
        sums: for the two releases of distances by group.
    """

    rough: Fraction
    rows_profile: Fraction
    rows: Fraction
    distances: tuple[Fraction, Fraction]
    sums: tuple[Fraction, Fraction]

    @classmethod
    def of(cls, purse: Purse, groups: int, typical: float, people: float, pairs: float, public: bool) -> Shares:
        """From public facts and released numbers.

        Args:
            purse: what is left.
            groups: how many groups.
            typical: groups of a typical user.
            people: how many users.
            pairs: of user and group, in all.
            public: whether rows are public.
        """
        power = 2 if purse.squared else 1  # noise falls with the share of ε, with the root of the share of ρ
        rough = _within((roughness(purse, groups, typical, pairs) / _SHARPEST) ** power, _ROUGH)
        evidence = (_EVIDENCE * purse.deviation(1, 1, 1) / max(people, 1.0)) ** power
        first, second = _within(evidence / 2, _FIRST_DISTANCES), _within(evidence, _DISTANCES)
        profile = Fraction(0) if public else _within(_FEW_GROUPS / math.sqrt(groups), (_LEAST_ROWS, 1.0))
        rows = Fraction(0) if public else rough
        used = rough + profile + rows + first + second
        return cls(rough, profile, rows, (first, second), (_exact(_FIRST), 1 - used - _exact(_FIRST)))


def roughness(purse: Purse, groups: int, typical: float, pairs: float) -> float:
    """The noise of a rough mean of a usual group, with all that is left, as a part of the range."""
    return purse.deviation(1, 2 * typical, math.sqrt(2 * typical)) / max(pairs / groups, 1.0)


def _within(share: float, limits: tuple[float, float]) -> Fraction:
    return _exact(min(max(share, limits[0]), limits[1]))


def _exact(share: float) -> Fraction:
    return Fraction(round(share * 10_000), 10_000)

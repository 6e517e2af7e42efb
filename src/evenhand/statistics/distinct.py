"""How many different values a column holds, each user supporting at most ℓ of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from evenhand.bounding import Auto
from evenhand.guarantee import Relation, UsageError, split
from evenhand.profiles import sure_part
from evenhand.release import (
    Additive,
    Believed,
    Bounding,
    Error,
    Exact,
    Measurement,
    OfSize,
    Receipt,
    Unknown,
    noise_for,
)
from evenhand.statistics.believed_groups import corrections
from evenhand.statistics.believed_means import LEAST_SHOWN, corrected
from evenhand.statistics.draft import EXACT, UNBOUNDED, Draft, Outcome
from evenhand.statistics.frames import GroupedInterval, frame
from evenhand.statistics.keys import ID, Keys
from evenhand.statistics.own_road import OwnRoad, Road
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.supporters import numbered_pairs, supported
from evenhand.tables import Bounds, Secret, Table
from evenhand.tables.expressions import Rows
from evenhand.tables.summaries import known
from evenhand.tables.table import key_names

if TYPE_CHECKING:
    import pyarrow as pa

LIMITS = (1, 2, 3, *(step << power for power in range(1, 9) for step in (2, 3)), 1024)
"""The ℓ among which one is chosen: 1, 2, 3, 4, 6, 8, 12, ... 1024."""

MOST_VALUES = 100_000
CHOICE = Fraction(1, 2)
"""The part of ε that chooses ℓ; half, as in Knop and Steinke 2023."""

_STEPS = 1024  # of a score, for one value per supported value
_BIAS = "downward: values that only users with more values than that have may be missing, so there are likely more"
_MODEL = (
    "covers the noise and the values that only users with more values than that have, on a model of how many those are: the bound was "
    "chosen where more would hardly have added any"
)
_GIVEN = "covers the noise; there may be more values than users were allowed to support, nobody knows how many"
_WITHIN = "of bounding is in the interval, by a model"

# A prior on what the chosen bound misses, in units of what it was charged for its noise: it was chosen where a larger bound would not have paid for itself.
# Found by simulation: docs/proofs/distinct.md says on which tables, and on which it is too little.
_NOTHING, _USUAL, _SPREAD = 0.15, 0.6, 1.1
_PARTS = (np.arange(200) + 0.5) / 200


@dataclass(frozen=True)
class Supported(Road):
    """The road of `Distinct`: pairs of user and value are assigned, and their numbers by group get noise."""

    @property
    def statistic(self) -> Distinct:
        """What is asked for."""
        assert isinstance(self.part, Distinct)
        return self.part

    @property
    def groups(self) -> Keys:
        """The public groups; one for a release without groups."""
        assert self.keys is not None
        return self.keys

    def draft(self) -> Draft:
        request, statistic = self.request, self.statistic
        if request.strategy is not None or request.auto != Auto():
            raise UsageError(
                "distinct() bounds a user by the number of values they support; leave bounding out, or give "
                "values_per_user=10 for a bound of your own."
            )
        public = {*request.table.public, *request.table.user}
        if request.relation.counts_are_public and statistic.column in public:
            return Draft(self.label, request.free, None, self.query, UNBOUNDED, EXACT, self._exact)
        limit, bias = self._limit, _BIAS
        if statistic.limit is None and limit == 1:
            bounding, bias = _bounding(1, "public: each user has one row"), "no value is missing: each user has one"
            error = Error(noise_for(1, 1, request.epsilon).variance ** 0.5, 0.0, bias)
        elif limit is None:
            bounding = Bounding("ValuesPerUser", None, "how many values one user may support will be chosen privately",
                                f"auto, for {float(CHOICE):.0%} of ε")  # fmt: skip
            error = Error(None, None, _WITHIN)
        else:
            bounding = _bounding(limit)
            moves = self._reach(limit)
            error = Error(noise_for(moves, moves**2, request.epsilon).variance ** 0.5, None, _BIAS)
        query = {**self.query, "bounding": bounding.to_dict()}
        rules = {self.name: OfSize("values")}
        return Draft(self.label, request.guarantee(), request.pure(), query, bounding, error, self._release, rules)

    @property
    def _limit(self) -> int | None:
        """ℓ: as it was given, or 1 where everybody has one row, as a public fact; None where it is to be chosen."""
        given = self.statistic.limit
        return 1 if given is None and self.request.table.one_row else given

    def _reach(self, limit: int) -> int:
        """How far one user moves the numbers of all groups; one number alone moves by at most ℓ under values too."""
        return limit * (self.request.relation.moves if self.groups.groups > 1 else 1)

    def _release(self, receipt: Receipt) -> Outcome:
        request, limit, left = self.request, self._limit, self.request.epsilon
        limits = LIMITS if limit is None else (limit,)
        with self._pairs() as (copy, pairs, value):
            fetched = request.table.engine.fetch(numbered_pairs(copy, pairs, value))
            counts = fetched.map(lambda found: supported(found, self.groups.groups, limits))
        place, bounding = 0, _bounding(limits[0])
        if limit is None:
            paid, left = split(request.epsilon, CHOICE)
            scores = counts.map(partial(_scores, request.epsilon, self.groups.groups, request.relation))
            place = receipt.choices(scores, _STEPS * request.relation.moves, paid).places[0]
            bounding = _bounding(limits[place], "chosen by a private comparison of the numbers under each bound", paid)
        moves = self._reach(limits[place])
        noisy = receipt.numbers(Measurement(lambda: counts.map(lambda each: each[place]), moves, moves**2), left)
        spread = noisy.noise.variance**0.5
        plain = [Estimate(value, Additive(value, noisy.noise, 1), spread) for value in noisy.values]
        if limit is None:
            found = self._with_missing(plain, limits[place])
            return self._shown(found, bounding, Error(spread, None, _WITHIN, {self.name: spread}))
        if self.statistic.limit is None:  # everybody has one row
            return self._shown(
                plain, bounding, Error(spread, 0.0, "no value is missing: each user has one", {self.name: spread})
            )
        found = [replace(one, interval=Unknown(one.interval, _GIVEN, most=math.inf)) for one in plain]
        return self._shown(found, bounding, Error(spread, None, _BIAS, {self.name: spread}))

    def _with_missing(self, plain: Sequence[Estimate], limit: int) -> list[Estimate]:
        """Numbers with the values that the bound probably misses, in each group in proportion to its size."""
        cost = _cost(limit, self.groups.groups, self.request.relation, self.request.epsilon) * limit
        parts = np.maximum((_PARTS - _NOTHING) / (1 - _NOTHING), 1e-9)
        missing = np.where(
            _PARTS < _NOTHING,
            0.0,
            _USUAL * np.exp(_SPREAD * np.array([NormalDist().inv_cdf(part) for part in parts.tolist()])),
        )
        weights, total = np.full(len(missing), 1 / len(missing)), max(sum(one.value for one in plain), 1)
        found = []
        for one in plain:
            amounts = missing * cost * max(one.value / total, 1 / max(len(plain), 1) ** 2)
            added = round(sure_part(amounts, weights))
            added = added if added > LEAST_SHOWN * one.noise else 0
            interval = Believed(one.interval, amounts, weights, _MODEL, feasible=(0.0, math.inf))
            found.append(replace(one, value=one.value + added, interval=interval, correction=added))
        return found

    def _exact(self, receipt: Receipt) -> Outcome:
        """Under values, the number of different values of a public column is public."""
        with self._pairs() as (_, pairs, value):
            values = pairs.select(ID, value).distinct()
            counted = values.group_by(ID).aggregate(values=values.count())
            fetched: Secret[pa.Table] = self.request.table.engine.fetch(counted)
            exact = receipt.public(fetched.map(partial(_by_group, self.groups.groups)), self.request.relation)
        return self._shown([Estimate(count, Exact(count), 0.0) for count in exact], UNBOUNDED, EXACT)

    def _shown(self, estimates: Sequence[Estimate], bounding: Bounding, error: Error) -> Outcome:
        name = self.name
        if not self.by:
            alone, details = estimates[0], dict[str, Any]()
            if alone.correction:
                details = {"correction": corrected(alone.value - alone.correction, alone.value, alone.noise)}
            return Outcome(alone.value, alone.interval, bounding, Error(error.noise, error.bias, error.basis), details)
        value = frame(self.groups.labels, {name: [estimate.value for estimate in estimates]})
        return Outcome(
            value,
            GroupedInterval(self.groups.labels, {name: estimates}),
            bounding,
            error,
            corrections({name: estimates}),
        )

    @contextmanager
    def _pairs(self) -> Iterator[tuple[Table, Rows, str]]:
        """Each user with each of their values by group, once; from one reading."""
        table = self.request.table
        with table.once((), [*self.by, self.statistic.column]) as copy:
            value = key_names(len(self.by) + 1)[-1]
            rows = self.groups.attach(copy, copy.expression)
            rows = rows.filter(*(known(copy, rows[name]) for name in (*copy.user_names, value)))
            with table.engine.kept(rows.select(*copy.user_names, ID, value).distinct()) as pairs:
                yield copy, pairs, value


@dataclass(frozen=True)
class Distinct(OwnRoad):
    """The number of different values of a column of any type; nulls are none. By group with public keys.

    A user may support ℓ values, so one user adds at most ℓ and the noise has scale ℓ/ε. Half of ε chooses ℓ among 1, 2, 3, 4, 6, ... 1,024. Users with few
    values come first, and each supports values that nobody supported before.

    Interval: the noise around the number of supported values, which is never above the truth. What only users with many values have is missing; how much is not known.

    Under values: a declared public column is counted exactly, ε = 0.

    Edge cases: pairs of user and value that are open after users with one value are assigned in memory, about 100 bytes each.

    Proof: distinct.

    Args:
        column: its name.
        values_per_user: how many values one user may support; chosen privately unless given.
    """

    name = "distinct"
    own_road = Supported
    selects_keys = False

    column: str
    values_per_user: int | None = None

    def __post_init__(self) -> None:
        given = self.values_per_user
        if given is not None and (
            not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MOST_VALUES
        ):
            raise UsageError(
                f"values_per_user={given!r}: expected a whole number between 1 and {MOST_VALUES:,}, such as 10."
            )

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        return cls(column, 3)

    @property
    def limit(self) -> int | None:
        """ℓ, if given."""
        return self.values_per_user

    @property
    def words(self) -> str:
        return f"number of different values of {self.column}"

    def check(self, table: Table, by_row: bool = False) -> None:
        table.require(self.column, "column")


def _bounding(limit: int, chosen: str = "given", paid: Decimal | None = None) -> Bounding:
    values = "one value" if limit == 1 else f"{limit:,} values"
    return Bounding("ValuesPerUser", float(limit), f"each user supports at most {values}", chosen, paid)


def _scores(epsilon: Decimal, groups: int, relation: Relation, counts: Sequence[Sequence[int]]) -> list[list[int]]:
    """How good each ℓ is: how far its number of values, less what its noise costs, lies above that of every other ℓ.

    Relative to the larger of the two ℓ, so that no score moves by more than one value per supported value
    (docs/proofs/distinct.md). The cost grows a little faster than ℓ, since a choice that is far too large ruins the result; its
    factors were found by simulation. What is lost spreads over the groups, and each group gets all the noise.
    """
    per_value = [_cost(limit, groups, relation, epsilon) for limit in LIMITS]
    worth = [
        sum(count) - math.ceil(min(cost * limit, 2.0**60))
        for count, cost, limit in zip(counts, per_value, LIMITS, strict=True)
    ]
    return [
        [
            min((one - other) * _STEPS // max(limit, than) for other, than in zip(worth, LIMITS, strict=True))
            for one, limit in zip(worth, LIMITS, strict=True)
        ]
    ]


def _cost(limit: int, groups: int, relation: Relation, epsilon: Decimal) -> float:
    """What a bound is charged for its noise, for each value that a user may support."""
    return (15 + 4 * math.log(limit)) * groups * relation.moves / float(epsilon)


def _by_group(groups: int, counted: pa.Table) -> list[int]:
    found = dict(zip(counted[ID].to_pylist(), counted["values"].to_pylist(), strict=True))
    return [int(found.get(group, 0)) for group in range(groups)]

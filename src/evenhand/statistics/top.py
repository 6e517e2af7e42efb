"""The groups with the most users or rows: chosen first, then counted.

A group with many users is found without bounding in how many groups a user is: adding a user moves every score by at most one.
Where nearly everybody is in fewer groups than are wanted, bounding that number needs less noise still; a profile of groups per
user tells. The chosen groups are counted with noise of their own, so their intervals hold although they were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np

from evenhand.bounding import ONCE_EACH, Auto, Breadth, Lost
from evenhand.guarantee import UsageError, exact_difference, split
from evenhand.ledger import Cost, mechanism_delta
from evenhand.noise import LARGEST_SCALE, TopK
from evenhand.profiles import About, Histogram, Support, Wanted, row_buckets, users_by_bucket
from evenhand.release import (
    Additive,
    Bounding,
    Ends,
    Error,
    Interval,
    Measurement,
    Noisy,
    OfSize,
    Receipt,
    Rule,
    noise_for,
)
from evenhand.release.intervals import noise_only
from evenhand.statistics.believed_groups import IN_INTERVAL, believed_totals, corrections, of_given_bound
from evenhand.statistics.count import Count
from evenhand.statistics.draft import NOBODY, NOT_SHOWN, UNKNOWN, Draft, Outcome
from evenhand.statistics.frames import GroupedInterval, frame
from evenhand.statistics.keys import ID, PLACE, Labels, found_keys
from evenhand.statistics.own_road import OwnRoad, Road
from evenhand.statistics.per_row import PerRow
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.users import Users
from evenhand.tables import Bounds, Secret, Table
from evenhand.tables.expressions import Rows
from evenhand.tables.summaries import known
from evenhand.tables.table import key_names

if TYPE_CHECKING:
    import pyarrow as pa


MOST_GROUPS = 1000
_COUNT, _SCORE, _WHOLE = "evenhand_count", "evenhand_score", "evenhand_whole"


@dataclass(frozen=True)
class First:
    """The first groups of another interval, where everything is public."""

    interval: Interval
    places: Sequence[int]

    def at(self, confidence: float) -> Ends:
        return self.interval.at(confidence).iloc[list(self.places)].reset_index(drop=True)

    @property
    def noise_only(self) -> Interval:
        """The noise alone."""
        return First(noise_only(self.interval), self.places)


@dataclass(frozen=True)
class Largest(Road):
    """The road of `Top`."""

    @property
    def statistic(self) -> Top:
        """What is asked for."""
        assert isinstance(self.part, Top)
        return self.part

    def draft(self) -> Draft:
        request, statistic = self.request, self.statistic
        if request.strategy is not None or request.auto != Auto() or self.other is not None:
            raise UsageError(
                "top() takes neither bounding nor other; to bound a user, give groups_per_user=1 where everybody is in one group."
            )
        if self.keys is not None and statistic.k > len(self.keys.rows):
            raise UsageError(
                f"top(k={statistic.k}) of {len(self.keys.rows)} keys; expected at most as many as there are keys."
            )
        if request.relation.counts_are_public:
            return self._public()
        if self.keys is None and not request.delta:
            raise UsageError(
                f"top({list(self.by)}) without keys= needs delta: names that come from the data must be selected privately, "
                "which pure differential privacy can't do. Give delta=1e-6 (well below one over the number of users), or list "
                "the public keys."
            )
        delta = mechanism_delta(request.delta) if self.keys is None else Decimal(0)
        cost = Cost.approximate(request.epsilon, delta) if delta else request.pure()
        if self.groups_per_user is not None and statistic.of == "users":
            bounding = Limits(given_groups(self.groups_per_user, statistic.k), 1, Decimal(0)).bounding(statistic.of)
        else:
            share = float(PROFILE) * (2 if statistic.of == "rows" and self.groups_per_user is None else 1)
            bounding = Bounding("GroupLimit", None, "the bound will be chosen privately", f"auto, for {share:.0%} of ε")
        guarantee = request.guarantee(request.delta if delta else Decimal(0))
        query = {**self.query, "bounding": bounding.to_dict()}
        rules: dict[str, Rule] = {statistic.of: OfSize(statistic.of)}
        return Draft(self.label, guarantee, cost, query, bounding, self._forecast(), partial(self._run, delta), rules)

    @property
    def label(self) -> str:
        return self.statistic.words

    def _forecast(self) -> Error:
        """The noise of a number of users, if nothing about users is chosen; the profile may lower it."""
        statistic = self.statistic
        if statistic.of == "rows":
            return Error(None)
        groups = given_groups(self.groups_per_user, statistic.k)
        rest = self.request.epsilon if self.groups_per_user else split(self.request.epsilon, PROFILE)[1]
        top = TopK(statistic.k, 1, groups, split(rest, CHOICE)[0])
        noise = noise_for(top.scores, top.scores, split(rest, CHOICE)[1])
        if groups is None:
            return Error(noise.variance**0.5, 0.0, "no user is cut off")
        return Error(noise.variance**0.5, None, "not known: users in more groups than that are cut off")

    def _public(self) -> Draft:
        """Under values the numbers are public, so the largest are."""
        part = Users() if self.statistic.of == "users" else Count()
        everything = PerRow(self.request, {self.statistic.of: part}, self.by, self.keys).draft()

        def run(receipt: Receipt) -> Outcome:
            outcome = everything.run(receipt)
            counts = outcome.value[self.statistic.of].to_numpy()
            places = np.argsort(-counts, kind="stable")[: self.statistic.k].tolist()
            value = outcome.value.iloc[places].reset_index(drop=True)
            return Outcome(value, First(outcome.interval, places), outcome.bounding, outcome.error)

        return Draft(
            self.label, everything.guarantee, everything.cost, self.query, everything.bounding, everything.error, run
        )

    def _run(self, delta: Decimal, receipt: Receipt) -> Outcome:
        table, statistic = self.request.table, self.statistic
        with table.once((), self.by) as copy, table.engine.kept(self._pairs(copy)) as pairs:
            with table.engine.kept(self._users(copy, pairs)) as kept:
                limits, left = chosen_limits(
                    copy, kept, statistic.k, statistic.of, self.groups_per_user, self.request.epsilon, delta, receipt
                )
            choice, left = split(left, CHOICE)
            top = TopK(statistic.k, limits.each, limits.groups, choice)
            with self._scores(copy, pairs, limits, top) as (scores, whole, groups):
                keys = self._named(groups, receipt.largest(scores, top, delta), receipt)
                if not keys:
                    return self._shown({}, None, limits, top, delta)
                counted, moved = (scores, top.scores) if limits.counted else (whole, statistic.k)
                chosen = counted.map(lambda every: [every[place] for place in keys])
                measured = Measurement(lambda: chosen, moved * limits.each, moved * limits.each**2)
                noisy = receipt.numbers(measured, left)
        estimates = dict(zip(keys.values(), limits.believed(noisy), strict=True))
        return self._shown(estimates, noisy.noise.variance**0.5, limits, top, delta)

    def _users(self, copy: Table, pairs: Rows) -> Rows:
        """By user: the number of their groups, and how much they have in one of these, drawn at random, as all groups together hold it.

        In the fullest of many groups users have far more than in those that will be chosen.
        """
        import ibis

        names = list(copy.user_names)
        if self.statistic.of == "users":
            return pairs.group_by(names).aggregate(groups=pairs.count().cast("int64"), each=pairs[_COUNT].max())
        drawn = pairs.mutate(evenhand_draw=ibis.random())
        in_order = ibis.window(group_by=names, order_by="evenhand_draw")
        drawn = drawn.mutate(evenhand_rank=ibis.row_number().over(in_order))
        one = (drawn.evenhand_rank == 0).ifelse(drawn[_COUNT], _whole(0))
        return drawn.group_by(names).aggregate(groups=drawn.count().cast("int64"), each=one.sum().cast("int64"))

    def _pairs(self, copy: Table) -> Rows:
        """Each user with each of their groups, once, and how much they have there."""
        group, rows = self._group(copy)
        names = [*copy.user_names, *group]
        rows = rows.filter(*(known(copy, rows[name]) for name in names)).select(*names)
        if self.statistic.of == "users":
            return rows.distinct().mutate(**{_COUNT: _whole(1)})
        return rows.group_by(names).aggregate(**{_COUNT: rows.count().cast("int64")})

    def _group(self, copy: Table) -> tuple[list[str], Rows]:
        """What tells the groups apart, and the rows that have it."""
        if self.keys is not None:
            return [ID], self.keys.attach(copy, copy.expression)
        return key_names(len(self.by)), copy.expression

    @contextmanager
    def _scores(
        self, copy: Table, pairs: Rows, limits: Limits, top: TopK
    ) -> Iterator[tuple[Secret[list[int]], Secret[list[int]], Rows | None]]:
        """The score of each group and its whole number, by position; of hidden names the groups, numbered by these positions."""
        import ibis

        engine = self.request.table.engine
        group = [ID] if self.keys is not None else key_names(len(self.by))
        capped = ibis.least(pairs[_COUNT], _whole(limits.each))
        pairs = pairs.select(*copy.user_names, *group, **{_WHOLE: capped, _SCORE: capped})
        if top.at_once:
            pairs = pairs.mutate(evenhand_draw=ibis.random())
            drawn = ibis.window(group_by=list(copy.user_names), order_by="evenhand_draw")
            pairs = pairs.mutate(evenhand_rank=ibis.row_number().over(drawn))
            kept = pairs.evenhand_rank < limits.groups
            pairs = pairs.mutate(**{_SCORE: kept.ifelse(pairs[_SCORE], _whole(0))})
        sums = {name: pairs[name].sum().cast("int64") for name in (_SCORE, _WHOLE)}
        scored = pairs.group_by(group).aggregate(**sums)
        if self.keys is not None:
            found = engine.fetch(scored)
            by_key = partial(_by_key, self.keys.groups)
            yield found.map(partial(by_key, _SCORE)), found.map(partial(by_key, _WHOLE)), None
            return
        in_order = ibis.window(order_by=[scored[_SCORE].desc(), *(scored[name] for name in group)])
        with engine.kept(scored.mutate(**{PLACE: ibis.row_number().over(in_order).cast("int64")})) as groups:
            # A name that nobody supports takes no part: one user may have any number of them.
            tested = (
                groups.filter(groups[_SCORE] > 0) if top.at_once else groups.filter(groups[PLACE] <= top.candidates)
            )
            found = engine.fetch(tested.select(PLACE, *sums).order_by(PLACE))
            yield found.map(partial(_in_order, _SCORE)), found.map(partial(_in_order, _WHOLE)), groups

    def _named(self, groups: Rows | None, places: Sequence[int], receipt: Receipt) -> dict[int, tuple[object, ...]]:
        """The keys of the chosen groups, by position, in the order of the keys."""
        if groups is None:
            assert self.keys is not None
            return {place: self.keys.rows[place] for place in sorted(places)}
        if not places:
            return {}
        found = receipt.passed(found_keys(self.request.table, self.by, groups, places))
        return dict(zip(found.places, found.rows, strict=True))

    def _shown(
        self,
        estimates: Mapping[tuple[object, ...], Estimate],
        noise: float | None,
        limits: Limits,
        top: TopK,
        delta: Decimal,
    ) -> Outcome:
        statistic = self.statistic
        ordered = dict(sorted(estimates.items(), key=lambda pair: -pair[1].value))
        labels, column = Labels(self.by, tuple(ordered)), list(ordered.values())
        details: dict[str, object] = {"selection": self._selection(limits, top, delta)} if delta else {}
        bounding = limits.bounding(statistic.of) if column else NOBODY
        error = replace(limits.error, noise=noise, parts={statistic.of: noise}) if column else NOT_SHOWN
        details |= corrections({statistic.of: column})
        value = frame(labels, {statistic.of: [estimate.value for estimate in column]})
        return Outcome(value, GroupedInterval(labels, {statistic.of: column}), bounding, error, details)

    def _selection(self, limits: Limits, top: TopK, delta: Decimal) -> dict[str, object]:
        """What a group with a hidden name needed to be shown."""
        least = limits.each + top.margin(delta)
        needed = {
            f"{self.statistic.of}_needed": least,
            "words": f"a group was shown from about {least:,} {self.statistic.of} on",
        }
        if not top.at_once:
            return {**needed, "more_than_group": top.candidates + 1}
        return {"groups_per_user": limits.groups, **needed}


@dataclass(frozen=True)
class Top(OwnRoad):
    """The groups with the most users or rows, the largest first, with their numbers.

    Two thirds of ε choose the groups, the rest counts them with noise of their own, so an interval holds although its group was chosen. One user moves the
    number of users of each group by at most one, however many groups they are in; the noise has a scale of about k over the ε of each step, less where a
    profile (a twentieth of ε) shows that nearly everybody is in fewer groups. Hidden names are shown only if they stand out from what one user could have made.

    Interval: the noise; users whose groups were cut at random may be missing, which ``.bounding`` says.

    Under values: public, exact, ε = 0.

    Edge cases: k from 1 to 1,000, at most the number of keys; fewer come back where fewer hidden names stand out.

    Proof: top.

    Args:
        column: the column that names the groups, or several.
        k: how many groups.
        of: what is counted in a group: "users" or "rows".
    """

    name = "top"
    own_road = Largest
    has_groups = True

    column: str | Sequence[str]
    k: int = 10
    of: Literal["users", "rows"] = "users"

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or isinstance(self.k, bool) or not 1 <= self.k <= MOST_GROUPS:
            raise UsageError(f"k={self.k!r}: expected a whole number between 1 and {MOST_GROUPS}, such as 10.")
        if self.of not in ("users", "rows"):
            raise UsageError(f"of={self.of!r}: expected 'users' or 'rows'.")

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> Self:
        return cls("g", 1)

    @property
    def groups_by(self) -> tuple[str, ...]:
        return (self.column,) if isinstance(self.column, str) else tuple(self.column)

    @property
    def words(self) -> str:
        return f"top {self.k} of {', '.join(map(str, self.groups_by))} by {self.of}"


def _whole(value: int) -> Rows:
    import ibis

    return ibis.literal(value, "int64")


def _by_key(groups: int, name: str, scored: pa.Table) -> list[int]:
    found = dict(zip(scored[ID].to_pylist(), scored[name].to_pylist(), strict=True))
    return [int(found.get(group, 0)) for group in range(groups)]


def _in_order(name: str, tested: pa.Table) -> list[int]:
    return [int(score) for score in tested[name].to_pylist()]


PROFILE = Fraction(1, 20)
"""The part of ε for each profile: of groups per user, and for rows of a user's rows in one group."""

LARGEST = 2**30
"""Rows of a user in one group that may count, at most."""

CHOICE = Fraction(2, 3)
"""The part of the rest that chooses the groups; what is left counts them."""

_FEW = 0.01  # the part of all memberships that a bound on groups per user may cost the numbers
_ONE_GROUP = (Breadth(1.0, 1.0, 1.0),)  # what is known about users is how much they have in one group
_SMALL = 4  # a wanted group is taken to hold one in 4k users


class Limits(NamedTuple):
    """What one user may add.

    Args:
        groups: in how many groups, drawn at random; None for any number.
        each: how much in each.
        paid: what choosing it cost.
        counted: whether chosen groups are counted by these users' drawn groups too; otherwise by all of their groups.
        lost: what that takes from the numbers, as far as the profiles tell; None if nothing, or if nothing was bought.
    """

    groups: int | None
    each: int
    paid: Decimal
    counted: bool = True
    lost: Lost | None = None

    def believed(self, noisy: Noisy) -> list[Estimate]:
        """The numbers of the chosen groups, with what the limits took from them: the same part as from all, give or take."""
        deviation = noisy.noise.variance**0.5
        plain = [Estimate(value, Additive(value, noisy.noise, 1), deviation) for value in noisy.values]
        if self.lost is not None:
            return believed_totals(Count(), plain, self.lost.of_total(max(sum(noisy.values), 0)))
        return of_given_bound(Count(), plain) if self.cuts else plain

    @property
    def cuts(self) -> bool:
        """Whether something of a user may be missing from the numbers."""
        return self.lost is not None or (self.groups is not None and self.counted)

    @property
    def error(self) -> Error:
        """What is known about the bias of the numbers."""
        if self.lost is not None:
            return IN_INTERVAL
        return UNKNOWN if self.cuts else Error(None, 0.0, "no user is cut off")

    def bounding(self, of: str) -> Bounding:
        """The limits in words, for what is counted."""
        words = "each user counts once in each group"
        if of == "rows":
            words = f"each user counts with at most {self.each:,} rows in each group"
        if self.groups is not None:
            when = "" if self.counted else " when groups are chosen"
            words += f", in at most {self.groups} of their groups, drawn at random,{when}".rstrip(",")
        basis = "given"
        if self.paid:
            basis = "chosen from a noisy histogram of users by contribution, bought with part of ε"
        return Bounding(
            "GroupLimit", None if self.groups is None else float(self.groups), words, basis, self.paid or None
        )


def given_groups(given: int | None, k: int) -> int | None:
    """The bound on groups per user that is in force: one of k or more would need more noise than none."""
    return None if given is None or given >= k else given


def chosen_limits(
    table: Table, users: Rows, k: int, of: str, given: int | None, epsilon: Decimal, delta: Decimal, receipt: Receipt
) -> tuple[Limits, Decimal]:
    """The limits, and the ε that is left.

    Args:
        table: the copy that the users come from.
        users: one row per user: their number of ``groups``, and how much they have in ``each``: in one of them.
        k: how many groups are wanted.
        of: "users" or "rows".
        given: the number of groups per user, if the analyst gave it.
        epsilon: of the release.
        delta: of the choice, if names are hidden.
        receipt: of the debit.
    """
    share, left, each, counted = split(epsilon, PROFILE)[0], epsilon, 1, True
    groups, lost = given_groups(given, k), None
    if given is None:
        left = exact_difference(left, share)
        histogram = _profile(table, users, "groups", share, receipt)
        groups, counted = best_groups(histogram.support, k, left, delta)
        if groups is not None and counted:
            lost = Lost.of(histogram.posterior, ONCE_EACH, groups, gaussian=False)
    if of == "rows":
        left = exact_difference(left, share)
        histogram = _profile(table, users, "each", share, receipt)
        # What is cut off spreads over the groups, of which at least k matter; each gets all the noise.
        spread = min(groups or k, k) * k
        fits = int(LARGEST_SCALE * Fraction(left) / (4 * k))  # the noise of choice and counts must fit 64 bits
        each = max(1, min(histogram.posterior.best(math.sqrt(2) * 3 * spread / float(left)), LARGEST, fits))
        lost = Lost.of(histogram.posterior, _ONE_GROUP, each, gaussian=False)
    return Limits(groups, each, exact_difference(epsilon, left), counted, lost), left


def best_groups(support: Support, k: int, epsilon: Decimal, delta: Decimal) -> tuple[int | None, bool]:
    """The number of groups per user, below k, that forecasts the best choice, or None; and whether it hardly cuts anybody off.

    Drawing c groups of each user keeps a part p of all memberships and of a group's users. In numbers of users, the scores
    are then blurred by the draw and by noise c/(p·ε) instead of k/ε, and hidden names need margin(c)/p users. How large
    the wanted groups are is private; a public fraction of the number of users stands for it.
    """
    typical = max(float(support.users.sum()) / (_SMALL * k), 1.0)
    share = split(epsilon, CHOICE)[0]

    def cost(groups: int | None, kept: float) -> float:
        top = TopK(k, 1, groups, share)
        noise = float(top.scale) * (math.sqrt(2) if top.at_once else 1) / kept
        unseen = max(top.margin(delta) / kept - typical, 0.0) if delta else 0.0
        return math.hypot(noise, math.sqrt(typical * (1 - kept) / kept)) + unseen

    whole = float((support.users * support.sizes).sum())
    part = {c: float((support.users * np.minimum(support.sizes, c)).sum()) / max(whole, 1e-9) for c in range(1, k)}
    costs = {c: cost(c, min(max(kept, 1e-9), 1.0)) for c, kept in part.items()}
    best = min(costs, key=lambda c: (costs[c], c), default=None)
    if best is None or costs[best] >= cost(None, 1.0):
        return None, True
    return best, part[best] >= 1 - _FEW


def _profile(table: Table, users: Rows, name: str, epsilon: Decimal, receipt: Receipt) -> Histogram:
    buckets = row_buckets()
    measurement = users_by_bucket(table, users, users[name], buckets)
    return Wanted(About("groups")).get(receipt, buckets, measurement, epsilon)

"""The groups with the most users or rows: chosen first, then counted.

A group with many users is found without bounding in how many groups a user is: adding a user moves every score by at most one.
Where nearly everybody is in fewer groups than are wanted, bounding that number needs less noise still; a profile of groups per
user tells. The chosen groups are counted with noise of their own, so their intervals hold although they were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from evenhand.bounding import Auto
from evenhand.guarantee import UsageError, split
from evenhand.ledger import Cost, mechanism_delta
from evenhand.noise import TopK
from evenhand.release import Bounding, Ends, Error, Interval, Measurement, OfSize, Receipt, Rule, noise_for
from evenhand.release.intervals import noise_only
from evenhand.statistics.believed_groups import corrections
from evenhand.statistics.count import Count
from evenhand.statistics.draft import NOBODY, NOT_SHOWN, Draft, Outcome
from evenhand.statistics.frames import GroupedInterval, frame
from evenhand.statistics.keys import ID, PLACE, Labels, found_keys
from evenhand.statistics.own_road import OwnRoad, Road
from evenhand.statistics.per_row import PerRow
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.top_limits import CHOICE, PROFILE, Limits, chosen_limits, given_groups
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

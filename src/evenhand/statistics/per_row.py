"""The road per row: one or several statistics, by group or not, about one reading of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from statistics import median_high
from typing import Any

from evenhand.guarantee import UsageError, exact_sum
from evenhand.release import Bounding, Error, Noisy, Receipt, Rule
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.believed_groups import IN_INTERVAL, believed_totals, corrections
from evenhand.statistics.cells import Cells
from evenhand.statistics.draft import EXACT, NOBODY, NOT_SHOWN, UNBOUNDED, UNKNOWN, Draft, Foreseen, Outcome
from evenhand.statistics.frames import GroupedInterval, ListedInterval, frame
from evenhand.statistics.keys import Keys, public_keys
from evenhand.statistics.part import Part, Prepared
from evenhand.statistics.request import Request
from evenhand.statistics.selection import Selection, select_keys
from evenhand.statistics.several import joint_bounding
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.users import Users, supporters
from evenhand.statistics.weighted_part import WeightedPart
from evenhand.tables import Table
from evenhand.tables.paired import paired


@dataclass(frozen=True)
class PerRow:
    """A release of several statistics, by group or not.

    Args:
        request: table, ε, δ and bounding.
        statistics: by the column that they get in the result.
        by: the group columns; none for a release without groups.
        groups: the public groups; None if they are to be selected privately.
        other: under selected keys, the label of a group for all that is not shown.
        groups_per_user: under selected keys, how many groups one user may support.
        listed: the value is a plain list of numbers, one per part (several columns, no groups).
        weights: how ε is shared; equally if empty.
    """

    request: Request
    statistics: Mapping[str, Statistic]
    by: tuple[str, ...]
    groups: Keys | None
    other: str | None = None
    groups_per_user: int | None = None
    listed: bool = False
    weights: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The release in words."""
        words = ", ".join(statistic.words for statistic in self.statistics.values())
        return f"{words} by {', '.join(self.by)}" if self.by else words

    @property
    def query(self) -> dict[str, Any]:
        """The public parameters, for the ledger; of the keys only how many."""
        parts = {name: statistic.query for name, statistic in self.statistics.items()}
        facts = {"statistic": "aggregate", "parts": parts} if len(parts) > 1 else next(iter(parts.values()))
        if self.weights:
            facts |= {"weights": {name: float(weight) for name, weight in self.weights.items()}}
        if self.by:
            count = "selected privately" if self.groups is None else len(self.groups.rows)
            facts |= {"by": list(self.by), "keys": count}
        return facts

    @property
    def parts(self) -> dict[str, Part]:
        """The statistics, or what they are made of, each with what bounds it."""
        return {
            part: self._road(statistic, whole)(self.request, part, statistic, self.groups)
            for name, whole in self.statistics.items()
            for part, (statistic, _) in _components(name, whole).items()
        }

    def _road(self, statistic: Statistic, whole: Statistic) -> type[Part]:
        """Of a statistic, or of one that another is made of: that one reads totals with their noise."""
        road = statistic.road_for(self.request) if self.by and statistic is whole else statistic.road
        return road or WeightedPart

    def _weights(self, hidden: Mapping[str, Part]) -> dict[str, Fraction]:
        """How the parts that need noise share ε."""
        weights: dict[str, Fraction] = {}
        for name, whole in self.statistics.items():
            shares = {part: share for part, (_, share) in _components(name, whole).items() if part in hidden}
            own = self.weights.get(name, Fraction(1)) / (sum(shares.values()) or 1)
            weights |= {part: share * own for part, share in shares.items()}
        return weights

    def draft(self) -> Draft:
        """Work the release out from public facts."""
        request = self.request
        if self.groups is None and not request.delta and not request.relation.counts_are_public:
            raise UsageError(
                f"by={list(self.by)} without keys= needs delta: keys that come from the data must be selected privately, "
                "which pure differential privacy can't do. Give delta=1e-6 (well below one over the number of users), or list "
                "the public keys."
            )
        parts = self.parts
        hidden = {name: part for name, part in parts.items() if part.is_hidden}
        selects = self.groups is None and not request.relation.counts_are_public
        if not hidden and not selects:
            return Draft(
                self.label, request.free, None, self.query, UNBOUNDED, EXACT, lambda r: self._run(parts, None, r)
            )
        allocation = Allocation.of(
            request,
            self._weights(hidden),
            {name: part.mechanism for name, part in hidden.items()},
            {name: part.profile for name, part in hidden.items()},
            selects,
            [name for name, part in hidden.items() if part.draws],
            {name: part.beside for name, part in hidden.items()},
        )
        for part in hidden.values():
            part.check(allocation)
        described = joint_bounding({name: part.described() for name, part in hidden.items()})
        purchases = (one for part in hidden.values() for wanted in part.wanted for one in wanted.purchases)
        spent_delta = request.delta if allocation.cost.delta else Decimal(0)
        return Draft(
            self.label,
            request.guarantee(spent_delta).resting_on(*purchases),
            allocation.cost,
            {**self.query, "bounding": described.to_dict()},
            described,
            Error(None),
            lambda receipt: self._run(parts, allocation, receipt),
            foreseen=lambda: self._foreseen(hidden, allocation),
        )

    def _foreseen(self, hidden: Mapping[str, Part], allocation: Allocation) -> Mapping[str, Foreseen]:
        """By statistic, what a preview can say about the groups."""
        found = {name: part.foreseen(allocation) for name, part in hidden.items()} if self.by else {}
        return {name: forecast for name, forecast in found.items() if forecast is not None}

    def _run(self, parts: Mapping[str, Part], allocation: Allocation | None, receipt: Receipt) -> Outcome:
        with (
            self._reading(parts) as copy,
            self._keys(copy, allocation, receipt) as (groups, selection),
            ExitStack() as stack,
        ):
            if not groups.groups:
                return self._outcome(groups, {name: [] for name in self.statistics}, NOBODY, NOT_SHOWN, selection, {})
            if selection is not None and selection.counts is not None:
                ((name, users),) = self.statistics.items()
                supported, price, lost = selection.counts
                counted, bounding = supporters(supported, price, selection.way.groups)
                counted = believed_totals(users, counted, lost)
                return self._outcome(groups, {name: counted}, bounding, IN_INTERVAL, selection, {name: users.rule})
            if allocation is not None and selection is not None and selection.way.rho:
                allocation = allocation.beside(selection.way.rho)
            prepared = {
                name: stack.enter_context(part.prepare(copy, groups, allocation, receipt))
                for name, part in parts.items()
            }
            noisy = _noisy(prepared, allocation, receipt)
            estimates, rules = self._estimates({name: one.read(noisy[name]) for name, one in prepared.items()})
            first = next(iter(prepared.values()))
            if allocation is None:
                return self._outcome(first.keys, estimates, UNBOUNDED, EXACT, None, rules)
            bounding = joint_bounding(
                {name: one.bounding for name, one in prepared.items() if one.bounding is not UNBOUNDED}
            )
            if len(prepared) > 1:
                return self._outcome(first.keys, estimates, bounding, UNKNOWN, selection, rules)
            outcome = self._outcome(first.keys, estimates, bounding, first.error, selection, rules)
            return replace(outcome, details={**outcome.details, **first.details})

    def _estimates(
        self, read: Mapping[str, Mapping[str, list[Estimate]]]
    ) -> tuple[dict[str, list[Estimate]], dict[str, Rule]]:
        """The columns of the result, and by which rule each is judged."""
        columns: dict[str, list[Estimate]] = {}
        rules: dict[str, Rule] = {}
        for name, whole in self.statistics.items():
            if whole.components:
                parts = [read[part][""] for part in _components(name, whole)]
                columns[name], rules[name] = [whole.combine(group) for group in zip(*parts, strict=True)], whole.rule
                continue
            for suffix, column in read[name].items():
                shown = _column(name, suffix, alone=len(self.statistics) == 1)
                columns[shown], rules[shown] = column, whole.rule
        return columns, rules

    def _reading(self, parts: Mapping[str, Part]) -> AbstractContextManager[Table]:
        """One reading of the columns that the release needs: rows, or pairs of user and key where those are formed anyway."""
        wanted = [part.paired for part in parts.values()]
        selects = self.groups is None and not self.request.relation.counts_are_public
        forms_pairs = selects or any(part.forms_pairs for part in parts.values())
        # The group for the rest holds many keys: a pair of user and key is none of user and group there.
        other = self.other if self.groups is None else self.groups.other
        pairs = [values for values in wanted if values is not None]
        if self.by and other is None and forms_pairs and len(pairs) == len(wanted):
            return paired(self.request.table, self.by, pairs)
        values = [name for statistic in self.statistics.values() for name in statistic.reads]
        return self.request.table.once(values, self.by)

    @contextmanager
    def _keys(
        self, copy: Table, allocation: Allocation | None, receipt: Receipt
    ) -> Iterator[tuple[Keys, Selection | None]]:
        """The groups: given, read from the table where the group columns are public, or selected privately."""
        request = self.request
        if self.groups is not None:
            yield self.groups, None
        elif request.relation.counts_are_public:
            with public_keys(request.table, copy, self.by, receipt) as keys:
                yield replace(keys, other=self.other), None
        else:
            assert allocation is not None
            counts, limit = self._counts_users(allocation), self.groups_per_user
            with select_keys(request.table, copy, self.by, allocation, limit, receipt, counts) as selection:
                yield replace(selection.keys, other=self.other), selection

    def _counts_users(self, allocation: Allocation) -> bool:
        """Whether nothing but the number of users in each group is asked for, and nothing is said about how."""
        only = [type(statistic) is Users for statistic in self.statistics.values()] == [True]
        return only and self.other is None and allocation.joint is not None

    def _outcome(
        self,
        keys: Keys,
        estimates: dict[str, list[Estimate]],
        bounding: Bounding,
        known: Error,
        selection: Selection | None,
        rules: Mapping[str, Rule],
    ) -> Outcome:
        details = {} if selection is None else {"selection": selection.to_dict()}
        details |= corrections(estimates)
        noises = {
            name: median_high([estimate.noise for estimate in column]) for name, column in estimates.items() if column
        }
        alone = next(iter(noises.values())) if len(noises) == 1 else None
        error = replace(known, noise=alone, parts=noises)
        if self.listed:
            listed = [column[0] for column in estimates.values()]
            if [*estimates] == [*self.statistics] and len(listed) == 1:
                return Outcome(listed[0].value, listed[0].interval, bounding, error, details, rules=rules)
            intervals = ListedInterval([estimate.interval for estimate in listed])
            return Outcome([estimate.value for estimate in listed], intervals, bounding, error, details, rules=rules)
        labels, cells = keys.labels, isinstance(keys, Cells)
        value = frame(labels, {name: [estimate.value for estimate in column] for name, column in estimates.items()})
        return Outcome(value, GroupedInterval(labels, estimates), bounding, error, details, cells=cells, rules=rules)


def _noisy(prepared: Mapping[str, Prepared], allocation: Allocation | None, receipt: Receipt) -> dict[str, list[Noisy]]:
    """Noise for all: Laplace noise for each statistic from its own ε, Gaussian noise for all others from one ρ together."""
    drawn: dict[str, list[Noisy]] = {}
    if allocation is not None and allocation.left:
        measured = [measurement for one in prepared.values() for measurement in one.measurements]
        shares = [share * allocation.part(name) for name, one in prepared.items() for share in one.shares]
        left = iter(receipt.numbers_beside(measured, shares))
        return {name: [next(left) for _ in one.measurements] for name, one in prepared.items()}
    delta = Decimal(0) if allocation is None else allocation.delta
    gaussian = {name: one for name, one in prepared.items() if one.gaussian}
    for name, one in prepared.items():
        if name not in gaussian:
            drawn[name] = (
                receipt.numbers_of_all(one.measurements, one.epsilon, shares=one.shares) if one.measurements else []
            )
    if gaussian:
        total = exact_sum(one.epsilon for one in gaussian.values())
        measured = [measurement for one in gaussian.values() for measurement in one.measurements]
        shares = [share * Fraction(one.epsilon) / Fraction(total) for one in gaussian.values() for share in one.shares]
        left = iter(receipt.numbers_of_all(measured, total, delta, shares))
        drawn |= {name: [next(left) for _ in one.measurements] for name, one in gaussian.items()}
    return drawn


def _components(name: str, statistic: Statistic) -> dict[str, tuple[Statistic, Fraction]]:
    """A statistic, or what it is made of, by the names of the parts, with their parts of its ε."""
    if not statistic.components:
        return {name: (statistic, Fraction(1))}
    return {f"{name}.{component}": part for component, part in statistic.components.items()}


def _column(name: str, suffix: str, alone: bool) -> str:
    """The name of a column of estimates."""
    return name if not suffix else suffix if alone else f"{name}_{suffix}"

"""The road per row: several statistics, by group or not, in one pass over weighted rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import median_high
from typing import Any, ClassVar, TypeAlias

from evenhand.bounding import Choice, Norm
from evenhand.guarantee import UsageError, divide
from evenhand.profiles import Wanted
from evenhand.release import Bounding, Error, Measurement, Noisy, Receipt, noise_for
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import Cells
from evenhand.statistics.draft import EXACT, NOBODY, NOT_SHOWN, UNBOUNDED, UNKNOWN, Draft, Outcome
from evenhand.statistics.frames import GroupedInterval, ListedInterval, frame
from evenhand.statistics.keys import Keys, public_keys
from evenhand.statistics.limits import chosen_amount, given_amount, norm_for, profile_of_norm
from evenhand.statistics.request import Request
from evenhand.statistics.selection import Selection, select_keys
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.weighted_rows import WEIGHT, DistinctRows, WeightedRows, capacity_of, fetch_groups
from evenhand.tables import Secret, Table
from evenhand.tables.expressions import Integers, Rows

Sums: TypeAlias = Callable[[], Secret[dict[str, list[int]]]]


@dataclass(frozen=True)
class BoundedSums:
    """Users bounded: for which groups and with how much ε, the choice, the weight of one user, and exact sums by group."""

    keys: Keys
    allocation: Allocation
    norm: Norm
    choice: Choice
    capacity: int
    sums: Sums


@dataclass(frozen=True)
class PerRow:
    """A release of several statistics, by group or not.

    Args:
        request: table, ε, δ and bounding.
        parts: the statistics by the column that they get in the result; they share ε equally.
        by: the group columns; none for a release without groups.
        keys: the public groups, split into cells where the statistic does that; None if they are to be selected privately.
        other: under selected keys, the label of a group for all that is not shown.
        groups_per_user: under selected keys, how many groups one user may support.
        listed: the value is a plain list of numbers, one per part (several columns, no groups).
    """

    laplace: ClassVar[bool] = False
    """Whether Gaussian noise is out of the question."""

    request: Request
    parts: Mapping[str, Statistic]
    by: tuple[str, ...]
    keys: Keys | None
    other: str | None = None
    groups_per_user: int | None = None
    listed: bool = False

    @property
    def label(self) -> str:
        """The release in words."""
        words = ", ".join(part.words for part in self.parts.values())
        return f"{words} by {', '.join(self.by)}" if self.by else words

    @property
    def query(self) -> dict[str, Any]:
        """The public parameters, for the ledger; of the keys only how many."""
        parts = {name: part.query for name, part in self.parts.items()}
        facts = {"statistic": "aggregate", "parts": parts} if len(parts) > 1 else next(iter(parts.values()))
        if self.by:
            count = "selected privately" if self.keys is None else len(self.keys.rows)
            facts |= {"by": list(self.by), "keys": count}
        return facts

    @property
    def hidden(self) -> dict[str, Statistic]:
        """The parts that need noise."""
        return {name: part for name, part in self.parts.items() if part.hidden(self.request.relation)}

    def spread(self, keys: Keys) -> int:
        """Over how many released numbers what a user adds is spread."""
        return keys.groups

    def norm(self, allocation: Allocation) -> Norm:
        """Which norm is bounded."""
        return norm_for(self.request, list(self.hidden.values()), bool(allocation.delta))

    def draft(self) -> Draft:
        """Work the release out from public facts."""
        request, keys = self.request, self.keys
        if keys is None and not request.delta and not request.relation.counts_are_public:
            raise UsageError(
                f"by={list(self.by)} without keys= needs delta: keys that come from the data must be selected privately, "
                "which pure differential privacy can't do. Give delta=1e-6 (well below one over the number of users), or list "
                "the public keys."
            )
        if not self.hidden and (keys is not None or request.relation.counts_are_public):
            return Draft(self.label, request.free, None, self.query, UNBOUNDED, EXACT, self._exact)
        allocation, wanted = self._allocate()
        norm = self.norm(allocation)
        if request.strategy is None:
            described = request.pending(wanted)
        else:
            amount, choice = given_amount(request.strategy, norm, next(iter(self.hidden.values())))
            described = choice.bounding
            self.check_noise(allocation, norm, capacity_of(amount))
        spent_delta = request.delta if allocation.cost.delta else Decimal(0)
        return Draft(
            self.label,
            request.promise(wanted, spent_delta),
            allocation.cost,
            {**self.query, "bounding": described.to_dict()},
            described,
            Error(None),
            lambda receipt: self._run(allocation, norm, wanted, receipt),
        )

    def _allocate(self) -> tuple[Allocation, Wanted | None]:
        """Divide ε; all of it is left for the statistics if the profile that will choose the bound is there already."""
        request, keys = self.request, self.keys
        if keys is None:
            # Public groups are not known before the table is read; neither are hidden ones.
            public = request.relation.counts_are_public
            allocation = Allocation.of(request, 1, laplace=True) if public else Allocation.of(request, None)
            return allocation, request.wants(None)
        # Where counts are public the cells of a histogram are not, nor is an L2 norm over them: it must not choose the bound.
        private = isinstance(keys, Cells) and request.relation.counts_are_public
        laplace, spread = self.laplace or (private and request.strategy is None), self.spread(keys)
        allocation = Allocation.of(request, spread, laplace)
        norm = self.norm(allocation)
        wanted = request.wants(profile_of_norm(keys, list(self.parts.values()), norm, self.label))
        if wanted is None or wanted.kept is None or not allocation.profile:
            return allocation, wanted
        cheaper = Allocation.of(request, spread, laplace, known=True)
        if self.norm(cheaper) is norm:
            return cheaper, wanted
        return allocation, replace(wanted, kept=None)

    def check_noise(self, allocation: Allocation, norm: Norm, capacity: int) -> None:
        """Refuse, before any debit, a bound whose noise would not fit 64 bits."""
        share = divide(allocation.epsilon, len(self.hidden))
        for part in self.hidden.values():
            moves = self._moves(part, norm, capacity)
            noise_for(moves, moves**2, share, allocation.delta)

    def _moves(self, part: Statistic, norm: Norm, capacity: int) -> int:
        """How far one user moves the hidden integers of a part."""
        return capacity if norm is Norm.VALUES else capacity * part.reach(self.request.relation)

    def _run(self, allocation: Allocation, norm: Norm, wanted: Wanted | None, receipt: Receipt) -> Outcome:
        with self._reading() as copy, self._keys(copy, allocation, receipt) as (keys, selection):
            if not keys.groups:
                return self._outcome(keys, {name: [] for name in self.parts}, NOBODY, NOT_SHOWN, selection)
            with self._bounded(copy, keys, allocation, norm, wanted, receipt) as bounded:
                return self.leave(bounded, selection, receipt)

    def leave(self, bounded: BoundedSums, selection: Selection | None, receipt: Receipt) -> Outcome:
        """Add noise to the bounded sums, and read them."""
        keys, allocation = bounded.keys, bounded.allocation
        measured = [self._measure(name, part, bounded) for name, part in self.hidden.items()]
        drawn = receipt.numbers_of_all(measured, allocation.epsilon, allocation.delta)
        noisy = dict(zip(self.hidden, drawn, strict=True))
        public = self._public(bounded.sums, receipt)
        estimates = {name: self._read(name, part, public, noisy.get(name), keys) for name, part in self.parts.items()}
        return self._outcome(keys, estimates, bounded.choice.bounding, UNKNOWN, selection)

    def _exact(self, receipt: Receipt) -> Outcome:
        """All parts are public facts."""
        with self._reading() as copy, self._keys(copy, None, receipt) as (keys, _):
            rows = self._rows(copy, keys)
            with self.request.table.engine.kept(rows.norms(Norm.ROWS)) as users:
                public = self._public(self._sums(rows, users, 1), receipt)
        estimates = {name: self._read(name, part, public, None, keys) for name, part in self.parts.items()}
        return self._outcome(keys, estimates, UNBOUNDED, EXACT, None)

    def _reading(self) -> AbstractContextManager[Table]:
        """One reading of the columns that the release needs."""
        values = [name for part in self.parts.values() for name, _ in part.columns]
        if isinstance(self.keys, Cells):
            values.append(self.keys.value)
        return self.request.table.once(values, self.by)

    @contextmanager
    def _keys(
        self, copy: Table, allocation: Allocation | None, receipt: Receipt
    ) -> Iterator[tuple[Keys, Selection | None]]:
        """The groups: given, read from the table where the group columns are public, or selected privately."""
        request = self.request
        if self.keys is not None:
            yield self.keys, None
        elif request.relation.counts_are_public:
            with public_keys(request.table, copy, self.by, receipt) as keys:
                yield replace(keys, other=self.other), None
        else:
            assert allocation is not None
            with select_keys(
                request.table, copy, self.by, allocation.selection, self.groups_per_user, receipt
            ) as selection:
                yield replace(selection.keys, other=self.other), selection

    @contextmanager
    def _bounded(
        self, copy: Table, keys: Keys, allocation: Allocation, norm: Norm, wanted: Wanted | None, receipt: Receipt
    ) -> Iterator[BoundedSums]:
        """Bound each user, given or by choice; ``copy`` is the one reading that norms and sums are both about."""
        request, parts = self.request, list(self.hidden.values())
        with self._rows(copy, keys).fixed() as rows, request.table.engine.kept(rows.norms(norm)) as users:
            if request.strategy is not None:
                amount, choice = given_amount(request.strategy, norm, parts[0])
            else:
                spread = self.spread(keys)
                amount, choice = chosen_amount(request, receipt, users, norm, parts, wanted, allocation, spread)
            capacity = capacity_of(amount)
            yield BoundedSums(keys, allocation, norm, choice, capacity, self._sums(rows, users, capacity))

    def _rows(self, copy: Table, keys: Keys) -> WeightedRows:
        columns = tuple(column for part in self.parts.values() for column in part.columns)
        strategy = self.request.strategy
        kind = DistinctRows if any(part.distinct for part in self.parts.values()) else WeightedRows
        return kind(copy, keys, columns, None if strategy is None else strategy.rows_kept)

    def _sums(self, rows: WeightedRows, users: Rows, capacity: int) -> Sums:
        """All integers of all parts, by group, from one query that runs at most once."""
        weighted, relation = rows.weighted(users, capacity), self.request.relation
        integers: dict[str, Integers] = {}
        first = 0
        for prefix, part in self.parts.items():
            values = [weighted[f"value_{first + index}"] for index in range(len(part.columns))]
            first += len(part.columns)
            needed = {*part.hidden(relation), *part.public(relation)}
            named = part.integers(weighted[WEIGHT], values)
            integers |= {f"{prefix}.{name}": value for name, value in named.items() if name in needed}
        return functools.cache(lambda: fetch_groups(rows.table, weighted, rows.keys.groups, integers))

    def _measure(self, prefix: str, part: Statistic, bounded: BoundedSums) -> Measurement:
        """The hidden integers of one part, group after group, and how far one user can move them."""
        names = [f"{prefix}.{name}" for name in part.hidden(self.request.relation)]
        moves = self._moves(part, bounded.norm, bounded.capacity)
        return Measurement(
            lambda: bounded.sums().map(lambda cells: [count for name in names for count in cells[name]]),
            moves,
            moves**2,
        )

    def _public(self, sums: Sums, receipt: Receipt) -> dict[str, list[int]]:
        """The integers that are public under the relation."""
        relation = self.request.relation
        names = [f"{prefix}.{name}" for prefix, part in self.parts.items() for name in part.public(relation)]
        return (
            receipt.public(sums().map(lambda cells: {name: cells[name] for name in names}), relation) if names else {}
        )

    def _read(
        self, prefix: str, part: Statistic, public: dict[str, list[int]], noisy: Noisy | None, keys: Keys
    ) -> list[Estimate]:
        """The estimates of one part from its noisy integers and from those that are public."""
        relation, groups = self.request.relation, keys.groups
        columns = {name: public[f"{prefix}.{name}"] for name in part.public(relation)}
        if noisy is not None:
            for index, name in enumerate(part.hidden(relation)):
                columns[name] = noisy.values[index * groups : (index + 1) * groups]
        noise = None if noisy is None else noisy.noise
        return [part.read({name: column[group] for name, column in columns.items()}, noise) for group in range(groups)]

    def _outcome(
        self,
        keys: Keys,
        estimates: dict[str, list[Estimate]],
        bounding: Bounding,
        known: Error,
        selection: Selection | None,
    ) -> Outcome:
        details = {} if selection is None else {"selection": selection.to_dict()}
        noises = {
            name: median_high([estimate.noise for estimate in column]) for name, column in estimates.items() if column
        }
        alone = next(iter(noises.values())) if len(noises) == 1 else None
        error = replace(known, noise=alone, parts=noises)
        if self.listed:
            listed = [column[0] for column in estimates.values()]
            if len(listed) == 1:
                return Outcome(listed[0].value, listed[0].interval, bounding, error, details)
            intervals = ListedInterval([estimate.interval for estimate in listed])
            return Outcome([estimate.value for estimate in listed], intervals, bounding, error, details)
        value = frame(keys, {name: [estimate.value for estimate in column] for name, column in estimates.items()})
        cells = isinstance(keys, Cells)
        return Outcome(value, GroupedInterval(keys, estimates), bounding, error, details, cells=cells)

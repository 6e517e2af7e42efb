"""Several statistics by group, in one pass over weighed rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from evenhand.bounding import Auto, RowLimit, Strategy
from evenhand.guarantee import UsageError, divide
from evenhand.release import Bounding, Error, Measurement, Noisy, Receipt, noise_for
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.cells import Cells
from evenhand.statistics.choosing import pending
from evenhand.statistics.count import UNBOUNDED
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.frames import GroupedInterval, ListedInterval, frame
from evenhand.statistics.keys import Keys, public_keys
from evenhand.statistics.limits import Limit, chosen_limit, given_limit, norm_for, profile_of_norm
from evenhand.statistics.parts import Estimate, Part
from evenhand.statistics.profiles import given_profile, with_known
from evenhand.statistics.request import Request
from evenhand.statistics.selection import Selection, select_keys
from evenhand.statistics.shelf import About
from evenhand.statistics.users import DistinctRows, UsersPart
from evenhand.statistics.weighted_rows import WEIGHT, Norm, WeightedRows, capacity_of, fetch_groups
from evenhand.tables import Secret, Table


@dataclass(frozen=True)
class Grouped:
    """A release of several statistics, by group or not.

    Args:
        request: table, ε, δ and bounding.
        parts: the statistics; they share ε equally.
        by: the group columns.
        keys: the public groups; None if they are to be selected privately.
        other: under secret keys, the label of a group for all that is not shown.
        groups_per_user: under secret keys, how many groups one user may support.
        listed: the value is a plain list of numbers, one a part (several columns, no groups).
    """

    request: Request
    parts: tuple[Part, ...]
    by: tuple[str, ...]
    keys: Keys | None
    other: str | None = None
    groups_per_user: int | None = None
    listed: bool = False

    @property
    def label(self) -> str:
        """The release in words."""
        words = ", ".join(part.words for part in self.parts)
        return f"{words} by {', '.join(self.by)}" if self.by else words

    @property
    def query(self) -> dict[str, Any]:
        """The public parameters, for the ledger; of the keys only how many."""
        facts: dict[str, Any] = {"statistic": "aggregate", "parts": {part.name: part.query for part in self.parts}}
        if len(self.parts) == 1:
            facts = dict(self.parts[0].query)
        if self.by:
            facts |= {"by": list(self.by), "keys": "selected privately" if self.keys is None else len(self.keys.rows)}
        return facts

    @property
    def hidden(self) -> list[Part]:
        """The parts that need noise."""
        return [part for part in self.parts if part.hidden(self.request.relation)]

    def profile(self, keys: Keys, norm: Norm) -> About:
        """The profile that a private choice of the bound wants."""
        return profile_of_norm(keys, self.parts, norm, self.label)


def draft_grouped(grouped: Grouped) -> Draft:
    """Work out a grouped release from public facts."""
    request = grouped.request
    if grouped.keys is None and not request.delta and not request.relation.counts_are_public:
        raise UsageError(
            f"by={list(grouped.by)} without keys= needs delta: keys that come from the data must be selected privately, which "
            "pure differential privacy can't do. Give delta=1e-6 (well below one over the number of users), or list the "
            "public keys."
        )
    if not grouped.hidden and (grouped.keys is not None or request.relation.counts_are_public):
        free = request.table.guarantee(Decimal(0), Decimal(0))
        exact = Error(0.0, 0.0, "the exact answer is public")
        return Draft(
            grouped.label, free, None, grouped.query, UNBOUNDED, exact, lambda receipt: _exact(grouped, receipt)
        )
    keys = grouped.keys
    if keys is not None:
        # Where counts are public the cells of a histogram are not, nor is an L2 norm over them: it must not choose the bound.
        private = isinstance(keys, Cells) and request.relation.counts_are_public
        laplace = private and isinstance(request.bounding, Auto)
        allocation = allocate(grouped, keys, keys.groups, laplace)
    elif request.relation.counts_are_public:
        allocation = Allocation.of(
            request, 1, laplace=True
        )  # the groups are public, but not known before the table is read
    else:
        allocation = Allocation.of(request, None)
    norm = norm_for(request, grouped.hidden, bool(allocation.delta))
    given_profile(request)  # refuses one that would leak, before any debit
    bounding = request.bounding
    if isinstance(bounding, Auto):
        described = pending(bounding, request, None if keys is None else grouped.profile(keys, norm))
    else:
        limit = given_limit(bounding, norm, grouped.hidden[0])
        described = limit.bounding
        _check_noise(grouped, allocation, norm, capacity_of(limit.amount))
    spent_delta = request.delta if allocation.cost.delta else Decimal(0)
    return Draft(
        grouped.label,
        with_known(request, allocation.known).guarantee(spent_delta),
        allocation.cost,
        {**grouped.query, "bounding": described.to_dict()},
        described,
        Error(None),
        lambda receipt: _run(grouped, allocation, norm, receipt),
    )


def allocate(grouped: Grouped, keys: Keys, groups: int, laplace: bool) -> Allocation:
    """Divide ε; all of it is left for the statistics if the session has bought the profile that will choose the bound."""
    request = grouped.request
    allocation = Allocation.of(request, groups, laplace)
    norm = norm_for(request, grouped.hidden, bool(allocation.delta))
    known = request.shelf.find(request.table, grouped.profile(keys, norm))
    if known is None or not allocation.profile:
        return allocation
    cheaper = Allocation.of(request, groups, laplace, known)
    return cheaper if norm_for(request, grouped.hidden, bool(cheaper.delta)) is norm else allocation


def _check_noise(grouped: Grouped, allocation: Allocation, norm: Norm, capacity: int) -> None:
    """Refuse, before any debit, a bound whose noise would not fit 64 bits."""
    share = divide(allocation.epsilon, len(grouped.hidden))
    for part in grouped.hidden:
        moves = capacity if norm is Norm.VALUES else capacity * part.reach(grouped.request.relation)
        noise_for(moves, moves**2, share, allocation.delta)


def _run(grouped: Grouped, allocation: Allocation, norm: Norm, receipt: Receipt) -> Outcome:
    with reading(grouped) as copy, _keys(grouped, copy, allocation, receipt) as (keys, selection):
        if not keys.groups:
            return _outcome(grouped, keys, {part.name: [] for part in grouped.parts}, UNBOUNDED, selection)
        with bounded_sums(grouped, copy, keys, allocation, norm, receipt, keys.groups) as (limit, capacity, sums):
            request = grouped.request
            measured = [_measure(request, part, sums, keys.groups, norm, capacity) for part in grouped.hidden]
            noisy = receipt.numbers_of_all(measured, allocation.epsilon, allocation.delta)
            exact = sums().reveal()
    by_part = dict(zip([part.name for part in grouped.hidden], noisy, strict=True))
    estimates = {part.name: _read(request, part, exact, by_part.get(part.name), keys.groups) for part in grouped.parts}
    return _outcome(grouped, keys, estimates, limit.bounding, selection)


def reading(grouped: Grouped) -> AbstractContextManager[Table]:
    """One reading of the columns that the release needs."""
    values = [name for part in grouped.parts for name, _ in part.columns]
    if isinstance(grouped.keys, Cells):
        values.append(grouped.keys.value)
    return grouped.request.table.once(values, grouped.by)


@contextmanager
def _keys(
    grouped: Grouped, copy: Table, allocation: Allocation | None, receipt: Receipt
) -> Iterator[tuple[Keys, Selection | None]]:
    """The groups: given, read from the table where the group columns are public, or selected privately."""
    request = grouped.request
    if grouped.keys is not None:
        yield grouped.keys, None
    elif request.relation.counts_are_public:
        with public_keys(request.table, copy, grouped.by) as keys:
            yield replace(keys, other=grouped.other), None
    else:
        assert allocation is not None
        with select_keys(
            request, copy, grouped.by, allocation.selection, grouped.groups_per_user, receipt
        ) as selection:
            yield replace(selection.keys, other=grouped.other), selection


Sums = Callable[[], Secret[dict[str, list[int]]]]


@contextmanager
def bounded_sums(
    grouped: Grouped, copy: Table, keys: Keys, allocation: Allocation, norm: Norm, receipt: Receipt, spread: int
) -> Iterator[tuple[Limit, int, Sums]]:
    """Bound each user, given or by choice; yields the bound, the weight of one user, and the exact sums by group.

    ``copy`` is the one reading that norms and sums are both about.
    """
    request = grouped.request
    with _rows(grouped, copy, keys).fixed() as rows, request.table.engine.kept(rows.norms(norm)) as users:
        if isinstance(request.bounding, Strategy):
            limit = given_limit(request.bounding, norm, grouped.hidden[0])
        else:
            about = grouped.profile(keys, norm)
            limit = chosen_limit(request, receipt, users, norm, grouped.hidden, about, allocation, spread)
        capacity = capacity_of(limit.amount)
        yield limit, capacity, _sums(grouped, rows, users, capacity)


def _exact(grouped: Grouped, receipt: Receipt) -> Outcome:
    """All parts are public facts."""
    with reading(grouped) as copy, _keys(grouped, copy, None, receipt) as (keys, _):
        rows = _rows(grouped, copy, keys)
        with grouped.request.table.engine.kept(rows.norms(Norm.ROWS)) as users:
            exact = _sums(grouped, rows, users, 1)().reveal()
    estimates = {part.name: _read(grouped.request, part, exact, None, keys.groups) for part in grouped.parts}
    return _outcome(grouped, keys, estimates, UNBOUNDED, None)


def _rows(grouped: Grouped, copy: Table, keys: Keys) -> WeightedRows:
    columns = tuple(column for part in grouped.parts for column in part.columns)
    bounding = grouped.request.bounding
    sampled = bounding.limit if isinstance(bounding, RowLimit) else None
    kind = DistinctRows if any(isinstance(part, UsersPart) for part in grouped.parts) else WeightedRows
    return kind(copy, keys, columns, sampled)


def _sums(
    grouped: Grouped, rows: WeightedRows, users: Any, capacity: int
) -> Callable[[], Secret[dict[str, list[int]]]]:
    """All integers of all parts, by group, from one query that runs at most once."""
    weighted = rows.weighted(users, capacity)
    relation = grouped.request.relation
    integers: dict[str, Any] = {}
    first = 0
    for part in grouped.parts:
        values = [weighted[f"value_{first + index}"] for index in range(len(part.columns))]
        first += len(part.columns)
        needed = {*part.hidden(relation), *part.public(relation)}
        named = part.integers(weighted[WEIGHT], values)
        integers |= {f"{part.name}.{name}": value for name, value in named.items() if name in needed}
    return functools.cache(lambda: fetch_groups(rows.table, weighted, rows.keys.groups, integers))


def _measure(
    request: Request,
    part: Part,
    sums: Callable[[], Secret[dict[str, list[int]]]],
    groups: int,
    norm: Norm,
    capacity: int,
) -> Measurement:
    """The hidden integers of one part, group after group, and how far one user can move them."""
    names = [f"{part.name}.{name}" for name in part.hidden(request.relation)]
    moves = capacity if norm is Norm.VALUES else capacity * part.reach(request.relation)

    def integers() -> Secret[list[int]]:
        cells = sums().reveal()
        return Secret([cells[name][group] for name in names for group in range(groups)])

    return Measurement(integers, moves, moves**2)


def _read(
    request: Request, part: Part, exact: dict[str, list[int]], noisy: Noisy | None, groups: int
) -> list[Estimate]:
    """The estimates of one part from its noisy integers and from those that are public."""
    columns = {name: exact[f"{part.name}.{name}"] for name in part.public(request.relation)}
    if noisy is not None:
        for index, name in enumerate(part.hidden(request.relation)):
            columns[name] = noisy.values[index * groups : (index + 1) * groups]
    noise = None if noisy is None else noisy.noise
    return [part.read({name: column[group] for name, column in columns.items()}, noise) for group in range(groups)]


def _outcome(
    grouped: Grouped,
    keys: Keys,
    estimates: dict[str, list[Estimate]],
    bounding: Bounding,
    selection: Selection | None,
) -> Outcome:
    details = {} if selection is None else {"selection": selection.to_dict()}
    noises = {name: _median([estimate.noise for estimate in column]) for name, column in estimates.items()}
    exact = bounding is UNBOUNDED
    error = Error(
        next(iter(noises.values())) if len(noises) == 1 else None,
        0.0 if exact else None,
        "the exact answer is public" if exact else "not known: it depends on the heavy users",
        noises,
    )
    if grouped.listed:
        listed = [column[0] for column in estimates.values()]
        if len(listed) == 1:
            return Outcome(listed[0].value, listed[0].interval, bounding, error, details)
        return Outcome([estimate.value for estimate in listed], ListedInterval(listed), bounding, error, details)
    value = frame(keys, {name: [estimate.value for estimate in column] for name, column in estimates.items()})
    return Outcome(value, GroupedInterval(keys, estimates), bounding, error, details)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0

"""A statistic of rows weighted by user: the part that most grouped statistics are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, TypeAlias

from evenhand.bounding import Choice, Norm
from evenhand.guarantee import UsageError, split
from evenhand.profiles import Wanted
from evenhand.release import Bounding, Measurement, Noisy, Receipt, noise_for
from evenhand.statistics.allocation import BESIDE, Allocation, Mechanism, gaussian_can_win, profile_share
from evenhand.statistics.believed_groups import IN_INTERVAL, believed_averages, believed_totals, of_given_bound
from evenhand.statistics.cells import Cells
from evenhand.statistics.draft import UNBOUNDED, UNKNOWN
from evenhand.statistics.foresight import GroupForecast, NoForecast, foreseen
from evenhand.statistics.keys import Keys
from evenhand.statistics.limits import Noises, chosen_amount, given_amount, norm_of, profile_of_norm
from evenhand.statistics.paired_rows import PairedRows, linear, pair_integers
from evenhand.statistics.part import Part, Prepared
from evenhand.statistics.statistic import Estimate
from evenhand.statistics.weighted_rows import WEIGHT, WeightedRows, capacity_of, fetch_groups
from evenhand.tables import Secret, Table
from evenhand.tables.expressions import Integers, Rows
from evenhand.tables.paired import ROWS, PairedTable, Values

Sums: TypeAlias = Callable[[], Secret[dict[str, list[int]]]]


@dataclass(frozen=True)
class WeightedPart(Part):
    """Rows weighted by user (`weighted_rows.py`): what most statistics do."""

    @functools.cached_property
    def keys(self) -> Keys | None:
        """The groups, split into cells where the statistic does that."""
        return None if self.groups is None else self.statistic.placed(self.groups, self.request.table)

    laplace: ClassVar[bool] = False
    """Whether what follows rests on an L1 norm, so that Gaussian noise and L2 norms are out of the question."""

    @functools.cached_property
    def mechanism(self) -> Mechanism:
        request, keys = self.request, self.keys
        if self.laplace:
            if request.named is not None and request.named.gaussian:
                raise UsageError(
                    f"{request.named.title}(norm=2) does not bound {self.statistic.name}, which rests on a user's total weight; use norm=1, "
                    "eh.SmoothWeights, or leave bounding='auto'."
                )
            return Mechanism.LAPLACE
        if request.strategy is not None:
            return Mechanism.GAUSSIAN if request.strategy.gaussian and request.delta else Mechanism.LAPLACE
        # Where counts are public the cells of a histogram are not, nor is an L2 norm over them: it must not choose the bound.
        private = isinstance(keys, Cells) and request.relation.counts_are_public
        if not request.delta or private:
            return Mechanism.LAPLACE
        if request.named is not None:
            return Mechanism.GAUSSIAN if request.named.gaussian else Mechanism.LAPLACE
        return Mechanism.EITHER if self.can_be_gaussian(keys) else Mechanism.LAPLACE

    def can_be_gaussian(self, keys: Keys | None) -> bool:
        """Whether Gaussian noise can forecast less; unknown groups may be many."""
        return keys is None or gaussian_can_win(self.request.epsilon, self.request.delta, keys.groups)

    def spread(self, keys: Keys) -> int:
        """Over how many released numbers what a user adds is spread."""
        return keys.groups

    @property
    def paired(self) -> Values | None:
        strategy = self.request.strategy
        sampled = strategy is not None and strategy.rows_kept is not None
        return self.statistic.columns if self.is_hidden and linear(self.statistic) and not sampled else None

    @property
    def forms_pairs(self) -> bool:
        return self.statistic.distinct or any(norm.gaussian for norm in self.norms)

    @property
    def norms(self) -> tuple[Norm, ...]:
        """The norms that may be bounded."""
        kinds = {Mechanism.LAPLACE: (False,), Mechanism.GAUSSIAN: (True,), Mechanism.EITHER: (False, True)}
        return tuple(norm_of(self.request, self.statistic, gaussian) for gaussian in kinds[self.mechanism])

    @functools.cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        request, keys = self.request, self.keys
        # Who counts once in each of m groups has L2 norm √m: one histogram tells both.
        norms = self.norms[:1] if self.statistic.distinct else self.norms
        abouts = [
            None if keys is None else profile_of_norm(keys, self.statistic, norm, self._question) for norm in norms
        ]
        wants = (request.wants(about, not norm.of_values) for about, norm in zip(abouts, norms, strict=True))
        return tuple(wanted for wanted in wants if wanted is not None)

    @property
    def _question(self) -> str:
        """What a kept profile serves once: the same question again buys anew."""
        return f"{self.name}: {self.statistic.words}"

    @property
    def profile(self) -> float | Decimal:
        if all(wanted.known is not None for wanted in self.wanted):
            return 0.0
        return self.share(1 if self.keys is None else self.spread(self.keys))

    @property
    def beside(self) -> float | Decimal:
        return (self.request.auto.share or BESIDE) if self.profile else 0.0

    def share(self, groups: int) -> float | Decimal:
        """The part of ε that buys the profile for so many groups."""
        return profile_share(self.request, groups)

    def described(self) -> Bounding:
        request = self.request
        if request.strategy is not None:
            return given_amount(request.strategy, self.norms[0], self.statistic)[1].bounding
        return request.pending(self.wanted[0] if self.wanted else None, Decimal(str(self.profile)))

    def check(self, allocation: Allocation) -> None:
        """Refuse a bound whose noise would not fit 64 bits."""
        share = allocation.shares[self.name]
        if self.request.strategy is None:
            # A bound that is chosen has noise that fits, unless a share is so small that not even one row's does.
            reach, least = self.statistic.reach(self.request.relation), split(share.epsilon, Fraction(1, 40))[0]
            noise_for(1, 1, least)
            noise_for(reach, reach**2, share.epsilon)
            allocation.check_joint(self.name, reach**2)
            return
        amount, _ = given_amount(self.request.strategy, self.norms[0], self.statistic)
        moves = self._moves(self.norms[0], capacity_of(amount))
        noise_for(moves, moves**2, share.epsilon, allocation.delta)

    def foreseen(self, allocation: Allocation) -> GroupForecast | NoForecast | None:
        request, statistic, keys = self.request, self.statistic, self.keys
        if statistic.is_average or request.relation.counts_are_public or (keys is not None and keys.groups < 2):
            return None
        noises = Noises(allocation.shares[self.name].epsilon, allocation.foreseen_rho(self.name))
        return foreseen(request, statistic, keys, self.norms, self.wanted, noises)

    @contextmanager
    def prepare(self, copy: Table, groups: Keys, allocation: Allocation | None, receipt: Receipt) -> Iterator[Prepared]:
        keys = self.statistic.placed(groups, self.request.table)
        norms = self.norms if self.is_hidden else (Norm.ROWS,)
        with self._rows(copy, keys).fixed() as rows, self.request.table.engine.kept(rows.norms(norms)) as users:
            if not self.is_hidden:
                estimates = self._read(self._public(self._sums(rows, users, Norm.ROWS, 1), receipt), None, keys)
                yield Prepared(keys, (), (), Decimal(0), False, UNBOUNDED, lambda _: {"": estimates})
                return
            assert allocation is not None
            norm, amount, choice, left = self._bound(users, keys, allocation, receipt)
            capacity = capacity_of(amount)
            sums = self._sums(rows, users, norm, capacity, choice)
            yield self.bounded(keys, sums, norm, capacity, choice, left, receipt)

    def bounded(
        self, keys: Keys, sums: Sums, norm: Norm, capacity: int, choice: Choice, left: Decimal, receipt: Receipt
    ) -> Prepared:
        """What is measured of bounded users, and how it is read."""
        return Prepared(
            keys,
            [self._measure(sums, self._moves(norm, capacity))],
            [Fraction(1)],
            left,
            norm.gaussian,
            choice.bounding,
            lambda noisy: {"": self._believed(self._read(self._public(sums, receipt), noisy[0], keys), choice)},
            UNKNOWN if self.request.strategy is not None else IN_INTERVAL,
        )

    def _believed(self, estimates: list[Estimate], choice: Choice) -> list[Estimate]:
        """With what bounding did, as far as that is known."""
        if self.request.strategy is not None:
            return of_given_bound(self.statistic, estimates)
        if choice.moved is not None:
            return believed_averages(self.statistic, estimates, choice.moved)
        return estimates if choice.lost is None else believed_totals(self.statistic, estimates, choice.lost)

    def _bound(
        self, users: Rows, keys: Keys, allocation: Allocation, receipt: Receipt
    ) -> tuple[Norm, Fraction, Choice, Decimal]:
        """The norm that is bounded, the bound, and what is left of ε."""
        request, share = self.request, allocation.shares[self.name]
        if request.strategy is not None:
            amount, choice = given_amount(request.strategy, self.norms[0], self.statistic)
            return self.norms[0], amount, choice, share.epsilon
        if self.groups is None and share.profile and not allocation.left:
            share = share.divided(self.share(self.spread(keys)))
        rho = allocation.rho(self.name) if share.mechanism is not Mechanism.LAPLACE else None
        noises = Noises(share.epsilon, rho)
        norms, wanted = self.norms, self.wanted
        if share.mechanism is Mechanism.LAPLACE:
            norms, wanted = norms[:1], wanted[:1]
        norm, amount, choice = chosen_amount(
            request, receipt, users, norms, self.statistic, wanted, share.profile, noises, self.spread(keys)
        )
        return norm, amount, choice, share.epsilon

    def _moves(self, norm: Norm, capacity: int) -> int:
        """How far one user moves the hidden integers."""
        return capacity if norm.of_values else capacity * self.statistic.reach(self.request.relation)

    def _rows(self, copy: Table, keys: Keys) -> WeightedRows:
        strategy, statistic = self.request.strategy, self.statistic
        if isinstance(copy, PairedTable):
            return PairedRows(copy, keys, statistic.columns, distinct=statistic.distinct)
        return statistic.shape(copy, keys, statistic.columns, None if strategy is None else strategy.rows_kept)

    def _sums(self, rows: WeightedRows, users: Rows, norm: Norm, capacity: int, choice: Choice | None = None) -> Sums:
        """All integers by group, from one query that runs at most once."""
        weighted, relation = rows.weighted(users, norm, capacity), self.request.relation
        values = [weighted[f"value_{index}"] for index in range(len(self.statistic.columns))]
        needed = {*self.statistic.hidden(relation), *self.statistic.public(relation)}
        if isinstance(rows, PairedRows):
            named = pair_integers(self.statistic, weighted[WEIGHT], weighted[ROWS], values)
        else:
            named = self.statistic.integers(weighted[WEIGHT], values)
        integers: dict[str, Integers] = {name: value for name, value in named.items() if name in needed}
        return functools.cache(lambda: fetch_groups(rows.table, weighted, rows.keys.groups, integers))

    def _measure(self, sums: Sums, moves: int) -> Measurement:
        """The hidden integers, group after group, and how far one user can move them."""
        names = self.statistic.hidden(self.request.relation)
        return Measurement(
            lambda: sums().map(lambda cells: [count for name in names for count in cells[name]]), moves, moves**2
        )

    def _public(self, sums: Sums, receipt: Receipt) -> dict[str, list[int]]:
        """The integers that are public under the relation."""
        names, relation = self.statistic.public(self.request.relation), self.request.relation
        if not names:
            return {}
        return receipt.public(sums().map(lambda cells: {name: cells[name] for name in names}), relation)

    def _read(self, public: dict[str, list[int]], noisy: Noisy | None, keys: Keys) -> list[Estimate]:
        """The estimates from noisy integers and from those that are public."""
        groups, columns = keys.groups, dict(public)
        if noisy is not None:
            for index, name in enumerate(self.statistic.hidden(self.request.relation)):
                columns[name] = noisy.values[index * groups : (index + 1) * groups]
        noise = None if noisy is None else noisy.noise
        return [
            self.statistic.read({name: column[group] for name, column in columns.items()}, noise)
            for group in range(groups)
        ]

"""The one way to a profile: given by the analyst, kept by the session, or bought out of a release's ε."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from evenhand.guarantee import Guarantee, Purchase, split
from evenhand.ledger import Cost, Ledger
from evenhand.population.buckets import Buckets, row_buckets
from evenhand.population.support import Support, support_of_histogram
from evenhand.population.tables import Population
from evenhand.profiles.counting import users_by_bucket
from evenhand.profiles.profile import Profile
from evenhand.release import Measurement, Receipt, debit
from evenhand.release.rehearsal import rehearse
from evenhand.tables import Table
from evenhand.tables.summaries import per_user


@dataclass(frozen=True)
class Histogram:
    """Users by what they contribute, as far as a release may know it.

    Args:
        buckets: the public raster.
        counts: users per bucket, noisy or given.
        epsilon: the ε that explains their noise; a public prior has next to none.
        basis: where they come from, in words.
        paid: what they cost this release.
    """

    buckets: Buckets
    counts: Sequence[float]
    epsilon: float
    basis: str
    paid: Decimal = Decimal(0)

    @property
    def support(self) -> Support:
        """A plausible list of users behind it."""
        return support_of_histogram(self.buckets, self.counts, 1 / self.epsilon)

    @functools.cached_property
    def posterior(self) -> Population:
        """What it says about users by contribution, those too few to be seen included."""
        return Population.behind(self.buckets, self.counts, 1 / self.epsilon)

    @property
    def smoothed(self) -> Support:
        """The same, with users who are too few to be seen."""
        return self.posterior.typical


@dataclass(frozen=True)
class Wanted:
    """A profile that a release wants, and where it will come from.

    Settled before the debit, so that preview, event and release name the same purchase, whatever other threads buy meanwhile.

    Args:
        about: what it counts.
        given: the analyst's, which comes first.
        kept: the session's.
        table: whose users are counted; None if nothing is to be kept.
        shelf: where a bought one is kept.
    """

    about: About
    given: Profile | None = None
    kept: Profile | None = None
    table: Table | None = None
    shelf: Shelf | None = None

    @classmethod
    def settle(cls, table: Table, shelf: Shelf, about: About, given: Profile | None = None) -> Wanted:
        """Look on the shelf, unless the analyst gave one."""
        return cls(about, given, None if given else shelf.find(table, about), table, shelf)

    @property
    def known(self) -> Profile | None:
        """What is there already."""
        return self.given or self.kept

    @property
    def purchases(self) -> tuple[Purchase, ...]:
        """What a release that uses it must name."""
        return () if self.known is None or self.table is None else self.known.purchases(self.table.relation)

    def price(self, epsilon: Decimal, share: float | Decimal) -> tuple[Decimal, Decimal]:
        """What it takes of ε, and what it leaves."""
        return (Decimal(0), epsilon) if self.known is not None else split(epsilon, share)

    def get(self, receipt: Receipt, buckets: Buckets, measurement: Measurement, paid: Decimal) -> Histogram:
        """The profile over ``buckets``: as known, or measured with ``paid`` and kept for later releases, which will name it."""
        if self.known is not None:
            if receipt.keeps and self.kept is not None and self.shelf is not None and self.table is not None:
                self.shelf.take(self.table, self.about)
            return over(self.known, buckets)
        noisy = receipt.numbers(measurement, paid).values
        if receipt.keeps and self.shelf is not None and self.table is not None:
            promise = self.table.guarantee(paid, Decimal(0))
            self.shelf.put(self.table, self.about, Profile.bought(buckets, noisy, promise, receipt.event))
        words = "a noisy histogram of users by contribution, bought with part of ε"
        return Histogram(buckets, noisy, float(paid), words, paid)


@dataclass(frozen=True)
class Order:
    """A noisy histogram of users by number of rows, as a release of its own, before anything is spent.

    Args:
        table: whose users are counted.
        epsilon: what it costs.
    """

    table: Table
    epsilon: Decimal

    @property
    def guarantee(self) -> Guarantee:
        """What it will promise."""
        return self.table.guarantee(self.epsilon, Decimal(0))

    @property
    def query(self) -> dict[str, object]:
        """The public parameters, for the ledger."""
        return {"statistic": "profile", "buckets": row_buckets().size}

    def drawn(self, receipt: Receipt) -> Profile:
        """The profile that was paid for."""
        buckets, users = row_buckets(), per_user(self.table)
        noisy = receipt.numbers(users_by_bucket(self.table, users, users.rows, buckets), self.epsilon)
        return Profile.bought(buckets, noisy.values, self.guarantee, receipt.event)


def buy(table: Table, epsilon: Decimal, ledger: Ledger) -> Profile:
    """Pay for a profile and draw it."""
    order = Order(table, epsilon)
    rehearse(table.engine, order.drawn, epsilon, Decimal(0))
    return order.drawn(debit(ledger, order.guarantee, Cost.pure(epsilon), order.query, table.source))


def over(profile: Profile, buckets: Buckets) -> Histogram:
    """A profile that is there already, over ``buckets``."""
    if profile.noisy is not None and profile.guarantee is not None and profile.buckets == buckets:
        return Histogram(buckets, profile.noisy, float(profile.guarantee.epsilon), profile.words)
    places = buckets.index(np.ceil(profile.support.sizes).astype(np.int64))
    counts = np.bincount(places, weights=profile.support.users, minlength=buckets.size).tolist()
    return Histogram(buckets, counts, 1e6, profile.words)


@dataclass(frozen=True)
class About:
    """What a profile counts for each user.

    Args:
        quantity: rows, the total of a column, or a norm over groups.
        of: what it depends on besides: columns that must not be empty, grids, groups.
        question: the release that wants it, in words; two releases may want the same.
    """

    quantity: str
    of: Hashable = ()
    question: str = field(default="", compare=False)


EVERY_ROW = About("every row")
_ROWS = ("every row", "rows")
"""What ``session.profile`` buys."""


def rows_with(columns: Iterable[str], question: str) -> About:
    """Rows that have a number in each of these columns."""
    return About("rows", tuple(sorted(set(columns))), question)


class Shelf:
    """The profiles of one session. Each belongs to a snapshot of the table: when the file changes, it is of no use."""

    def __init__(self) -> None:
        self._profiles: dict[tuple[About, str], tuple[Profile, set[str]]] = {}

    def put(self, table: Table, about: About, profile: Profile) -> None:
        """Keep a profile, unless nobody can know whether the table will still be the same."""
        if table.snapshot is not None:
            self._profiles[about, table.snapshot] = profile, {about.question}

    def find(self, table: Table, about: About) -> Profile | None:
        """A profile of just this that the question has not used yet, or one of every row where rows are wanted."""
        if table.snapshot is None:
            return None
        on_purpose = self._profiles.get((EVERY_ROW, table.snapshot)) if about.quantity == "rows" else None
        if on_purpose is not None:
            return on_purpose[0]
        profile, used = self._profiles.get((about, table.snapshot), (None, set()))
        return None if about.question in used else profile

    def take(self, table: Table, about: About) -> Profile | None:
        """Find a profile and remember that the question has used it."""
        found = self.find(table, about)
        if found is not None and (kept := self._profiles.get((about, table.snapshot or ""))):
            kept[1].add(about.question)
        return found

    def of_rows(self) -> Shelf:
        """The same of profiles of rows alone: those of totals belong to bounds, which are yet to be found."""
        return _OfRows(self)

    def frozen(self) -> Shelf:
        """What is found here now; what is put or taken later goes here all the same."""
        return _Frozen(self)

    def lent(self) -> Shelf:
        """What is found here now; what is put later goes nowhere, since it cost too little to be of use to others."""
        return _Lent(self)


class _Frozen(Shelf):
    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self._shelf = shelf
        self._profiles = {key: (profile, set(used)) for key, (profile, used) in shelf._profiles.items()}

    def put(self, table: Table, about: About, profile: Profile) -> None:
        self._shelf.put(table, about, profile)

    def take(self, table: Table, about: About) -> Profile | None:
        self._shelf.take(table, about)
        return self.find(table, about)


class _OfRows(_Frozen):
    def __init__(self, shelf: Shelf) -> None:
        super().__init__(shelf)
        self._profiles = {key: kept for key, kept in self._profiles.items() if key[0].quantity in _ROWS}

    def put(self, table: Table, about: About, profile: Profile) -> None:
        if about.quantity in _ROWS:
            super().put(table, about, profile)


class _Lent(_Frozen):
    def put(self, table: Table, about: About, profile: Profile) -> None:
        """Nothing is kept: a profile bought with a small part of a release's ε would serve later questions badly."""

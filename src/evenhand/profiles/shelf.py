"""Profiles that a session has paid for, and what each of them counts.

A profile is free to use again, but it is of use only for the same rows: a column that is mostly empty has other users
than the table, and three groups out of a thousand hold other rows than all of them. A bound read from the wrong profile
would still be private, but the answer would be too noisy to use, or cut off. So what a release buys on the way serves only
releases about the same rows; what the analyst buys with ``session.profile`` serves every ungrouped release.

The same question asked again buys anew. Otherwise its answers would share the noise of one profile, and whoever repeats
a question to see how much the answers vary would not see the part that comes from the profile.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from evenhand.profiles.profile import Profile
from evenhand.tables import Table


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

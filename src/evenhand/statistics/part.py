"""One statistic of a grouped release: its own bound on each user, its own noise.

A release by group may hold several statistics. Each is bounded by the norm that suits it: a sum bounded by rows times the
largest value would be many times noisier than one bounded by its own total. `per_row.py` puts them together.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from evenhand.profiles import Wanted
from evenhand.release import Bounding, Error, Measurement, Noisy, Receipt
from evenhand.statistics.allocation import Allocation, Mechanism
from evenhand.statistics.draft import UNKNOWN
from evenhand.statistics.foresight import GroupForecast, NoForecast
from evenhand.statistics.keys import Keys
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.tables import Table
from evenhand.tables.paired import Values


@dataclass(frozen=True)
class Prepared:
    """A statistic whose users are bounded: what is to be measured, with which noise, and how that is read.

    Args:
        keys: the groups that the estimates are about.
        measurements: what gets noise.
        shares: of the statistic's ε, or ρ, for each of them; they add up to 1 at most.
        epsilon: what the choice of the bound has left.
        gaussian: which noise.
        bounding: what was done to heavy users.
        read: estimates by column, from noisy integers; a name of "" stands for the statistic's own.
        error: what is known about the error besides the noise.
        details: what the release says besides.
    """

    keys: Keys
    measurements: Sequence[Measurement]
    shares: Sequence[Fraction]
    epsilon: Decimal
    gaussian: bool
    bounding: Bounding
    read: Callable[[Sequence[Noisy]], Mapping[str, list[Estimate]]]
    error: Error = UNKNOWN
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Part(ABC):
    """A statistic on its way through a grouped release.

    Args:
        request: table, ε, δ and bounding of the release.
        name: the column that it gets in the result.
        statistic: what is asked.
        groups: the public groups; None if they are not known before the table is read.
    """

    draws: ClassVar[bool] = False
    """Whether it draws its own noise, step by step, with its own part of δ."""

    request: Request
    name: str
    statistic: Statistic
    groups: Keys | None

    @property
    def is_hidden(self) -> bool:
        """Whether it needs noise."""
        return bool(self.statistic.hidden(self.request.relation))

    @functools.cached_property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """Which noise it will get, as far as public facts and the analyst say."""

    @property
    def paired(self) -> Values | None:
        """The value columns whose sums for each user and group are all that it needs; None if it needs rows."""
        return None

    @property
    def forms_pairs(self) -> bool:
        """Whether it would form pairs of user and group by itself."""
        return False

    @property
    def profile(self) -> float | Decimal:
        """The part of its ε that buys what chooses the bound."""
        return 0.0

    @property
    def beside(self) -> float | Decimal:
        """The same where names and numbers share one (ε, δ), and the groups are taken to be many."""
        return 0.0

    @functools.cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        """The profiles that will choose the bound; none if it is given."""
        return ()

    @abstractmethod
    def described(self) -> Bounding:
        """The bound before anything is spent."""

    def check(self, allocation: Allocation) -> None:  # noqa: B027 (most need nothing)
        """Refuse, before any debit, what could not be released."""

    def foreseen(self, allocation: Allocation) -> GroupForecast | NoForecast | None:
        """What a preview says about the groups, from public facts and profiles that are paid for; None if nothing."""
        return None

    @abstractmethod
    def prepare(
        self, copy: Table, groups: Keys, allocation: Allocation | None, receipt: Receipt
    ) -> AbstractContextManager[Prepared]:
        """Bound each user, given or by choice; ``copy`` is the one reading that norms and sums are both about."""

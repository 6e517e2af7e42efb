"""The `Guarantee` that every result carries: who is protected, from what, and how strongly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from evenhand.guarantee.amounts import exact_sum, exact_text, plain
from evenhand.guarantee.relation import Relation

_PROTECTED = {
    Relation.PRESENCE: (
        "whether any one {unit} is in the table at all, with all of their rows",
        "nothing about the table is treated as public",
    ),
    Relation.VALUES: (
        "all values of any one {unit}",
        "who is in the table and how many rows each {unit} has{public} are treated as public",
    ),
    Relation.LABELS: (
        "all labels of any one {unit}",
        "the features, who is in the table and how many rows each {unit} has are treated as public",
    ),
}


@dataclass(frozen=True)
class Purchase:
    """Something bought earlier, such as a profile, that decides about a later release.

    Args:
        event: its debit in the ledger; None if that was not recorded.
        epsilon: what it cost by itself, under the relation of the later release.
        delta: the δ that it cost.
    """

    event: str | None
    epsilon: Decimal
    delta: Decimal = Decimal(0)

    def __str__(self) -> str:
        return (
            f"{f'event {self.event[:8]}' if self.event else 'no recorded event'}, {_strength(self.epsilon, self.delta)}"
        )


@dataclass(frozen=True)
class Reach:
    """How the rows of a table without users are reached from those of users: whose they are follows from that.

    Args:
        part: what the table is called.
        columns: its columns by which its rows are reached.
        owner: the columns that they are equal to, of users' rows or of rows that are reached from these.
        of: what the table is called that has these; empty where it has no name (a frame).
    """

    part: str
    columns: tuple[str, ...]
    owner: tuple[str, ...]
    of: str = ""

    @classmethod
    def read(cls, data: Sequence[Any]) -> Reach:
        """From what `data` wrote."""
        part, columns, owner, of = data
        return cls(part, tuple(columns), tuple(owner), of)

    @property
    def data(self) -> list[Any]:
        """As JSON."""
        return [self.part, list(self.columns), list(self.owner), self.of]

    def __str__(self) -> str:
        equal = [
            one if one == other else f"{one} = {other}" for one, other in zip(self.columns, self.owner, strict=True)
        ]
        return f"{self.part} (by {' and '.join(equal)}{f' of {self.of}' if self.of else ''})"


@dataclass(frozen=True)
class Guarantee:
    """An (ε, δ) differential-privacy guarantee for one user with all of their rows.

    It is a statement about this one result *given* everything that was released before from the same ledger: questions, bounds
    and keys may have been chosen in view of that. What all releases reveal together is bounded by the ledger's total. Where
    the release itself used an earlier purchase, ``together`` is the guarantee of both with no condition.

    Args:
        epsilon: the privacy-loss bound ε, an exact decimal.
        delta: the probability δ with which the bound may fail; 0 is pure differential privacy.
        relation: which tables are neighbours.
        unit: whose privacy it is: the name of the population if there is one, else the user columns.
        public: columns treated as public under ``Relation.VALUES`` and ``Relation.LABELS``.
        earlier: what was bought before and chose the bound, centre or strategy of this release.
        user: the user columns of the table; empty where they are not known.
        parts: the tables without users whose rows were reached from those of users.
    """

    epsilon: Decimal
    delta: Decimal
    relation: Relation
    unit: tuple[str, ...]
    public: tuple[str, ...] = ()
    earlier: tuple[Purchase, ...] = ()
    user: tuple[str, ...] = ()
    parts: tuple[Reach, ...] = ()

    @property
    def odds(self) -> float:
        """The factor e^ε by which an observer's odds about any one user can change."""
        return _odds(self.epsilon)

    @property
    def declared(self) -> tuple[str, ...]:
        """The columns that the release treats as public; under presence nothing is, whatever the table was read with."""
        return () if self.relation is Relation.PRESENCE else self.public

    @property
    def together(self) -> tuple[Decimal, Decimal]:
        """The ε and δ of this release and of the purchases it depends on, added up."""
        return (
            exact_sum([self.epsilon, *(purchase.epsilon for purchase in self.earlier)]),
            exact_sum([self.delta, *(purchase.delta for purchase in self.earlier)]),
        )

    def resting_on(self, *purchases: Purchase) -> Guarantee:
        """The same guarantee for a release that uses what was bought earlier."""
        return replace(self, earlier=tuple(dict.fromkeys((*self.earlier, *purchases))))

    @property
    def protected(self) -> str:
        """What is protected."""
        reached = f", and with every row of {_listed(self.parts)} that only they reach" if self.parts else ""
        return _PROTECTED[self.relation][0].format(unit=f"user ({', '.join(self.unit)})") + reached

    @property
    def treated_as_public(self) -> str:
        """What is not protected."""
        columns = f", and the columns {', '.join(self.public)}," if self.public else ""
        return _PROTECTED[self.relation][1].format(unit="user", public=columns).capitalize()

    @property
    def shared(self) -> str:
        """What becomes of rows that several users reach, where there are any."""
        if not self.parts:
            return ""
        return (
            "A row that several users reach is not protected for each of them alone: it goes only once no row of those who remain reaches it, "
            "and so on down the levels. "
        )

    def words(self) -> str:
        """The guarantee as sentences that a manager can read."""
        tail = f", except with probability {plain(self.delta)}" if self.delta else ""
        return (
            f"Protects {self.protected} ({_strength(self.epsilon, self.delta)}): whatever an observer believed "
            f"before, earlier releases included, seeing this result changes their odds by at most a factor of "
            f"{_factor(self.epsilon)}{tail}. {self._rests()}All releases from one ledger together stay within its total. "
            f"{self.shared}"
            f"{self.treated_as_public}."
        )

    def _rests(self) -> str:
        """The guarantee of the release and of the purchases it depends on, together."""
        if not self.earlier:
            return ""
        bought = "; ".join(str(purchase) for purchase in self.earlier)
        epsilon, delta = self.together
        return (
            f"How users are bounded here is decided by an earlier purchase ({bought}); together with it: "
            f"{_strength(epsilon, delta)}, a factor of {_factor(epsilon)}. "
        )

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as data; ε and δ as numbers and as exact text."""
        together = {}
        if self.earlier:
            together = {
                "earlier": [{"event": each.event, **_amounts(each.epsilon, each.delta)} for each in self.earlier],
                "together": _amounts(*self.together),
            }
        return {
            **_amounts(self.epsilon, self.delta),
            "protects": self.relation.value,
            "user": list(self.unit),
            "public": list(self.public),
            **({"parts": [each.data for each in self.parts]} if self.parts else {}),
            "given": "everything released before from the same ledger",
            **together,
            "words": self.words(),
        }

    def __str__(self) -> str:
        return self.words()


def _amounts(epsilon: Decimal, delta: Decimal) -> dict[str, Any]:
    exact = {"epsilon": exact_text(epsilon), "delta": exact_text(delta)}
    return {"epsilon": float(epsilon), "delta": float(delta), "exact": exact}


def _listed(parts: Sequence[Reach]) -> str:
    names = [str(each) for each in parts]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _strength(epsilon: Decimal, delta: Decimal) -> str:
    return f"ε = {plain(epsilon)}" + (f", δ = {plain(delta)}" if delta else "")


def _odds(epsilon: Decimal) -> float:
    return math.exp(min(float(epsilon), 700.0))


def _factor(epsilon: Decimal) -> str:
    odds = _odds(epsilon)
    return f"{odds:.3g}" if odds < 1000 else f"{odds:.1e}"

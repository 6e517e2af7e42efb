"""The `Guarantee` that every result carries: who is protected, from what, and how strongly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from evenhand.guarantee.amounts import plain
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
class Guarantee:
    """An (ε, δ) differential-privacy guarantee for one user with all of their rows.

    Args:
        epsilon: the privacy-loss bound ε, an exact decimal.
        delta: the probability δ with which the bound may fail; 0 is pure differential privacy.
        relation: which tables are neighbours.
        unit: the user columns that name a person.
        public: columns treated as public under ``Relation.VALUES``.
    """

    epsilon: Decimal
    delta: Decimal
    relation: Relation
    unit: tuple[str, ...]
    public: tuple[str, ...] = ()

    @property
    def odds(self) -> float:
        """The factor e^ε by which an observer's odds about any one user can change."""
        return math.exp(min(float(self.epsilon), 700.0))

    def words(self) -> str:
        """The guarantee as sentences that a manager can read."""
        unit = "user (" + ", ".join(self.unit) + ")"
        hidden, known = _PROTECTED[self.relation]
        columns = f", and the columns {', '.join(self.public)}," if self.public else ""
        strength = f"ε = {plain(self.epsilon)}" + (f", δ = {plain(self.delta)}" if self.delta else "")
        odds = f"{self.odds:.3g}" if self.odds < 1000 else f"{self.odds:.1e}"
        tail = f", except with probability {plain(self.delta)}" if self.delta else ""
        return (
            f"Protects {hidden.format(unit=unit)} ({strength}): whatever an observer believed before, seeing this "
            f"result changes their odds by at most a factor of {odds}{tail}. "
            f"{known.format(unit='user', public=columns).capitalize()}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as data; ε and δ as numbers and as exact text."""
        return {
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "exact": {"epsilon": str(self.epsilon), "delta": str(self.delta)},
            "protects": self.relation.value,
            "user": list(self.unit),
            "public": list(self.public),
            "words": self.words(),
        }

    def __str__(self) -> str:
        return self.words()

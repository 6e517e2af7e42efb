"""The record of one debit, its text form, and the hash that chains it to all earlier ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from evenhand.guarantee import Guarantee, Relation, UsageError
from evenhand.ledger.composition import Cost


@dataclass(frozen=True)
class Event:
    """One debit: what was released, under which guarantee, and what it cost. Never changed once recorded.

    Args:
        number: position in the ledger, from 1.
        id: a random UUID.
        time: UTC, ISO 8601. Informative only: the order is that of ``number``, whatever the clock did.
        guarantee: what the release promises by itself.
        cost: what the ledger charged, under the ledger's own neighbour relation.
        query: public parameters of the release (statistic, columns, bounds, bounding); never data.
    """

    number: int
    id: str
    time: str
    guarantee: Guarantee
    cost: Cost
    query: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The event as data that ``json`` can write; ε and δ as exact text."""
        return {
            "number": self.number,
            "id": self.id,
            "time": self.time,
            "guarantee": self.guarantee.to_dict(),
            "cost": _cost_data(self.cost),
            "query": dict(self.query),
        }


@dataclass(frozen=True)
class Record:
    """An event as it is stored: text columns, and the link that makes later edits evident."""

    number: int
    id: str
    time: str
    guarantee: str
    cost: str
    query: str

    @classmethod
    def write(
        cls, number: int, id: str, time: str, guarantee: Guarantee, cost: Cost, query: Mapping[str, Any]
    ) -> Record:
        """Turn a debit into text; a query that is not JSON is a UsageError."""
        try:
            text = _json(dict(query))
        except (TypeError, ValueError):
            raise UsageError(
                "query= can't be written to the ledger: expected a mapping of names to public parameters "
                "made of text, finite numbers, lists and mappings."
            ) from None
        promise = {
            "epsilon": str(guarantee.epsilon),
            "delta": str(guarantee.delta),
            "protects": guarantee.relation.value,
            "user": guarantee.unit,
            "public": guarantee.public,
        }
        return cls(number, id, time, _json(promise), _json(_cost_data(cost)), text)

    def read(self) -> Event:
        """Turn the text back into an event."""
        promise, cost = json.loads(self.guarantee), json.loads(self.cost)
        guarantee = Guarantee(
            Decimal(promise["epsilon"]),
            Decimal(promise["delta"]),
            Relation(promise["protects"]),
            tuple(promise["user"]),
            tuple(promise["public"]),
        )
        rho = None if cost["rho"] is None else Decimal(cost["rho"])
        charged = Cost(Decimal(cost["epsilon"]), Decimal(cost["delta"]), rho)
        return Event(self.number, self.id, self.time, guarantee, charged, json.loads(self.query))

    def link(self, previous: str) -> str:
        """The SHA-256 of this record and the link before it."""
        return digest(previous, str(self.number), self.id, self.time, self.guarantee, self.cost, self.query)


def digest(*texts: str) -> str:
    """SHA-256 of several texts; each is preceded by its length, so that no two lists collide by joining."""
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode()
        whole.update(f"{len(data)}:".encode() + data)
    return whole.hexdigest()


def _cost_data(cost: Cost) -> dict[str, str | None]:
    return {
        "epsilon": str(cost.epsilon),
        "delta": str(cost.delta),
        "rho": None if cost.rho is None else str(cost.rho),
    }


def _json(data: Any) -> str:
    return json.dumps(data, sort_keys=True, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError

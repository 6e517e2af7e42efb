"""The record of one debit, its text form, and the hash that chains it to all earlier ones."""

from __future__ import annotations

import getpass
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from evenhand.guarantee import Guarantee, Purchase, Reach, Relation, UsageError, exact_text
from evenhand.ledger.composition import Cost

_ASKED = "asked"
"""Where the text of a query keeps who asked; part of the event's hash like all of it."""
_LONGEST = 1000


@dataclass(frozen=True)
class Asked:
    """Who asked, about which table, and a note; as the asking program says it. None of it changes what is protected.

    Args:
        who: a person or a job.
        table: the path or name of the source.
        note: anything, such as ``"nightly, 2026-11-16"``.
    """

    who: str | None = None
    table: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            if text is not None and not (isinstance(text, str) and text.isprintable() and len(text) <= _LONGEST):
                raise UsageError(
                    f"{name}= can't be written to the ledger: expected one line of text, at most {_LONGEST:,} characters."
                )

    def to_dict(self) -> dict[str, str]:
        """What is known of it."""
        return {name: text for name, text in vars(self).items() if text}


@dataclass(frozen=True)
class Event:
    """One debit: what was released, under which guarantee, and what it cost. Never changed once recorded.

    A public fact is an event too: it costs nothing, and its guarantee names the columns that were treated as public.

    Args:
        number: position in the ledger, from 1.
        id: a random UUID.
        time: UTC, ISO 8601. Informative only: the order is that of ``number``, whatever the clock did.
        guarantee: what the release promises by itself.
        cost: what the ledger charged, under the ledger's own neighbour relation.
        query: public parameters of the release (statistic, columns, bounds, bounding); never data.
        asked: who asked, about which table, and a note.
    """

    number: int
    id: str
    time: str
    guarantee: Guarantee
    cost: Cost
    query: Mapping[str, Any]
    asked: Asked = Asked()

    def to_dict(self) -> dict[str, Any]:
        """The event as data that ``json`` can write; ε and δ as exact text."""
        parts = {"guarantee": self.guarantee.to_dict(), "cost": _cost_data(self.cost), "query": dict(self.query)}
        return vars(self) | parts | {_ASKED: self.asked.to_dict()}


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
        cls,
        number: int,
        id: str,
        time: str,
        guarantee: Guarantee,
        cost: Cost,
        query: Mapping[str, Any],
        asked: Asked = Asked(),  # noqa: B008 - never changed
    ) -> Record:
        """Turn a debit into text; a query that is not JSON is a UsageError."""
        if _ASKED in query:
            raise UsageError(f"query= may not name {_ASKED!r}, where the ledger keeps who asked; give it another name.")
        told = asked.to_dict()
        try:
            text = _json({**query, **({_ASKED: told} if told else {})})
        except (TypeError, ValueError):
            raise UsageError(
                "query= can't be written to the ledger: expected a mapping of names to public parameters "
                "made of text, finite numbers, lists and mappings."
            ) from None
        promise: dict[str, Any] = {
            "epsilon": exact_text(guarantee.epsilon),
            "delta": exact_text(guarantee.delta),
            "protects": guarantee.relation.value,
            "user": guarantee.unit,
            "public": guarantee.public,
        }
        if guarantee.earlier:
            promise["earlier"] = [
                [each.event, exact_text(each.epsilon), exact_text(each.delta)] for each in guarantee.earlier
            ]
        if guarantee.user:
            promise["columns"] = guarantee.user
        if guarantee.parts:
            promise["parts"] = [each.data for each in guarantee.parts]
        return cls(number, id, time, _json(promise), _json(_cost_data(cost)), text)

    def read(self) -> Event:
        """Turn the text back into an event."""
        cost = json.loads(self.cost)
        rho = None if cost["rho"] is None else Decimal(cost["rho"])
        # Format 1 had no thresholds with a ρ: where "beyond" is missing, the ρ covers everything but pure δ.
        charged = Cost(Decimal(cost["epsilon"]), Decimal(cost["delta"]), rho, Decimal(cost.get("beyond", "0")))
        query = json.loads(self.query)
        asked = Asked(**query.pop(_ASKED, {}))
        return Event(self.number, self.id, self.time, read_guarantee(self.guarantee), charged, query, asked)

    def link(self, previous: str) -> str:
        """The SHA-256 of this record and the link before it."""
        return digest(previous, str(self.number), self.id, self.time, self.guarantee, self.cost, self.query)


def account_name() -> str | None:
    """The name of the account that runs this program; None where it has none."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
    return name if name.isprintable() and len(name) <= _LONGEST else None


def read_guarantee(text: str) -> Guarantee:
    """The guarantee that an event stores."""
    promise = json.loads(text)
    bought = promise.get("earlier", ())
    earlier = (Purchase(event, Decimal(epsilon), Decimal(delta)) for event, epsilon, delta in bought)
    return Guarantee(
        Decimal(promise["epsilon"]),
        Decimal(promise["delta"]),
        Relation(promise["protects"]),
        tuple(promise["user"]),
        tuple(promise["public"]),
        tuple(earlier),
        tuple(promise.get("columns", ())),
        tuple(Reach.read(each) for each in promise.get("parts", ())),
    )


def digest(*texts: str) -> str:
    """SHA-256 of several texts; each is preceded by its length, so that no two lists collide by joining."""
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode()
        whole.update(f"{len(data)}:".encode() + data)
    return whole.hexdigest()


def _cost_data(cost: Cost) -> dict[str, str | None]:
    rho = None if cost.rho is None else exact_text(cost.rho)
    data = {"epsilon": exact_text(cost.epsilon), "delta": exact_text(cost.delta), "rho": rho}
    return data | ({"beyond": exact_text(cost.beyond)} if cost.beyond else {})


def _json(data: Mapping[str, object]) -> str:
    return json.dumps(data, sort_keys=True, allow_nan=False, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return exact_text(value)
    raise TypeError

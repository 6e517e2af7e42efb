"""What a ledger can hand out: its events as files, and the facts of a compliance page.

Everything here is in the ledger: totals, who asked what at which price, and what was said about users before anything was
read. No answer is among it.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import Guarantee, plain
from evenhand.guarantee.amounts import exact_sum
from evenhand.ledger.composition import Budget, Cost

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from evenhand.ledger.events import Event
    from evenhand.ledger.ledger import Ledger

_EXPORTED = ("number", "time", "what", "epsilon", "delta", "protects", "who", "table", "note", "query", "id")


def rows(ledger: Ledger) -> list[dict[str, Any]]:
    """All events, oldest first, each as one flat row of text."""
    events = ledger.events
    numbers = {event.id: event.number for event in events}
    return [
        {
            "number": event.number,
            "time": event.time,
            "what": _what(event, numbers),
            "epsilon": plain(event.cost.epsilon),
            "delta": plain(event.cost.delta),
            "protects": _protects(event),
            "query": json.dumps(event.query, ensure_ascii=False, sort_keys=True),
            "id": event.id,
            **event.asked.to_dict(),
        }
        for event in events
    ]


def as_csv(ledger: Ledger) -> str:
    """All events, for a spreadsheet."""
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, _EXPORTED)
    table.writeheader()
    table.writerows(rows(ledger))
    return text.getvalue()


def as_jsonl(ledger: Ledger) -> str:
    """All events, whole, one JSON object per line."""
    return "".join(json.dumps(one.to_dict(), ensure_ascii=False, default=str) + "\n" for one in ledger.events)


def promise(ledger: Ledger) -> Guarantee | None:
    """What the ledger's total promises; None before its first event, which settles whose privacy it is."""
    unit, relation, total = ledger.unit, ledger.relation, ledger.total
    if unit is None or relation is None:
        return None
    users = next((event.guarantee.user for event in ledger.events if event.guarantee.user), ())
    parts = tuple(dict.fromkeys(part for event in ledger.events for part in event.guarantee.parts))
    return Guarantee(total.epsilon, total.delta, relation, unit, ledger.public or (), (), users, parts)


def composition(ledger: Ledger) -> str:
    """How costs add up here."""
    if not ledger.total.delta:
        return "Sequential composition of pure differential privacy: the ε of all releases add up to at most the total."
    return (
        "A privacy filter, valid for questions chosen in view of earlier answers: ε and δ of all releases add up while they "
        "stay within the total, and from then on Rényi differential privacy is added up and converted to the total's (ε, δ)."
    )


def compliance(ledger: Ledger) -> dict[str, Any]:
    """The facts of a compliance page: who is protected from what, totals, every release and how it was bounded.

    Raises LedgerError if the history was edited: a page is only made of a history that is whole.
    """
    ledger.verify()
    promised, decided = promise(ledger), _decided(ledger)
    return {
        "ledger": ledger.location.rpartition("/")[2],
        "promise": promised,
        "total": ledger.total,
        "spent": ledger.spent,
        "remaining": ledger.remaining,
        "composition": composition(ledger),
        "head": ledger.head,
        "releases": [
            row | {"bounded": bounded(event), "decided": _who_decided(event, decided)}
            for row, event in zip(rows(ledger), ledger.events, strict=True)
        ],
        "askers": _askers(ledger),
    }


def bounded(event: Event) -> str:
    """How the influence of one user was bounded, as it was settled before anything was read."""
    told = event.query.get("bounding")
    if not isinstance(told, dict):
        return "public fact, released exactly" if "exact" in event.query else ""
    chosen = f" ({told['chosen']})" if told.get("chosen") else ""
    return f"{told.get('words', '')}{chosen}"


def _askers(ledger: Ledger) -> dict[str, Budget]:
    """Who asked, and the ε and δ of what they asked, simply added up."""
    costs: dict[str, list[Cost]] = {}
    for event in ledger.events:
        costs.setdefault(event.asked.who or "not recorded", []).append(event.cost)
    return {
        who: Budget(exact_sum([one.epsilon for one in paid]), exact_sum([one.delta for one in paid]))
        for who, paid in costs.items()
    }


def _decided(ledger: Ledger) -> dict[int, str]:
    """Who approved what, where a keeper's server kept that beside the ledger."""
    from sqlalchemy import inspect, select

    from evenhand.ledger.desk_tables import asked_table

    def work(connection: Connection) -> dict[int, str]:
        if not inspect(connection).has_table(asked_table.name):
            return {}
        approved = asked_table.c.decided_by.is_not(None) & asked_table.c.event.is_not(None)
        query = select(asked_table.c.event, asked_table.c.decided_by).where(approved)
        return {row.event: row.decided_by for row in connection.execute(query)}

    return ledger._store.run(work)


def _who_decided(event: Event, decided: dict[int, str]) -> str:
    if event.number in decided:
        return f"approved by {decided[event.number]}"
    return "within the limits that the keeper set" if "desk" in event.query else "by whoever holds the ledger"


def _what(event: Event, numbers: dict[str, int]) -> str:
    """The question, and the earlier events that decided how users are bounded."""
    asked = ((word, event.query.get(name)) for word, name in (("", "statistic"), ("of ", "column"), ("by ", "by")))
    what = " ".join(
        word + (", ".join(map(str, one)) if isinstance(one, list) else str(one)) for word, one in asked if one
    )
    known = [numbers.get(purchase.event or "") for purchase in event.guarantee.earlier]
    rests = ", ".join(f"#{number}" if number else "an event elsewhere" for number in known)
    return f"{what} (bound from {rests})" if rests else what


def _protects(event: Event) -> str:
    """The relation, and which columns count as public."""
    public = ", ".join(event.guarantee.declared)
    return f"{event.guarantee.relation.value} (public: {public})" if public else event.guarantee.relation.value

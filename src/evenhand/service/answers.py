"""What analysts and the keeper may do, as plain data: one place for the JSON interface and the page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from datetime import datetime
from decimal import Decimal
from typing import Any

import evenhand
from evenhand.guarantee import UsageError, plain
from evenhand.ledger import Budget
from evenhand.ledger.desk import Desk, Standing, StoredQuestion
from evenhand.service.accounts import Account, Role
from evenhand.service.granted import Offered
from evenhand.service.keeper import Keeper
from evenhand.tables import Column, Part, Table

PAGE = 100
"""Questions on one page of a list, unless fewer are asked for."""
LATE = "It was paid for, and its answer is kept and will be stored: it is shown as soon as the store has taken it."
WAIT = 20.0
"""Seconds that a request for an answer may wait, so that clients need not ask again and again."""


class Desks:
    """A keeper, asked by accounts.

    Args:
        keeper: what answers.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def tables(self, account: Account, _: object = None) -> dict[str, Any]:
        """The tables that an analyst may ask about."""
        return {"tables": [_described(name, one) for name, one in self._offered(account).items()]}

    def budget(self, account: Account, _: object = None) -> dict[str, Any]:
        """What an analyst and everybody have left."""
        desks = _desks(self._offered(account).values())
        asks = account.role is Role.ANALYST
        total = self._keeper.limits(account.name).total if asks else Budget(Decimal(0))
        spent = [_amounts(desk.spent(account.name)) for desk in desks] if asks else []
        return {
            "yours": {"total": _amounts(total), "spent": spent},
            "populations": [
                {"total": _amounts(desk.ledger.total), "remaining": _amounts(desk.ledger.remaining)} for desk in desks
            ],
        }

    def preview(self, account: Account, given: dict[str, Any]) -> dict[str, Any]:
        """The price of a question."""
        return self._keeper.preview(account.name, _text(given, "table"), _question(given))

    def ask(self, account: Account, given: dict[str, Any], wait: float = WAIT) -> dict[str, Any]:
        """Pay for a question and have it answered."""
        key = _text(given, "key")
        if key is None:
            raise UsageError(
                "key= is missing: any text that you use for this one question, so that a retry is not paid twice."
            )
        asked = self._keeper.ask(account.name, _text(given, "table"), key, _question(given))
        if not wait:
            return self._told(asked, self._keeper.held(asked))
        return self.shown(account, {"id": asked.id}, wait)

    def shown(self, account: Account, given: dict[str, Any], wait: float = WAIT) -> dict[str, Any]:
        """A question, with its answer if that may be seen. Waits for those only who may see how long an answer takes."""
        mine = account.name if account.role is Role.ANALYST else None
        asked, held = self._keeper.find(mine, _id(given))
        if account.role is Role.READER:  # how long an answer took is nothing that a reader sees
            return self._told(asked, self._keeper.held(asked, anybody=True))
        running = None if held or asked.answer else self._keeper.running(asked.analyst, asked.id)
        if running is not None and wait and wait_for([running], timeout=wait).done:
            asked, held = self._keeper.find(mine, _id(given))
        return self._told(asked, held)

    def _told(self, asked: StoredQuestion, held: datetime | None) -> dict[str, Any]:
        shown = _shown(asked, held)
        return {**shown, "note": LATE} if held and self._keeper.late(asked) else shown

    def running(self, shown: dict[str, Any]) -> Future[str] | None:
        """What a request may wait for before it asks `shown` again."""
        return None if shown.get("answer", "kept back") else self._keeper.running(shown["analyst"], shown["id"])

    def history(self, account: Account, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What an analyst asked; for the keeper, what everybody did: the latest, and where the next page begins."""
        given = given or {}
        mine = account.name if account.role is Role.ANALYST else None
        limit, standing = _limit(given), _standing(given)
        desks, before = _desks(self._keeper.tables.values()), _text(given, "before")
        place = None
        if before is not None:
            # One list over all desks: those that are older than the question, wherever it stands.
            place = next((one for desk in desks if (one := desk.find(before)) and mine in (None, one.analyst)), None)
            if place is None:
                raise UsageError(f"before={before[:40]!r}: there is no such question of yours; expected the id of one.")
        found = [one for desk in desks for one in desk.page(mine, standing, before=place, limit=limit)]
        found = sorted(found, key=lambda one: (one.time, one.id))[-limit:]
        more = bool(found) and any(desk.page(mine, standing, before=found[0], limit=1) for desk in desks)
        return {"questions": [_asked(one) for one in found], **({"before": found[0].id} if more else {})}

    def export(self, account: Account, _: object = None) -> dict[str, Any]:
        """For the keeper: every promise, debit, question and stored answer; the ledgers are verified first."""
        found = []
        for desk in _desks(self._keeper.tables.values()):
            desk.verify()
            asked = [{**_asked(one), "answer": json.loads(one.answer) if one.answer else None} for one in desk.asked()]
            found.append(
                {
                    "total": _amounts(desk.ledger.total),
                    "spent": _amounts(desk.ledger.spent),
                    "head": desk.ledger.head,
                    "events": [event.to_dict() for event in desk.ledger.events],
                    "questions": asked,
                }
            )
        return {"populations": found}

    def decide(self, account: Account, given: dict[str, Any]) -> dict[str, Any]:
        """Approve or deny what waits."""
        if not isinstance(given.get("approve"), bool):
            raise UsageError(f"approve={given.get('approve')!r}: expected true or false.")
        return _asked(self._keeper.decide(_id(given), approve=given["approve"], by=account.name))

    def _offered(self, account: Account) -> Mapping[str, Offered]:
        return self._keeper.offered(account.name) if account.role is Role.ANALYST else self._keeper.tables


def _desks(offered: Iterable[Offered]) -> list[Desk]:
    return list({id(one.desk): one.desk for one in offered}.values())


def _question(given: dict[str, Any]) -> dict[str, Any]:
    question = given.get("question")
    if not isinstance(question, dict):
        raise UsageError('question= is missing: expected an object such as {"ask": "count", "epsilon": "0.1"}.')
    return question


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not (isinstance(value, str) and value.isprintable()):  # databases refuse other characters
        raise UsageError(f"{name}= is not text, or holds characters that can't be printed.")
    return value


def _id(given: dict[str, Any]) -> str:
    return _text(given, "id") or ""


def _limit(given: Mapping[str, Any]) -> int:
    limit = str(given.get("limit", PAGE))
    if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:9]) <= PAGE:
        raise UsageError(f"limit={limit[:40]!r}: expected a number from 1 to {PAGE}.")
    return int(limit)


def _standing(given: Mapping[str, Any]) -> Standing | None:
    standing = given.get("standing")
    if standing is None:
        return None
    if standing not in set(Standing):
        raise UsageError(f"standing={str(standing)[:40]!r}: expected one of {[str(one) for one in Standing]}.")
    return Standing(standing)


def _amounts(budget: Budget) -> dict[str, str]:
    return {"epsilon": plain(budget.epsilon), "delta": plain(budget.delta)}


def _asked(asked: StoredQuestion) -> dict[str, Any]:
    return {
        "id": asked.id,
        "analyst": asked.analyst,
        "key": asked.key,
        **json.loads(asked.question),
        "cost": _amounts(asked.cost),
        "standing": Standing.PAID if asked.standing is Standing.ANSWERED else asked.standing,
        "time": asked.time,
        "decided_by": asked.decided_by,
    }


def _shown(asked: StoredQuestion, held: datetime | None) -> dict[str, Any]:
    if held:
        return {**_asked(asked), "ready": held.isoformat()}
    return {**_asked(asked), "answer": json.loads(asked.answer) if asked.answer else None}


def _facts(fact: Column | None) -> dict[str, Any]:
    """What was stated about a column."""
    if fact is None:
        return {}
    stated = {"bounds": fact.bounds and list(fact.bounds), "keys": fact.keys and [str(key) for key in fact.keys]}
    return {
        name: value for name, value in {**stated, "unit": fact.unit, "description": fact.description}.items() if value
    }


def _joinable(part: Part) -> dict[str, Any]:
    """A part that may be joined in SQL, and by which columns: those of its owner, with its own."""
    return {"name": part.name, "on": dict(part.keys or {}), "columns": _columns(part.rows)}


def _columns(table: Table) -> list[dict[str, Any]]:
    return [
        {"name": column, "type": str(kind), **_facts(table.facts.get(column))}
        for column, kind in table.expression.schema().items()
    ]


def _described(name: str, one: Offered) -> dict[str, Any]:
    table = one.table
    columns = _columns(table)
    return {
        "name": name,
        "description": one.description,
        "user": list(table.user),
        "protects": table.relation.value,
        "public": list(table.public),
        "columns": columns,
        "parts": [_joinable(part) for part in table.parts.values()],
        "version": evenhand.__version__,
    }

"""Budgets and ledgers of a keeper as plain data, for the page: what is left, for whom, and what was written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from evenhand.guarantee import UsageError, plain
from evenhand.guarantee.amounts import exact_sum
from evenhand.ledger import Budget, handout
from evenhand.ledger.desk import Desk, Limits
from evenhand.service.keeper import Keeper


def desks(keeper: Keeper, analyst: str | None = None) -> dict[str, Desk]:
    """The desks that an analyst may ask at, or all, by the name of their people."""
    offered = keeper.tables if analyst is None else keeper.offered(analyst)
    found: dict[int, tuple[str, Desk]] = {}
    for one in offered.values():
        found.setdefault(id(one.desk), (one.table.population or ", ".join(one.table.user), one.desk))
    names: dict[str, Desk] = {}
    for name, desk in found.values():
        names[name if name not in names else f"{name} ({len(names) + 1})"] = desk
    return names


def allowance(keeper: Keeper, analyst: str, name: str, desk: Desk) -> dict[str, Any]:
    """What an analyst may still spend at a desk, and everybody."""
    limits = keeper.limits(analyst)
    purses = [_purse("Yours", limits.total, desk.spent(analyst))]
    if limits.per_period is not None:
        purses.append(_purse("Yours, this month", limits.per_period, desk.spent(analyst, now=True)))
    if limits.unapproved is not None:
        free = Budget(limits.unapproved)
        purses.append(_purse("Without approval", free, desk.spent(analyst, approved=False)))
    notes = [] if limits.per_question is None else [f"One question may cost ε = {plain(limits.per_question)}."]
    return {"population": name, "purses": [*purses, *_everybody(desk)], "notes": notes}


def allowances(keeper: Keeper, analyst: str) -> list[dict[str, Any]]:
    """The same for all desks."""
    return [allowance(keeper, analyst, name, desk) for name, desk in desks(keeper, analyst).items()]


def needs_approval(desk: Desk, analyst: str, limits: Limits, cost: Budget) -> bool:
    """Whether a question of this price would wait for the keeper."""
    if limits.unapproved is None:
        return False
    return exact_sum([desk.spent(analyst, approved=False).epsilon, cost.epsilon]) > limits.unapproved


def populations(keeper: Keeper, *, events: bool = False) -> list[dict[str, Any]]:
    """For the keeper: each ledger, who spent what of it, and on demand its events."""
    found = []
    for number, (name, desk) in enumerate(desks(keeper).items()):
        told: dict[str, Any] = {"number": number, "name": name, "purses": _everybody(desk)}
        told["analysts"] = [
            {**_purse(analyst, keeper.limits(analyst).total, desk.spent(analyst))}
            for analyst in keeper.analysts
            if desk in desks(keeper, analyst).values()
        ]
        if events:
            promised = handout.promise(desk.ledger)
            told["protects"] = (
                promised.protected if promised else "nobody yet: the first release settles whose privacy it is"
            )
            told |= {"events": handout.rows(desk.ledger), "head": desk.ledger.head}
        found.append(told)
    return found


def numbered(keeper: Keeper, number: str) -> tuple[str, Desk]:
    """A desk by its place in the list."""
    listed = list(desks(keeper).items())
    if not number.isdecimal() or int(number) >= len(listed):
        raise UsageError(f"there is no ledger {number[:20]!r}; expected a number below {len(listed)}.")
    return listed[int(number)]


def _everybody(desk: Desk) -> list[dict[str, Any]]:
    ledger = desk.ledger
    purses = [_purse("Everybody", ledger.total, ledger.spent)]
    if desk.per_period is not None:
        purses.append(_purse("Everybody, this month", desk.per_period, desk.spent(now=True)))
    return purses


def _purse(name: str, total: Budget, spent: Budget) -> dict[str, Any]:
    left = Budget(_minus(total.epsilon, spent.epsilon), _minus(total.delta, spent.delta))
    amounts = {"total": total, "spent": spent, "left": left}
    return {"name": name, **{key: _amounts(one) for key, one in amounts.items()}}


def _minus(total: Decimal, spent: Decimal) -> Decimal:
    return max(exact_sum([total, spent.copy_negate()]), Decimal(0))


def _amounts(budget: Budget) -> dict[str, str]:
    return {"epsilon": plain(budget.epsilon), "delta": plain(budget.delta)}

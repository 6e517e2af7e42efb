"""What a ledger lets in: only releases that promise at least what it promises, whether they cost anything or not.

A public fact costs nothing, but what is public on one ledger may be just what another protects: the number of users is public
under ``values`` and hidden under ``presence``. So public facts are admitted like everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.guarantee import Guarantee, Relation, UsageError, plain
from evenhand.ledger.composition import Account, Cost

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from evenhand.ledger.events import Event
    from evenhand.ledger.state import State

Admit: TypeAlias = "Callable[[Connection, State, Cost], Event | Mapping[str, Any]]"
"""Has a say inside the transaction of a debit: raises to refuse it, hands back the event that paid for it earlier, or what
the event is to note beside the query."""


def charge(name: str, state: State, cost: Cost, guarantee: Guarantee) -> Cost:
    """What a release costs under the unit and relation of the ledger called ``name``; refuses what promises less."""
    if cost.delta and not state.account.total.delta:
        raise UsageError(
            f"this release needs delta={plain(cost.delta)}, but ledger {name} holds pure ε "
            "(delta=0). Use Laplace noise and public keys, or another ledger created with delta=."
        )
    if state.unit is None or state.relation is None:
        return cost
    if guarantee.unit != state.unit:
        raise UsageError(
            f"ledger {name} protects {', '.join(state.unit)}, but this release protects "
            f"{', '.join(guarantee.unit)}. If these are the same people, give both tables the same "
            "population name; if they are others, use another ledger."
        )
    steps = guarantee.relation.cost_under(state.relation)
    if steps is None:
        raise UsageError(
            f"ledger {name} protects {state.relation}, and a release that protects "
            f"{guarantee.relation} implies nothing about that. Use another ledger, or read the table "
            f"with protects='{state.relation}'."
        )
    _check_public(name, state, guarantee)
    return cost.for_group(steps)


def public_after(state: State, guarantee: Guarantee) -> tuple[str, ...] | None:
    """The public columns of the ledger once the release is debited: the first to name any fixes them."""
    if state.public is not None:
        return state.public
    relation = state.relation or guarantee.relation
    return guarantee.declared or (None if relation is Relation.LABELS else ())


def _check_public(name: str, state: State, guarantee: Guarantee) -> None:
    """Refuse columns that were not public before: earlier releases promised to protect them.

    The user columns of the release are public wherever anything is: under values and labels it is known who is in the table. The
    unit is not compared: a population has a name of its own, which may be that of a private column, and the user columns of
    another table may have the names of private columns of this one.
    """
    if state.public is None:
        return
    known = (*state.public, *guarantee.user)
    news = [column for column in guarantee.declared if column not in known]
    if news:
        public = ", ".join(state.public) or "none"
        raise UsageError(
            f"this release treats {', '.join(news)} as public, which ledger {name} protects (its public columns: {public}). "
            "What is public is fixed by the first release of a ledger. Leave these columns out of public=, or use another "
            "ledger."
        )


def check_parts(connection: Connection, name: str, guarantee: Guarantee) -> None:
    """Refuse to reach the rows of a part by other columns than before: earlier releases promised to protect what only one user reaches by those.

    Reached by a column that everybody's rows share, all rows of a part would be everybody's, and nobody's would be protected.
    """
    from evenhand.ledger import state as ledger_state

    for part in guarantee.parts:
        earlier = ledger_state.reach(connection, part.part)
        if earlier is not None and earlier != part:
            raise UsageError(
                f"this release reaches the rows of {part}, and earlier ones from ledger {name} reached those of {earlier}: whose rows they are "
                "is fixed by the first release. Join by the same columns, or use another ledger; if this is another table, give it a name of its "
                "own: eh.read_part(..., name=...)."
            )


def refusal(name: str, cost: Cost, account: Account) -> str:
    """What is said when the total would not hold."""
    return (
        f"this release costs {account.price(cost)}, but the budget in ledger {name} has {account.remaining} left of "
        f"{account.total}. Nothing was read or spent. Ask for less, or stop here: the total is the limit "
        "that was promised to the people in the table."
    )

"""Recomputing a ledger from its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.guarantee import LedgerError
from evenhand.ledger import failures
from evenhand.ledger.composition import Account
from evenhand.ledger.events import Record

if TYPE_CHECKING:
    from evenhand.ledger.state import State


def verify_history(name: str, state: State, records: Sequence[tuple[Record, str]], head: str | None) -> None:
    """Raise LedgerError if the state, or the noted ``head``, does not follow from the records with their stored links."""
    from evenhand.ledger import state as ledger_state

    account = Account(state.account.total, state.account.order)
    link = ledger_state.genesis(state.id, account.total, account.order)
    links = {link}
    for number, (record, stored) in enumerate(records, start=1):
        with failures.damaged(name):
            event, link = record.read(), record.link(link)
        links.add(link)
        after = account.after(event.cost)
        same = event.guarantee.unit == state.unit and (number > 1 or event.guarantee.relation == state.relation)
        if record.number != number or link != stored or after is None or not same:
            raise LedgerError(f"ledger {name}: event {number} was edited, removed or inserted afterwards.")
        account = after
    if (account, link, len(records)) != (state.account, state.head, state.events):
        raise LedgerError(f"ledger {name}: its totals do not agree with its {len(records)} events.")
    if head is not None and head not in links:
        raise LedgerError(
            f"ledger {name}: the noted head is not in its history. It was restored from an "
            "older backup or is another ledger; count what was released since as spent."
        )

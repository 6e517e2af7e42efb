"""A ledger as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.guarantee import EvenhandError, plain
from evenhand.pages.notebook import Card

if TYPE_CHECKING:
    from evenhand.ledger.ledger import Ledger

_LATEST = 10


class ShownInNotebooks:
    """What is spent and left, and the latest debits."""

    def _repr_html_(self: Ledger) -> str:  # type: ignore[misc] # mixed into Ledger alone
        try:
            named = [("total", str(self.total)), ("spent", str(self.spent)), ("remaining", str(self.remaining))]
            events = self.events
        except EvenhandError:
            return Card(f"Ledger {self.location}", [("unreadable", "see ledger.verify()")]).html()
        if len(events) > _LATEST:
            named.append(("releases", f"{len(events):,}; the latest {_LATEST} are shown"))
        rows = [
            (
                str(event.number),
                event.time[:16].replace("T", " "),
                " ".join(str(event.query[name]) for name in ("statistic", "column", "by") if event.query.get(name)),
                plain(event.cost.epsilon),
                plain(event.cost.delta),
            )
            for event in events[-_LATEST:]
        ]
        return Card(f"Ledger {self.location}", named, ("#", "time (UTC)", "released", "ε", "δ"), rows).html()

"""The durable budget: events, their composition, and a ledger that many processes can share."""

from evenhand.ledger.composition import Budget, Cost, mechanism_delta, rho_with_pure
from evenhand.ledger.events import Event
from evenhand.ledger.ledger import Ledger

__all__ = ["Budget", "Cost", "Event", "Ledger", "mechanism_delta", "rho_with_pure"]

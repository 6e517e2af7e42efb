"""A strategy with its bound, and what is known about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from evenhand.bounding.busy_users import BusyUsers
from evenhand.bounding.lost_by_group import Lost, MovedWeight
from evenhand.bounding.strategy import Strategy
from evenhand.profiles import CutTotal
from evenhand.release import Bounding, Error

if TYPE_CHECKING:
    from evenhand.bounding.mean_bias import MeanBelief

NOT_KNOWN = Error(None).basis


@dataclass(frozen=True)
class Choice:
    """A bound on each user: given, or chosen from released or public facts only.

    Args:
        strategy: with its bound.
        basis: what the bound was chosen from; None if it was given.
        paid: the part of ε that the choice cost.
        noise: forecast standard deviation of the noise; None where nothing was compared.
        bias: forecast of what the bound does, in the unit of the value; None if nothing is known.
        bias_basis: where that forecast comes from.
        shown: the bound in the unit of the value, where that is not the strategy's own.
        cut: what the bound probably takes from the total, in the unit of the value; None if nothing is known.
        words: what happens to a user, where the strategy alone can't say it.
        belief: what the bound probably did to a mean; None where nothing was bought that could tell.
        lost: of a total by group, what the bound takes from all groups together, in the unit of the norm.
        moved: of an average by group, the weight that the bound moves from busy users to others.
        busy: for quantiles, the users who are cut, as far as they are known.
    """

    strategy: Strategy
    basis: str | None = None
    paid: Decimal = Decimal(0)
    noise: float | None = None
    bias: float | None = None
    bias_basis: str = NOT_KNOWN
    shown: float | None = None
    words: str | None = None
    belief: MeanBelief | None = None
    lost: Lost | None = None
    moved: MovedWeight | None = None
    cut: CutTotal | None = None
    busy: BusyUsers | None = None

    @property
    def forecast(self) -> float:
        """Forecast root mean squared error: noise and bias together."""
        return math.hypot(self.noise or 0.0, self.bias or 0.0)

    @property
    def bounding(self) -> Bounding:
        """How the choice appears in the release."""
        shown = float(self.strategy.bound) if self.shown is None else self.shown
        words = self.strategy.describe() if self.words is None else self.words
        chosen = "given" if self.basis is None else f"chosen from {self.basis}"
        return Bounding(self.strategy.title, shown, words, chosen, self.paid or None)

    def costing(self, paid: Decimal) -> Choice:
        """The same choice, once it is known what it cost."""
        return replace(self, paid=paid)

    def error(self, noise: float) -> Error:
        """The forecast error once the noise is known."""
        return Error(noise, self.bias, self.bias_basis)

"""Whether a model will beat a constant one: one rule for all plans of models."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Self

from evenhand.guarantee import Amount, UsageError
from evenhand.pages.numbers import percent, three_digits, written
from evenhand.planning.searching import smallest

LABEL_SD = 0.25
"""Standard deviation of a numeric label as a part of its bounds: the same guess as for values in other plans."""

LEARNABLE = 0.1
"""The part of the constant model's loss that a linear model without privacy would save: a guess."""


class AgainstConstant(ABC):
    """A forecast of a model's loss above the best linear model's, held against what there is to learn.

    ``shares``: the part of the rows in each class, none for numbers; ``learnable``: the part of the constant model's loss that there is to save.
    """

    epsilon: Decimal
    loss: str
    shares: tuple[float, ...]
    learnable: float

    falls_with_people = 2
    """With so high a power of the number of people the excess falls: with the square where noise moves a smooth loss's minimum."""

    @property
    @abstractmethod
    def excess(self) -> float:
        """The forecast loss above the best linear model's; squared loss in units of the label bounds' width."""

    @abstractmethod
    def at(self, epsilon: Amount) -> Self:
        """The same plan at another ε."""

    @property
    def constant(self) -> float:
        """The loss of the best constant model."""
        return constant_loss(self.loss, self.shares)

    @property
    def gain(self) -> float:
        """The forecast of how much better than a constant model it will be; negative if it will be worse."""
        return self.learnable * self.constant - self.excess

    @property
    def beats_constant(self) -> str:
        """Whether more than half of what there is to learn is left: yes; all of it is lost: no; otherwise can't tell."""
        return beats_constant(self.excess, self.constant, self.learnable)

    @property
    def usable(self) -> bool:
        """Whether the model is forecast to beat a constant one."""
        return self.beats_constant == "yes"

    @functools.cached_property
    def why(self) -> str:
        """Why not, and what it would take; empty if it is usable."""
        if self.usable:
            return ""
        goal = self.learnable * self.constant / 2
        times = (self.excess / goal) ** (1 / self.falls_with_people)
        people, digits = f"{written(times, 2)} times as many people", 2
        if times < 1.2:  # nearly enough: with two digits it would seem to be
            people, digits = f"{math.ceil(100 * times - 100)}% more people", 3
        try:
            more = f", or ε = {max(self.epsilon_for(goal), 1.01 * float(self.epsilon)):.{digits}g},"
        except UsageError:  # what the bounds cost is more than that
            more = ""
        return (
            f"noise is forecast to cost {percent(self.excess / self.constant)} of a constant model's loss, where {percent(self.learnable)} is taken "
            f"to be there to save; too few people for this ε: about {people}{more} "
            "would keep half of it"
        )

    def epsilon_for(self, excess: float) -> float:
        """The smallest ε whose forecast is at most ``excess``."""
        return smallest(lambda epsilon: self.at(repr(epsilon)).excess <= excess, 1e-6, 1e4, "ε")

    @property
    def verdict(self) -> str:
        """What a constant model loses, what there is to save, what is lost, and what it would take."""
        text = (
            f"A constant model has a loss of about {three_digits(self.constant)}; of that {percent(self.learnable)} is taken to be there to save "
            f"({three_digits(self.learnable * self.constant)})."
        )
        if self.shares:
            text += (
                f" The smallest of {len(self.shares)} classes is taken to have {percent(min(self.shares))} of the rows."
            )
        return f"{text} Not usable: {self.why}." if self.why else text

    def worth(self) -> dict[str, Any]:
        """The verdict as data."""
        names = ("learnable", "constant", "excess", "gain", "beats_constant", "usable", "why")
        return {"classes": list(self.shares), **{name: getattr(self, name) for name in names}}


def beats_constant(excess: float, constant: float, learnable: float = LEARNABLE) -> str:
    """Yes if at most half of what there is to learn is lost, no if all of it is."""
    part = excess / (learnable * constant)
    return "yes" if part <= 0.5 else "no" if part >= 1 else "can't tell"


def constant_loss(loss: str, shares: Sequence[float]) -> float:
    """The loss of the best constant model: half the variance of a number, the entropy of classes, twice the smaller class for the hinge."""
    if loss == "squared":
        return LABEL_SD**2 / 2
    return 2 * min(shares) if loss == "huber-svm" else -sum(p * math.log(p) for p in shares)


def parse_worth(loss: str, classes: int | Sequence[float], learnable: float | None) -> tuple[tuple[float, ...], float]:
    """The part of the rows in each class (equal, or in proportion to the numbers given), and what there is to learn."""
    part = LEARNABLE if learnable is None else float(learnable)
    if not 0 < part < 1:
        raise UsageError(f"learnable={part!r} is out of range; expected a part between 0 and 1, such as 0.1.")
    if loss == "squared":
        return (), part
    given = [1.0] * classes if isinstance(classes, int) else [float(size) for size in classes]
    if len(given) < 2 or not all(0 < size < math.inf for size in given):
        raise UsageError(
            f"classes={classes!r}; expected how many classes there are, at least 2, or how many rows each has (or which part), publicly known "
            "or guessed and above 0: classes=(0.99, 0.01)."
        )
    return tuple(size / sum(given) for size in given), part

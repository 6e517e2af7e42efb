"""A campaign's public facts, and the choices made from them alone: θ, the number of questions, the size of a pool."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from evenhand.guarantee import UsageError


@dataclass(frozen=True)
class Setting:
    """A campaign's public facts, as far as accuracy depends on them."""

    sketch: str
    items: int
    rated: int
    epsilon: Decimal
    theta: float = 1.0
    questions: int = 1
    public_rated: bool = False

    @property
    def set_size(self) -> int:
        """How many items a sensing query draws."""
        return max(1, math.floor(self.items * self.theta / self.rated + 0.5))

    @property
    def both_rated(self) -> float:
        """The chance that a person rated both of two items asked about: they did where it is public what they rated, and they are asked accordingly."""
        if self.public_rated:
            return 1.0
        return self.rated * (self.rated - 1) / (self.items * (self.items - 1))


def best_theta(like_rate: float = 0.5) -> Decimal:
    """The θ for which a sensing query says most: 1 / (2 v), v being the share of ratings that are likes.

    A query of m = Nθ/w draws tells likes of one item apart with strength (1 - v w/N)^(m-1), about e^(-θv), and
    senses an item θ times per w queries: θ e^(-2θv) is what counts, and is largest there.
    """
    return Decimal(repr(round(1 / (2 * max(like_rate, 1e-3)), 6)))


def strength(epsilon: float) -> float:
    """How much of a bit's contrast survives flipping: 1 - 2/(e^ε + 1) = tanh(ε/2)."""
    return math.tanh(epsilon / 2)


def best_questions(epsilon: Decimal, items: int, rated: int, theta: Decimal) -> int:
    """The Q that needs the fewest users: it maximises Q tanh²(ε/(2Q)), among those whose sets fit.

    One question is best up to ε of about 3.06, then about ε/2.18 questions are; the paper's ⌈ε⌉ is not best.
    """
    set_size = max(1, math.floor(items * float(theta) / rated + 0.5))
    most = max(1, min(32, items // set_size, math.floor(rated / float(theta))))
    return max(range(1, most + 1), key=lambda count: count * strength(float(epsilon) / count) ** 2)


def pool_size(items: int, rated: int, users: int, theta: float = 1.0) -> int:
    """As few queries as cost no accuracy: about U θ w / N, and enough of each item in any case.

    A small pool adds error that more users do not remove: items that happen to share a query share its answers.
    """
    return min(users, max(math.ceil(users * theta * rated / items), 50 * items))


def groups_rated(groups: int, rated: int) -> int:
    """In how many of equally large groups a person with so many ratings has one, on average: G (1 - (1 - 1/G)^w)."""
    if groups < 2:
        raise UsageError(f"groups={groups} is out of range: expected at least 2.")
    return max(1, round(groups * -math.expm1(rated * math.log1p(-1 / groups))))

"""Where coefficients may lie: a ball or a box, to which a descent projects after every step. Public, so it costs nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.learning.data.private_values import Floats
from evenhand.learning.fitting import halved, public_number


class Constraint(ABC):
    """A convex set of coefficients for the features as they came; intercepts are free."""

    @abstractmethod
    def check(self) -> None:
        """Refuse a set that is none."""

    @abstractmethod
    def nearest(self, f: Floats, factor: Floats) -> Floats:
        """The nearest f for which ``f·factor`` is in the set."""

    def projection(self, factor: Floats, scores: int) -> Callable[[Floats], Floats]:
        """`nearest` for so many scores one after the other, each with as many coefficients as factors and perhaps an intercept."""

        def nearest(f: Floats) -> Floats:
            rows = f.reshape(scores, -1).copy()
            own = self.nearest(rows[:, : len(factor)].ravel(), np.tile(factor, scores))
            rows[:, : len(factor)] = own.reshape(scores, -1)
            return rows.ravel()

        return nearest


@dataclass(frozen=True)
class Box(Constraint):
    """Every coefficient from ``low`` to ``high``; ``Box(0)``: none is negative."""

    low: float = -np.inf
    high: float = np.inf

    def check(self) -> None:
        if not self.low < self.high:
            raise UsageError(f"constraint={self!r}; expected low < high.")

    def nearest(self, f: Floats, factor: Floats) -> Floats:
        return np.clip(f, self.low / factor, self.high / factor)


@dataclass(frozen=True)
class Ball(Constraint):
    """Coefficients of a Euclidean norm of at most ``radius``, all of them together."""

    radius: float

    def check(self) -> None:
        public_number("radius of the constraint", self.radius, smallest=1e-150, largest=1e150)

    def nearest(self, f: Floats, factor: Floats) -> Floats:
        """The nearest point of an ellipsoid is f/(1 + μ·factor²) for one μ ≥ 0, found by halving."""
        squares = (factor / self.radius) ** 2
        if float(squares @ f**2) <= 1:
            return f

        def inside(step: float) -> bool:
            return float(squares @ (f / (1 + step * squares)) ** 2) <= 1

        low, high = 0.0, 1.0
        while not inside(high):
            low, high = high, 2 * high
        _, high = halved(inside, low, high, 60)
        return f / (1 + high * squares)

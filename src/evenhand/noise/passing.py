"""Which groups pass: ways to tell, from how much support each group has, which names may be shown.

A way is calibrated for users who support at most ``groups`` groups. It says what a user adds to each of them, and
tells which groups pass; one without support never does. The proofs are in docs/proofs/key-selection.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.noise import seam


class Round(ABC):
    """One look at the supports.

    Guarantee: `passing` is all that leaves; ``l2_squared`` is how far one user may move the supports.
    """

    l2_squared: int

    @property
    @abstractmethod
    def needed(self) -> float:
        """The support from which a group passes with probability ½."""

    @abstractmethod
    def weight(self, groups: int) -> int:
        """What a user who supports so many groups adds to each."""

    def passing(self, supports: Sequence[int]) -> list[int]:
        """The places of the supports that pass, drawn."""
        tested = [place for place, support in enumerate(supports) if support > 0]
        values = [supports[place] for place in tested]
        substitute = seam.current()
        if substitute is not None:
            shown = [value >= self.needed for value in substitute(self.like[0], values, self.like[1])]
        else:
            shown = self.coins(values)
        return [place for place, passes in zip(tested, shown, strict=True) if passes]

    @property
    @abstractmethod
    def like(self) -> tuple[str, Fraction]:
        """The noise that the coins stand for, for tests that replace it."""

    @abstractmethod
    def coins(self, supports: Sequence[int]) -> list[bool]:
        """For each positive support whether it passes."""


@dataclass(frozen=True)
class Way:
    """A way to select groups, and what it costs: (ε, δ), all rounds together.

    Args:
        groups: how many groups one user may support, at most.
        rounds: one look after the other; what has passed is left out of the next.
        numbers: the part of μ² that is left for numbers about the groups that are shown, with normal noise; (ε, δ) pays for both.
        rho: the same as Δ²/(2σ²) of these numbers, at most.
    """

    epsilon: Decimal
    delta: Decimal
    groups: int
    rounds: tuple[Round, ...]
    numbers: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

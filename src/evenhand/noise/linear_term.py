"""The random linear term of objective perturbation, and what it costs (docs/proofs/objective-perturbation.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.noise.vectors import add_blockwise


@dataclass(frozen=True)
class LinearTerm:
    """Random coefficients b of a term ⟨b, f⟩ that is added to a convex objective, on an integer lattice.

    Guarantee: the exact minimiser with the unrounded b is private with ``epsilon + curvature``.

    Args:
        moves: blocks of coordinates of the gradient, each by its size and how far one user moves it in L2 norm, in lattice
            steps.
        epsilon: for these moves.
        curvature: a bound on how far one user changes the logarithm of the determinant of the objective's Hessian.
    """

    moves: tuple[tuple[int, Fraction], ...]
    epsilon: Decimal
    curvature: Decimal

    @property
    def size(self) -> int:
        """How many coefficients there are."""
        return sum(size for size, _ in self.moves)

    @property
    def scale(self) -> Fraction:
        """The largest scale of a block's noise."""
        return max(move for _, move in self.moves) / Fraction(self.epsilon)

    @property
    def limit(self) -> int:
        """The largest coefficient: 128(d + 1) scales, which are exceeded with a probability below 10⁻¹⁰⁰."""
        return math.ceil(self.scale * 128 * (self.size + 1))

    def drawn(self) -> list[int]:
        """The coefficients."""
        scales = [(size, move / Fraction(self.epsilon)) for size, move in self.moves]
        return [max(-self.limit, min(self.limit, value)) for value in add_blockwise([0] * self.size, scales)]

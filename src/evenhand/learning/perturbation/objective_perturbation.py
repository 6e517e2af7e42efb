"""Objective perturbation with approximate minima: a random linear term, and a little noise on the minimiser.

The noise in the objective is flattened by the curvature of all rows together, the noise in the output only by Λ: for good tables the
same ε gives far smaller errors. The proof of the first needs the exact minimiser and a real-valued linear term; a small second
noise covers how far the computed one is from that (docs/proofs/objective-perturbation.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from evenhand.guarantee import exact_difference, split
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.row_sources import FINE_BITS, FINENESS
from evenhand.learning.perturbation.output_perturbation import LATTICE, Problem, Released
from evenhand.noise.linear_term import LinearTerm
from evenhand.release import Opener, Receipt

OUTPUT_SHARE = Fraction(1, 50)
"""The part of ε for the second noise."""

MOST_ROWS = 2**27
"""From so many kept rows on, or four times as many as are forecast, the model is scaled down, to zero at twice as many: more rows
are summed less accurately."""

FARTHEST = 32
"""Coefficients are cut to this many times the norm that good ones are guessed to have."""

_FINEST = 52  # the largest coefficient of the linear term has so many bits: doubles hold it exactly


@dataclass(frozen=True)
class Parts:
    """How ε is divided: for the linear term, for the change of the Hessian, and for the second noise."""

    linear: Decimal
    curvature: Decimal
    output: Decimal

    @classmethod
    def of(cls, epsilon: Decimal, tau: int, regularisation: float, trace: float, size: int) -> Parts:
        """``trace`` bounds the trace of the Hessian of one row's loss; ``linear`` is not positive if Λ is too small."""
        output, left = split(epsilon, OUTPUT_SHARE)
        cost = Fraction(curvature_cost(tau, regularisation, trace, size) * (1 + 1e-12))
        curvature = Decimal(f"{math.ceil(cost * 10**30)}e-30")
        return cls(exact_difference(left, curvature), curvature, output)


def curvature_cost(tau: int, regularisation: float, trace: float, size: int) -> float:
    """``r·ln(1 + τc/(rΛ))`` with r = min(τ, d): how far one user changes the log-determinant of the Hessian."""
    rank = min(tau, size)
    return rank * math.log1p(tau * trace / (rank * regularisation))


def least_for_objective(tau: int, epsilon: float, trace: float, size: int) -> float:
    """The Λ at which the change of the Hessian takes half of ε."""
    rank = min(tau, size)
    return tau * trace / (rank * math.expm1(min(epsilon / (2 * rank), 700.0)))


def perturb_objective(
    problem: Problem, parts: Parts, coefficient_norm: float, receipt: Receipt, toward: Floats
) -> Released:
    """The minimiser with a random linear term, with noise for how exactly it was found; Λ shrinks it to the public point ``toward``."""
    size, moves = problem.mapped.size, problem.source.relation.moves
    tau, one_step = problem.chosen.tau, moves * problem.chosen.tau * problem.steepest
    widest = max(width for _, width in problem.mapped.blocks) * one_step / Fraction(parts.linear)
    pull = [problem.regularisation * Fraction(float(value)) for value in toward]
    largest = 128 * (size + 1) * widest + max(map(abs, pull))
    exponent = _FINEST - 1 - math.ceil(math.log2(float(largest)))
    unit = Fraction(2) ** -exponent
    pulled = [round(-value / unit) for value in pull]
    blocks = tuple((count, width * one_step / unit) for count, width in problem.mapped.blocks)
    linear = LinearTerm(blocks, parts.linear, parts.curvature)

    root, most = math.isqrt(size) + 1, most_rows(problem.chosen.kept)
    steepest = (linear.limit + max(map(abs, pulled))) * unit
    accuracy = 8 * (2 * most * problem.row / 2**FINE_BITS + root * steepest / 2**49)
    reach = Fraction(FARTHEST * coefficient_norm)
    # Either table's point is so far from its exact minimiser; and scaling it down differs by a user's rows.
    off = (accuracy + root * unit / 2) / problem.regularisation + Fraction(root + 1, 2**FINENESS)
    apart = 2 * off + Fraction(tau, most) * reach
    finer = math.floor(math.log2(LATTICE * float(parts.output) / float(apart)))
    steps = apart * Fraction(2) ** finer + root + 1

    def lattice(opener: Opener, drawn: list[int]) -> list[int]:
        term = np.array([math.ldexp(value + shift, -exponent) for value, shift in zip(drawn, pulled, strict=True)])
        point, left = problem.minimiser(opener, accuracy, most, term)
        scale = left * Fraction(2) ** (finer - FINENESS)
        return [math.floor(step * scale + Fraction(1, 2)) for step in inside(point.steps, reach)]

    noisy = receipt.minimiser(lattice, linear, steps, parts.output)
    coefficients = np.array([float(value) for value in noisy]) * float(Fraction(2) ** -finer)
    return Released(coefficients, float(widest) * float(parts.linear), float(widest))


def most_rows(kept: float) -> int:
    """From how many rows on the model is scaled down, given how many are forecast to be kept (NaN: unknown)."""
    return MOST_ROWS if math.isnan(kept) else max(MOST_ROWS, 2 ** min(math.ceil(math.log2(4 * max(kept, 1.0))), 31))


def inside(steps: Sequence[int], reach: Fraction) -> Sequence[int]:
    """The nearest point of a ball of radius ``reach`` about 0, to within a step of 2^−FINENESS per coordinate."""
    radius = math.floor(reach * 2**FINENESS)
    squared = sum(step * step for step in steps)
    if squared <= radius * radius:
        return steps
    length = math.isqrt(squared) + 1
    return [step * radius // length for step in steps]

"""Output perturbation: spherical noise on the minimiser (amin2019, Algorithm 1; docs/proofs/output-perturbation.md)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from evenhand.learning.losses import MarginLoss
from evenhand.learning.minimise import FINENESS
from evenhand.learning.perturbation import Problem, Released
from evenhand.planning.row_choice import RowChoice
from evenhand.release import Opener, Receipt

ACCURACY = Fraction(1, 1000)
"""The optimiser's gradient norm, in units of what one user can do: 0.2 % more noise buys a certain answer."""

MOST_ROWS = 2**31
"""From so many kept rows on, the model is scaled down, to zero at twice as many, where doubles would not be accurate enough."""

LATTICE = 2**20
"""Lattice steps per noise scale."""


def perturb_output(problem: Problem, receipt: Receipt) -> Released:
    """The minimiser with noise for how far one user moves it."""
    one_user = problem.chosen.tau * problem.row
    accuracy = one_user * ACCURACY
    exact = (problem.source.relation.moves * one_user + 2 * accuracy) / problem.regularisation
    exact += fading(problem.chosen, problem.loss, accuracy)
    exponent = math.floor(math.log2(LATTICE * float(problem.epsilon) / float(exact)))
    # Rounding moves either minimiser by at most half a step per coordinate.
    steps = exact * Fraction(2) ** exponent + math.isqrt(problem.mapped.size) + 1

    def lattice(opener: Opener) -> list[int]:
        found, left = problem.minimiser(opener, accuracy, MOST_ROWS)
        shift = left * Fraction(2) ** (exponent - FINENESS)
        return [math.floor(step * shift + Fraction(1, 2)) for step in found.steps]

    noisy = receipt.vector(lattice, steps, problem.epsilon)
    unit = float(Fraction(2) ** -exponent)
    sensitivity = float(steps) * unit
    coefficients = np.array([float(value) for value in noisy]) * unit
    return Released(coefficients, sensitivity, sensitivity / float(problem.epsilon))


def fading(chosen: RowChoice, loss: MarginLoss, accuracy: Fraction) -> Fraction:
    """How far a user's τ rows move the model by scaling it down: τ/MOST_ROWS of its norm, which public numbers bound.

    No loss is negative, so (Λ/2)‖f‖² is at most the total loss at 0.
    """
    total = 2 * MOST_ROWS * loss.at_zero
    norm = Fraction(math.sqrt(total) * math.sqrt(2 / chosen.regularisation) * (1 + 1e-12))
    return Fraction(chosen.tau, MOST_ROWS) * (norm + accuracy / Fraction(chosen.regularisation))

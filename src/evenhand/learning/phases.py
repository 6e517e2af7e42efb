"""The automatic choices of bounded ERM, and the one or two releases that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from evenhand.guarantee import split
from evenhand.learning.features import FeatureMap
from evenhand.learning.losses import MarginLoss
from evenhand.learning.objective_perturbation import Parts, perturb_objective
from evenhand.learning.output_perturbation import perturb_output
from evenhand.learning.perturbation import Problem, Released
from evenhand.learning.private_values import Floats
from evenhand.learning.sources import Source
from evenhand.planning.row_choice import LARGEST_REGULARISATION, SHRINKS, Scales
from evenhand.planning.two_phases import FIRST, Phase, best_phase, expected, nearer
from evenhand.profiles import Support
from evenhand.release import Receipt

FARTHEST = 2**20
"""How far one user may move the margin, in units of the range over which a loss is curved. Less regularisation is refused:
the release would be nothing but noise, and the optimiser would not end."""


@dataclass(frozen=True)
class Phases:
    """Rows and a loss, with what τ, Λ and what features are divided by are chosen from.

    Args:
        source, loss, mapped: what is minimised.
        scales: what forecasts need, for a map of the features and an ε.
        support: users by number of rows.
        tau, method: as given; None and "auto" where they are chosen.
        constant: the intercept that Λ shrinks to.
    """

    source: Source
    loss: MarginLoss
    mapped: FeatureMap
    scales: Callable[[FeatureMap, Decimal], Scales]
    support: Support
    tau: int | None
    method: str
    constant: float

    def released(self, epsilon: Decimal, receipt: Receipt) -> tuple[Problem, Released]:
        """The model of the last phase, with the problem that it solves."""
        only = best_phase(self.support, self._ways(epsilon), self.method, self.tau)
        toward = np.zeros(self.mapped.size)
        if self.mapped.intercept:
            toward[-1] = self.constant
        one, other = split(epsilon, FIRST)
        if only.chosen.method == "objective":
            first = best_phase(self.support, self._ways(one), "objective", self.tau)
            if math.isfinite(first.excess) and self._second(other, first, None).excess < only.excess:
                _, found = self._release(first, one, toward, receipt)
                moved = found.coefficients - toward
                kinds = [moved[: len(self.mapped.centre)], moved[len(self.mapped.centre) :]]
                squares = np.array([float(np.mean(kind**2)) for kind in kinds if len(kind)])
                only, epsilon = self._second(other, first, squares), other
                part = expected(first, squares).part
                toward = toward + np.repeat(part, [len(kind) for kind in kinds if len(kind)]) * moved
                toward[: len(self.mapped.centre)] *= only.factor / first.factor
        return self._release(only, epsilon, toward, receipt)

    def _ways(self, epsilon: Decimal) -> list[tuple[int, Scales]]:
        factors = SHRINKS if self.mapped.intercept else (1,)
        return [(factor, self.scales(self.mapped.shrunk(factor), epsilon)) for factor in factors]

    def _second(self, epsilon: Decimal, first: Phase, squares: Floats | None) -> Phase:
        ways = nearer(self._ways(epsilon), first, expected(first, squares))
        return best_phase(self.support, ways, "objective", self.tau)

    def _release(self, phase: Phase, epsilon: Decimal, toward: Floats, receipt: Receipt) -> tuple[Problem, Released]:
        mapped = self.mapped.shrunk(phase.factor)
        least = least_regularisation(phase.chosen.tau, self.loss, mapped, self.source.relation.moves)
        ridge = min(max(phase.chosen.regularisation, least), LARGEST_REGULARISATION)
        problem = Problem(self.source, self.loss, mapped, replace(phase.chosen, regularisation=ridge), epsilon)
        return problem, release(problem, self.scales(mapped, epsilon), receipt, toward)


def release(problem: Problem, scales: Scales, receipt: Receipt, toward: Floats) -> Released:
    """The noisy minimiser, by the method that was chosen; objective perturbation regularises toward a public point."""
    chosen = problem.chosen
    if chosen.method == "output":
        return perturb_output(problem, receipt)
    parts = Parts.of(problem.epsilon, chosen.tau, chosen.regularisation, scales.trace, scales.size)
    return perturb_objective(problem, parts, scales.norm, receipt, toward)


def least_regularisation(tau: int, loss: MarginLoss, mapped: FeatureMap, moves: int) -> float:
    """The Λ at which one user moves margins by FARTHEST times the range over which the loss is curved."""
    return moves * tau * loss.roundest * mapped.norm / FARTHEST

"""Plans for models: will a linear model beat a constant one, before anything is spent?

The forecast is for clipped gradient descent over users (`evenhand.learning.WeightedERM`). T steps with noise C·√(T/2ρ) in each coordinate of the
sum, and the average of the second half of the iterates, leave near the optimum an error H⁻¹·z, where H is the curvature of the average loss and z the
averaged noise, of variance C²/(ρ·N²) in each coordinate, N the total weight. The loss above the best is ½·zᵀH⁻¹z on average,

    C²·tr(H⁻¹)/(2ρN²),      tr(H⁻¹) = (d + 1)/c,

with standardised, uncorrelated features and c the average curvature of a row's loss: T drops out. C is the norm that most users' gradients
stay below, √(d + 1) times that of their slopes. On generated tables (500 to 8,000 users, d from 5 to 50) fits ended at 0.4 to 2 times the forecast
wherever it was below what there is to learn.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import Amount, Relation, UsageError, parse_delta, parse_epsilon, plain
from evenhand.ledger import mechanism_delta
from evenhand.noise import rho_for
from evenhand.pages.notebook import Card, InNotebooks
from evenhand.pages.numbers import three_digits
from evenhand.planning.checking import EXPECTED, parse_apart, parse_dimension, relation_of
from evenhand.planning.weighted_risk import Weighted, published_weights, theorem_4
from evenhand.planning.worth import AgainstConstant, parse_worth
from evenhand.profiles import Profile, Sums

LEFT = 0.9
"""The part of ρ that the steps get; the rest finds the clip, the scale and the profile."""

_WEIGHTS = (1, 2, 3, 5, 8, 10)  # bounds on a user's weight that the forecast tries
_CLIPPED = 0.05  # the part of the users whose gradients are clipped
_LOSSES = ("logistic", "squared")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class ModelPlan(AgainstConstant, InNotebooks):
    """A forecast for a linear model with private features, from public facts or a bought profile.

    Guarantee: making and showing a plan spends nothing. A plan made from an exact profile is NOT PRIVATE and says so.

    Args:
        profile: users by number of rows.
        epsilon, delta: of the planned fit.
        relation: the neighbour relation.
        dimension: how many features.
        loss: "logistic" or "squared".
        shares: the part of the rows in each class; none for numbers.
        learnable: the part of the constant model's loss that there is to save.
        heterogeneity: how far the average slope of busy users is taken to be from that of others, in standard deviations of a row's.
        objective: what the bound on weights makes small: the forecast, or the bound of epasto2020's Theorem 4.
    """

    profile: Profile
    epsilon: Decimal
    delta: Decimal
    relation: Relation
    dimension: int
    loss: str
    shares: tuple[float, ...]
    learnable: float
    heterogeneity: float = 0.0
    objective: str = EXPECTED

    @functools.cached_property
    def excess(self) -> float:
        """The forecast loss above the best linear model's, by noise and by weighting users unequally; squared loss in units of the label bounds' width."""
        return self._excess(self.weight_bound)

    @functools.cached_property
    def weight_bound(self) -> float:
        """The largest weight h of a user: of a few, that of the smallest forecast; or the one that makes Theorem 4's bound least."""
        if self.objective == EXPECTED:
            return float(min(_WEIGHTS, key=self._excess))
        given = float(self.epsilon), float(self.delta), self.dimension + 1
        return published_weights(self.profile.support, *given).h

    @property
    def risk_bound(self) -> float:
        """epasto2020's Theorem 4 at this h with L = B = 1 and a constant of 1: compare settings with it, don't quote it."""
        weighted = Weighted(self.profile.support, self.weight_bound)
        return theorem_4(weighted, float(self.epsilon), float(self.delta), self.dimension + 1)

    def _excess(self, h: float) -> float:
        rho = float(rho_for(self.epsilon, mechanism_delta(self.delta))) * LEFT / self.relation.moves**2
        trace = (self.dimension + 1) * float(np.sum(1 / self._curvatures))
        return trace * self._noise(h) ** 2 / (2 * rho) + self._bias(h)

    def at(self, epsilon: Amount) -> ModelPlan:
        """The same plan at another ε."""
        return replace(self, epsilon=parse_epsilon(epsilon))

    def explain(self) -> str:
        """The forecast in plain words."""
        verdict = {"yes": "is forecast to beat", "no": "is forecast not to beat", "can't tell": "may or may not beat"}[
            self.beats_constant
        ]
        text = (
            f"A linear model of {self.dimension} features at ε = {plain(self.epsilon)}, δ = {plain(self.delta)} {verdict} a constant one: noise is "
            f"forecast to cost {three_digits(self.excess)}, give or take a factor of 2. {self.verdict} It is based on {self.profile.basis}: "
            f"{self.profile.words}. It assumes features that are not correlated; if they are, noise costs more where they tell the same."
        )
        return f"{self.profile.mark}.\n{text}" if self.profile.mark else text

    def to_dict(self) -> dict[str, Any]:
        """The plan as data."""
        data: dict[str, Any] = {"mark": self.profile.mark} if self.profile.mark else {}
        return data | {
            "statistic": "erm",
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "protects": self.relation.value,
            "dimension": self.dimension,
            "loss": self.loss,
            "heterogeneity": self.heterogeneity,
            "objective": self.objective,
            "weight_bound": self.weight_bound,
            "risk_bound": self.risk_bound,
            "basis": str(self.profile.basis),
            "users": self.profile.users,
            **self.worth(),
            "words": self.explain(),
        }

    def card(self) -> Card:
        """What a notebook shows."""
        title = f"Plan for a model of {self.dimension} features at ε = {plain(self.epsilon)}, δ = {plain(self.delta)}"
        named = [("usable", "yes" if self.usable else f"no: {self.why}"), ("in words", self.explain())]
        return Card(title, named, mark=self.profile.mark)

    def __str__(self) -> str:
        return self.explain()

    @property
    def _curvatures(self) -> Floats:
        """Of the average loss along each of its scores; for classes all but the direction that is common to them, which changes nothing."""
        if self.loss == "squared":
            return np.ones(1)
        # Confident predictions are flatter than the average label's, by about this much on generated tables.
        p = np.array(self.shares)
        return np.asarray(0.4 * np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[1:])

    def _bias(self, h: float) -> float:
        """What weights up to h cost because busy users differ, as in `row_choice.py`."""
        unit = 1 / 64 if self.loss == "squared" else 1.0
        return (
            unit / 2 * self.heterogeneity**2 * float(Sums.of(self.profile.support).chi_square(np.array([float(h)]))[0])
        )

    def _noise(self, h: float) -> float:
        """C/N for weights up to h."""
        support = self.profile.support
        lengths = np.minimum(support.sizes, h) / np.sqrt(support.sizes)
        order = np.argsort(lengths)
        below = np.cumsum(support.users[order])
        usual = float(lengths[order][np.searchsorted(below, (1 - _CLIPPED) * below[-1])])
        # Slopes of single rows are at most twice their standard deviation in most rows; those of many rows average out.
        scatter = 0.15 if self.loss == "squared" else math.sqrt(1 - sum(p * p for p in self.shares))
        size = math.sqrt(self.dimension + 1)
        weight = float(Sums.of(support).kept(np.array([float(h)]))[0])
        return size * scatter * max(2.0, usual) / weight


def plan_model(
    profile: Profile,
    epsilon: Amount,
    delta: Amount,
    dimension: int | None,
    protects: Relation | str | None,
    loss: str = "logistic",
    classes: int | Sequence[float] = 2,
    learnable: float | None = None,
    heterogeneity: float | None = None,
    objective: str = EXPECTED,
) -> ModelPlan:
    """Check what was asked for, and plan it."""
    features = parse_dimension(dimension)
    if loss not in _LOSSES:
        raise UsageError(f"loss={loss!r} can't be planned; expected one of {list(_LOSSES)}.")
    granted = parse_delta(delta)
    if not granted:
        raise UsageError(
            "delta=0; expected delta > 0, such as 1e-6, for WeightedERM, whose noise is Gaussian; or leave delta= out, for BoundedERM with pure ε."
        )
    shares, part = parse_worth(loss, classes, learnable)
    relation = relation_of(profile, protects)
    apart = parse_apart(heterogeneity, 0.0)
    return ModelPlan(profile, parse_epsilon(epsilon), granted, relation, features, loss, shares, part, apart, objective)

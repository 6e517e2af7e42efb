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
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from evenhand.guarantee import Amount, Relation, UsageError, parse_delta, parse_epsilon, plain
from evenhand.ledger import mechanism_delta
from evenhand.noise import rho_for
from evenhand.pages.notebook import Card, InNotebooks
from evenhand.pages.numbers import percent, three_digits, written
from evenhand.planning.checking import parse_dimension, relation_of
from evenhand.planning.searching import smallest
from evenhand.profiles import Profile, Sums

LABEL_SD = 0.25
"""Standard deviation of a numeric label as a part of its bounds: the same guess as for values in other plans."""

LEARNABLE = 0.1
"""The part of the constant model's loss that a linear model without privacy would save: a guess."""

LEFT = 0.9
"""The part of ρ that the steps get; the rest finds the clip, the scale and the profile."""

_WEIGHTS = (1, 2, 3, 5, 8, 10)  # bounds on a user's weight that the forecast tries
_CLIPPED = 0.05  # the part of the users whose gradients are clipped
_LOSSES = ("logistic", "squared")


@dataclass(frozen=True, repr=False)
class ModelPlan(InNotebooks):
    """A forecast for a linear model with private features, from public facts or a bought profile.

    Guarantee: making and showing a plan spends nothing. A plan made from an exact profile is NOT PRIVATE and says so.

    Args:
        profile: users by number of rows.
        epsilon, delta: of the planned fit.
        relation: the neighbour relation.
        dimension: how many features.
        loss: "logistic" or "squared".
        positives: the part of positive labels.
        learnable: the part of the constant model's loss that there is to save.
    """

    profile: Profile
    epsilon: Decimal
    delta: Decimal
    relation: Relation
    dimension: int
    loss: str
    positives: float
    learnable: float

    @functools.cached_property
    def excess(self) -> float:
        """The forecast loss above the best linear model's, by noise; squared loss in units of the label bounds' width."""
        rho = float(rho_for(self.epsilon, mechanism_delta(self.delta))) * LEFT / self.relation.moves**2
        trace = (self.dimension + 1) / self._curvature
        return trace * min(self._noise(h) for h in _WEIGHTS) ** 2 / (2 * rho)

    @property
    def constant(self) -> float:
        """The loss of the best constant model."""
        if self.loss == "squared":
            return LABEL_SD**2 / 2
        p = self.positives
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    @property
    def gain(self) -> float:
        """The forecast of how much better than a constant model it will be; negative if it will be worse."""
        return self.learnable * self.constant - self.excess

    @property
    def beats_constant(self) -> str:
        """Whether noise leaves more than half of what there is to learn: yes; all of it is lost: no; otherwise can't tell."""
        part = self.excess / (self.learnable * self.constant)
        return "yes" if part <= 0.5 else "no" if part >= 1 else "can't tell"

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
        times = math.sqrt(self.excess / goal)
        enough = smallest(lambda epsilon: self.at(repr(epsilon)).excess <= goal, 1e-6, 1e4, "ε")
        return (
            f"noise is forecast to cost {percent(self.excess / self.constant)} of a constant model's loss, where {percent(self.learnable)} is taken "
            f"to be there to save; too few people for this ε: about {written(times, 2)} times as many people, or ε = {enough:.2g}, would keep half of it"
        )

    def at(self, epsilon: Amount) -> ModelPlan:
        """The same plan at another ε."""
        return replace(self, epsilon=parse_epsilon(epsilon))

    def epsilon_for(self, excess: float) -> float:
        """The smallest ε whose forecast is at most ``excess``."""
        return smallest(lambda epsilon: self.at(repr(epsilon)).excess <= excess, 1e-6, 1e4, "ε")

    def explain(self) -> str:
        """The forecast in plain words."""
        verdict = {"yes": "is forecast to beat", "no": "is forecast not to beat", "can't tell": "may or may not beat"}[
            self.beats_constant
        ]
        text = (
            f"A linear model of {self.dimension} features at ε = {plain(self.epsilon)}, δ = {plain(self.delta)} {verdict} a constant one. "
            f"A constant model has a loss of about {three_digits(self.constant)}; of that {percent(self.learnable)} is taken to be there to save "
            f"({three_digits(self.learnable * self.constant)}), and noise is forecast to cost {three_digits(self.excess)}, give or take a factor of 2. "
            f"It is based on {self.profile.basis}: {self.profile.words}. It assumes features that are not correlated; if they are, "
            "noise costs more where they tell the same."
        )
        text += f" Not usable: {self.why}." if self.why else ""
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
            "positives": self.positives,
            "learnable": self.learnable,
            "basis": str(self.profile.basis),
            "users": self.profile.users,
            "constant": self.constant,
            "excess": self.excess,
            "gain": self.gain,
            "beats_constant": self.beats_constant,
            "usable": self.usable,
            "why": self.why,
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
    def _curvature(self) -> float:
        # Confident predictions are flatter than the average label's, by about this much on generated tables.
        return 1.0 if self.loss == "squared" else 0.4 * self.positives * (1 - self.positives)

    def _noise(self, h: int) -> float:
        """C/N for weights up to h."""
        support = self.profile.support
        lengths = np.minimum(support.sizes, h) / np.sqrt(support.sizes)
        order = np.argsort(lengths)
        below = np.cumsum(support.users[order])
        usual = float(lengths[order][np.searchsorted(below, (1 - _CLIPPED) * below[-1])])
        # Slopes of single rows are at most twice their standard deviation in most rows; those of many rows average out.
        scatter = 0.15 if self.loss == "squared" else math.sqrt(self.positives * (1 - self.positives))
        size = math.sqrt(self.dimension + 1)
        weight = float(Sums.of(support).kept(np.array([float(h)]))[0])
        return size * scatter * max(2.0, usual) / weight


def plan_model(
    profile: Profile,
    epsilon: Amount,
    delta: Amount,
    dimension: int | None,
    protects: Relation | str | None,
    loss: str,
    positives: float,
    learnable: float | None,
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
    for name, part in (("positives", positives), ("learnable", LEARNABLE if learnable is None else learnable)):
        if not 0 < part < 1:
            raise UsageError(f"{name}={part!r} is out of range; expected a part between 0 and 1, such as 0.1.")
    relation = relation_of(profile, protects)
    part = LEARNABLE if learnable is None else float(learnable)
    return ModelPlan(profile, parse_epsilon(epsilon), granted, relation, features, loss, float(positives), part)

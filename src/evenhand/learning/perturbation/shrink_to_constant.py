"""How much of a fitted model to keep beside a constant one: bought with a few hundredths of ε, on one random row of each user.

How much there is to learn is private, so no forecast can know whether noise outweighs it. The released model is therefore compared with
the best constant, and with models between the two, on the rows themselves: a constant, and a choice (docs/proofs/search.md, Claim 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from evenhand.guarantee import Relation
from evenhand.learning.data.features import FeatureMap
from evenhand.learning.data.private_values import Floats, Integers
from evenhand.learning.data.row_sources import RowSource, draws
from evenhand.learning.data.targets import BoundedLabels, Targets
from evenhand.learning.linear_model import LinearModel
from evenhand.learning.selection.evaluation import EXTREME, constant_margin, label_places
from evenhand.learning.selection.per_user_loss import SCORINGS, UNIT, Scoring, margins, regrets, row_losses, scoring_for
from evenhand.planning.row_choice import SPREAD, balance_of
from evenhand.release import Measurement, Receipt
from evenhand.tables import Secret

PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the model, the rest being the constant."""


_MOST = {
    "neg_log_loss": UNIT,
    "accuracy": UNIT,
    "neg_mean_squared_error": SCORINGS["neg_mean_squared_error"].largest // 4,
}
"""What a row may hold against a model at most, in steps of a loss."""


@dataclass(frozen=True)
class ShrinkToConstant:
    """One random row of each user, and the constant that was bought on them."""

    rows: Secret[tuple[Floats, Floats]]
    relation: Relation
    targets: Targets
    weights: tuple[float, float]
    scoring: Scoring
    label: float
    spread: float = SPREAD

    @property
    def constant(self) -> float:
        """The margin of the constant model."""
        lower, upper = self.weights
        part = upper * self.label / (upper * self.label + lower * (1 - self.label))
        return constant_margin(part, self.targets)

    @property
    def start(self) -> float:
        """The same as an intercept of targets, which are centred if they are numbers."""
        return self.constant - (self.targets.offset if isinstance(self.targets, BoundedLabels) else 0.0)

    @property
    def balance(self) -> float:
        """How curved the average loss of a constant model is, in units of the most; of numbers 1."""
        if isinstance(self.targets, BoundedLabels):
            return 1.0
        return balance_of(self.weights[0] * (1 - self.label), self.weights[1] * self.label)

    @classmethod
    def bought(
        cls,
        source: RowSource,
        model: LinearModel,
        targets: Targets,
        mapped: FeatureMap,
        prices: tuple[Decimal, Decimal],
        receipt: Receipt,
    ) -> ShrinkToConstant:
        """Buy the constant, and how far features vary if there is a price for that, which is the second of ``prices``."""
        epsilon, for_spread = prices
        rows, moved = source.sample(1), source.relation.moves * UNIT
        # A row adds UNIT to both numbers together.
        pair = Measurement(lambda: rows.map(lambda own: _halves(own[1], targets)), l1=moved, l2_squared=moved * UNIT)
        noise = moved / float(epsilon)
        upper, lower = (_counted(value, noise) for value in receipt.numbers(pair, epsilon).values)
        given = model._class_weights(targets).tolist()
        label = min(max(upper / (upper + lower), EXTREME), 1 - EXTREME)
        found = cls(rows, source.relation, targets, (given[0], given[-1]), scoring_for(None, model), label)
        if not for_spread:
            return found
        limit = 4 * mapped.squared_radius
        pairs = Measurement(
            lambda: rows.map(lambda own: [paired_squares(mapped.integers(own[0]), limit)]),
            l1=limit,
            l2_squared=limit**2,
        )
        (total,) = receipt.numbers(pairs, for_spread).values
        unit = (upper + lower) / UNIT * mapped.squared_radius  # two rows a pair, and twice the variance
        return replace(found, spread=min(max(total, limit / float(for_spread)) / unit, 1.0))

    def kept_part(self, model: LinearModel, lost: float, epsilon: Decimal, receipt: Receipt) -> float:
        """Shrink a released model toward the constant by what rows lose with it; ``lost``, forecast, is the part of what there may be to learn."""
        most = self.most(model)
        monotone = self.relation is Relation.PRESENCE  # one row more lowers every score, or leaves it
        unit = (1 if monotone else 2) * most / float(epsilon)
        beforehand = [round(unit * math.log(chance)) for chance in _chances(lost)]
        scores = self.rows.map(lambda own: [self.scores(model, *own, most, beforehand)])
        (place,) = receipt.choices(scores, most, epsilon, monotone).places
        part = PARTS[place]
        model.coef_ = model.coef_ * part
        model.intercept_ = (1 - part) * self.constant + part * model.intercept_
        return part

    def gain(self, model: LinearModel) -> float:
        """About what a model takes off the constant's loss, noise included, by its coefficients alone; of the hinge nothing is known."""
        mapped, slopes = model.feature_map_, np.ravel(model.coef_)
        variance = self.spread * float(np.sum((slopes * mapped.scale * mapped.largest) ** 2))
        if isinstance(self.targets, BoundedLabels):
            return variance / 2
        # A parabola for small margins; large ones bring less and less.
        return self.balance * variance / 8 / (1 + 0.3 * variance) if model.loss == "logistic" else math.inf

    def most(self, model: LinearModel) -> int:
        """What a row may hold against a candidate, in steps: no more than the models' margins usually differ by."""
        limit = _MOST[self.scoring.name]
        if self.scoring.name == "accuracy":
            return limit
        mapped, slopes = model.feature_map_, np.ravel(model.coef_)
        at_centre = float(np.ravel(model.intercept_)[0]) + float(slopes @ mapped.centre)
        # Nearly all margins are within two standard deviations.
        deviation = math.sqrt(self.spread) * float(np.linalg.norm(slopes * mapped.scale) * mapped.largest)
        reach = abs(at_centre - self.constant) + 2 * deviation
        steepest = 2 / self.targets.width if isinstance(self.targets, BoundedLabels) else 1.0
        return max(math.ceil(min(reach * steepest * UNIT, limit)), 1)

    def scores(self, model: LinearModel, X: Floats, truth: Floats, most: int, beforehand: list[int]) -> list[int]:
        """Of each part, what is said for it beforehand, minus the sum of what rows hold against it."""
        own = margins(model, X)
        weight = np.where(truth > 0, self.weights[1], self.weights[0])
        found: list[Integers] = []
        for part in PARTS:
            losses = row_losses(self.constant + part * (own - self.constant), truth, self.targets, self.scoring)
            found.append(np.floor(losses * weight).astype(np.int64))
        against = regrets(np.array(found), most).sum(axis=1)
        return [said - int(total) for said, total in zip(beforehand, against, strict=True)]


def paired_squares(rows: Floats, limit: int) -> int:
    """Users in random pairs: the sum of the squared distances of their integer rows, each at most ``limit``."""
    half, order = len(rows) // 2, np.argsort(draws(len(rows)), kind="stable")
    apart = (rows[order[:half]] - rows[order[half : 2 * half]]).astype(np.int64)
    return int(np.minimum((apart * apart).sum(axis=1), limit).sum())


def _chances(lost: float) -> tuple[float, ...]:
    """Of each part to be the best, by how much of what there may be to learn is forecast to be lost."""
    if lost > 0.5:
        nothing = min(max(0.4 * lost - 0.2, 0.2), 0.6)
        return (nothing, *((1 - nothing) / 4,) * 4)
    doubt = max(0.4 * lost, 1e-6)
    return (doubt / 10, doubt / 10, 0.3 * doubt, 0.5 * doubt, 1 - doubt)


def _counted(noisy: int, scale: float) -> float:
    """The mean of what a number from 0 on may be, given it with Laplace noise."""
    near = math.exp(-max(noisy, 0) / scale)
    return max(noisy, 0) + near * (max(noisy, 0) + scale) / (2 - near)


def _halves(truth: Floats, targets: Targets) -> list[int]:
    """Sums of how far rows are to the upper and to the lower label, in steps: UNIT for a row."""
    steps = label_places(truth, targets)
    return [int(steps.sum()), int((UNIT - steps).sum())]

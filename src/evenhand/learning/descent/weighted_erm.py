"""Linear models by gradient descent over users, with noise: user-level clipping, or epasto2020's Algorithm 2."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand.guarantee import Amount, Relation, UsageError, parse_delta, parse_epsilon
from evenhand.learning.data.features import FeatureMap
from evenhand.learning.data.inputs import Features, PerRow
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.row_sources import known_profile, profile_price, require_public, rows_support, warn_of
from evenhand.learning.data.targets import MOST_CLASSES, BoundedLabels, Targets
from evenhand.learning.data.user_rows import BOX, UNIT
from evenhand.learning.descent.coefficient_ranges import (
    CURVATURE_SHARE,
    MOST_COEFFICIENTS,
    Spread,
    bought_curvature,
    reported,
    spread,
)
from evenhand.learning.descent.constraints import Constraint
from evenhand.learning.descent.descent import VectorShares, descend
from evenhand.learning.descent.preparation import (
    LARGEST_WEIGHT,
    MOST_WHITENED,
    VECTORS,
    WHITENING_SHARE,
    Scaling,
    prepare_as_published,
    prepare_privately,
    weight_bound,
)
from evenhand.learning.descent.recalibration import CALIBRATION_SHARE, MOST_CALIBRATED, calibrated
from evenhand.learning.fitting import (
    choice,
    fitting,
    is_auto,
    is_worst_case,
    pay,
    public_number,
    single_threaded,
    whole_number,
)
from evenhand.learning.linear_model import LinearModel
from evenhand.learning.loss_forecast import LossForecast
from evenhand.learning.losses import CappedLogistic, Logistic, Loss, loss_named
from evenhand.learning.slopes import ByClass, ByDifference, ByLabel, Slopes, Softmax
from evenhand.ledger import Cost, mechanism_delta, rho_with_pure
from evenhand.noise.steps import noise_multiplier, rho_of_vectors
from evenhand.planning.checking import WORST_CASE
from evenhand.planning.models import ModelPlan, plan_model
from evenhand.release.intervals import check_confidence

LARGEST_DELTA = Decimal("1e-3")
"""A larger δ is refused: it allows to publish the rows of one user in so many, and how many there are is secret."""

PREPARATION = Fraction(2, 100)
"""The share of each of the vectors that centres, spreads and the length of the steps come from."""


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedERM(LinearModel):
    """A linear model by noisy gradient descent over users, whose gradients are clamped to a length that is found privately.

    Guarantee: (ε, δ)-differential privacy for *all rows of a user*. A row of a user with s rows has weight
    ``min(h, s)/s``; a user's gradient is an integer vector, clamped exactly to one norm. Normal noise is calibrated to
    that norm under the table's own neighbour relation. Centres, spreads and correlations of the features, h, the length of the steps and the
    norm of the clamp are released with parts of the same (ε, δ), and so are what sets intercept and length right and the curvature behind `interval`;
    the number of steps is fixed beforehand. Edge cases: as in `BoundedERM`.

    Args:
        epsilon, delta: the privacy-loss bound of one fit; δ well below one over the number of users, at most 10⁻³.
        loss: ``"logistic"``, ``"huber-svm"`` or ``"squared"``, or a `Loss` of your own.
        classes: the two labels (negative, positive); more with ``loss="logistic"``, which is then multinomial (softmax).
        label_bounds: (low, high) of a numeric label, for losses of numbers.
        feature_bounds: (low, high) for all features, one pair each, or pairs by column name; known without looking at the data.
            Wide ones cost little: centres and spreads within them are found privately.
        feature_norm: instead of bounds: every feature is between minus and plus this.
        weight_bound: h; ``"auto"``: four times the rows that a twentieth of the users exceed, found privately, and at least 10; with
            ``clip="lipschitz"`` the minimiser of epasto2020's trade-off with a term for busy users who differ, and ``"worst case"`` that of its
            Theorem 4 as it stands.
        clip: ``"auto"``: the norm follows the gradients; a number: in units of the steepest slope times one spread;
            ``"lipschitz"``: epasto2020's Algorithm 2: h times the largest gradient of a row, features
            scaled by their bounds alone, h from a profile of rows per user.
        steps: gradient steps; more of them optimise better and need more noise each.
        regularisation: λ of (λ/2)‖f‖², against the *average* loss, for standardised features; 0: only noise holds coefficients back.
        constraint: ``Ball(radius)`` or ``Box(low, high)``: where the coefficients may lie, for features as they came.
        profile: a public or bought `Profile` of rows per user: before anything is paid, ``fit`` forecasts from it whether the model will
            beat a constant one (``plan_``), and warns if not, for a named loss; with ``clip="lipschitz"`` h comes from it instead.
        class_prior: the public part of rows in each of the ``classes``, for that forecast alone; equal parts if left out.
        protects: ``"presence"`` or ``"values"``; a table knows its own.
        class_weight: a public weight for each class, ``{0: 1, 1: 20}``; what one user can do is unchanged.
        fit_intercept, features, categories, population, ledger: as in `BoundedERM`.

    Attributes:
        coef_, intercept_: the released model, for features as they came.
        guarantee_, weight_bound_: the `Guarantee`, and h.
        clip_: the norm of the clamp in the last step.
        noise_multiplier_: the noise of a step in units of what one user can do.
        noise_scale_: the standard deviation of the noise in the average gradient of one step.
        plan_: the `ModelPlan` from before the fit, or None without a profile.
        spread_: what `interval` is made of; ``spread_.why`` says why there is none.
        curvature_: second derivatives of the average loss at the model, for whitened features; None if not bought.
        forecast_, usable_: a `LossForecast` made from released numbers, and whether the model is likely to beat a constant one.

    Example:
        >>> WeightedERM(epsilon=1.0, delta=1e-6, feature_bounds=(0, 1)).fit(X, y, users=ids).predict(X)

    Reference: Epasto, Mahdian, Mao, Mirrokni and Ren (NeurIPS 2020), section 4; Bassily, Smith and Thakurta (2014);
    Andrew, Thakkar, McMahan and Ramaswamy (NeurIPS 2021) for a clamp that follows a quantile.
    """

    delta: Amount = field(default=1e-6, kw_only=False)
    weight_bound: float | str = "auto"
    clip: float | str = "auto"
    steps: int = 100
    regularisation: float = 0.0
    constraint: Constraint | None = None
    class_prior: Sequence[float] | None = None

    @fitting
    def fit(self, X: Features, y: PerRow = None, users: PerRow = None) -> Self:
        """Debit (ε, δ), standardise, descend, and release the averaged iterate; arguments as in `BoundedERM.fit`."""
        epsilon, delta = parse_epsilon(self.epsilon), parse_delta(self.delta)
        targets = self._targets()
        self._check(delta)
        slopes = self._slopes(targets)
        source, names, ball = self._open(X, y, users, targets)
        box = self._box(ball)
        require_public(self.profile)
        as_published, usable = self.clip == "lipschitz", mechanism_delta(delta)
        spent, left = profile_price(source, self.profile, epsilon) if as_published else (Decimal(0), epsilon)
        plan = VectorShares(left, usable, source.relation, self._shares(slopes, box))
        rho = rho_with_pure(rho_of_vectors(left, usable, source.relation), spent)
        guarantee = source.guarantee(epsilon, delta, self.profile)
        self.plan_ = None if as_published else self._planned(epsilon, delta, source.relation, len(names))
        query = self._query("weighted ERM", names, "steps", "weight_bound", "clip")
        receipt = pay(self.ledger, guarantee, Cost.zcdp(rho, epsilon=epsilon, delta=usable), query)
        with single_threaded(), source.reading(copied=as_published):
            support = rows_support(source, self.profile, epsilon, receipt) if as_published else None
            sums = plan.opened(source.boxed(box, targets), receipt)
            if support is None:
                h, standard, start, follow = prepare_privately(
                    sums, slopes, box, self.weight_bound, self.clip, self._whitens(box)
                )
            else:
                h = weight_bound(self.weight_bound, support, box.size, sums.plan.sd_of_all(), epsilon, delta)
                h, standard, start, follow = prepare_as_published(
                    sums, slopes, box, h, support, self.feature_bounds is not None
                )
            start = replace(start, margins=math.inf) if self._as_given() else start
            regularisation = float(self.regularisation) * slopes.unit / slopes.steepest
            done = descend(
                sums, slopes, box.size * slopes.scores, h, start,
                steps=self.steps, regularisation=regularisation, follow=follow,
                intercept=box.intercept, nearest=self._nearest(standard, box, slopes),
            )  # fmt: skip
            if numbers := self._numbers(slopes, box):
                done = calibrated(sums, slopes, h, start, done, numbers)
            why = self._no_interval(slopes, box.size)
            self.curvature_: Floats | None = None
            self.spread_ = Spread.none(why)
            if not why:
                curvature = bought_curvature(sums, slopes, h, start, standard.users, done.f, box.intercept)
                self.curvature_ = curvature.matrix
                self.spread_ = spread(curvature, start, done, regularisation)
        f = done.f.reshape(slopes.scores, -1)
        if slopes.scores > 1 and self.constraint is None:
            f = f - f.mean(axis=0)  # the same for all classes changes nothing, and is mostly noise
        self._adopt(standard.to_box(f, box.intercept) * slopes.unit, box, targets, slopes.offset)
        self._to_original = reported(standard, box, slopes)
        self.guarantee_, self.weight_bound_, self.clip_ = guarantee, h, done.clip
        of_a_step = plan.shares[-1 - bool(numbers) - (not why)]
        self.noise_multiplier_ = float(noise_multiplier(left, usable, source.relation, of_a_step))
        self.noise_scale_ = float(done.noise[-1]) / start.weight
        if isinstance(slopes, ByClass) and not as_published:  # its features are not standardised
            meant = ByClass.of(loss_named(str(self.loss), None), self._class_weights(targets))
            self.forecast_ = LossForecast.of_two_classes(start, done, len(names), slopes, meant)
        else:
            self.forecast_ = LossForecast.of(start, done, f[:, : len(names)].ravel(), slopes, self._classifies)
        self.usable_ = self.forecast_.loss_above_constant < 0
        return self

    def _planned(self, epsilon: Decimal, delta: Decimal, relation: Relation, features: int) -> ModelPlan | None:
        """Whether the model will beat a constant one; said while nothing has been paid or read."""
        prior = self.class_prior
        if self.profile is None:
            return None
        if isinstance(self.loss, Loss):
            raise UsageError(
                "profile= is for clip='lipschitz', or for a forecast, which is made for a named loss; leave it out for a loss of your own."
            )
        if prior is not None and len(prior) != len(self.classes):
            raise UsageError(
                f"class_prior={prior!r}; expected one part for each of the {len(self.classes)} classes, in their order."
            )
        kind, parts = "squared" if self.loss == "squared" else "logistic", prior or len(self.classes)
        plan = plan_model(known_profile(self.profile), epsilon, delta, features, relation, kind, parts)
        warn_of(plan)
        return plan

    def _check(self, delta: Decimal) -> None:
        if not delta:
            raise UsageError("delta=0: Gaussian noise needs delta > 0, such as 1e-6; BoundedERM is purely private.")
        if delta > LARGEST_DELTA:
            raise UsageError(
                f"delta={delta}; expected at most {LARGEST_DELTA}, and well below one over the number of users, which is secret: with "
                "probability delta a release may tell everything about somebody."
            )
        whole_number("steps", self.steps, 10_000)
        public_number("regularisation", self.regularisation, zero=True, largest=1e15)
        if is_worst_case(self.weight_bound):
            if self.clip != "lipschitz":
                raise UsageError(
                    f"weight_bound={WORST_CASE!r} with clip={self.clip!r}: what epasto2020 proves is about gradients that are not clipped; expected "
                    "clip='lipschitz', its Algorithm 2, or weight_bound='auto'."
                )
        elif not is_auto("weight_bound", self.weight_bound, WORST_CASE):
            public_number("weight_bound", self.weight_bound, smallest=1e-3, largest=LARGEST_WEIGHT)
        if isinstance(self.clip, str):
            choice("clip", self.clip, ("auto", "lipschitz"))
        else:
            public_number("clip", self.clip, smallest=1e-6, largest=1e9)
        if self.constraint is not None:
            if not isinstance(self.constraint, Constraint):
                raise UsageError(
                    f"constraint={self.constraint!r}; expected Ball(radius) or Box(low, high) of evenhand.learning."
                )
            self.constraint.check()

    def _most_classes(self) -> int:
        return MOST_CLASSES if self.loss == "logistic" else 2

    def _slopes(self, targets: Targets) -> Slopes:
        """The loss as a public table; the code of one's own loss runs here, before anything is debited or read."""
        weights = self._class_weights(targets)
        if isinstance(self.loss, Loss):
            return ByLabel.of(self.loss, targets, weights)
        if isinstance(targets, BoundedLabels):
            return ByDifference.of(loss_named(self.loss, targets.bounds), targets)
        if len(targets.labels) > 2:
            return Softmax.of(weights)
        loss = loss_named(self.loss, None)
        capped = isinstance(loss, Logistic) and self.clip != "lipschitz"
        return ByClass.of(CappedLogistic() if capped else loss, weights)

    def _nearest(self, standard: Scaling, box: FeatureMap, slopes: Slopes) -> Callable[[Floats], Floats] | None:
        """The projection of standardised coefficients to the constraint."""
        factor = standard.ratio * (BOX / UNIT) * slopes.unit / box.scale
        return None if self.constraint is None else self.constraint.projection(factor, slopes.scores)

    def _box(self, ball: FeatureMap) -> FeatureMap:
        """Features scaled by their own bounds: what bounds a user is the clamp, so rows need no common ball."""
        if self.feature_bounds is None:
            return ball
        return replace(ball, scale=ball.scale / math.sqrt(len(ball.centre)), edge=None)

    def _shares(self, slopes: Slopes, box: FeatureMap) -> tuple[Fraction, ...]:
        whitened = [WHITENING_SHARE] * self._whitens(box)
        first = [] if self.clip == "lipschitz" else [*[PREPARATION] * VECTORS, *whitened, PREPARATION]
        last = [CALIBRATION_SHARE * number for number in (self._numbers(slopes, box),) if number]
        last += [] if self._no_interval(slopes, box.size) else [CURVATURE_SHARE]
        return (*first, *[(1 - sum(first + last, Fraction(0))) / self.steps] * self.steps, *last)

    def _as_given(self) -> bool:
        """Whether public parameters say what is minimised, for features as they are: a clip, λ or a constraint."""
        return self.clip != "auto" or bool(self.regularisation) or self.constraint is not None

    def _whitens(self, box: FeatureMap) -> bool:
        return not self._as_given() and 1 < len(box.centre) <= MOST_WHITENED

    def _numbers(self, slopes: Slopes, box: FeatureMap) -> int:
        """How many numbers set a model right: none, one for the intercept, or another for the length."""
        if self._as_given() or not self.fit_intercept or not isinstance(slopes, ByClass | ByDifference):
            return 0
        return 2 if self.loss == "logistic" and len(box.centre) <= MOST_CALIBRATED else 1

    def _no_interval(self, slopes: Slopes, size: int) -> str:
        """Why no curvature is bought for intervals, from public parameters; empty if it is."""
        if self.clip != "auto":
            return f"clip={self.clip!r}: how many users it cuts is not counted; expected clip='auto'"
        if self.constraint is not None:
            return "coefficients are confined to a constraint, and how noise moves them along its edge is not known"
        if isinstance(slopes, ByLabel | Softmax):
            return "several classes, and losses of one's own, have none"
        return (
            f"{size} coefficients; a curvature is bought for at most {MOST_COEFFICIENTS}"
            if size > MOST_COEFFICIENTS
            else ""
        )

    def _card(self, confidence: float) -> dict[str, Any]:
        why = self.spread_.why
        return {
            "bounding": f"All rows of a user together have a weight of at most {self.weight_bound_:.4g}, spread evenly over them.",
            "range_covers": f"No range: {why}."
            if why
            else "The range is for the minimum of the same weighted loss on the same rows: it covers privacy noise, what the clamp cut off and what "
            "steps left unlearned; not sampling error.",
            "coefficients": self._coefficient_rows(None if why else self.interval(confidence)),
            "forecast": {
                "noise_of_a_step": self.noise_scale_,
                "noise_multiplier": self.noise_multiplier_,
                "steps": self.steps,
                "loss_by_noise": None if math.isinf(self.forecast_.noise) else self.forecast_.noise,
                "gain_by_features": self.forecast_.gain,
            },
            "likely": self.forecast_.words,
        }

    def interval(self, confidence: float = 0.95) -> Floats:
        """A range for each coefficient (intercept last).

        It is for where the same loss, with the same weights of rows, has its minimum on the same table. Sampling error is not covered.
        """
        check_is_fitted(self)
        confidence = check_confidence(confidence)
        if self.spread_.why:
            raise UsageError(f"the model has no interval: {self.spread_.why}.")
        values = np.append(self.coef_, self.intercept_ if self.fit_intercept else [])
        return self.spread_.ranges(values, self._to_original, confidence)

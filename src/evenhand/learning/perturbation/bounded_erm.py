"""Empirical risk minimisation with a bounded number of rows per user (amin2019, Algorithm 1): what is chosen automatically, and the one or two
releases that follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand.guarantee import (
    Relation,
    UsageError,
    exact_difference,
    exact_product,
    exact_sum,
    parse_epsilon,
    split,
)
from evenhand.learning.data.features import FeatureMap
from evenhand.learning.data.inputs import Features, PerRow
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.row_sources import (
    RowSource,
    known_profile,
    profile_price,
    require_public,
    rows_per_user,
    rows_support,
    warn_of,
)
from evenhand.learning.data.targets import BoundedLabels, Targets
from evenhand.learning.fitting import choice, fitting, is_auto, is_worst_case, pay, public_number
from evenhand.learning.linear_model import LinearModel
from evenhand.learning.losses import LOSSES, ClassWeighted, Loss, MarginLoss, loss_named
from evenhand.learning.perturbation.objective_perturbation import Parts, least_for_objective, perturb_objective
from evenhand.learning.perturbation.output_perturbation import Problem, Released, perturb_output, spherical_radius
from evenhand.learning.perturbation.shrink_to_constant import ShrinkToConstant
from evenhand.ledger import Cost
from evenhand.planning.excess_risk import best_cap
from evenhand.planning.row_choice import (
    LARGEST_REGULARISATION,
    METHODS,
    SHRINKS,
    LossFacts,
    RowChoice,
    Scales,
    choose_rows,
    comparing,
    spread_price,
)
from evenhand.planning.rows_plan import RowsPlan, plan_rows
from evenhand.planning.two_phases import FIRST, Phase, best_phase, expected, nearer
from evenhand.planning.worth import LEARNABLE, constant_loss
from evenhand.profiles import Support
from evenhand.release import Receipt

FARTHEST_MARGIN = 2**20
"""How far one user may move the margin, in units of the range over which a loss is curved. Less regularisation is refused:
the release would be nothing but noise, and the optimiser would not end."""


@dataclass(eq=False, repr=False, kw_only=True)
class BoundedERM(LinearModel):
    """A linear model of at most τ rows per user: a regularised minimiser, with noise in the objective or on the minimiser.

    Guarantee: pure ε-differential privacy for *all rows of a user*. Features are clipped to public bounds or a public norm, so
    one user moves the gradient of ``Σ ℓ + (Λ/2)‖f‖²`` by at most τ times a public bound (twice that under values). Objective
    perturbation covers that with a random linear term, output perturbation covers what it does to the minimiser. The
    accuracy of the optimiser, guaranteed for every table, and the rounding to a lattice are part of what the noise
    covers. See docs/proofs/objective-perturbation.md and docs/proofs/output-perturbation.md.

    Edge cases: under presence rows with a missing feature or label are dropped; under values a missing feature
    counts as 0 and a missing label as the middle or the first class. Infinite features are moved to the edge of the
    ball. Labels outside the bounds are clamped; a label that is neither class counts as missing.

    Args:
        epsilon: the privacy-loss bound ε of one fit.
        loss: ``"logistic"``, ``"huber-svm"`` (both for two classes) or ``"squared"`` (needs ``label_bounds``).
        classes: the two labels (negative, positive).
        label_bounds: (low, high) of a numeric label.
        feature_bounds: (low, high) for all features, one pair each, or pairs by column name, known without looking at the data;
            features are centred and scaled to the unit ball.
        feature_norm: instead of bounds: rows are clipped to this Euclidean norm, and divided by it.
        rows_per_user: τ, or ``"auto"``: forecast from the public counts (values), from ``profile``, or from a
            profile bought with a tenth of ε (presence); ``"worst case"``: that which makes amin2019's Theorem 1 least, from the same.
        regularisation: Λ for the features divided by their norm, or ``"auto"``, which may divide them by more, to shrink their
            coefficients more than the intercept; too little for the number of rows per user is refused.
        method: ``"objective"``; ``"output"``, which is amin2019's Algorithm 1 with noise on the minimiser; or ``"auto"``, whichever
            is forecast to lose less (if τ and Λ are given, objective perturbation where Λ allows it).
        coefficient_norm: a guess of the norm of good coefficients of the scaled features, for the automatic choices; with
            objective perturbation coefficients are cut to 32 times this norm.
        class_weight: a public weight for each class, ``{0: 1, 1: 20}``; what one user can do is unchanged.
        profile: a public or bought `Profile` of rows per user.
        protects: ``"presence"`` or ``"values"``; a table knows its own.
        fit_intercept: whether to add a constant feature.
        features: names of the feature columns of a frame or table.
        categories: public levels of columns that hold no numbers, ``{"colour": ["red", "blue"]}``: one 0/1 feature each; any
            other value, and a missing one, has 0 in all of them. Of an array, by the place of the column.
        population: a name for the people, so that arrays and tables about them share a ledger; a table has its own.
        ledger: where to debit ε before the release.

    Attributes:
        coef_, intercept_: the released model, for features as they came.
        guarantee_: the `Guarantee`.
        rows_per_user_, regularisation_: τ and Λ.
        method_: ``"objective"`` or ``"output"``.
        sensitivity_, noise_scale_: Δ and Δ/ε: for the coefficients of the scaled features with output perturbation, for
            coordinates of the gradient with objective perturbation.
        forecast_: `RowChoice`, the forecast excess of the average loss and its parts; NaN if τ and Λ are given.
        model_part_: how much of the fitted model was kept beside a constant one (0: nothing but the constant), chosen on one row of
            each user; 1 if Λ is given, without an intercept, and with ``method="output"``, where nothing is compared.
        usable_: whether something was kept, the forecast leaves half of what there may be to learn, a tenth of a constant model's loss, and the
            coefficients promise to bring more than the forecast costs.
        plan_: the forecast before anything was paid, if ``profile`` was given; a warning says if it is not worth its ε.

    Example:
        >>> BoundedERM(epsilon=1.0, feature_bounds=(0, 1)).fit(X, y, users=ids).predict(X)

    Reference: Amin, Kulesza, Muñoz Medina and Vassilvitskii (ICML 2019); Chaudhuri, Monteleoni and Sarwate
    (JMLR 2011) for both perturbations; Iyengar et al. (S&P 2019) for approximate minima; Awan and Slavković (JASA 2021) for
    noise in the shape of the gradients.
    """

    loss: str = "logistic"
    rows_per_user: int | str = "auto"
    regularisation: float | str = "auto"
    method: str = "auto"
    coefficient_norm: float | None = None

    @fitting
    def fit(self, X: Features, y: PerRow = None, users: PerRow = None) -> Self:
        """Bound, debit ε, minimise, and release the noisy minimiser.

        Args:
            X: n × d features; a data frame; or an `eh.read` table, which stays where it is.
            y: one label per row, or the name of the label column.
            users: one id per row, or the name of the user column; known already for a table.
        """
        epsilon = parse_epsilon(self.epsilon)
        targets = self._targets()
        loss = self._loss(targets)
        tau, regularisation = rows_per_user(self.rows_per_user), self._regularisation()
        source, names, mapped = self._open(X, y, users, targets)
        given = tau is not None and regularisation is not None
        left = epsilon if given else profile_price(source, self.profile, epsilon)[1]
        compared = self._compared(regularisation)
        least = exact_difference(left, exact_product(comparing(epsilon, 0.0), 3)) if compared else left
        scales = self._scales(loss.facts, source.relation, mapped, least)
        least_each = least_regularisation(1, loss, mapped, source.relation.moves)
        self._check_given(tau, regularisation, scales, (tau or 1) * least_each)
        self.plan_ = self._planned(epsilon, source.relation, len(mapped.centre)) if compared else None
        guarantee = source.guarantee(epsilon, profile=self.profile)
        receipt = pay(
            self.ledger,
            guarantee,
            Cost.pure(epsilon),
            self._query("bounded ERM", names, "rows_per_user", "regularisation", "method"),
        )
        with source.reading():
            if regularisation is None:
                support, facts, start = rows_support(source, self.profile, epsilon, receipt), loss.facts, 0.0
                if is_worst_case(self.rows_per_user):
                    tau = best_cap(support, float(left), mapped.size)
                if compared:
                    prices = comparing(epsilon, support.people), spread_price(epsilon, support.people)
                    beside = ShrinkToConstant.bought(source, self, targets, mapped, prices, receipt)
                    judging = comparing(epsilon, support.people, beside.balance)
                    left = exact_difference(left, exact_sum([*prices, judging]))
                    facts = replace(facts, typical=beside.balance, spread=beside.spread)
                    start = beside.start
                scaled = partial(self._scales, facts, source.relation)
                phases = Phases(source, loss, mapped, scaled, support, tau, self.method, start)
                problem, released = phases.released(left, receipt)
            else:
                if tau is None:
                    support = rows_support(source, self.profile, epsilon, receipt)
                    cap = best_cap(support, float(left), mapped.size) if is_worst_case(self.rows_per_user) else None
                    chosen = choose_rows(support, scales, self.method, cap, regularisation)
                    chosen = replace(chosen, tau=min(chosen.tau, max(math.floor(regularisation / least_each), 1)))
                else:  # nothing to choose, so nothing is bought, and there is nothing to forecast from
                    chosen = RowChoice(
                        tau, regularisation, self._possible(tau, regularisation, scales), *[math.nan] * 4
                    )
                problem = Problem(source, loss, mapped, chosen, left)
                released = release(problem, scales, receipt, np.zeros(mapped.size))
            chosen = problem.chosen
            self.rows_per_user_, self.regularisation_, self.method_ = chosen.tau, chosen.regularisation, chosen.method
            self.sensitivity_, self.noise_scale_ = released.sensitivity, released.noise_scale
            self._adopt(released.coefficients, problem.mapped, targets)
            unit = targets.width**2 if isinstance(targets, BoundedLabels) else 1.0
            shares = (1 - beside.label, beside.label) if compared else (0.5, 0.5)
            lost = chosen.excess / unit / (LEARNABLE * constant_loss(str(self.loss), shares))
            gain = beside.gain(self) if compared else math.inf
            self.model_part_ = beside.kept_part(self, lost, judging, receipt) if compared else 1.0
        self.guarantee_, self.forecast_ = guarantee, chosen
        self.usable_ = lost <= 0.5 and self.model_part_ > 0 and gain >= chosen.excess
        return self

    def interval(self, confidence: float = 0.95) -> Floats:
        """A range for each coefficient (intercept last): privacy noise only, not sampling error or bias.

        Only for output perturbation: how far a linear term in the objective moves the coefficients depends on the rows.
        """
        check_is_fitted(self)
        if self.method_ == "objective":
            raise UsageError(
                "objective perturbation has no interval: how far its noise moves a coefficient depends on the curvature of "
                "the loss, which is private. Expected a model with method='output'."
            )
        mapped = self.feature_map_
        radius = spherical_radius(confidence, mapped.size, self.noise_scale_)
        values, spread = np.ravel(self.coef_), radius / mapped.scale
        if self.fit_intercept:  # it moves with every slope whose feature is centred
            constant = radius * math.sqrt(1 + float(np.sum((mapped.centre / mapped.scale) ** 2)))
            values, spread = np.r_[values, self.intercept_], np.r_[spread, constant]
        return np.column_stack([values - spread, values + spread])

    def _card(self, confidence: float) -> dict[str, Any]:
        forecast, output = self.forecast_, self.method_ == "output"
        verdict = (
            "likely to beat a constant model"
            if self.usable_
            else "not sure to beat a constant model, if a tenth of its loss can be saved"
        )
        part = self.model_part_
        kept = "" if part == 1 else f" Beside a constant model, {part:.0%} of it was kept."
        likely = (
            f"by forecast it loses {forecast.excess:.2g} of the average loss to noise and bounding: {verdict}.{kept}"
        )
        return {
            "bounding": f"At most {self.rows_per_user_} random rows of each user; regularisation {self.regularisation_:.4g}.",
            "range_covers": "The range covers privacy noise only: not sampling error, not the shrinkage of the regulariser."
            if output
            else "No range: how far the noise in the objective moves a coefficient depends on the private curvature of the loss.",
            "coefficients": self._coefficient_rows(self.interval(confidence) if output else None),
            "forecast": {
                "noise_scale": self.noise_scale_,
                "excess_loss_by_noise": _or_none(forecast.noise),
                "excess_loss_by_regularisation": _or_none(forecast.shrinkage),
                "bias_of_the_row_limit": _or_none(forecast.bias),
            },
            **({} if math.isnan(forecast.excess) else {"likely": likely}),
        }

    def _planned(self, epsilon: Decimal, relation: Relation, features: int) -> RowsPlan | None:
        """Whether the model will beat a constant one, for classes of equal size; said while nothing has been paid or read."""
        if self.profile is None:
            return None
        plan = plan_rows(known_profile(self.profile), epsilon, features, relation, str(self.loss))
        warn_of(plan)
        return plan

    def _loss(self, targets: Targets) -> MarginLoss:
        if isinstance(self.loss, Loss):
            raise UsageError(
                f"loss={type(self.loss).__name__}; expected one of {list(LOSSES)}: noise for the minimiser is proved for convex losses with "
                "known slopes and curvatures, which can't be checked for yours. WeightedERM takes it: there a clamp carries the guarantee."
            )
        weights = self._class_weights(targets)
        if isinstance(targets, BoundedLabels):
            return loss_named(self.loss, targets.bounds)
        loss = loss_named(self.loss, None)
        return loss if self.class_weight is None else ClassWeighted(loss, *weights.tolist())

    def _compared(self, regularisation: float | None) -> bool:
        """Whether the model is compared with a constant one: with settings of an analyst's own, or noise on the minimiser, it is released as it is."""
        return regularisation is None and self.fit_intercept and self.method != "output"

    def _regularisation(self) -> float | None:
        """Λ as the analyst set it; None if it is left to a forecast."""
        given = self.regularisation
        return None if is_auto("regularisation", given) else public_number("regularisation", given)

    def _check_given(self, tau: int | None, regularisation: float | None, scales: Scales, least: float) -> None:
        """Refuse, from public parameters and before the debit, what could not be carried out for every table."""
        choice("method", self.method, ("auto", *METHODS))
        require_public(self.profile)
        if self.method == "objective" and is_worst_case(self.rows_per_user):
            raise UsageError(
                f"rows_per_user={self.rows_per_user!r} with method='objective': what amin2019 proves is for noise on the minimiser; expected method='output' or 'auto'."
            )
        if self.method == "objective":
            least = max(least, least_for_objective(tau or 1, scales.epsilon, scales.trace, scales.size))
        if regularisation is not None:
            public_number("regularisation", regularisation, smallest=least, largest=LARGEST_REGULARISATION)
        elif least > LARGEST_REGULARISATION:
            raise UsageError(
                f"rows_per_user={tau} is too much for objective perturbation at this epsilon: no regularisation would be "
                "enough. Expected fewer rows per user, a larger epsilon, or method='output'."
            )

    def _possible(self, tau: int, regularisation: float, scales: Scales) -> str:
        """The method for given τ and Λ."""
        if self.method != "auto":
            return self.method
        least = least_for_objective(tau, scales.epsilon, scales.trace, scales.size)
        return "objective" if regularisation >= least else "output"

    def _scales(self, facts: LossFacts, relation: Relation, mapped: FeatureMap, epsilon: Decimal) -> Scales:
        guess = self.coefficient_norm
        norm = None if guess is None else public_number("coefficient_norm", guess, smallest=1e-9, largest=1e9)
        return Scales.of(facts, mapped.row_shape, norm, relation.moves, float(epsilon))


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

    source: RowSource
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
    """The Λ at which one user moves margins by FARTHEST_MARGIN times the range over which the loss is curved."""
    return moves * tau * loss.roundest * mapped.norm / FARTHEST_MARGIN


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value

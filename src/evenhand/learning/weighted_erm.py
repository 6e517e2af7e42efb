"""Empirical risk minimisation with smooth weights (epasto2020, Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np

from evenhand.bounding import HETEROGENEITY, smooth_bound
from evenhand.guarantee import Amount, Relation, UsageError, parse_epsilon
from evenhand.learning.base import is_auto, parse_small_delta, pay, public_number, whole_number
from evenhand.learning.features import STEPS, FeatureBounds, FeatureMap
from evenhand.learning.inputs import Features, PerRow
from evenhand.learning.linear_model import LinearModel
from evenhand.learning.losses import Loss
from evenhand.learning.private_values import Floats, unwarned
from evenhand.learning.row_profile import profile_price, require_public, rows_support
from evenhand.learning.sources import SLOPE_STEPS, MemoryRows, SmoothRows
from evenhand.learning.threads import single_threaded
from evenhand.ledger import Cost, Ledger, mechanism_delta, rho_with_pure
from evenhand.noise.steps import noise_multiplier, rho_of_steps
from evenhand.profiles import Profile, Sums, Support
from evenhand.tables import Secret

MOMENTUM = 0.9
"""Heavy-ball momentum: features in the unit ball leave most directions so flat that plain steps take hundreds."""

LARGEST_WEIGHT = 2**20
"""The largest bound h on a user's weight."""

Noise = Callable[[Secret[list[int]]], list[int]]
"""What adds noise to the gradient of one step."""


class WeightedERM(LinearModel):
    """A linear model by noisy gradient descent over users, each with weight at most h spread over all of its rows.

    Guarantee: (ε, δ)-differential privacy for *all rows of a user*. A row of a user with s rows has weight
    ``min(h, s)/s``; with features in a public ball and a Lipschitz loss no user's gradient exceeds h times the
    Lipschitz constant, exactly, in integers. The number of steps, their length and the averaging are fixed
    beforehand; noise is calibrated by dp-accounting under the table's own neighbour relation.

    Edge cases: as in `BoundedERM`.

    Args:
        epsilon, delta: the privacy-loss bound of one fit; δ well below one over the number of users.
        loss: ``"logistic"``, ``"huber-svm"`` or ``"squared"``.
        classes: the two labels (negative, positive).
        label_bounds: (low, high) of a numeric label, for the squared loss.
        feature_norm, feature_bounds: as in `BoundedERM`.
        weight_bound: h, or ``"auto"``: the minimiser of epasto2020's trade-off, from public counts (values), from
            ``profile``, or from a profile bought with a tenth of ε (presence).
        steps: gradient steps; more of them optimise better and need more noise each.
        sample: the part of the users that each step looks at (Poisson sampling); 1 is all of them.
        regularisation: λ of (λ/2)‖f‖², against the *average* loss of features scaled to the unit ball.
        profile: a public or bought `Profile` of rows per user.
        protects: ``"presence"`` or ``"values"``; a table knows its own.
        fit_intercept, features, population, ledger: as in `BoundedERM`.

    Attributes:
        coef_, intercept_: the released model, for features as they came.
        guarantee_, weight_bound_: the `Guarantee`, and h.
        noise_multiplier_: the noise of a step in units of what one user can do.
        noise_scale_: the standard deviation of the noise in the average gradient of one step.

    Example:
        >>> WeightedERM(epsilon=1.0, delta=1e-6, feature_bounds=(0, 1)).fit(X, y, users=ids).predict(X)

    Reference: Epasto, Mahdian, Mao, Mirrokni and Ren (NeurIPS 2020), section 4; Bassily, Smith and Thakurta (2014).
    """

    def __init__(
        self,
        epsilon: Amount = 1.0,
        delta: Amount = 1e-6,
        *,
        loss: str = "logistic",
        classes: Sequence[Any] = (0, 1),
        label_bounds: tuple[float, float] | None = None,
        feature_norm: float = 1.0,
        feature_bounds: FeatureBounds | None = None,
        weight_bound: float | str = "auto",
        steps: int = 50,
        sample: float = 1.0,
        regularisation: float = 1e-3,
        profile: Profile | None = None,
        protects: str = "presence",
        fit_intercept: bool = True,
        features: Sequence[str] | None = None,
        population: str | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.classes = classes
        self.label_bounds = label_bounds
        self.feature_norm = feature_norm
        self.feature_bounds = feature_bounds
        self.weight_bound = weight_bound
        self.steps = steps
        self.sample = sample
        self.regularisation = regularisation
        self.profile = profile
        self.protects = protects
        self.fit_intercept = fit_intercept
        self.features = features
        self.population = population
        self.ledger = ledger

    @unwarned
    def fit(self, X: Features, y: PerRow = None, users: PerRow = None) -> Self:
        """Choose weights, debit (ε, δ), descend, and release the averaged iterate; arguments as in `BoundedERM.fit`."""
        epsilon, delta = parse_epsilon(self.epsilon), parse_small_delta(self.delta)
        loss, targets = self._problem()
        self._check(delta)
        source, names, mapped = self._open(X, y, users, targets)
        if self.sample < 1 and not isinstance(source, MemoryRows):
            raise UsageError("sample < 1 needs the rows in memory; in an engine each step looks at all users.")
        require_public(self.profile)
        usable = mechanism_delta(delta)
        spent, left = profile_price(source, self.profile, epsilon)
        multiplier = noise_multiplier(left, usable, self.steps, float(self.sample), source.relation)
        guarantee = source.guarantee(epsilon, delta, self.profile)
        cost = self._cost(epsilon, usable, spent, multiplier, source.relation)
        query = self._query("weighted ERM", names, "steps", "sample", "weight_bound")
        receipt = pay(self.ledger, guarantee, cost, query)
        with source.reading():
            support = rows_support(source, self.profile, epsilon, receipt)
            h = self._weight_bound(support, mapped.size, multiplier)
            reach = h * SLOPE_STEPS * Fraction(math.isqrt(mapped.squared_norm) + 1)
            noisy = receipt.vectors(self.steps, float(self.sample), source.relation, reach, left, usable)
            weight = float(self.sample) * max(float(Sums.of(support).kept(np.array([float(h)]))[0]), 1.0)
            unit = loss.steepest / (SLOPE_STEPS * STEPS * weight)
            with single_threaded(), source.weighted(mapped, h) as rows:
                coefficients = self._descend(rows, noisy, loss, mapped, unit)
        self._adopt(coefficients, mapped, targets)
        self.noise_scale_ = float(multiplier * reach) * unit
        self.guarantee_, self.weight_bound_, self.noise_multiplier_ = guarantee, float(h), float(multiplier)
        return self

    def _check(self, delta: Decimal) -> None:
        if not delta:
            raise UsageError("delta=0: Gaussian noise needs delta > 0, such as 1e-6; BoundedERM is purely private.")
        whole_number("steps", self.steps, 10_000)
        if not 0 < float(self.sample) <= 1:
            raise UsageError(f"sample={self.sample}; expected a part of the users in (0, 1].")
        public_number("regularisation", self.regularisation, zero=True, largest=1e15)
        if not is_auto("weight_bound", self.weight_bound):
            public_number("weight_bound", self.weight_bound, smallest=1e-3, largest=LARGEST_WEIGHT)

    def _cost(
        self, epsilon: Decimal, delta: Decimal, profile: Decimal, multiplier: Fraction, relation: Relation
    ) -> Cost:
        if self.sample < 1:
            return Cost.approximate(epsilon, delta)
        rho = rho_with_pure(rho_of_steps(multiplier, self.steps, relation), profile)
        return Cost.zcdp(rho, epsilon=epsilon, delta=delta)

    def _weight_bound(self, support: Support, size: int, multiplier: Fraction) -> Fraction:
        """h: given, or the minimiser of Σc² + (max Σc)²/A + (ρτ)²χ²."""
        if not isinstance(self.weight_bound, str):
            return Fraction(self.weight_bound).limit_denominator(1000)
        # Averaging the second half of the steps leaves about 2σ²/T of a step's noise in each coordinate.
        noise = 2 * size * float(multiplier) ** 2 / self.steps
        h = smooth_bound(support, 1.0, 1.0, math.sqrt(2 / noise), HETEROGENEITY)
        return Fraction(min(max(h, 1.0), float(LARGEST_WEIGHT))).limit_denominator(1000)

    def _descend(self, rows: SmoothRows, noisy: Noise, loss: Loss, mapped: FeatureMap, unit: float) -> Floats:
        """T noisy steps of constant length with momentum, and the average of the second half."""
        length = 1 / (loss.roundest * mapped.norm**2 + float(self.regularisation))
        f, speed, average = (np.zeros(mapped.size) for _ in range(3))
        for step in range(self.steps):
            steps = noisy(rows.gradient(f, loss, float(self.sample)))
            gradient = np.array([float(value) for value in steps]) * unit
            speed = MOMENTUM * speed - length * (gradient + float(self.regularisation) * f)
            f = f + speed
            if step >= self.steps // 2:
                average += f / (self.steps - self.steps // 2)
        return average

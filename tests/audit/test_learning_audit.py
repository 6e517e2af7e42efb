"""Audits of released coefficients: many fits on two neighbouring tables, and a broken twin for each estimator.

`audit` raises a false alarm with probability below 3·10⁻⁷ (five confirmations at 95 %).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from evenhand.audit import BlackBox, Claim, LikelihoodRatio, Pair, audit
from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, RegressionWeights, WeightedERM
from evenhand.learning.data import row_sources, user_rows
from evenhand.learning.descent import coefficient_ranges, descent, preparation, recalibration
from evenhand.learning.perturbation import bounded_erm, objective_perturbation
from evenhand.learning.perturbation.shrink_to_constant import paired_squares
from evenhand.release import Measurement, Receipt
from evenhand.tables import Secret

USERS = np.repeat([0, 1, 2, 3], [40, 3, 2, 1])
HEAVY = USERS == 0
X = np.column_stack([np.linspace(-1, 1, len(USERS))])
LOW = np.zeros(len(USERS))
HIGH = np.where(HEAVY, 1.0, 0.0)

EPSILON = 1.0


def caught(twin: BlackBox, pairs: Sequence[Pair], samples: int = 300) -> bool:
    """One look at a confidence of 1 − 10⁻⁶ is as sure as the five of `audit`; most twins lose 15ε or more, so 300 fits do.

    What one look misses once in a thousand, or less often, three looks together miss once in 10⁹; the first mostly suffices.
    """
    (pair,) = pairs
    looks = (LikelihoodRatio(1 - 1e-6).examine(twin, pair, samples) for _ in range(3))
    return any(evidence.epsilon > twin.claim.epsilon for evidence in looks)


class RowLevel(RegressionWeights):
    """Weights that declare what one row can do, not what one user can."""

    def heaviest_user(self, users: Any) -> int:
        return super().heaviest_user(np.arange(len(users)))


def regression(weights: RegressionWeights) -> BlackBox:
    model = LabelPrivateRegression(EPSILON, label_bounds=(0, 1), noise_sd=0.3, weights=weights)

    def run(labels: np.ndarray) -> list[float]:
        fitted = model.fit(X, labels, users=USERS)
        return [fitted.intercept_, *fitted.coef_]

    return BlackBox("label-private regression", Claim(EPSILON), run)


def optimal_weights(weighting: str) -> RegressionWeights:
    model = LabelPrivateRegression(EPSILON, label_bounds=(0, 1), noise_sd=0.3, weighting=weighting)
    return model.fit(X, LOW, users=USERS).weights_


LABELS = [Pair("all labels of the heavy user", LOW, HIGH)]


@pytest.mark.parametrize("weighting", ["optimal", "all"])
def test_regression_keeps_its_promise(weighting: str) -> None:
    assert not audit(regression(optimal_weights(weighting)), LABELS, samples=500).refuted


def test_regression_with_the_sensitivity_of_a_row_is_caught() -> None:
    honest = optimal_weights("all")
    broken = RowLevel(**{field.name: getattr(honest, field.name) for field in fields(honest)})
    assert caught(regression(broken), LABELS)


PRESENT = (np.r_[np.ones((30, 1)), np.zeros((3, 1))], np.r_[np.ones(30), 0, 0, 0], np.r_[np.zeros(30, int), 1, 2, 3])
ABSENT = tuple(part[30:] for part in PRESENT)
PRESENCE = [Pair("the heavy user", PRESENT, ABSENT)]


def estimator(make: Callable[[], Any], claim: Claim, read: Callable[[Any], Any]) -> BlackBox:
    def run(table: Any) -> Any:
        features, labels, users = table
        return read(make().fit(features, labels, users=users))

    return BlackBox("estimator", claim, run)


def bounded(method: str, regularisation: float = 50.0, weight: int = 1) -> BlackBox:
    return estimator(
        lambda: BoundedERM(
            EPSILON,
            rows_per_user=2,
            regularisation=regularisation,
            method=method,
            fit_intercept=False,
            feature_norm=1.0,
            class_weight={0: 1, 1: weight} if weight > 1 else None,
        ),
        Claim(EPSILON),
        lambda model: model.coef_.item(),
    )


def weighted() -> BlackBox:
    return estimator(
        lambda: WeightedERM(
            EPSILON, 1e-3, feature_norm=1.0, weight_bound=30, clip=1e-3, steps=1, protects="values", fit_intercept=False,
            classes=(0, 1, 2), class_weight={0: 1, 1: 20, 2: 39},
        ),
        Claim(EPSILON, 1e-3),
        lambda model: float(model.coef_[-1, 0]),
    )  # fmt: skip


VALUES = [Pair("all values of the heavy user", PRESENT, (-PRESENT[0], PRESENT[1], PRESENT[2]))]


def chosen() -> BlackBox:
    hypotheses = [np.ones_like, np.zeros_like]
    return estimator(
        lambda: HypothesisSelection([lambda x, h=h: h(x[:, 0]) for h in hypotheses], EPSILON, rows_per_user=1),
        Claim(EPSILON),
        lambda model: model.best_index_,
    )


@pytest.mark.parametrize("method", ["objective", "output"])
def test_bounded_erm_keeps_its_promise(method: str) -> None:
    weight = 20 if method == "output" else 1
    assert not audit(bounded(method, weight=weight), PRESENCE, samples=500).refuted


def test_class_weights_that_make_slopes_steeper_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are not divided by the largest, behind the clamp of the slopes."""
    honest = row_sources._KeptArrays.integer_gradient
    monkeypatch.setattr(
        row_sources._KeptArrays,
        "integer_gradient",
        lambda rows, f, loss: [20 * value for value in honest(rows, f, loss)],
    )
    assert caught(bounded("output", weight=20), PRESENCE)


@pytest.mark.parametrize("method", ["objective", "output"])
def test_bounded_erm_that_forgets_the_row_limit_is_caught(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sources, "random_ranks", lambda users, counts: np.zeros(len(users), dtype=int))
    assert caught(bounded(method), PRESENCE)


def test_objective_perturbation_that_forgets_the_determinant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any regularisation a user pulls all minimisers together: a third of them are near 0, and hardly one in 600 without."""
    monkeypatch.setattr(objective_perturbation, "curvature_cost", lambda *given: 0.0)
    monkeypatch.setattr(bounded_erm, "least_for_objective", lambda *given: 0.0)
    full = bounded("objective", 1e-4)
    near = BlackBox("near 0", full.claim, lambda table: abs(float(np.ravel(full.run(table))[0])) < 60)
    undecided = Pair("a user of two minds", (np.ones((2, 1)), np.array([0, 1]), np.zeros(2, int)), ABSENT)
    assert caught(near, [undecided], 700)


def test_weighted_erm_keeps_its_promise() -> None:
    assert not audit(weighted(), VALUES, samples=200).refuted


def test_weighted_erm_without_the_clamp_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "clamped", lambda vectors, factors: (np.rint(vectors * factors[:, None]), True))
    assert caught(weighted(), VALUES)


def vector(read: Callable[[Any], float], columns: int = 1, intercept: bool = True) -> BlackBox:
    """A number that is made of one of the vectors that a fit buys beside its steps."""
    options: dict[str, Any] = {"loss": "squared", "label_bounds": (0, 1), "feature_norm": 1.0, "steps": 1}

    def run(table: Any) -> float:
        features, labels, users = table
        model = WeightedERM(EPSILON, 1e-3, fit_intercept=intercept, **options)
        return float(read(model.fit(np.tile(features, columns), labels, users=users)))

    return BlackBox("a bought vector", Claim(EPSILON, 1e-3), run)


@pytest.mark.parametrize(
    ("module", "twin"),
    [
        (preparation, vector(lambda model: model._to_original[0, 1], columns=2, intercept=False)),
        (recalibration, vector(lambda model: model.intercept_)),
        (coefficient_ranges, vector(lambda model: model.curvature_.item(), intercept=False)),
    ],
    ids=["whitening", "calibration", "curvature"],
)
def test_a_vector_whose_clamp_is_too_long_is_caught(
    module: Any, twin: BlackBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "clamped", lambda vectors, factors: (10**6 * user_rows.clamped(vectors, factors)[0], True)
    )
    assert caught(twin, PRESENCE)


def test_selection_keeps_its_promise() -> None:
    assert not audit(chosen(), PRESENCE, samples=500).refuted


def test_selection_that_forgets_the_row_limit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sources, "random_ranks", lambda users, counts: np.zeros(len(users), dtype=int))
    assert caught(chosen(), PRESENCE)


def all_pairs(rows: np.ndarray, limit: int) -> int:
    """Every user paired with every other, not with one: a user is in all of their pairs."""
    return sum(paired_squares(rows[[one, other]], limit) for one in range(len(rows)) for other in range(one))


def pair_sum(squares: Callable[[np.ndarray, int], int]) -> BlackBox:
    """How far features vary, as `BoundedERM` buys it."""
    limit = 4 * 100**2

    def run(rows: np.ndarray) -> int:
        measured = Measurement(lambda: Secret([squares(rows, limit)]), limit, limit**2)
        (value,) = Receipt(Decimal(1), Decimal(0), "audit").numbers(measured, Decimal(1)).values
        return int(value)

    return BlackBox("squared distances of pairs", Claim(1.0), run)


ALIKE = np.full((20, 1), -100.0)
FAR = [Pair("a user far from all others", np.vstack([ALIKE, [[100.0]]]), ALIKE)]


def test_squared_distances_of_random_pairs_keep_their_promise() -> None:
    assert not audit(pair_sum(paired_squares), FAR, samples=3_000).refuted


def test_squared_distances_of_all_pairs_are_caught() -> None:
    assert caught(pair_sum(all_pairs), FAR)

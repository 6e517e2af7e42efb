"""The three methods that the paper compares, on one table: optimal weights, best row limit, all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_regression

from evenhand.learning import LabelPrivateRegression, RegressionWeights
from reproductions.outcomes import Check, seeded_noise

Floats = npt.NDArray[np.float64]

METHODS = {"Our method": "optimal", "Sample limit h*": "row-limit", "All rows": "all"}


@dataclass(frozen=True)
class Data:
    """Features (the intercept is a column if there is one), labels, users, and public bounds of a label."""

    X: Floats
    y: Floats
    users: npt.NDArray[np.int64]
    bounds: tuple[float, float]


@dataclass(frozen=True)
class Found:
    """The mean squared error of predictions on the table, over releases, and its expectation by the paper's formula."""

    error: float
    expected: float


def synthetic(n: int, alpha: float, seed: int) -> Data:
    """scikit-learn's ``make_regression`` with 10 features and noise 20, rows per user by Zipf(α).

    As in the paper, the label bounds are the range of the labels: fine to compare methods, not for a real release.
    """
    rng = np.random.default_rng(seed)
    X, y = make_regression(n, 10, n_informative=10, noise=20.0, bias=0.0, random_state=seed)
    counts: list[int] = []
    while sum(counts) < n:
        counts.append(min(int(rng.zipf(alpha)), n - sum(counts)))
    return Data(X, y, np.repeat(np.arange(len(counts)), counts), (float(y.min()), float(y.max())))


def on_tables(n: int, alpha: float, epsilon: float, tables: int, releases: int) -> list[dict[str, Found]]:
    """Each method on so many seeded tables, with seeded noise."""
    with seeded_noise(2020):
        return [squared_errors(synthetic(n, alpha, seed), epsilon, releases) for seed in range(tables)]


def squared_errors(data: Data, epsilon: float, releases: int) -> dict[str, Found]:
    """Mean squared error of predictions on the table, by method, over so many releases.

    σ² is that of ordinary least squares on the labels, as in the paper; a release would have to pay for it.
    """
    residual = data.y - data.X @ np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    spread = float(np.sqrt(residual @ residual / (len(data.y) - data.X.shape[1])))
    errors = {}
    for method, weighting in METHODS.items():
        model = LabelPrivateRegression(
            epsilon, label_bounds=data.bounds, noise_sd=spread, fit_intercept=False, weighting=weighting,
            target="coefficients",
        )  # fmt: skip
        weights = model.fit(data.X, data.y, users=data.users).weights_
        model.set_params(weights=weights)
        found = [
            np.mean((model.fit(data.X, data.y, data.users).predict(data.X) - data.y) ** 2) for _ in range(releases)
        ]
        errors[method] = Found(float(np.mean(found)), expected_error(data, epsilon, weights))
    return errors


def expected_error(data: Data, epsilon: float, weights: RegressionWeights) -> float:
    """Algorithm 3's mean squared error on the table: that of C y, and the variance 2b² of the noise in each direction, b = (B/ε)·max_l Σ_j Σ_i |c_ji|."""
    C = weights.matrix.toarray() * 2.0**-weights.exponent
    b = (data.bounds[1] - data.bounds[0]) / epsilon * np.bincount(data.users, np.abs(C).sum(axis=1)).max()
    mean = weights.decode @ (C.T @ data.y)
    noise = 2 * b**2 * ((data.X @ weights.decode) ** 2).sum() / len(data.y)
    return float(np.mean((data.X @ mean - data.y) ** 2) + noise)


def measured_over_expected(found: list[dict[str, Found]]) -> list[Check]:
    """Whether releases have the error that the paper's formula says: the median over tables, which has some per cent of sampling error."""
    medians = {m: float(np.median([one[m].error / one[m].expected for one in found])) for m in METHODS}
    return [
        Check(f"{method}: error over its expectation, median of tables", value, 0.7, 1.3)
        for method, value in medians.items()
    ]


def gains(found: list[dict[str, Found]], method: str) -> list[float]:
    """How many times the error of our method another one has, table by table."""
    return [one[method].expected / one["Our method"].expected for one in found]

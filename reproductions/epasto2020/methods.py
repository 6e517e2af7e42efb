"""The three methods that the paper compares, on one table: optimal weights, best row limit, all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_regression

from evenhand.learning import LabelPrivateRegression

Floats = npt.NDArray[np.float64]

METHODS = {"Our method": "optimal", "Sample limit h*": "row-limit", "All rows": "all"}


@dataclass(frozen=True)
class Data:
    """Features (the intercept is a column if there is one), labels, users, and public bounds of a label."""

    X: Floats
    y: Floats
    users: npt.NDArray[np.int64]
    bounds: tuple[float, float]


def synthetic(n: int, alpha: float, seed: int, most: int | None = None) -> Data:
    """scikit-learn's ``make_regression`` with 10 features and noise 20, rows per user by Zipf(α), ``most`` at the most.

    As in the paper, the label bounds are the range of the labels: fine to compare methods, not for a real release.
    """
    rng = np.random.default_rng(seed)
    X, y = make_regression(n, 10, n_informative=10, noise=20.0, bias=0.0, random_state=seed)
    counts: list[int] = []
    while sum(counts) < n:
        counts.append(min(int(rng.zipf(alpha)), most or n, n - sum(counts)))
    return Data(X, y, np.repeat(np.arange(len(counts)), counts), (float(y.min()), float(y.max())))


def squared_errors(data: Data, epsilon: float, releases: int) -> dict[str, float]:
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
        errors[method] = float(np.mean(found))
    return errors

"""Weighted ERM against a row limit, logistic regression, across ε (the paper's appendix E, on generated data)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from evenhand.learning import WeightedERM
from reproductions.outcomes import Check, Outcome, Size, lines, seeded_noise

ROWS = {"small": 20_000, "full": 100_000}
TABLES = {"small": 6, "full": 20}
EPSILONS = {"small": (1.0, 4.0), "full": (0.5, 1.0, 2.0, 4.0, 8.0)}
LIMITS = (1, 3, 10, 30)
TRUTH = np.array([4.0, -3.0, 2.0, 0.0, 1.0])
METHODS = ("smooth weights", "row limit")
LEAST_GAIN = 1.0
"""In standard errors, at the largest ε."""

Floats = npt.NDArray[np.float64]


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Excess of the average logistic loss over the true model, by method, at the bound that is best on average.

    Errors are averaged over tables first and the bound is chosen from the averages: the least of single noisy fits would
    reward luck. Tables and noise are seeded.
    """
    rows, checks = [], []
    for epsilon in EPSILONS[size]:
        with seeded_noise(2020):
            found = np.array(
                [excess(epsilon, ROWS[size], seed) for seed in range(TABLES[size])]
            )  # table, method, limit
        means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(TABLES[size])
        best = means.argmin(axis=1)
        for index, method in enumerate(METHODS):
            rows.append({"epsilon": epsilon, "error": float(means[index, best[index]]), "method": method,
                         "standard_error": float(errors[index, best[index]]), "bound": LIMITS[best[index]]})  # fmt: skip
        gain = found[:, 1, best[1]] - found[:, 0, best[0]]
        error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
        # Sampling error, by which alone they differ, shows where noise is small; elsewhere three standard errors are for the draw.
        least = LEAST_GAIN if epsilon == EPSILONS[size][-1] else -3.0
        name = f"ε = {epsilon:g}: row limit minus smooth weights, in standard errors"
        checks.append(Check(name, float(gain.mean()) / error, least, 1e3))
    title = "epasto2020: excess logistic loss, weights or row limit"
    return Outcome(title, checks, rows).write(
        out, "epasto2020-logistic", lines(rows, "epsilon", "error", "method", title)
    )


def excess(epsilon: float, n: int, seed: int) -> list[list[float]]:
    """Both methods on one table of Zipf users at every bound, with the same learner, budget and accountant."""
    rng = np.random.default_rng(seed)
    counts = np.minimum(rng.zipf(1.6, size=n), 300)
    users = np.repeat(np.arange(len(counts)), counts)[:n]
    X = rng.uniform(-1, 1, size=(n, len(TRUTH)))
    y = (rng.random(n) < 1 / (1 + np.exp(-X @ TRUTH))).astype(int)
    best = loss(X @ TRUTH, y)
    rank = np.arange(n) - np.searchsorted(users, users)  # rows of a user come in random order already

    def fitted(kept: npt.NDArray[np.bool_], h: float) -> float:
        model = WeightedERM(
            epsilon, 1e-6, feature_bounds=(-1, 1), protects="values", weight_bound=h, steps=40,
            clip="lipschitz", regularisation=1e-3,
        )  # fmt: skip
        model.fit(X[kept], y[kept], users=users[kept])
        return loss(model.decision_function(X), y) - best

    return [[fitted(rank >= 0, h) for h in LIMITS], [fitted(rank < h, h) for h in LIMITS]]


def loss(margin: Floats, y: npt.NDArray[np.int64]) -> float:
    """The average logistic loss."""
    return float(np.logaddexp(0.0, -(2 * y - 1) * margin).mean())

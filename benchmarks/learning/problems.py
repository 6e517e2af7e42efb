"""Tables to learn from: users with very different numbers of rows, generated from a seed, or read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.shapes import pareto

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """How to generate a table: features are users' tastes plus noise, labels follow a linear model.

    Args:
        name: for the report.
        users, features: how many; ``heavy``: the exponent of the tail of rows per user.
        positives: the part of positive labels; None for a number as label and the squared loss.
        common: the part of each feature's variance that all features share.
        wide: how many times too wide the stated bounds are.
        giant: the part of all rows that belongs to one user.
    """

    name: str
    users: int
    features: int
    heavy: float = 1.6
    positives: float | None = 0.4
    common: float = 0.0
    wide: float = 1.0
    giant: float = 0.0
    epsilon: float = 1.0


DEFAULT = (
    Problem("1,000 rows", 400, 5),
    Problem("2,000 users, ε = 0.5", 2_000, 5, epsilon=0.5),
    Problem("3,000 users", 3_000, 10, heavy=3.0),
    Problem("d = 5", 15_000, 5),
    Problem("d = 50", 15_000, 50),
    Problem("d = 200", 5_000, 200),
    Problem("correlated", 15_000, 20, common=0.8),
    Problem("bounds 9 times too wide", 15_000, 10, wide=9.0),
    Problem("one user with 30% of the rows", 15_000, 10, giant=0.3),
    Problem("1% positives", 20_000, 10, positives=0.01),
    Problem("1% positives, d = 50", 20_000, 50, positives=0.01),
    Problem("squared", 15_000, 10, positives=None),
    Problem("squared, d = 50", 15_000, 50, positives=None),
)

LARGE = (
    Problem("1M rows", 400_000, 20),
    Problem("d = 500", 40_000, 500),
    Problem("1M rows, 1% positives", 400_000, 20, positives=0.01),
    Problem("1M rows, squared", 400_000, 20, positives=None),
)


@dataclass(frozen=True, eq=False)
class Data:
    """A table in memory, rows sorted by user; what is stated about it is public."""

    name: str
    X: Floats
    y: Floats
    users: Integers
    counts: Integers
    feature_bounds: Sequence[tuple[float, float]]
    label_bounds: tuple[float, float] | None
    epsilon: float

    @property
    def box(self) -> Floats:
        """Features on the scale of their bounds, each in [−1, 1]: what every method is given."""
        low, high = np.array(self.feature_bounds).T
        return np.asarray(np.clip((2 * self.X - low - high) / (high - low), -1, 1))


def generate(problem: Problem, seed: int = 7) -> Data:
    """The table of a problem; the same for every method and on every run."""
    rng = np.random.default_rng([seed, problem.users, problem.features])
    counts = np.minimum(pareto(problem.users, problem.heavy, rng), 2_000)
    if problem.giant:
        counts[0] = round(problem.giant / (1 - problem.giant) * counts[1:].sum())
    users, d = np.repeat(np.arange(problem.users), counts), problem.features
    taste = rng.normal(0, 0.2, (problem.users, d))[users]
    shared = np.sqrt(problem.common) * rng.normal(0, 0.4, (len(users), 1))
    X = np.clip(taste + shared + np.sqrt(1 - problem.common) * rng.normal(0, 0.4, (len(users), d)), -1, 1)
    margin = X @ rng.normal(0, 6 / np.sqrt(d), d)
    if problem.positives is None:
        y = np.clip(0.5 + 0.12 * margin + rng.normal(0, 0.1, len(users)), 0, 1)
    else:
        y = (rng.random(len(users)) < _sigmoid(margin + _shift(margin, problem.positives))).astype(np.float64)
    bounds = [(-problem.wide, problem.wide)] * d
    return Data(
        problem.name, X, y, users, counts, bounds, (0, 1) if problem.positives is None else None, problem.epsilon
    )


def read(
    path: Path, user: str, label: str, features: Sequence[str] | None, epsilon: float, label_bounds: str | None
) -> Data:
    """A table from Parquet or CSV; text becomes columns of 0 and 1. Bounds and levels are read from the rows: fair for a comparison, not private."""
    import pandas as pd

    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    names = list(features or [name for name in frame.columns if name not in (user, label)])
    frame = frame.dropna(subset=[user, label, *names]).sort_values(user, kind="stable")
    users = np.unique(frame[user].to_numpy(), return_inverse=True)[1].astype(np.int64)
    X = pd.get_dummies(frame[names], drop_first=True).to_numpy(dtype=np.float64)
    bounds = [
        (float(low), float(high) if high > low else float(low) + 1)
        for low, high in zip(X.min(0), X.max(0), strict=True)
    ]
    low_high = tuple(map(float, label_bounds.split(":"))) if label_bounds else None
    y = frame[label].to_numpy()
    classes = np.unique(y)
    if low_high is None and len(classes) != 2:
        raise SystemExit(
            f"--label {label} has {len(classes)} values; expected two, or --label-bounds LOW:HIGH for a number."
        )
    y = (y == classes[-1]).astype(np.float64) if low_high is None else y.astype(np.float64)
    return Data(path.stem, X, y, users, np.bincount(users), bounds, low_high, epsilon)  # type: ignore[arg-type]


def _sigmoid(z: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(z, -60, 60))))


def _shift(margin: Floats, positives: float) -> float:
    """The intercept with this part of positive labels, by bisection."""
    low, high = -40.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(margin + middle).mean() < positives else (low, middle)
    return low

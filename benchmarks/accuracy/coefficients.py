"""Ranges of `WeightedERM`'s coefficients: ``python -m benchmarks.accuracy.coefficients``.

How often a 95 % range holds the minimum of the same weighted loss on the same table, and how wide it is. Beside it the range that one writes
in an hour: the noise of the averaged gradient over the curvature of a constant model. The rules were made while looking at the shapes of
`benchmarks.accuracy.descent`. Of these tables one was looked at: the nearly collinear one, where a first version gave ranges that
held nothing; since then it has none. The others were not tuned on; of three, single fits were looked at before the first run.
"""

from __future__ import annotations

import argparse
import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.results import keep
from evenhand.learning import WeightedERM
from evenhand.learning.losses import CappedLogistic, Logistic, MarginLoss, Squared
from evenhand.noise import seam

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Users with geometric numbers of rows; ``kind`` of features: normal, correlated, nearly collinear, 0 and 1, or skewed."""

    users: int
    features: int
    kind: str = "normal"
    epsilon: float = 1.0
    squared: bool = False
    rare: float = 0.0
    steep: float = 1.5

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
        """Features within (0, 1), labels, and rows per user."""
        counts = rng.geometric(0.35, self.users)
        rows, d = int(counts.sum()), self.features
        if self.kind == "0 and 1":
            X = (rng.random((rows, d)) < rng.uniform(0.1, 0.6, d)).astype(np.float64)
        elif self.kind == "skewed":
            X = np.minimum(rng.exponential(0.12, (rows, d)), 1.0)
        else:
            own = (
                rng.normal(size=(rows, d))
                + 0.5 * rng.normal(size=(self.users, d))[np.repeat(np.arange(self.users), counts)]
            )
            if self.kind == "correlated":  # 0.5 between any two
                own += rng.normal(0, 1.1, (rows, 1))
            if self.kind == "collinear":
                own[:, 1:] = 0.7 * own[:, :-1] + 0.7 * own[:, 1:]
            X = np.clip(0.5 + 0.12 * own, 0, 1)
        margin = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(0, self.steep / np.sqrt(d), d) - self.rare
        if self.squared:
            return X, np.clip(margin / 6 + rng.normal(0, 0.15, rows), -1, 1), counts
        return X, (rng.random(rows) < 1 / (1 + np.exp(-margin))).astype(np.float64), counts


TABLES = {
    "6 features": Table(5000, 6),
    "12 features, ε = 0.5": Table(6000, 12, epsilon=0.5),
    "30 features": Table(10_000, 30),
    "10 correlated features": Table(20_000, 10, "correlated"),
    "10 features, 0 or 1": Table(8000, 10, "0 and 1"),
    "8 skewed features": Table(8000, 8, "skewed"),
    "8 features, strong": Table(5000, 8, steep=3.0),
    "8 features, 4 % positives": Table(15_000, 8, rare=3.5),
    "squared, 6 features": Table(4000, 6, squared=True),
    "squared, 20 features": Table(8000, 20, squared=True),
    "squared, 10 correlated features": Table(10_000, 10, "correlated", squared=True),
    "squared, 10 nearly collinear features": Table(10_000, 10, "collinear", squared=True),
    "squared, 8 skewed features": Table(6000, 8, "skewed", squared=True),
}


def minimum(X: Floats, y: Floats, weights: Floats, loss: MarginLoss) -> Floats:
    """Where the weighted loss has its minimum; intercept last."""
    middle, scale = X.mean(axis=0), X.std(axis=0)
    A, f = np.c_[(X - middle) / scale, np.ones(len(X))], np.zeros(X.shape[1] + 1)
    if isinstance(loss, CappedLogistic):  # it has no curvature at 0
        f = _newton(A, y, weights, Logistic(), f)
    f = _newton(A, y, weights, loss, f)
    return np.r_[f[:-1] / scale, f[-1] - f[:-1] @ (middle / scale)]


def _newton(A: Floats, y: Floats, weights: Floats, loss: MarginLoss, f: Floats) -> Floats:
    """Newton's method, steps halved where the gradient grows."""

    def gradient(f: Floats) -> Floats:
        return np.asarray(A.T @ (weights * loss.slope(A @ f, y)))

    for _ in range(50):
        g = gradient(f)
        step = np.linalg.solve((A * (weights * loss.curvature(A @ f, y))[:, None]).T @ A + 1e-9 * np.eye(len(f)), g)
        while np.linalg.norm(gradient(f - step)) > np.linalg.norm(g) and np.linalg.norm(step) > 1e-10:
            step /= 2
        f = f - step
        if np.linalg.norm(step) < 1e-9:
            break
    return f


def measure(table: Table, draws: int, repeats: int, seed: int) -> dict[str, float]:
    """Coverage and width over several draws of a table and several fits of each."""
    rng = np.random.default_rng(seed)

    def drawn(name: str, values: Any, scale: Any) -> list[int]:
        return [value + round(rng.normal(0.0, float(scale))) for value in values]

    held, simple, wide, told = [], [], [], 0
    kind: dict[str, Any] = {"loss": "squared", "label_bounds": (-1, 1)} if table.squared else {}
    for _ in range(draws):
        X, y, counts = table.draw(rng)
        users = np.repeat(np.arange(len(counts)), counts)
        loss, labels = (Squared(2.0), y) if table.squared else (CappedLogistic(), 2 * y - 1)
        minima: dict[float, Floats] = {}
        for _ in range(repeats):
            with seam.replaced(drawn):
                model = WeightedERM(table.epsilon, 1e-6, feature_bounds=(0, 1), **kind).fit(X, y, users=users)
            h, values = model.weight_bound_, np.r_[np.ravel(model.coef_), model.intercept_]
            if h not in minima:
                minima[h] = minimum(X, labels, (np.minimum(counts, h) / counts)[users], loss)
            truth = minima[h]
            curvature = 1.0 if table.squared else np.mean(y) * (1 - np.mean(y)) * 2
            unit = 2.0 if table.squared else 1.0
            naive = 1.96 * model.noise_scale_ / np.sqrt(model.steps / 2) / curvature * unit / X.std(axis=0)
            simple.append(np.abs(values - truth)[:-1] <= naive)
            if model.spread_.why:
                continue
            told += 1
            low, high = model.interval().T
            held.append((low <= truth) & (truth <= high))
            wide.append((high - low) / 2 / (1.96 * np.abs(values - truth) + 1e-12))
    if not told:
        return {"told": 0.0, "held": np.nan, "worst": np.nan, "wide": np.nan, "simple": float(np.mean(simple))}
    by_coefficient = np.mean(held, axis=0)
    return {
        "told": told / (draws * repeats), "held": float(np.mean(held)), "worst": float(by_coefficient.min()),
        "wide": float(np.median(wide)) * 0.6745, "simple": float(np.mean(simple)),
    }  # fmt: skip


def line(name: str, row: dict[str, float]) -> str:
    """One line of the table."""
    return f"| {name} | {row['told']:.0%} | {row['held']:.3f} | {row['worst']:.2f} | {row['wide']:.2f} | {row['simple']:.3f} |"


HEAD = "| table | fits with ranges | held | worst coefficient | width | simple range held |\n|---|--:|--:|--:|--:|--:|"


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    found = {}
    for place, (name, table) in enumerate(TABLES.items()):
        found[name] = measure(table, arguments.draws, arguments.repeats, seed=700 + place)
        print(line(name, found[name]), flush=True)
    text = (
        "# 95 % ranges of coefficients, δ = 10⁻⁶\n\nHeld: the part of coefficients whose range holds the minimum of the weighted loss. "
        "Width: the half-width over 1.96 typical errors (median error / 0.6745); 1 would be just wide enough. "
        f"{arguments.draws} draws of each table, {arguments.repeats} fits of each. The rule was changed after a look at the nearly collinear table.\n\n"
        + "\n".join([HEAD, *(line(name, row) for name, row in found.items())])
        + "\n"
    )
    keep(arguments.out, f"{datetime.date.today().isoformat()}-coefficients", text, found)


if __name__ == "__main__":
    main()

"""`WeightedERM` with default settings on 32 tables drawn at random: ``python -m benchmarks.learning.random_tables``.

At least 2,000 users, ε of 0.5, 1 or 2; tails, features, rare classes, correlations, bounds too wide, users with a third of the rows, users who
differ from each other, and busy users whose coefficients differ from others'. Against clipped gradient descent tuned in hindsight and the
constant model; excess of the average log-loss over rows, median and largest of three fits.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.descent import _chance
from benchmarks.learning.problems import Data
from benchmarks.learning.references import DELTA, auc, constant, in_hindsight, mean_loss, without_privacy
from benchmarks.results import keep, table
from evenhand.learning import WeightedERM
from evenhand.noise import seam

TABLES, RUNS, SEED = 32, 3, 20261


@dataclass(frozen=True)
class Shape:
    """``own``: the spread of users' own intercepts; ``tilt``: how coefficients change with the logarithm of rows; ``taste``: the spread of users' means."""

    users: int
    features: int
    epsilon: float
    tail: float
    correlation: float
    wide: float
    giant: float
    positives: float
    own: float
    tilt: float
    taste: float

    def __str__(self) -> str:
        told = {"ε": self.epsilon, "tail": self.tail, "positives": self.positives, "correlation": self.correlation}
        told |= {"wide": self.wide, "giant": self.giant, "own": self.own, "tilt": self.tilt, "taste": self.taste}
        return f"{self.users:,} users, {self.features} features; " + ", ".join(f"{k} {v:g}" for k, v in told.items())

    def draw(self, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        counts = np.minimum(np.ceil(rng.pareto(self.tail, self.users) + 1), 2000).astype(np.int64)
        if self.giant:
            counts[0] = int(self.giant / (1 - self.giant) * counts[1:].sum())
        who, d = np.repeat(np.arange(self.users), counts), self.features
        X = rng.normal(0, np.sqrt(0.2 - self.taste**2), (len(who), d)) + rng.normal(0, self.taste, (self.users, d))[who]
        shared = rng.normal(0, 0.45, (len(who), 1))
        X = np.clip(np.sqrt(1 - self.correlation) * X + np.sqrt(self.correlation) * shared, -1, 1)
        usual, other = rng.normal(0, 6 / np.sqrt(d), (2, d))
        margin = X @ usual + self.tilt * np.log(counts)[who] * (X @ other) + rng.normal(0, self.own, self.users)[who]
        shifts = np.linspace(-20, 5, 500)
        rates = np.array([np.mean(_chance(margin + shift)) for shift in shifts])
        y = rng.random(len(who)) < _chance(margin + shifts[np.argmin(np.abs(rates - self.positives))])
        bounds = [(-1.0, 1.0)] * d
        return Data(str(self), X / self.wide, y.astype(np.float64), who, counts, bounds, None, self.epsilon)


def shapes() -> list[Shape]:
    """Drawn from a seed; at most about 20,000 rows."""
    rng, found = np.random.default_rng(SEED), []
    for _ in range(TABLES):
        tail = float(rng.choice([1.1, 1.3, 1.6, 2, 3]))
        rows = {1.1: 7, 1.3: 3.8, 1.6: 2.6, 2: 2, 3: 1.5}[tail]
        users = int(min(np.exp(rng.uniform(np.log(2000), np.log(9000))), 20000 / rows))
        features, positives = int(rng.choice([3, 5, 10, 20, 40])), float(rng.choice([0.4, 0.4, 0.2, 0.05, 0.01]))
        choices = ([0.5, 1, 2], [0, 0, 0.5, 0.8], [1, 1, 3, 9], [0, 0, 0, 0.3])
        epsilon, correlation, wide, giant = (float(rng.choice(values)) for values in choices)
        own, tilt, taste = (float(rng.choice(values)) for values in ([0, 0, 1.5], [0, 0, 0.3], [0.1, 0.2, 0.35]))
        found.append(Shape(users, features, epsilon, tail, correlation, wide, giant, positives, own, tilt, taste))
    return found


def measure(data: Data, seed: int) -> dict[str, Any]:
    """Excess losses, areas under the curve, and how many fits said that they are usable."""
    rng, base = np.random.default_rng(seed), mean_loss(data, without_privacy(data))

    def drawn(name: str, values: Any, scale: Any) -> list[int]:
        return [value + round(rng.normal(0.0, float(scale))) for value in values]

    fits = []
    for _ in range(RUNS):
        with seam.replaced(drawn):
            fits.append(
                WeightedERM(data.epsilon, DELTA, feature_bounds=data.feature_bounds).fit(
                    data.X, data.y, users=data.users
                )
            )
    margins, tuned = [fit.decision_function(data.X) for fit in fits], in_hindsight(data, RUNS)[0]
    return {
        "name": data.name, "constant": mean_loss(data, constant(data)) - base,
        "reference": float(np.median([mean_loss(data, one) for one in tuned])) - base,
        "ours": [mean_loss(data, one) - base for one in margins], "usable": sum(fit.usable_ for fit in fits),
        "auc": [float(np.median([auc(data, one) for one in group])) for group in (tuned, margins)],
    }  # fmt: skip


def report(found: list[dict[str, Any]]) -> str:
    """Markdown: a row for each table, and the bars."""
    rows, times = [], []
    for one in found:
        times.append(float(np.median(one["ours"])) / max(one["reference"], 1e-3 * one["constant"]))
        losses = (one["constant"], one["reference"], float(np.median(one["ours"])), max(one["ours"]))
        areas = " / ".join(f"{area:.3f}" for area in one["auc"])
        rows.append([one["name"], *(f"{loss:.4f}" for loss in losses), f"{times[-1]:.2f}", areas, f"{one['usable']}/{RUNS}"])  # fmt: skip
    head = ["table", "constant", "hindsight", "ours, median", "ours, largest", "times hindsight", "AUC hindsight / ours", "usable"]  # fmt: skip
    above = sum(max(one["ours"]) > one["constant"] for one in found)
    mean = float(np.exp(np.mean(np.log(np.maximum(times, 1e-3)))))
    return (
        f"# Logistic regression on {len(found)} tables drawn at random, δ = {DELTA:g}\n\n{table(head, rows)}\n\n"
        f"More than 3 times the reference: {sum(one > 3 for one in times)}. A fit above the constant model: {above}. "
        f"Geometric mean of the times: {mean:.2f}.\n"
    )


def main() -> None:
    """Measure, print, keep."""
    found = []
    for place, shape in enumerate(shapes()):
        found.append(measure(shape.draw(5000 + place), place))
        print(report(found[-1:]).splitlines()[4], flush=True)
    keep(Path(__file__).parent, f"{datetime.date.today().isoformat()}-random-tables", report(found), {"tables": found})


if __name__ == "__main__":
    main()

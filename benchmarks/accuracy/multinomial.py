"""Multinomial `WeightedERM` against clipped gradient descent in hindsight, and against one-vs-rest: ``python -m benchmarks.accuracy.multinomial``.

The reference is what a skilled user writes in an hour: softmax, weights min(h, s)/s, one clip for a user's whole gradient matrix, Gaussian
noise for zCDP, 100 steps with momentum; of six pairs of h and clip the best on average for the table at hand, which nobody
can know beforehand. One-vs-rest has the same descent, with a logistic slope for each class and one clamp for all of them.
"""

from __future__ import annotations

import argparse
import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from benchmarks.results import keep
from evenhand.learning import Box, WeightedERM
from evenhand.learning.data.targets import Targets
from evenhand.learning.losses import Logistic
from evenhand.learning.slopes import ByClass, Slopes
from evenhand.noise import seam

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DELTA, STEPS = 1e-6, 100
GRID = [(h, clip) for h in (1, 5) for clip in (0.1, 0.4, 1.5)]


@dataclass(frozen=True)
class Shape:
    """A generated table of users with Pareto counts; classes of equal or of very different sizes."""

    users: int
    features: int
    classes: int
    epsilon: float = 1.0
    uneven: float = 0.0

    def draw(self, seed: int) -> tuple[Floats, Integers, Integers]:
        """Features within (−1, 1), labels, and rows per user."""
        rng = np.random.default_rng(seed)
        counts = np.minimum(np.ceil(rng.pareto(2.0, self.users) + 1), 1000).astype(np.int64)
        who = np.repeat(np.arange(self.users), counts)
        own = rng.normal(0, 0.4, (len(who), self.features)) + rng.normal(0, 0.2, (self.users, self.features))[who]
        X = np.clip(own, -1, 1)
        scores = X @ rng.normal(0, 5 / np.sqrt(self.features), (self.features, self.classes))
        scores = scores - self.uneven * np.arange(self.classes) + rng.gumbel(size=(len(X), self.classes))
        return X, scores.argmax(axis=1), counts


SHAPES = {
    "3 classes, 10 features": Shape(4000, 10, 3),
    "5 classes, 10 features, ε = 0.5": Shape(6000, 10, 5, epsilon=0.5),
    "10 classes, 8 features": Shape(5000, 8, 10),
    "4 classes, 30 features": Shape(4000, 30, 4),
    "4 classes, the rarest about 1 %": Shape(5000, 10, 4, uneven=1.3),
}


class OneVsRest(WeightedERM):
    """A logistic slope for each class against all others; the clamp, the noise and the standardisation are shared."""

    def _slopes(self, targets: Targets) -> Slopes:
        return _Separate(np.zeros(0, dtype=np.int16), 0.25, 0.25, scores=len(self.classes))


class _Separate(Slopes):
    _one = ByClass.of(Logistic(), np.ones(2))

    def at(self, scores: Floats, targets: Any) -> Floats:
        each = [self._one.at(scores[:, k], np.where(targets == k, 1, -1)) for k in range(self.scores)]
        return np.column_stack(each)


def reference(
    rng: np.random.Generator, X: Floats, y: Integers, counts: Integers, h: int, clip: float, shape: Shape
) -> Floats:
    """Clipped gradient descent over users, twenty lines."""
    rho = (np.sqrt(shape.epsilon + np.log(1 / DELTA)) - np.sqrt(np.log(1 / DELTA))) ** 2
    A, hot, weights = np.c_[X, np.ones(len(X))], np.eye(shape.classes)[y], np.minimum(counts, h) / counts
    total, noise = np.minimum(counts, h).sum(), clip * np.sqrt(STEPS / (2 * rho))
    starts, f, speed = np.r_[0, np.cumsum(counts)[:-1]], *np.zeros((2, A.shape[1], shape.classes))
    for _ in range(STEPS):
        rows = (A[:, :, None] * (_chances(A @ f) - hot)[:, None, :]).reshape(len(A), -1)
        g = np.add.reduceat(rows, starts) * weights[:, None]
        g *= np.minimum(1, clip / np.maximum(np.linalg.norm(g, axis=1), 1e-12))[:, None]
        speed = 0.9 * speed + (g.sum(axis=0) + rng.normal(0, noise, f.size)).reshape(f.shape) / total
        f = f - speed
    return A @ f


def measure(shape: Shape, repeats: int, seed: int) -> dict[str, float]:
    """Excess losses over the best model, and accuracies."""
    X, y, counts = shape.draw(seed)
    users, rng = np.repeat(np.arange(len(counts)), counts), np.random.default_rng(seed + 1)
    best = LogisticRegression(C=1e6, max_iter=300).fit(X, y)
    least = _loss(best.decision_function(X), y)
    tried = [[reference(rng, X, y, counts, h, clip, shape) for _ in range(max(repeats // 3, 2))] for h, clip in GRID]
    means = [np.mean([_loss(scores, y) for scores in fits]) for fits in tried]
    chosen = tried[int(np.argmin(means))]

    def drawn(name: str, values: Any, scale: Any) -> list[int]:
        return [value + round(rng.normal(0.0, float(scale))) for value in values]

    found: dict[str, float] = {
        "constant": _loss(np.tile(np.log(np.bincount(y) / len(y)), (len(y), 1)), y) - least,
        "reference": float(min(means)) - least,
        "accuracy_best": float(best.score(X, y)),
        "accuracy_reference": float(np.mean([np.mean(scores.argmax(axis=1) == y) for scores in chosen])),
    }
    # Without a constraint what all classes have in common is taken off, which changes nothing for a softmax, but does for one-vs-rest.
    for name, kind, constraint in (("ours", WeightedERM, None), ("rest", OneVsRest, Box())):
        scores = []
        for _ in range(repeats):
            with seam.replaced(drawn):
                model = kind(
                    shape.epsilon, DELTA, feature_bounds=(-1, 1), classes=range(shape.classes), constraint=constraint
                )
                scores.append(model.fit(X, y, users=users).decision_function(X))
        if kind is OneVsRest:  # probabilities of classes one by one, divided by their sum
            scores = [-np.logaddexp(0, -one) for one in scores]
        excess = [_loss(one, y) - least for one in scores]
        found |= {name: float(np.median(excess)), f"{name}_95": float(np.quantile(excess, 0.95))}
        found[f"accuracy_{name}"] = float(np.mean([np.mean(one.argmax(axis=1) == y) for one in scores]))
    return found


def table(found: dict[str, dict[str, float]]) -> str:
    """A Markdown table."""
    lines = [
        "| table | constant | reference | one-vs-rest, median | softmax, median | softmax, 95 % | accuracy best / reference / one-vs-rest / softmax |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in found.items():
        losses = " | ".join(f"{row[key]:.4f}" for key in ("constant", "reference", "rest", "ours", "ours_95"))
        right = " / ".join(f"{row[f'accuracy_{key}']:.3f}" for key in ("best", "reference", "rest", "ours"))
        lines.append(f"| {name} | {losses} | {right} |")
    return "\n".join(lines)


def _chances(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _loss(scores: Floats, y: Integers) -> float:
    return float(-np.mean(np.log(np.maximum(_chances(scores)[np.arange(len(y)), y], 1e-30))))


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    found = {}
    for place, (name, shape) in enumerate(SHAPES.items()):
        found[name] = measure(shape, arguments.repeats, seed=arguments.seed + place)
        print(table({name: found[name]}).splitlines()[-1], flush=True)
    today = datetime.date.today().isoformat()
    text = f"# Multinomial regression: excess of the average log-loss over the best model, δ = 10⁻⁶\n\n{table(found)}\n"
    keep(arguments.out, f"{today}-multinomial", text, found)


if __name__ == "__main__":
    main()

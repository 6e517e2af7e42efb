"""Two choices of `WeightedERM`, measured: ``python -m benchmarks.learning.weights_and_samples`` (decision 104).

The bound h on a user's weight: excess loss at the h that is found privately, and at each h of a grid, on tables with heavy users that
were not used for tuning. And samples of users in each step: the noise in the average gradient for the same (ε, δ) and number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from benchmarks.accuracy.descent import Shape, _loss
from benchmarks.results import table
from evenhand.learning import WeightedERM
from evenhand.noise import seam

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

WEIGHTS = (1, 3, 10, 30, 100, 1000)


@dataclass(frozen=True)
class Busy(Shape):
    """Users with very different numbers of rows (log-normal), of whom the busy have more positives."""

    def draw(self, seed: int) -> tuple[Floats, Integers, Integers]:
        rng = np.random.default_rng(seed)
        counts = np.minimum(np.ceil(np.exp(rng.normal(1.8, 1.9, self.users))), 1500).astype(np.int64)
        skill = 0.45 * np.log(counts) + rng.normal(0, 0.3, self.users) - 2.2
        own = np.repeat(skill, counts)
        X = rng.normal(0, 0.4, (len(own), self.features))
        X[:, 0] = 0.25 * own + rng.normal(0, 0.3, len(own))
        y = (rng.random(len(own)) < 1 / (1 + np.exp(-own))).astype(np.int64)
        return np.clip(X, -1, 1), y, counts


TABLES = {
    "5,000 users, tail 1.1, 10 features": Shape(5000, 10, tail=1.1),
    "2,500 users, tail 0.8, 6 features": Shape(2500, 6, tail=0.8),
    "4,000 users, one with 50 % of the rows, 8 features": Shape(4000, 8, giant=0.5),
    "3,000 users, tail 0.9, 25 features, ε = 2": Shape(3000, 25, epsilon=2.0, tail=0.9),
    "3,000 users, the busy have more positives, 3 features": Busy(3000, 3),
}


def weights(shape: Shape, seed: int, repeats: int = 5) -> dict[float | str, float]:
    """The median excess, for each h, of the loss averaged over rows: what h is not made for, and people look at."""
    X, y, counts = shape.draw(seed)
    users, rng = np.repeat(np.arange(len(counts)), counts), np.random.default_rng(seed)
    least = _loss(LogisticRegression(C=1e6, max_iter=500).fit(X, y).decision_function(X), y)

    def drawn(name: str, values: Any, scale: Any) -> list[int]:
        return [value + round(rng.normal(0.0, float(scale))) for value in values]

    def excess(h: float | str) -> float:
        with seam.replaced(drawn):
            model = WeightedERM(shape.epsilon, 1e-6, feature_bounds=(-1, 1), weight_bound=h).fit(X, y, users=users)
        return _loss(model.decision_function(X), y) - least

    return {h: float(np.median([excess(h) for _ in range(repeats)])) for h in ("auto", *WEIGHTS)}


def noise_of_a_sample(epsilon: float, part: float, steps: int = 100) -> float:
    """The noise in the average gradient of a step, times users, for Poisson samples; 1 stands for all users in every step."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    def enough(sigma: float) -> bool:
        event = PoissonSampledDpEvent(part, GaussianDpEvent(sigma)) if part < 1 else GaussianDpEvent(sigma)
        return bool(PLDAccountant().compose(SelfComposedDpEvent(event, steps)).get_epsilon(1e-6) <= epsilon)

    low, high = 0.2, 400.0
    for _ in range(12):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high / part


def main() -> None:
    """Measure and print."""
    rows = []
    for place, (name, shape) in enumerate(TABLES.items()):
        found = weights(shape, seed=900 + place)
        rows.append((name, *(f"{one:.4f}" for one in found.values()), f"{found['auto'] / min(found.values()):.2f}"))
        print(rows[-1], flush=True)
    print(
        table(("excess loss", "found", *(f"h = {h}" for h in WEIGHTS), "found over the best"), rows), "\n", flush=True
    )
    parts = (1.0, 0.5, 0.1, 0.02)
    noises = [(f"ε = {e:g}", *(f"{noise_of_a_sample(e, part):.0f}" for part in parts)) for e in (0.5, 1.0, 4.0)]
    print(table(("noise of a step", *(f"{part:.0%} of the users" for part in parts)), noises))


if __name__ == "__main__":
    main()

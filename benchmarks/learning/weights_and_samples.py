"""Two choices of `WeightedERM`, measured: ``python -m benchmarks.learning.weights_and_samples`` (decision 103).

The bound h on a user's weight: excess loss at h = 3, which nobody chose for the table, and at each h of a grid, on tables with heavy users that
were not used for tuning. And samples of users in each step: the noise in the average gradient for the same (ε, δ) and number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.accuracy.descent import Shape, _loss
from benchmarks.results import table
from evenhand.learning import WeightedERM
from evenhand.noise import seam

WEIGHTS = (1, 2, 3, 5, 10, 30)
TABLES = {
    "5,000 users, tail 1.1, 10 features": Shape(5000, 10, tail=1.1),
    "2,500 users, tail 0.8, 6 features": Shape(2500, 6, tail=0.8),
    "4,000 users, one with 50 % of the rows, 8 features": Shape(4000, 8, giant=0.5),
    "3,000 users, tail 0.9, 25 features, ε = 2": Shape(3000, 25, epsilon=2.0, tail=0.9),
}


def weights(shape: Shape, seed: int, repeats: int = 5) -> dict[int, float]:
    """The median excess, for each h, of the loss averaged over rows: what h is not made for, and people look at."""
    X, y, counts = shape.draw(seed)
    users, rng = np.repeat(np.arange(len(counts)), counts), np.random.default_rng(seed)
    least = _loss(LogisticRegression(C=1e6, max_iter=500).fit(X, y).decision_function(X), y)

    def drawn(name: str, values: Any, scale: Any) -> list[int]:
        return [value + round(rng.normal(0.0, float(scale))) for value in values]

    def excess(h: float) -> float:
        with seam.replaced(drawn):
            model = WeightedERM(shape.epsilon, 1e-6, feature_bounds=(-1, 1), weight_bound=h).fit(X, y, users=users)
        return _loss(model.decision_function(X), y) - least

    return {h: float(np.median([excess(h) for _ in range(repeats)])) for h in WEIGHTS}


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
        rows.append((name, *(f"{found[h]:.4f}" for h in WEIGHTS), f"{found[3] / min(found.values()):.2f}"))
        print(rows[-1], flush=True)
    print(table(("excess loss", *(f"h = {h}" for h in WEIGHTS), "h = 3 over the best"), rows), "\n", flush=True)
    parts = (1.0, 0.5, 0.1, 0.02)
    noises = [(f"ε = {e:g}", *(f"{noise_of_a_sample(e, part):.0f}" for part in parts)) for e in (0.5, 1.0, 4.0)]
    print(table(("noise of a step", *(f"{part:.0%} of the users" for part in parts)), noises))


if __name__ == "__main__":
    main()

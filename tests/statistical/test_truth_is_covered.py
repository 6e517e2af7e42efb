"""The 95% interval of a count holds the truth, on tables that are drawn anew each time; that of the noise alone does not.

The tables and the noise come from a seeded generator, so a failure is no chance. If the generator's stream ever changes, an interval that
covers 92% fails with probability below 1e-6. The long run, with more shapes and all ε, is ``benchmarks/accuracy/coverage.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from alarms import happens_at_least

from evenhand.noise import Laplace
from evenhand.profiles import CutTotal, Population, row_buckets
from evenhand.release import Additive
from evenhand.release.intervals import noise_only, why_not
from evenhand.statistics.believing import Corrected, corrected

Rows = npt.NDArray[np.int64]
TABLES: dict[str, Callable[[np.random.Generator], Rows]] = {
    "log-normal": lambda rng: np.ceil(rng.lognormal(2.6, 1.2, 6000)).astype(np.int64),
    "Pareto": lambda rng: np.ceil(1 + rng.pareto(1.8, 12000)).astype(np.int64),
    "uniform": lambda rng: rng.integers(1, 60, 3000),
    "alike, and a power law": lambda rng: np.concatenate(
        [1 + rng.poisson(15, 7000), np.ceil(30 * (1 + rng.pareto(1.7, 300))).astype(np.int64)]
    ),
    "heavy": lambda rng: np.ceil(rng.lognormal(1, 1.8, 12000)).astype(np.int64),
}
BUCKETS = row_buckets()


def release(rows: Rows, epsilon: float, rng: np.random.Generator) -> Corrected:
    """A count as a release makes it, with a third of ε for the profile."""
    scale, left = 3 / epsilon, 2 * epsilon / 3
    noisy = BUCKETS.histogram(rows) + np.rint(rng.laplace(0, scale, BUCKETS.size))
    believed = Population.behind(BUCKETS, noisy, scale)
    cap = believed.best(math.sqrt(2) / left)
    measured = float(np.minimum(rows, cap).sum() + np.rint(rng.laplace(0, cap / left)))
    noise = Laplace(Fraction(cap / left))
    cut = CutTotal(believed, cap).given(measured, noise.variance)
    return corrected(Additive(measured, noise, 1.0), cut, whole=True)


def test_the_truth_is_in_the_interval_and_seldom_in_that_of_the_noise() -> None:
    rng, held, held_by_noise, trials = np.random.default_rng(14), 0, 0, 0
    for draw in TABLES.values():
        for epsilon in (0.1, 1.0):
            for _ in range(6):
                rows = draw(rng)
                made = release(rows, epsilon, rng)
                if why_not(made.interval):
                    continue
                (low, high), (first, last) = made.interval.at(0.95), noise_only(made.interval).at(0.95)
                held, trials = held + (low <= rows.sum() <= high), trials + 1
                held_by_noise += int(first <= rows.sum() <= last)
    assert trials >= 53  # at most one in eight can't tell
    assert happens_at_least(held, trials, 0.92)
    assert held / trials >= 0.88
    assert held_by_noise / trials < 0.8


def test_few_people_are_never_counted_as_one_row_each() -> None:
    """800 people with 400 rows each at ε = 0.1: no bucket stands out, and yet the count is right within its interval, or can't be told."""
    rng = np.random.default_rng(15)
    rows = np.ceil(rng.lognormal(6, 0.8, 800)).astype(np.int64)
    for _ in range(8):
        made = release(rows, 0.05, rng)
        low, high = made.interval.at(0.95)
        assert high - made.value > made.value / 4 or why_not(made.interval) or 0.3 < made.value / rows.sum() < 3
        assert high > 0.3 * rows.sum()
        assert low < high

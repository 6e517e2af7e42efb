"""Counts and sums with secret counts: the chosen cap's error as a multiple of the best fixed cap's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.noise import discrete_laplace
from benchmarks.accuracy.rules import RULES
from evenhand.bounding import PROFILE_SHARE
from evenhand.profiles import Buckets, CutTotal, Population, row_buckets, total_buckets

Array = npt.NDArray[np.float64]
GRID = 16  # steps per unit of the value
UNIT = 5 * GRID  # ratings up to 5


def user_totals(rows: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Per-user sums of ratings between 0 and 5, on the grid."""
    means = np.clip(3.4 + 0.5 * rng.standard_normal(len(rows)), 0.5, 5.0)
    return np.floor(rows * means * GRID + 0.5).astype(np.int64)


def buckets_for(statistic: str) -> Buckets:
    """The raster that a release of this statistic would use."""
    return row_buckets() if statistic == "count" else total_buckets(UNIT)


class Truth:
    """A table's totals, sorted once: the exact answer and the bias of any cap."""

    def __init__(self, totals: npt.NDArray[np.int64]) -> None:
        self.sorted = np.sort(totals).astype(np.float64)
        self.sums = np.concatenate([[0.0], np.cumsum(self.sorted)])

    def bias(self, caps: Array) -> Array:
        """Σ max(0, x − T)."""
        k = np.searchsorted(self.sorted, caps, side="right")
        return (self.sums[-1] - self.sums[k]) - (len(self.sorted) - k) * caps

    def oracle(self, epsilon: float) -> float:
        """Root mean squared error of the best fixed cap with all of ε."""
        return self.best(epsilon)[0]

    def best(self, epsilon: float) -> tuple[float, float]:
        """The same, and that cap."""
        positive = self.sorted[self.sorted > 0]
        caps = np.unique(np.concatenate([positive[-5000:], np.geomspace(positive[0], positive[-1], 2000)]))
        errors = np.sqrt(2 * (caps / epsilon) ** 2 + self.bias(caps) ** 2)
        return float(errors.min()), float(caps[errors.argmin()])


MOST = 200  # profiles for each case: a posterior takes some 20 ms


def ours(
    truth: Truth,
    buckets: Buckets,
    totals: npt.NDArray[np.int64],
    epsilon: float,
    repeats: int,
    rng: np.random.Generator,
) -> Array:
    """|error| of Evenhand: caps chosen from fresh noisy profiles, capped sums, and what is added back for what they cut off."""
    share = float(PROFILE_SHARE)
    left, found = (1 - share) * epsilon, []
    counts = buckets.histogram(totals)
    for noisy in counts + discrete_laplace(rng, 1 / (share * epsilon), (min(repeats, MOST), buckets.size)):
        believed = Population.behind(buckets, noisy, 1 / (share * epsilon))
        cap = believed.best(math.sqrt(2) / left)
        error = float(rng.laplace() * cap / left - truth.bias(np.array([float(cap)]))[0])
        cut = CutTotal(believed, cap).given(float(truth.sums[-1]) + error, 2 * (cap / left) ** 2)
        found.append(abs(error + cut.sure))
    return np.array(found)


def errors(truth: Truth, caps: Array, epsilon: float, rng: np.random.Generator) -> Array:
    """|error| of capped sums with Laplace noise."""
    return np.abs(rng.laplace(0, 1, len(caps)) * caps / epsilon - truth.bias(caps))


def measure(
    statistic: str, rows: npt.NDArray[np.int64], epsilon: float, repeats: int, seed: int, rules: bool = True
) -> dict[str, Any]:
    """Quantiles of |error| in multiples of the oracle, for Evenhand and for simple rules."""
    rng = np.random.default_rng(seed)
    totals = rows if statistic == "count" else user_totals(rows, rng)
    truth, buckets = Truth(totals), buckets_for(statistic)
    oracle = truth.oracle(epsilon)
    found = {"Evenhand": ours(truth, buckets, totals, epsilon, repeats, rng)}
    if rules:
        for name, choose in RULES.items():
            found[name] = errors(truth, *choose(totals.astype(np.float64), epsilon, repeats, rng), rng)
    result: dict[str, Any] = {"oracle": oracle, "total": float(truth.sums[-1])}
    for name, absolute in found.items():
        median, high, worst = np.quantile(absolute / oracle, [0.5, 0.95, 0.999])
        result[name] = {"median": float(median), "95%": float(high), "99.9%": float(worst)}
    return result

"""Forecasts are true: within 10% of simulated errors where they claim to be exact, never below where they claim a bound.

Each comparison averages 4,000 squared errors of Laplace noise, whose mean has a relative standard error below 3.6%, so
that of its root is below 1.8%: 10% is more than five of them, a false alarm once in a million runs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import shapes
from benchmarks.shapes import Rows

from evenhand.planning import plan
from evenhand.profiles import Profile

RUNS = 4000
SHAPES: dict[str, Rows] = {
    "shop": shapes.shop(),
    "course": shapes.course(),
    "Zipf": shapes.zipf(5000, 2.2, np.random.default_rng(1)),
    "equal": shapes.equal(500, 12),
}


def rms(errors: np.ndarray) -> float:
    return math.sqrt(float((errors**2).mean()))


def count_errors(rows: Rows, cap: float, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    p = -math.expm1(-epsilon / cap)
    noise = rng.geometric(p, RUNS) - rng.geometric(p, RUNS)
    return np.minimum(rows, cap).sum() + noise - rows.sum()


def mean_errors(
    rows: Rows, strategy: str, h: float, epsilon: float, sigma: float, rng: np.random.Generator
) -> np.ndarray:
    """Fresh tables whose rows all draw from one law, values replaced: error against each table's own row mean.

    A user's used rows and the others enter as two normal sums, which is what sums of normal rows are.
    """
    used = np.minimum(rows, math.floor(h) if strategy == "RowLimit" else h)
    picked = used if strategy == "RowLimit" else rows
    chosen = sigma * np.sqrt(picked) * rng.standard_normal((RUNS, len(rows)))
    others = sigma * np.sqrt(rows - picked) * rng.standard_normal((RUNS, len(rows)))
    estimate = (chosen * used / picked).sum(axis=1) / used.sum()
    truth = (chosen + others).sum(axis=1) / rows.sum()
    return estimate - truth + rng.laplace(0, h / (epsilon * used.sum()), RUNS)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_counts_are_forecast_exactly(name: str, epsilon: float) -> None:
    rows, rng = SHAPES[name], np.random.default_rng(11)
    curve = plan("count", Profile.counts(rows), epsilon, points=12).curves[0]
    for cap, forecast in zip(curve.bounds, curve.error, strict=True):
        assert forecast == pytest.approx(rms(count_errors(rows, cap, epsilon, rng)), rel=0.1)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("strategy", ["SmoothWeights", "RowLimit"])
def test_means_of_like_users_are_forecast_exactly(name: str, strategy: str) -> None:
    rows, rng = np.random.default_rng(12).choice(SHAPES[name], 300), np.random.default_rng(12)
    made = plan("mean", Profile.counts(rows), 0.5, (0, 1), "values", row_sd=0.3, heterogeneity=0.0, points=12)
    curve = made.curve(strategy)
    assert curve.kind == "exact"
    for h, forecast in zip(curve.bounds, curve.error, strict=True):
        assert forecast == pytest.approx(rms(mean_errors(rows, strategy, h, 0.5, 0.3, rng)), rel=0.1)


def test_a_forecast_that_is_off_by_a_quarter_is_caught() -> None:
    rows, rng = SHAPES["course"], np.random.default_rng(13)
    curve = plan("count", Profile.counts(rows), 1.0, points=12).curves[0]
    simulated = [rms(count_errors(rows, cap, 0.8, rng)) for cap in curve.bounds]  # noise for another ε
    assert any(
        forecast != pytest.approx(error, rel=0.1) for forecast, error in zip(curve.error, simulated, strict=True)
    )


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("protects", ["presence", "values"])
def test_bounds_are_never_below_the_error(name: str, protects: str) -> None:
    """Users who differ as much as values allow, and busy users most of all."""
    rows, rng = SHAPES[name], np.random.default_rng(14)
    means = np.where(rows > np.quantile(rows, 0.9), 1.0, rng.choice([0.0, 0.2], len(rows)))
    truth = float(rows @ means / rows.sum())
    for statistic in ("sum", "mean"):
        made = plan(statistic, Profile.counts(rows), 0.5, (0, 1), protects, points=12)
        for curve in made.curves:
            if curve.strategy in ("TotalCap", "SmoothWeights", "CentredInterval"):
                for bound, noise, limit in zip(curve.bounds, curve.noise, curve.error_bound, strict=True):
                    bias = _bias(curve.strategy, statistic, rows, means, bound, truth)
                    assert math.hypot(bias, noise) <= limit * (1 + 1e-9)


def _bias(strategy: str, statistic: str, rows: Rows, means: np.ndarray, bound: float, truth: float) -> float:
    totals = rows * means
    if strategy == "TotalCap":
        return float(np.minimum(totals, bound).sum() - totals.sum())
    if strategy == "CentredInterval":
        clipped = np.clip(totals - rows / 2, -bound / 2, bound / 2) + rows / 2
        return float(clipped.sum() / rows.sum() - truth)
    weight = np.minimum(rows, bound)
    if statistic == "sum":
        return float(weight @ means - totals.sum())
    return float(weight @ means / weight.sum() - truth)

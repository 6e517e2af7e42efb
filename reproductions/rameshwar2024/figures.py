"""Figures 2 and 3: average error of the centred interval, plain Laplace noise and a privately chosen cap."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.accuracy.means import GRID, Table, choose
from benchmarks.shapes import extreme, geometric

from evenhand.bounding import LocatedMean
from evenhand.bounding.centred_interval import centred_bound
from evenhand.guarantee import Relation
from evenhand.planning import plan
from evenhand.profiles import Profile, support_of_counts
from reproductions.outcomes import Check, Outcome, Size, lines, near

Array = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]

U = 65.0
ITERATIONS = {"small": 2_000, "full": 10_000}
AUTO_RUNS = {2_000: 10, 10_000: 250}  # of Evenhand's default, by iterations: each looks for where users are
EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)


def figure_2(out: Path, size: Size = "full") -> Outcome:
    """Geometric counts, uniform samples."""
    rows = compare(geometric(), uniform, ITERATIONS[size])
    found = _by_epsilon(rows)
    least = {0.1: 20.0223, 0.5: 10.4464, 1.0: 6.9643, 2.0: 4.6429}
    checks = [near(f"E_OPT at ε = {e:g}", worst_case(geometric(), e), value, 1e-4) for e, value in least.items()]
    checks += [
        near(f"plain Laplace at ε = {e:g}", found["plain Laplace", e], value, 0.08)
        for e, value in {0.1: 92.857, 0.5: 18.571, 1.0: 9.286, 2.0: 4.643}.items()
    ]
    checks += [
        near(f"centred interval at ε = {e:g}", found["centred interval", e], value, 0.08)
        for e, value in {0.1: 5.81, 0.5: 4.64, 1.0: 4.64, 2.0: 4.64}.items()
    ]
    return _finish(out, "rameshwar2024-fig2", "geometric counts, uniform samples", rows, checks)


def figure_3(out: Path, size: Size = "full") -> Outcome:
    """Extreme counts, projected Gaussian samples."""
    rows = compare(extreme(), gaussian, ITERATIONS[size])
    found = _by_epsilon(rows)
    checks = [
        near(f"E_OPT at ε = {e:g}", worst_case(extreme(), e), v, 1e-4) for e, v in {0.1: 8.5682, 1.0: 3.25}.items()
    ]
    scale = U * 10 / 110  # the largest user moves the mean by this much
    checks += [near(f"plain Laplace at ε = {e:g}", found["plain Laplace", e], scale / e, 0.08) for e in (0.1, 1.0)]
    checks += [
        Check(
            f"plain Laplace over centred interval at ε = {e:g}",
            found["plain Laplace", e] / found["centred interval", e],
            5,
            15,
        )
        for e in (0.1, 1.0)
    ]
    return _finish(out, "rameshwar2024-fig3", "extreme counts, projected Gaussian samples", rows, checks)


def compare(counts: npt.NDArray[np.int64], draw: Draw, iterations: int) -> list[dict[str, Any]]:
    """Mean absolute error of three mechanisms on fresh samples, at every ε."""
    rng = np.random.default_rng(2024)
    owner = np.repeat(np.arange(len(counts)), counts)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    total, support = float(counts.sum()), support_of_counts(counts)
    rows: list[dict[str, Any]] = []
    some = slice(None, None, iterations // AUTO_RUNS[iterations])
    for epsilon in EPSILONS:
        sums = np.add.reduceat(draw(rng, iterations * len(owner)).reshape(iterations, -1), starts, axis=1)
        truth = sums.sum(axis=1) / total
        errors = {
            "plain Laplace": rng.laplace(0, U * counts.max() / (epsilon * total), iterations),
            "centred interval": _centred(sums, counts, centred_bound(support, U, epsilon), epsilon, rng) - truth,
            "privately chosen cap": _capped(sums, counts, epsilon, rng) - truth,
            "Auto": np.array([_auto(one, counts, epsilon, rng) for one in sums[some]]) - truth[some],
        }
        rows += [
            {"epsilon": epsilon, "error": float(np.abs(e).mean()), "mechanism": name} for name, e in errors.items()
        ]
    return rows


def _centred(
    sums: Array, counts: npt.NDArray[np.int64], width: float, epsilon: float, rng: np.random.Generator
) -> Array:
    """Each user's total clipped to length ``width`` around the middle: Theorem III.1."""
    low, high = np.maximum((U * counts - width) / 2, 0), np.minimum((U * counts + width) / 2, U * counts)
    noise = rng.laplace(0, 1, len(sums)) * width / epsilon
    released: Array = (np.clip(sums, low, high).sum(axis=1) + noise) / counts.sum()
    return released


def _capped(sums: Array, counts: npt.NDArray[np.int64], epsilon: float, rng: np.random.Generator) -> Array:
    """The "AKMV" mechanism: half of ε finds the ⌈2/ε⌉-th largest total by the exponential mechanism, half releases the capped sum.

    The paper does not say how it finds the rank; this is the usual way, over 500 equal steps up to the largest possible total.
    """
    caps = np.linspace(0, U * counts.max(), 501)[1:]
    rank = math.ceil(2 / epsilon)
    chosen = np.empty(len(sums))
    for block in range(0, len(sums), 1000):
        some = sums[block : block + 1000]
        above = np.stack([(some > cap).sum(axis=1) for cap in caps], axis=1)
        # One user's new values move every rank by at most 1: exponent ε/2 · score / 2.
        logits = -np.abs(above - rank) * epsilon / 4 + rng.gumbel(size=above.shape)
        chosen[block : block + 1000] = caps[logits.argmax(axis=1)]
    noise = rng.laplace(0, 1, len(sums)) * 2 * chosen / epsilon
    released: Array = (np.minimum(sums, chosen[:, None]).sum(axis=1) + noise) / counts.sum()
    return released


def _auto(sums: Array, counts: npt.NDArray[np.int64], epsilon: float, rng: np.random.Generator) -> float:
    """Evenhand's default where counts are public: it buys where user means lie if there are users enough, else smooth weights."""
    rows, relation = counts.astype(np.float64), Relation.VALUES
    table = Table(counts, sums / rows / U)
    choice, left = choose(table, Decimal(repr(epsilon)), relation, rng)
    made, noise = choice.strategy, rng.laplace() / float(left)
    if isinstance(made, LocatedMean):
        low, high, centre = -made.below / GRID, made.above / GRID, made.centre / GRID
        mean = centre + (np.clip(rows * (table.means - centre), low, high).sum() + noise * (high - low)) / rows.sum()
    else:
        h = float(made.bound)
        weights = np.minimum(rows, h)
        mean = (weights @ table.means + noise * h) / weights.sum()
    return float(U * min(max(mean, 0.0), 1.0))


def uniform(rng: np.random.Generator, count: int) -> Array:
    """Samples uniform on (0, U]."""
    return U * (1 - rng.random(count))


def gaussian(rng: np.random.Generator, count: int) -> Array:
    """Samples from N(U/2, variance U/4), drawn again until they lie in (0, U]."""
    values = rng.normal(U / 2, math.sqrt(U / 4), count)
    while (bad := (values <= 0) | (values > U)).any():
        values[bad] = rng.normal(U / 2, math.sqrt(U / 4), int(bad.sum()))
    return values


def _by_epsilon(rows: list[dict[str, Any]]) -> dict[tuple[str, float], float]:
    return {(row["mechanism"], row["epsilon"]): row["error"] for row in rows}


def _finish(out: Path, name: str, setting: str, rows: list[dict[str, Any]], checks: list[Check]) -> Outcome:
    found = _by_epsilon(rows)
    ratio = [found["privately chosen cap", e] / found["plain Laplace", e] for e in EPSILONS]
    auto = max(found["Auto", e] / found["plain Laplace", e] for e in EPSILONS)
    checks = [
        *checks,
        Check("privately chosen cap over plain Laplace, largest", max(ratio), 0.8, 3.0),
        Check("Auto over plain Laplace, largest", auto, 0.0, 2.0),
    ]
    title = f"{name}: average error, {setting}"
    return Outcome(title, checks, rows).write(out, name, lines(rows, "epsilon", "error", "mechanism", title))


def worst_case(counts: npt.NDArray[np.int64], epsilon: float) -> float:
    """E_OPT, as a plan forecasts it."""
    made = plan("mean", Profile.counts(counts), epsilon, (0, U), "values", points=2, objective="worst case")
    return made.best_of("CentredInterval").worst_case

"""Quantiles of columns as they occur: errors in values and in ranks, widths and coverage of intervals, against what a skilled user would write.

The code is that of a release from the noisy profile on (the choice of the bound, `Search`, the intervals), with NumPy's noise. The
baselines know the number of rows and the best bound of each cell of the table (in hindsight) and pay nothing for them; they give no interval:

- *binary search*: 20 questions whether enough weight lies below the middle of what is left, with Laplace noise and a twentieth of ε each;
  ε/m for each of m quantiles;
- *by rank*: the exponential mechanism between the values that occur, by rank, ε/m for each of m quantiles.

The table, and its noise, of each run come from a fixed seed, so that two versions see the same.

    python -m benchmarks.accuracy.quantiles [--runs 5] [--users 300 3000 30000] [--against raw/OLD.json]
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TypedDict

import numpy as np

from benchmarks.accuracy.noise import discrete_laplace
from benchmarks.accuracy.quantile_tables import COLUMNS, USERS, Array, Column, Table, draw
from benchmarks.results import keep, table
from evenhand.bounding import Family, bound_for_quantiles
from evenhand.guarantee import Relation
from evenhand.profiles import Population, row_buckets
from evenhand.release import Measurement, Noisy, Receipt, noise_for
from evenhand.statistics import Quantiles
from evenhand.statistics.rank_intervals import rank_intervals
from evenhand.statistics.rank_search import Placed, Search
from evenhand.statistics.ranks import POINT_BITS, PROFILE_SHARE
from evenhand.statistics.weighted_rows import FULL, capacity_of
from evenhand.tables import Grid, Secret

QUANTILES = ((0.5,), (0.1, 0.5, 0.9))
EPSILONS = (0.1, 0.5, 1.0, 2.0)
BOUNDS = tuple(4.0**k for k in range(5))
FLOOR = 1e-4
"""Errors below are the same: a ten thousandth of the distance from the 0.1- to the 0.9-quantile."""


class Simulated(Receipt):
    """A receipt that draws from NumPy."""

    def __init__(self, epsilon: Decimal, rng: np.random.Generator) -> None:
        super().__init__(epsilon, Decimal(0), "benchmark")
        self._rng = rng

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Noisy:
        self._use(epsilon, delta)
        noise = noise_for(measurement.l1, measurement.l2_squared, epsilon, delta)
        exact = measurement.integers().reveal()
        drawn = discrete_laplace(self._rng, float(noise.scale), len(exact))
        return Noisy([value + int(more) for value, more in zip(exact, drawn, strict=True)], noise)


def released(
    given: Table, column: Column, quantiles: Sequence[float], epsilon: float, rng: np.random.Generator
) -> tuple[Array, Array, list[bool]]:
    """As in a release: values, 95% intervals, and whether the release says that it can't tell."""
    low, high = column.bounds
    grid = Grid.about((low, high), low, POINT_BITS)
    if column.whole:
        grid = replace(grid, exponent=min(grid.exponent, 0))
    buckets, part = row_buckets(), PROFILE_SHARE * epsilon
    noisy = buckets.histogram(given.rows) + discrete_laplace(rng, 1 / part, buckets.size)
    asked, left = Quantiles("x", list(quantiles), (low, high)), epsilon - part
    busy = bound_for_quantiles(
        Family.of_posterior(Population.behind(buckets, noisy, 1 / part)), quantiles, left, asked.deviations
    )
    weight = given.weights(busy.bound)
    far, full = weight * busy.far < FULL, weight >= FULL
    kinds = [np.where(kind, weight, 0) for kind in (full, ~full & ~far, far & ~full)]
    place = np.clip(np.floor(given.values * grid.factor + grid.offset), 0, grid.width).astype(np.int64)
    capacity, paid = capacity_of(Fraction(busy.bound)), Decimal(str(left))
    zero = grid.steps_above(min(max(0.0, low), high))
    weights = Secret(Placed.of(place, kinds))
    receipt = Simulated(paid, rng)
    found = Search(receipt, weights, grid.width + 1, zero, 1, capacity, Relation.PRESENCE, busy).find(
        asked.wanted, paid
    )
    exact = column.whole and grid.exponent == 0
    each = [rank_intervals(grid, found, q, exact, bounded=True)[0] for q in asked.wanted]
    return (
        np.array([one.value for one in each]),
        np.array([one.at(0.95) for one in each]),
        [bool(one.why) for one in each],
    )


def binary_search(
    given: Table, column: Column, quantiles: Sequence[float], epsilon: float, bound: float, rng: np.random.Generator
) -> Array:
    """What a skilled user would write."""
    steps, found = 20, []
    order = np.argsort(given.values)
    values, below = given.values[order], np.concatenate([[0.0], np.cumsum(given.weights(bound)[order] / FULL)])
    for q in quantiles:
        low, high = column.bounds
        scale = bound * max(q, 1 - q) * steps * len(quantiles) / epsilon
        for _ in range(steps):
            middle = (low + high) / 2
            more = below[np.searchsorted(values, middle, side="right")] - q * below[-1] + rng.laplace(0, scale)
            low, high = (low, middle) if more > 0 else (middle, high)
        found.append((low + high) / 2)
    return np.array(found)


def by_rank(
    given: Table, column: Column, quantiles: Sequence[float], epsilon: float, bound: float, rng: np.random.Generator
) -> Array:
    """The exponential mechanism on intervals between values, and on the values."""
    order = np.argsort(given.values)
    ends, found = np.concatenate([[column.bounds[0]], given.values[order], [column.bounds[1]]]), []
    below = np.concatenate([[0.0], np.cumsum(given.weights(bound)[order] / FULL)])
    points, first = np.unique(given.values[order], return_index=True)
    last = np.append(first[1:], len(order))
    step = 1.0 if column.whole else (column.bounds[1] - column.bounds[0]) / 2**20
    for q in quantiles:
        factor, wanted = epsilon / 2 / bound / max(q, 1 - q) / len(quantiles), q * below[-1]
        between = np.log(np.maximum(np.diff(ends) / step - 1, 1e-9)) - factor * np.abs(below - wanted)
        at = -factor * np.maximum(0, np.maximum(below[first] - wanted, wanted - below[last]))
        score = np.concatenate([between, at])
        best = int((score + rng.gumbel(size=len(score))).argmax())
        inside = best < len(between)
        found.append(rng.uniform(ends[best], ends[best + 1]) if inside else points[best - len(between)])
    return np.array(found)


class Cell(TypedDict):
    """What was measured of one kind of table, by run and quantile: errors and widths in units of the column's scale."""

    error: list[list[float]]
    rank: list[list[float]]
    width: list[list[float]]
    held: list[list[bool]]
    untold: list[list[bool]]
    baselines: dict[str, list[list[float]]]


def measure(name: str, users: str, number: int, runs: int, baselines: bool = True) -> dict[str, Cell]:
    """All questions about one kind of table."""
    column, cells = COLUMNS[name], dict[str, Cell]()
    key = zlib.crc32(f"{name}/{users}".encode())
    for run, quantiles, epsilon in itertools.product(range(runs), QUANTILES, EPSILONS):
        given = draw(name, users, number, np.random.default_rng([key, number, run]))
        seed = [7, number, run, int(epsilon * 100), len(quantiles), key]
        found, ends, untold = released(given, column, quantiles, epsilon, np.random.default_rng(seed))
        error, rank = given.errors(found, quantiles)
        truth, (low, high) = given.truth(quantiles), ends.T
        cell = cells.setdefault(
            f"{name}|{users}|{number}|{len(quantiles)}|{epsilon:g}",
            Cell(error=[], rank=[], width=[], held=[], untold=[], baselines={}),
        )
        cell["error"].append((error / column.scale).tolist())
        cell["rank"].append(rank.tolist())
        cell["width"].append(((high - low) / column.scale).tolist())
        cell["held"].append(((low <= truth + 1e-9) & (truth <= high + 1e-9)).tolist())
        cell["untold"].append(untold)
        bounds = BOUNDS if users != "one row" else BOUNDS[:1]
        for bound, (title, simple) in itertools.product(
            bounds, {"binary search": binary_search, "by rank": by_rank}.items()
        ):
            if baselines:
                simply = simple(given, column, quantiles, epsilon, bound, np.random.default_rng(seed))
                errors = given.errors(simply, quantiles)[0] / column.scale
                cell["baselines"].setdefault(f"{title}, {bound:g}", []).append(errors.tolist())
    return cells


def summary(cells: Mapping[str, Cell], old: Mapping[str, Cell] | None) -> list[list[str]]:
    """A row of the table: typical figures of these cells."""
    each = list(cells.values())
    errors = _medians([cell["error"] for cell in each])
    widths = _medians([cell["width"] for cell in each])
    held = np.concatenate([np.ravel(cell["held"]) for cell in each])
    told = ~np.concatenate([np.ravel(cell["untold"]) for cell in each])
    shown = [
        f"{_typical(errors):.4f}",
        f"{100 * np.mean([np.median(cell['rank']) for cell in each]):.2f}",
        f"{np.median(widths / errors):.1f}",
        f"{100 * held[told].mean():.1f}",
        f"{100 * (1 - told.mean()):.1f}",
    ]
    for title in ("binary search", "by rank"):
        best = [
            min(
                (_medians([found])[0] for name, found in cell["baselines"].items() if name.startswith(title)),
                default=np.nan,
            )
            for cell in each
        ]
        shown.append(f"{_typical(errors / np.array(best)):.2f}")
    if old is not None:
        before = [old[name] for name in cells]
        was = _medians([cell["error"] for cell in before])
        wide = _medians([cell["width"] for cell in before])
        shown += [
            f"{_typical(errors / was):.2f}",
            f"{np.median(errors / was):.2f}",
            f"{np.median(wide / was):.1f}",
            f"{_typical(widths / wide):.2f}",
            f"{100 * np.concatenate([np.ravel(cell['held']) for cell in before]).mean():.1f}",
        ]
    return [shown]


def _medians(found: Sequence[list[list[float]]]) -> Array:
    return np.array([max(float(np.median(one)), FLOOR) for one in found])


def _typical(values: Array) -> float:
    return float(np.exp(np.log(values).mean()))


def report(cells: Mapping[str, Cell], old: Mapping[str, Cell] | None, date: str, runs: int) -> str:
    """Markdown: a row for each kind of table, users, number of users, quantiles and ε."""
    rows = [["all", *summary(cells, old)[0]]]
    for place, title in enumerate(("", "", "users ", "quantiles ", "ε = ")):
        for kind in dict.fromkeys(name.split("|")[place] for name in cells):
            some = {name: cell for name, cell in cells.items() if name.split("|")[place] == kind}
            words = f"{kind} {title}".strip() if place in (2, 3) else f"{title}{kind}"
            rows.append([words, *summary(some, old)[0]])
    head = [
        "",
        "error",
        "rank error, %",
        "width / error",
        "held, %",
        "can't tell, %",
        "over binary search",
        "over by rank",
    ]
    head += (
        ["error over before", "median of that", "width / error before", "width over before", "held before, %"]
        if old
        else []
    )
    return f"""# Quantiles, {date}

Medians (0.5) and three quantiles (0.1, 0.5, 0.9) of {len(COLUMNS)} columns; {runs} tables for each number, from fixed seeds. Errors are medians over runs and quantiles, in units of the distance from
the column's 0.1- to its 0.9-quantile and at least {FLOOR}; over several kinds of tables geometric means. "Over binary search", "over by rank": the error over that of what a
skilled user would write, with the best bound in hindsight and nothing paid for it; neither gives an interval.

{table(head, rows)}
"""


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="tables of each kind")
    parser.add_argument("--users", type=int, nargs="*", default=[300, 3000, 30_000], help="how many")
    parser.add_argument("--against", type=Path, help="raw numbers of an earlier run")
    asked, cells = parser.parse_args(), dict[str, Cell]()
    for number, users, name in itertools.product(asked.users, USERS, COLUMNS):
        cells |= measure(name, users, number, asked.runs)
    today = datetime.date.today().isoformat()
    old = None if asked.against is None else json.loads(asked.against.read_text(encoding="utf-8"))
    keep(Path(__file__).parent, f"{today}-quantiles", report(cells, old, today, asked.runs), {**cells})


if __name__ == "__main__":
    main()

"""Quantiles, in the unit of the value: the search of a release, with its bound chosen, against the best bound in hindsight.

The code is that of a release from the noisy profile on (`find`, the choice of the bound, the intervals), with NumPy's noise. Both
baselines know their bound and pay nothing for it; the table is drawn anew in each run:

- *by rank*: a choice among the grid points by rank alone, as a skilled user would write it, ε/m for each of m quantiles;
- *same search*: that of a release, with all of ε.

The bounds are 0 and 100, so errors are percent of their length.

    python -m benchmarks.accuracy.quantiles [--runs 200]
"""

from __future__ import annotations

import argparse
import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.noise import discrete_laplace
from benchmarks.results import keep, table
from benchmarks.shapes import lognormal, pareto
from evenhand.bounding import Family, bound_for_quantiles
from evenhand.guarantee import Relation, split
from evenhand.noise import NoisyMax
from evenhand.profiles import Population, row_buckets
from evenhand.release import Choices, Measurement, Noisy, OfQuantiles, Receipt, noise_for
from evenhand.statistics import Quantiles
from evenhand.statistics.busy_ranks import Far, Measured, informed, measured_ranks, moved_ranks, near_and_far
from evenhand.statistics.finding import Points, find
from evenhand.statistics.rank_intervals import RankInterval
from evenhand.statistics.ranks import PROFILE_SHARE
from evenhand.statistics.weighted_rows import FULL, capacity_of
from evenhand.tables import Grid, Secret

Array = npt.NDArray[np.float64]
GRID = Grid.about((0.0, 100.0), 0.0, 12)
POINTS = GRID.width + 1
BOUNDS = tuple(4.0**k for k in range(5))
FLOOR = 1 / GRID.factor
Case: TypeAlias = tuple[str, str, int, int]


class Simulated(Receipt):
    """A receipt that draws from NumPy."""

    def __init__(self, epsilon: Decimal, rng: np.random.Generator) -> None:
        super().__init__(epsilon, Decimal(0), "benchmark")
        self._rng = rng

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Noisy:
        self._use(epsilon, delta)
        noise, exact = (
            noise_for(measurement.l1, measurement.l2_squared, epsilon, delta),
            measurement.integers().reveal(),
        )
        drawn = discrete_laplace(self._rng, float(noise.scale), len(exact))
        return Noisy([value + int(more) for value, more in zip(exact, drawn, strict=True)], noise)

    def choices(
        self,
        scores: Secret[list[list[int]]],
        sensitivity: int | Sequence[int],
        epsilon: Decimal,
        monotone: bool = False,
    ) -> Choices:
        """Permute-and-flip is the largest score after exponential noise."""
        self._use(epsilon)
        lists = scores.reveal()
        sizes = [sensitivity] * len(lists) if isinstance(sensitivity, int) else sensitivity
        scales = [NoisyMax.calibrated(size, epsilon, monotone).scale for size in sizes]
        places = [
            int((np.array(one, dtype=np.float64) / float(scale) + self._rng.exponential(size=len(one))).argmax())
            for one, scale in zip(lists, scales, strict=True)
        ]
        return Choices(places, max(scales))


@dataclass
class Table:
    """Rows: their user's number of rows, their group and their point on the grid."""

    rows: npt.NDArray[np.int64]
    sizes: Array
    place: npt.NDArray[np.int64]
    groups: int

    def weights(self, h: float) -> npt.NDArray[np.int64]:
        """The weight at each point of each group, as in a release."""
        return self._sum(self._each(h))

    def cut(self, h: float) -> npt.NDArray[np.int64]:
        """The same of users who are cut."""
        each = self._each(h)
        return self._sum(np.where(each < FULL, each, 0.0))

    def far(self, h: float, times: int) -> npt.NDArray[np.int64]:
        """The same of users far above the bound: by so many times."""
        each = self._each(h)
        return self._sum(np.where(each * times < FULL, each, 0.0))

    def _each(self, h: float) -> Array:
        return np.asarray(np.minimum(np.floor(capacity_of(Fraction(h)) / self.sizes), FULL))

    def _sum(self, each: Array) -> npt.NDArray[np.int64]:
        counts = np.bincount(self.place, weights=each, minlength=self.groups * POINTS)
        return counts.astype(np.int64).reshape(self.groups, POINTS)

    def truth(self, quantiles: Sequence[float]) -> Array:
        """Values by quantile and group."""
        running = np.bincount(self.place, minlength=self.groups * POINTS).reshape(self.groups, POINTS).cumsum(axis=1)
        places = [(running >= q * running[:, -1:] - 1e-9).argmax(axis=1) for q in quantiles]
        return np.array(places) / GRID.factor


def draw(values: str, counts: str, users: int, groups: int, rng: np.random.Generator) -> Table:
    """A table: how values lie, how many rows users have, how many users and groups."""
    counted: dict[str, Callable[[], npt.NDArray[np.int64]]] = {
        "one row": lambda: np.ones(users, dtype=np.int64),
        "log-normal 1.2": lambda: lognormal(users, 5, 1.2, rng),
        "log-normal 2": lambda: lognormal(users, 1, 2.0, rng),
        "log-normal 0.7": lambda: lognormal(users, 30, 0.7, rng),
        "Pareto 1.2": lambda: pareto(users, 1.2, rng, largest=20_000),
        "Pareto 1.8": lambda: pareto(users, 1.8, rng, least=2, largest=20_000),
        "up to 60": lambda: rng.integers(1, 60, users),
        "geometric": lambda: rng.geometric(0.15, users),
        "negative binomial": lambda: 1 + rng.negative_binomial(0.5, 0.03, users),
        "Weibull": lambda: np.ceil(10 * rng.weibull(0.5, users)).astype(np.int64),
        "hump and tail": lambda: np.where(
            rng.random(users) < 0.9, 1 + rng.poisson(8, users), pareto(users, 1.5, rng, least=8, largest=20_000)
        ),
        "one in twenty is busy": lambda: np.where(
            rng.random(users) < 0.05, rng.integers(100, 400, users), rng.integers(1, 6, users)
        ),
    }
    rows = counted[counts]()
    user = np.repeat(np.arange(users), rows)
    popular = 1 / np.arange(1, groups + 1) ** 0.7
    group = rng.choice(groups, len(user), p=popular / popular.sum())
    apart = rng.standard_normal(groups) if groups > 1 else np.zeros(1)
    activity = np.log(rows) - np.log(rows).mean()
    activity = activity / max(float(activity.std()), 1e-12)
    noise = rng.standard_normal(len(user))
    kind, _, tilt_given = values.rpartition(" ")
    if kind:
        tilt = float(tilt_given)
        own = tilt * activity + math.sqrt(1 - tilt**2) * rng.standard_normal(users)
        z = (8 * own[user] + 12 * noise + 4 * apart[group]) / math.hypot(8, 12)
        tilted: dict[str, Callable[[Array], Array]] = {
            "users differ": lambda z: 50 + math.hypot(8, 12) * z,
            "skewed": lambda z: np.exp(2.5 + 0.6 * z),
            "integers": lambda z: np.rint(np.exp(2 + 0.8 * z)),
            "prices": lambda z: np.rint(100 * np.exp(1.5 + z)) / 100,
            "ages": lambda z: 18 + 70 / (1 + np.exp(0.7 - 1.2 * z)),
            "two humps": lambda z: np.where(z > -0.3, 70 + 5 * z, 20 + 5 * z),
        }
        x = tilted[kind](z)
    else:
        placed: dict[str, Callable[[], Array]] = {
            "uniform": lambda: 100 * rng.random(len(user)),
            "normal": lambda: 50 + 10 * noise + 5 * apart[group],
            "log-normal": lambda: np.exp(-1 + 0.8 * noise + 0.3 * apart[group]),
            "Zipf": lambda: np.minimum(rng.zipf(1.8, len(user)), 100).astype(np.float64),
            "stars": lambda: 20 * np.clip(np.rint(3.6 + noise + 0.5 * apart[group]), 1, 5),
        }
        x = placed[values]()
    point = np.floor(np.clip(x, 0, 100) * GRID.factor + 0.5).astype(np.int64)
    return Table(rows, rows[user].astype(np.float64), group * POINTS + point, groups)


def search(table: Table, h: float, quantiles: Sequence[float], epsilon: float, rng: np.random.Generator) -> Array:
    """The values that a release finds with a bound that is known, and nothing measured about busy users, by quantile and group."""
    paid, wanted, capacity = Decimal(str(epsilon)), [Fraction(str(q)) for q in quantiles], capacity_of(Fraction(h))
    weights = Secret(table.weights(h).ravel().tolist())
    receipt = Simulated(paid, rng)
    points = find(receipt, weights, POINTS, table.groups, wanted, capacity, Relation.PRESENCE, paid)
    return np.array([[one.value for one in column] for column in intervals(points, wanted)])


def intervals(points: Points, wanted: Sequence[Fraction]) -> list[list[RankInterval]]:
    """By quantile and group."""
    return [[RankInterval(GRID, *one) for one in points.of(q)] for q in wanted]


def released(
    table: Table, quantiles: Sequence[float], epsilon: float, rng: np.random.Generator
) -> tuple[Array, Array, npt.NDArray[np.bool_], float]:
    """As in a release, by quantile and group: values, 95% intervals, and whether the release says that it can't tell; and the bound."""
    buckets, part = row_buckets(), PROFILE_SHARE * epsilon
    noisy = buckets.histogram(table.rows) + discrete_laplace(rng, 1 / part, buckets.size)
    family, left = Family.of_posterior(Population.behind(buckets, noisy, 1 / part)), epsilon - part
    asked = Quantiles("x", list(quantiles), (0, 100))
    busy = bound_for_quantiles(family, quantiles, left, asked.deviations, table.groups)
    capacity = capacity_of(Fraction(busy.bound))
    kinds = {"rows": table.weights(busy.bound), "cut": table.cut(busy.bound), "far": table.far(busy.bound, busy.far)}
    cells = {kind: weights.ravel().tolist() for kind, weights in kinds.items()}
    rest, receipt, wanted = Decimal(str(left)), Simulated(Decimal(str(left)), rng), sorted(set(asked.wanted))
    share = busy.best_share(quantiles, left, asked.deviations, table.groups)
    paid, rest = split(rest, share) if share else (Decimal(0), rest)

    def measure(places: Sequence[int], far: Far | None) -> Measured:
        told = informed(busy, far, capacity)
        if not share:
            return Measured(moved_ranks(told, wanted))
        return measured_ranks(receipt, Secret(cells), places, POINTS, wanted, told, capacity, Relation.PRESENCE, paid)

    points = find(
        receipt,
        Secret(cells["rows"]),
        POINTS,
        table.groups,
        wanted,
        capacity,
        Relation.PRESENCE,
        rest,
        moved_ranks(busy, wanted),
        measure,
        Secret(near_and_far(cells, POINTS)),
    )
    each = intervals(points, asked.wanted)
    ends = [[interval.at(0.95) for interval in column] for column in each]
    values = [[interval.value for interval in column] for column in each]
    untold = [[bool(interval.why) for interval in column] for column in each]
    return np.array(values), np.array(ends), np.array(untold), busy.bound


def by_rank(table: Table, h: float, quantiles: Sequence[float], epsilon: float, rng: np.random.Generator) -> Array:
    """The baseline: each quantile by permute-and-flip on rank scores, ε/m each."""
    weights = table.weights(h) / FULL
    running, found = weights.cumsum(axis=1), []
    for q in quantiles:
        target = q * running[:, -1:]
        distance = np.maximum(0, np.maximum(running - weights - target, target - running))
        scale = 2 * h * max(q, 1 - q) * len(quantiles) / epsilon
        found.append((rng.exponential(size=distance.shape) - distance / scale).argmax(axis=1))
    return np.array(found) / GRID.factor


def measure(case: Case, quantiles: Sequence[float], epsilon: float, runs: int, seed: int) -> dict[str, Any]:
    """Errors, jumps and coverage over tables drawn anew; and for each quantile the error with the best bound for it, known beforehand: by rank,
    and by the search of a release."""
    rng = np.random.default_rng(seed)
    ours, widths, inside, usable, flagged, chosen = [], [], [], [], [], []
    simple: dict[float, list[Array]] = {h: [] for h in BOUNDS}
    same: dict[float, list[Array]] = {h: [] for h in BOUNDS}
    for _ in range(runs):
        table = draw(*case, rng)
        truth = table.truth(quantiles)
        found, ends, untold, h = released(table, quantiles, epsilon, rng)
        low, high = ends[:, :, 0], ends[:, :, 1]
        ours.append(found - truth)
        chosen.append(h)
        widths.append(high - low)
        inside.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
        largest = np.abs(found).max(axis=0)
        narrow = (high - low) / 2 <= np.array([OfQuantiles(0.0, 100.0, one).allowed(0.0) for one in largest])
        usable.append(narrow & ~untold)
        flagged.append(untold)
        for bound in BOUNDS:
            simple[bound].append(by_rank(table, bound, quantiles, epsilon, rng) - truth)
            same[bound].append(search(table, bound, quantiles, epsilon, rng) - truth)
    held, told, silent = np.array(inside), np.array(usable), np.array(flagged)
    rmse, best = np.maximum(_rmse(ours), FLOOR), _best(same)
    return {
        "rmse": rmse.tolist(),
        "95% error": np.quantile(np.abs(ours), 0.95, axis=(0, 2)).tolist(),
        "jumps": np.mean(np.abs(ours) > 20, axis=(0, 2)).tolist(),
        "coverage": held.mean(axis=(0, 2)).tolist(),
        "can't tell": silent.mean(axis=(0, 2)).tolist(),
        "coverage else": ((held & ~silent).sum(axis=(0, 2)) / np.maximum((~silent).sum(axis=(0, 2)), 1)).tolist(),
        "usable": told.mean(axis=(0, 2)).tolist(),
        "width": np.median(widths, axis=(0, 2)).tolist(),
        "bound": [float(np.median(chosen))],
        "by rank": _best(simple).tolist(),
        "same search": best.tolist(),
        "multiple": (rmse / best).tolist(),
    }


def _rmse(errors: Sequence[Array]) -> Array:
    return np.asarray(np.sqrt(np.mean(np.square(errors), axis=(0, 2))))


def _best(by_bound: dict[float, list[Array]]) -> Array:
    return np.asarray(np.maximum(np.min([_rmse(errors) for errors in by_bound.values()], axis=0), FLOOR))


CASES: tuple[Case, ...] = (
    ("normal", "log-normal 1.2", 2000, 1),
    ("users differ 0.2", "log-normal 1.2", 2000, 1),
    ("users differ 0.4", "log-normal 2", 5000, 1),
    ("uniform", "Pareto 1.2", 5000, 1),
    ("Zipf", "Pareto 1.2", 5000, 1),
    ("log-normal", "log-normal 2", 5000, 1),
    ("normal", "log-normal 1.2", 3000, 20),
    ("stars", "log-normal 1.2", 3000, 20),
    ("log-normal", "log-normal 1.2", 6000, 100),
)
"""Values, rows per user, users, groups. Looked at while shares and priors were set."""

HELD_OUT: tuple[Case, ...] = (
    ("skewed 0.3", "up to 60", 3000, 1),
    ("skewed 0.3", "Pareto 1.8", 8000, 1),
    ("skewed -0.3", "one in twenty is busy", 4000, 1),
    ("skewed 0", "log-normal 0.7", 2500, 1),
    ("integers 0.2", "geometric", 4000, 1),
    ("integers 0", "Pareto 1.8", 3000, 1),
    ("two humps 0.2", "log-normal 1.2", 4000, 1),
    ("two humps -0.2", "log-normal 2", 8000, 1),
)
"""Were held out at first; looked at since, while intervals were mended."""

NEW: tuple[Case, ...] = (
    ("prices 0.25", "Weibull", 6000, 1),
    ("prices -0.15", "hump and tail", 10_000, 1),
    ("ages -0.2", "negative binomial", 5000, 1),
    ("ages 0.3", "Weibull", 3000, 1),
    ("stars", "negative binomial", 8000, 10),
)
"""Written last. After the first run the doubt about the tail and the prior of r were widened once."""

QUANTILES = ((0.5,), (0.25, 0.5, 0.9))
EPSILONS = (0.1, 1.0)


def report(sections: Mapping[str, Mapping[str, dict[str, Any]]], date: str, runs: int) -> str:
    """Markdown: a row for each case."""
    parts = []
    for title, results in sections.items():
        columns = list(next(iter(results.values())))
        rows = [
            [name, *(" / ".join(f"{value:.2g}" for value in row[column]) for column in columns)]
            for name, row in results.items()
        ]
        parts.append(f"## {title}\n\n{table(['values, rows per user, users, groups; ε', *columns], rows)}\n")
    return f"""# Quantiles, {date}

{runs} tables without groups, a twentieth of that with groups; quantiles 0.5, or 0.25 / 0.5 / 0.9; errors in percent of the length of the bounds, and never below
a point of the grid (0.03). A jump is an error above 20. "by rank" and "same search" are errors with the best bound for each quantile, known for free, with all of ε;
"multiple" is the release's error over that of the same search. "can't tell" are releases that say so; "coverage else" is that of all others. Usable is what the release
itself calls usable.

{chr(10).join(parts)}"""


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="tables without groups")
    runs = parser.parse_args().runs
    sections: dict[str, dict[str, dict[str, Any]]] = {}
    for title, cases in (("Looked at before", CASES), ("Held out", HELD_OUT), ("New", NEW)):
        results = sections.setdefault(title, {})
        for case in cases:
            for quantiles in QUANTILES:
                for epsilon in EPSILONS:
                    many = runs if case[3] == 1 else max(runs // 20, 2)
                    name = f"{', '.join(map(str, case))}; {epsilon}, {len(quantiles)}"
                    results[name] = measure(case, quantiles, epsilon, many, seed=11)
            print(case, flush=True)
    today = datetime.date.today().isoformat()
    keep(Path(__file__).parent, f"{today}-quantiles", report(sections, today, runs), sections)


if __name__ == "__main__":
    main()

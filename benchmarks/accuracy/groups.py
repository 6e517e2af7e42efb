"""Counts, sums and numbers of users by public groups: the chosen bound and noise against the best in hindsight.

    python -m benchmarks.accuracy.groups [--short]

Hindsight knows the table: the best parameters of (l0, l∞) sampling as PipelineDP does it, of clipping in L1 and of
clipping in L2, each with the noise that suits its norm and all of ε. Ours pays for its profile. Root mean squared errors over
groups are exact expectations over noise and sampling, so only our profile is simulated, with the library's own buckets
and choice. `group_releases.py` runs a sample of the cases through `Session` on DuckDB.
"""

from __future__ import annotations

import argparse
import datetime
import math
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import norm

from benchmarks.accuracy.group_tables import OTHERS, TUNED, Table
from benchmarks.accuracy.noise import discrete_laplace
from benchmarks.results import keep, table
from evenhand.bounding import GroupBound, best_bound, roots
from evenhand.ledger import mechanism_delta
from evenhand.noise import rho_for
from evenhand.profiles import Histogram, norm_buckets, total_buckets
from evenhand.statistics.allocation import gaussian_can_win, share_for
from evenhand.statistics.limits import Noises

Floats = npt.NDArray[np.float64]

EPSILONS = (0.1, 0.4, 1.0, 4.0)
DELTA = 1e-6
MANY = 100  # groups, from which the stricter bars hold
BARS = {True: (1.25, 1.1), False: (2.0, 1.5)}  # worst case, median case
BITS = 16  # of the grid of a sum by group


class Grouped:
    """What each user adds to each group, for one statistic of a table, in grid steps."""

    def __init__(self, rows: Table, statistic: str) -> None:
        self.groups, self.statistic = rows.groups, statistic
        pair = rows.user * rows.groups + rows.group
        found, place = np.unique(pair, return_inverse=True)
        self.user, self.group = found // rows.groups, found % rows.groups
        if statistic == "sum":
            self.step = 2.0 ** (BITS - math.frexp(rows.largest)[1])
            self.unit = math.floor(rows.largest * self.step)
            amount: Any = np.bincount(place, weights=np.floor(rows.value * self.step + 0.5))
        else:
            self.step, self.unit = 1.0, 1
            amount = np.bincount(place) if statistic == "count" else np.ones(len(found))
        self.amount: Floats = amount.astype(np.float64)
        self.truth = self._by_group(self.amount)
        self.l1 = np.bincount(self.user, weights=self.amount)
        self.l2 = np.sqrt(np.bincount(self.user, weights=self.amount**2))

    def _by_group(self, amount: Floats) -> Floats:
        summed: Floats = np.bincount(self.group, weights=amount, minlength=self.groups).astype(np.float64)
        return summed

    @cached_property
    def curves(self) -> dict[bool, tuple[Floats, Floats]]:
        """For L1 and L2: bounds, and the mean over groups of the squared bias that each brings."""
        result = {}
        for gaussian, norms in ((False, self.l1), (True, self.l2)):
            norms = np.maximum(norms, 1e-9)
            bounds = np.append(0.0, np.geomspace(np.quantile(norms, 0.01) / 10, norms.max(), 100))
            bias = [
                float(((self._by_group(self.amount * np.minimum(1, t / norms)[self.user]) - self.truth) ** 2).mean())
                for t in bounds
            ]
            result[gaussian] = bounds, np.array(bias)
        return result

    def squared(self, gaussian: bool, bound: float, noise: float) -> float:
        """Expected squared error of a group, on average."""
        bounds, bias = self.curves[gaussian]
        return (noise * bound) ** 2 + float(np.interp(bound, bounds, bias, right=0.0)) * (bound < bounds[-1])

    @cached_property
    def sampled(self) -> list[tuple[float, float, float]]:
        """(l0, l∞, mean squared bias plus variance of the sample): l0 random groups of each user, l∞ in each."""
        held = np.bincount(self.user)
        found = []
        l0s = np.unique(np.rint(np.geomspace(1, held.max(), 14)))
        caps = np.unique(np.quantile(self.amount, [0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0]))
        for cap in caps:
            kept = np.minimum(self.amount, cap)
            for l0 in l0s:
                part = np.minimum(1.0, l0 / held)[self.user]
                bias = self._by_group(kept * part) - self.truth
                chance = self._by_group(kept**2 * part * (1 - part))
                found.append((float(l0), float(cap), float((bias**2 + chance).mean())))
        return found

    def hindsight(self, epsilon: float, sigma: float | None) -> tuple[float, str]:
        """The smallest root mean squared error of a group, and which method has it."""
        laplace = math.sqrt(2) / epsilon
        found = [(self.squared(False, t, laplace), "L1 clip, Laplace") for t in self.curves[False][0]]
        found += [(e + (laplace * l0 * cap) ** 2, "sampling, Laplace") for l0, cap, e in self.sampled]
        if sigma is not None:
            found += [(self.squared(True, t, sigma), "L2 clip, Gaussian") for t in self.curves[True][0]]
            found += [(e + (sigma * cap) ** 2 * l0, "sampling, Gaussian") for l0, cap, e in self.sampled]
        best, method = min(found)
        return math.sqrt(best), method


@lru_cache
def zcdp(epsilon: float) -> float:
    """σ for an L2 bound of 1, as the library calibrates it."""
    return 1 / math.sqrt(2 * float(rho_for(Decimal(str(epsilon)), Decimal(str(DELTA)))))


@lru_cache
def analytic(epsilon: float) -> float:
    """σ for an L2 bound of 1 by Balle and Wang (2018)."""

    def excess(log_sigma: float) -> float:
        s = math.exp(log_sigma)
        return float(norm.cdf(0.5 / s - epsilon * s) - math.exp(epsilon + norm.logcdf(-0.5 / s - epsilon * s)) - DELTA)

    return math.exp(brentq(excess, -5, 12))


class Ours:
    """The library's choice on exact norms with simulated noise in the profiles."""

    def __init__(self, grouped: Grouped, epsilon: float, delta: float) -> None:
        self.grouped = grouped
        exact, granted = Decimal(str(epsilon)), Decimal(str(delta))
        self.either = gaussian_can_win(exact, granted, grouped.groups)
        self.paid = round(exact * Decimal(str(share_for(grouped.groups))), 9)
        left = exact - self.paid
        self.noises = Noises(left, rho_for(left, mechanism_delta(granted)) if self.either else None)
        counted = norm_buckets(grouped.groups if grouped.statistic == "users" else None)
        self.buckets = counted if grouped.unit == 1 else total_buckets(grouped.unit)
        norms = [grouped.l1, grouped.l2] if self.either and grouped.statistic != "users" else [grouped.l1]
        self.histograms = [self.buckets.histogram(np.ceil(v).astype(np.int64)) for v in norms]

    def bound(self, rng: np.random.Generator) -> GroupBound:
        """One choice."""
        part = float(self.paid) / len(self.histograms)
        supports = [
            Histogram(self.buckets, list(exact + discrete_laplace(rng, 1 / part, self.buckets.size)), part, "").smoothed
            for exact in self.histograms
        ]
        laplace, groups = self.noises.per_step(False), self.grouped.groups
        if not self.either:
            return best_bound(supports[0], None, groups, laplace, None)
        l2 = supports[1] if len(supports) > 1 else roots(supports[0])
        return best_bound(supports[0], l2, groups, laplace, self.noises.per_step(True))

    def errors(self, repeats: int, seed: int) -> tuple[Floats, float]:
        """Root mean squared error of a group given the chosen bound, and how often Gaussian noise is chosen."""
        rng = np.random.default_rng(seed)
        found = [self.bound(rng) for _ in range(repeats)]
        squares = [self.grouped.squared(b.gaussian, b.amount, self.noises.per_step(b.gaussian)) for b in found]
        return np.sqrt(squares), float(np.mean([b.gaussian for b in found]))


def measure(grouped: Grouped, epsilon: float, delta: float, repeats: int, seed: int) -> dict[str, Any]:
    """One case."""
    best, method = grouped.hindsight(epsilon, zcdp(epsilon) if delta else None)
    strict, _ = grouped.hindsight(epsilon, analytic(epsilon) if delta else None)
    errors, gaussian = Ours(grouped, epsilon, delta).errors(repeats, seed)
    ratios = errors / best
    return {
        "groups": grouped.groups,
        "method": method,
        "hindsight": best / grouped.step,
        "median": float(np.median(ratios)),
        "rms": float(np.sqrt(np.mean(ratios**2))),
        "95%": float(np.quantile(ratios, 0.95)),
        "analytic": float(np.sqrt(np.mean(errors**2))) / strict,
        "gaussian": gaussian,
    }


def statistics_of(name: str) -> tuple[str, ...]:
    """What is asked of a table."""
    return ("sum",) if name.startswith("spending") else ("count", "users", "sum")


def run(repeats: int) -> list[dict[str, Any]]:
    """All cases."""
    found = []
    for tuned, tables in ((True, TUNED), (False, OTHERS)):
        for name, make in tables.items():
            rows = make()
            for statistic in statistics_of(name):
                grouped = Grouped(rows, statistic)
                for epsilon in EPSILONS:
                    for delta in (0.0, DELTA):
                        case = measure(grouped, epsilon, delta, repeats, seed=1)
                        about = {"table": name, "statistic": statistic, "ε": epsilon, "δ": delta, "tuned": tuned}
                        found.append({**about, **case})
            print(name, flush=True)
    return found


def report(cases: list[dict[str, Any]], date: str) -> str:
    """Markdown: the bars, what misses them, and a line per table."""
    bars, missed = [], []
    for many, (worst, median) in BARS.items():
        for tuned in (True, False):
            chosen = [case for case in cases if (case["groups"] >= MANY) is many and case["tuned"] is tuned]
            ratios, strict = (np.array([case[figure] for case in chosen]) for figure in ("rms", "analytic"))
            above = [case for case in chosen if case["rms"] > worst]
            missed += above
            bars.append(
                [
                    f"{'from' if many else 'below'} {MANY} groups",
                    "tuned on" if tuned else "others",
                    f"{np.median(ratios):.2f} (bar {median})",
                    f"{ratios.max():.2f} (bar {worst})",
                    f"{len(above)} of {len(chosen)}",
                    f"{np.median(strict):.2f} / {strict.max():.2f}",
                ]
            )
    head = ["", "tables", "median case", "worst case", "above the bar", "against the analytic Gaussian: median / worst"]
    lines = [[*_about(case), f"{case['ε']:g}", *_figures(case)] for case in sorted(missed, key=lambda c: -c["rms"])]
    columns = ["table", "statistic", "δ", "ε", "best in hindsight", "its RMSE", "ours: median / rms / 95%"]
    return f"""# By public groups, {date}

Root mean squared error over groups, in multiples of the best method in hindsight; σ of both from zCDP unless it says analytic.

{table(head, bars)}

## Above the bar

{table(columns, lines)}

## All: rms in multiples of hindsight, median / worst over statistics and δ

{table(["table", "groups", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)], _all(cases))}
"""


def _about(case: dict[str, Any]) -> list[str]:
    return [case["table"], case["statistic"], f"{case['δ']:g}"]


def _figures(case: dict[str, Any]) -> list[str]:
    ours = f"{case['median']:.2f} / {case['rms']:.2f} / {case['95%']:.2f}"
    return [case["method"], f"{case['hindsight']:.3g}", ours]


def _all(cases: list[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for name in dict.fromkeys(case["table"] for case in cases):
        mine = [case for case in cases if case["table"] == name]
        by_epsilon = [[case["rms"] for case in mine if case["ε"] == epsilon] for epsilon in EPSILONS]
        figures = [f"{np.median(ratios):.2f} / {max(ratios):.2f}" for ratios in by_epsilon]
        rows.append([name, f"{mine[0]['groups']:,}", *figures])
    return rows


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few repetitions")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    cases = run(8 if arguments.short else 60)
    today = datetime.date.today().isoformat()
    keep(arguments.out, f"groups-{today}", report(cases, today), {"cases": cases})


if __name__ == "__main__":
    main()

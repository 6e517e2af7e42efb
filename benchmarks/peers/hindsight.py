"""Parameters known in hindsight: the best of a grid by forecast error, computed from the exact table.

This is what PipelineDP's ``analysis`` package does (it is not part of the released wheel): expected bias from cutting users
off plus the variance of the noise, over the groups. Nothing here is private. Where two mechanisms compete, the best of each
is run and the better result counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.peers.questions import DELTA, Question
from benchmarks.peers.tables import Floats, Integers, Table

Parameters = dict[str, Any]


def analytic_sigma(epsilon: float, delta: float) -> float:
    """Noise of the Gaussian mechanism with sensitivity one (Balle and Wang 2018), as PipelineDP calibrates it."""
    low, high = 1e-2, 1e4
    for _ in range(200):
        sigma = (low + high) / 2
        spent = norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * norm.cdf(-0.5 / sigma - epsilon * sigma)
        low, high = (sigma, high) if spent > delta else (low, sigma)
    return high


def rho(epsilon: float, delta: float) -> float:
    """The largest zCDP ρ that implies (ε, δ) (Canonne, Kamath and Steinke 2020), for the libraries that take ρ."""
    order = 1 + np.geomspace(1e-3, 1e4, 4000)

    def implied(value: float) -> float:
        exponent = (order - 1) * (order * value - epsilon) - np.log(order - 1) + order * np.log1p(-1 / order)
        return float(np.exp(exponent.min()))

    low, high = 0.0, epsilon
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if implied(middle) <= delta else (low, middle)
    return low


@dataclass(frozen=True)
class Pairs:
    """The table as one row for each user and group."""

    user: Integers
    group: Integers
    rows: Floats
    sums: Floats
    groups: int

    @classmethod
    def of(cls, question: Question, table: Table) -> Pairs:
        """Group by user and key."""
        groups = question.groups(table)
        code, place = np.unique(table.user * groups + question.key(table), return_inverse=True)
        rows, sums = np.bincount(place).astype(np.float64), np.bincount(place, weights=table.value).astype(np.float64)
        return cls(code // groups, code % groups, rows, sums, groups)

    def groups_per_user(self) -> Floats:
        """For each pair, in how many groups its user is."""
        return np.bincount(self.user)[self.user].astype(np.float64)

    def kept(self, l0: float, linf: float, rows: float = math.inf) -> Floats:
        """Expected rows of each pair when users are sampled down to linf rows in each of l0 groups, then to some rows in all."""
        left = np.minimum(1, l0 / self.groups_per_user()) * np.minimum(self.rows, linf)
        return left * np.minimum(1, rows / np.maximum(np.bincount(self.user, weights=left)[self.user], 1e-9))


def forecast(question: Question, table: Table, pairs: Pairs, kept: Floats, noise: float) -> float:
    """Root mean squared error over groups, with noise of this standard deviation on a number of rows or users."""
    count = np.bincount(pairs.group, weights=kept, minlength=pairs.groups)
    if question.statistic in ("count", "users"):
        rows = pairs.rows if question.statistic == "count" else np.ones_like(pairs.rows)
        bias = np.bincount(pairs.group, weights=rows, minlength=pairs.groups) - count
        return float(np.sqrt(np.mean(bias**2) + noise**2))
    sums = np.bincount(pairs.group, weights=kept * pairs.sums / pairs.rows, minlength=pairs.groups)
    exact = np.bincount(pairs.group, weights=pairs.sums, minlength=pairs.groups)
    low, high = table.bounds
    if question.statistic == "sum":
        return float(np.sqrt(np.mean((exact - sums) ** 2) + (noise * max(abs(low), abs(high))) ** 2))
    # A mean: sum around the middle and number of rows, with half of the budget each; its error is at most half the range.
    true = exact / np.maximum(np.bincount(pairs.group, weights=pairs.rows, minlength=pairs.groups), 1)
    mean, middle, half = sums / np.maximum(count, 1e-9), (low + high) / 2, (high - low) / 2
    spread = 2 * noise * np.sqrt(half**2 + (mean - middle) ** 2) / np.maximum(count, 1)
    return float(np.sqrt(np.mean(np.minimum((mean - true) ** 2 + spread**2, half**2))))


def steps(largest: float, ratio: float = 1.25) -> list[int]:
    """Whole numbers from 1 to the largest, each some per cent above the last."""
    count = int(math.log(max(largest, 1)) / math.log(ratio)) + 1
    return sorted({round(ratio**k) for k in range(count)} | {int(largest)})


def best(candidates: Iterator[tuple[float, Parameters]]) -> Parameters:
    """The parameters with the smallest forecast error."""
    return min(candidates, key=lambda one: one[0])[1]


def limits(question: Question, pairs: Pairs) -> list[tuple[int, int]]:
    """The (l0, linf) worth trying."""
    most = 1 if question.statistic == "users" else pairs.rows.max()
    l0s = steps(pairs.groups_per_user().max(), 1.25)
    ratio = 1.1 if pairs.groups == 1 else 1.5
    return [(l0, linf) for l0 in l0s for linf in steps(most, ratio)]


def totals(question: Question, pairs: Pairs) -> Parameters:
    """The best clamp of a user's total, with Laplace noise, for a count or sum without groups."""
    own = pairs.rows if question.statistic == "count" else pairs.sums

    def error(cap: float) -> float:
        return math.hypot(float(np.maximum(own - cap, 0).sum()), math.sqrt(2) * cap / question.epsilon)

    return best((error(cap), {"total": cap}) for cap in steps(own.max(), 1.05))


def pipeline_dp(question: Question, table: Table) -> list[Parameters]:
    """The best (l0, linf) for each noise; a clamped total beside it for a sum; the best l0 for each way to select keys."""
    pairs = Pairs.of(question, table)
    if question.hidden:
        return _selections(question, pairs)
    sigma = analytic_sigma(question.epsilon, DELTA)

    def grid(noise: str) -> Iterator[tuple[float, Parameters]]:
        for l0, linf in limits(question, pairs):
            size = linf * (sigma * math.sqrt(l0) if noise == "gaussian" else math.sqrt(2) * l0 / question.epsilon)
            error = forecast(question, table, pairs, pairs.kept(l0, linf), size)
            yield error, {"l0": l0, "linf": linf, "noise": noise}

    found = [best(grid("laplace")), best(grid("gaussian"))]
    if question.statistic == "sum" and question.by is None:
        found[1] = {"l0": 1, "linf": 1, "noise": "laplace", **totals(question, pairs)}
    return found


def _selections(question: Question, pairs: Pairs) -> list[Parameters]:
    """For each way to select keys, the l0 with the most groups above its threshold."""
    epsilon, own = question.epsilon, pairs.groups_per_user()

    def found(l0: int, threshold: float) -> int:
        return int(
            (np.bincount(pairs.group, weights=np.minimum(1, l0 / own), minlength=pairs.groups) >= threshold).sum()
        )

    def laplace(l0: int) -> float:
        return 1 - l0 / epsilon * math.log(2 * -math.expm1(math.log1p(-DELTA) / l0))

    def gaussian(l0: int) -> float:
        spread = analytic_sigma(epsilon, DELTA / 2) * math.sqrt(l0)
        return 1 + spread * float(norm.isf(-math.expm1(math.log1p(-DELTA / 2) / l0)))

    def geometric(l0: int) -> float:
        eps, delta = epsilon / 2 / l0, DELTA / l0
        return 1 + math.log((math.expm1(eps) + 2 * delta) / (delta * (math.exp(eps) + 1))) / eps  # where half are kept

    ways: list[tuple[Any, Parameters]] = [
        (geometric, {"selection": "truncated geometric", "noise": "laplace"}),
        (laplace, {"selection": "laplace thresholding", "noise": "laplace", "together": True}),
        (gaussian, {"selection": "gaussian thresholding", "noise": "gaussian", "together": True}),
    ]
    grid = steps(own.max(), 1.5)
    return [best((-found(l0, threshold(l0)), {"l0": l0, "linf": 1, **way}) for l0 in grid) for threshold, way in ways]


def opendp(question: Question, table: Table) -> list[Parameters]:
    """The best number of rows per user, with Laplace and with Gaussian noise; a clamped total without groups."""
    pairs = Pairs.of(question, table)
    if question.by is None and question.statistic in ("count", "sum"):
        return [totals(question, pairs)]
    if question.hidden:
        ways = {way["selection"]: way["l0"] for way in _selections(question, pairs)}
        part = {"rho": rho(question.epsilon, DELTA / 2), "delta": DELTA / 2}
        return [
            {"rows": ways["laplace thresholding"], "linf": 1},
            {"rows": ways["gaussian thresholding"], "linf": 1, **part},
        ]
    budget = rho(question.epsilon, DELTA)
    most = 1 if question.statistic == "users" else pairs.rows.max()
    rows = steps(np.bincount(pairs.user, weights=np.minimum(pairs.rows, most)).max(), 1.2)

    def grid(gaussian: bool) -> Iterator[tuple[float, Parameters]]:
        for linf in steps(most, 1.5):
            for k in rows:
                if k < linf:
                    continue
                size = math.sqrt(k * linf / 2 / budget) if gaussian else math.sqrt(2) * k / question.epsilon
                error = forecast(question, table, pairs, pairs.kept(math.inf, linf, k), size)
                yield error, {"rows": k, "linf": linf, **({"rho": budget} if gaussian else {})}

    return [best(grid(False))] if question.statistic == "quantiles" else [best(grid(False)), best(grid(True))]


def tumult(question: Question, table: Table) -> list[Parameters]:
    """The best of rows per user, or groups and rows in each, under pure DP or zCDP: one, because each run takes long."""
    pairs = Pairs.of(question, table)
    if question.hidden:
        return [
            {"l0": next(way["l0"] for way in _selections(question, pairs) if "laplace" in way["selection"]), "linf": 1}
        ]
    budget = rho(question.epsilon, DELTA)

    def grid() -> Iterator[tuple[float, Parameters]]:
        for k in steps(np.bincount(pairs.user, weights=pairs.rows).max(), 1.1) if question.statistic != "users" else []:
            size = math.sqrt(2) * k / question.epsilon
            yield forecast(question, table, pairs, pairs.kept(math.inf, math.inf, k), size), {"rows": k}
        for l0, linf in limits(question, pairs) if question.by else []:
            kept, one = pairs.kept(l0, linf), {"l0": l0, "linf": linf}
            yield forecast(question, table, pairs, kept, math.sqrt(2) * l0 * linf / question.epsilon), one
            if question.statistic != "quantiles":
                yield forecast(question, table, pairs, kept, linf * math.sqrt(l0 / 2 / budget)), {**one, "rho": budget}

    return [best(grid())]

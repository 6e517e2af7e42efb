"""Bounds that are left out, against well-chosen ones: ``python -m benchmarks.accuracy.found_bounds`` (half an hour).

The rule was tuned on log-normal prices, clipped normal ages, normal temperatures around 8, shares of 0/1 and beta(2, 3) percentages; where to lay cells, on
heights, body temperatures, order numbers, air pressures, SAT scores and latitudes. `LOOKED_AT` was looked at before the last changes of the rule for ends; `HELD_OUT` was
not, but years, kelvin, prices, ages and timestamps with 2,000 users at ε = 1 were seen before its last three changes. *Well-chosen* are the bounds that somebody who knows the column would write.

First simulated in NumPy, for means: users count once each, with the mean of their clamped values, and noise for the width of the bounds. There are two
baselines. One finds bounds with the same part of ε by unbounded quantile search (Durfee 2023: a sparse-vector test of growing bounds, for the
0.99 quantile of users' largest values and, with half of that part each, of their smallest). The other is what a skilled user would write in an
hour, as in other libraries: with a fifth of ε a noisy histogram of users' means between signed powers of two, bounds from the first to the last cell that
stands out, then the mean.
Then real releases through DuckDB, and of heavy-tailed values, each table drawn anew.
"""

from __future__ import annotations

import argparse
import datetime
import math
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import evenhand as eh
from benchmarks.results import table
from evenhand.profiles import CELLS, look_around
from evenhand.profiles.extent import LEVELS
from evenhand.statistics.found_bounds import SHARE

Array = npt.NDArray[np.float64]
Bounds = tuple[float, float]
Rng = np.random.Generator
Values = Callable[[Rng, npt.NDArray[np.int64]], Array]

LOOKED_AT: dict[str, tuple[Values, Bounds]] = {
    "money with cents": (lambda rng, u: np.round(rng.gamma(0.8, 35, len(u)), 2), (0, 300)),
    "durations with outliers": (lambda rng, u: rng.weibull(0.7, len(u)) * 40 * np.where(rng.random(len(u)) < 1e-3, 50, 1), (0, 1000)),
    "negative temperatures": (lambda rng, u: rng.triangular(-35, -8, 12, len(u)), (-40, 20)),
    "0/1": (lambda rng, u: (rng.random(len(u)) < 0.08).astype(np.float64), (0, 1)),
    "percentages": (lambda rng, u: 100 * rng.random(len(u)) ** 0.4, (0, 100)),
    "stars": (lambda rng, u: rng.choice([1, 2, 3, 4, 5], len(u), p=[0.1, 0.1, 0.2, 0.3, 0.3]) * 1.0, (1, 5)),
}  # fmt: skip
HELD_OUT: dict[str, tuple[Values, Bounds]] = {
    "years": (lambda rng, u: 2020 - np.floor(70 * rng.beta(1.5, 2.5, u.max() + 1))[u], (1950, 2020)),
    "kelvin": (lambda rng, u: 283.15 + 9 * np.sin(2 * np.pi * rng.random(len(u))) + rng.normal(0, 4, len(u)), (255, 310)),
    "prices": (lambda rng, u: np.round(rng.lognormal(2.5, 0.8, len(u))) + 0.99, (0, 150)),
    "ages": (lambda rng, u: np.clip(np.round(rng.gamma(9, 4.5, u.max() + 1)), 16, 95)[u], (16, 95)),
    "timestamps": (lambda rng, u: 1.7e9 + np.floor(2.6e6 * rng.random(len(u))), (1.7e9, 1.703e9)),
    "log-normal": (lambda rng, u: rng.lognormal(8, 1.1, u.max() + 1)[u], (0, 60_000)),
    "negative": (lambda rng, u: -rng.gamma(6, 110, len(u)), (-2000, 0)),
    "both signs": (lambda rng, u: rng.laplace(3, 25, len(u)), (-150, 150)),
    "constants": (lambda rng, u: np.full(len(u), 273.0), (250, 300)),
    "codes": (lambda rng, u: 100_000 + 7 * np.floor(900 * rng.random(len(u))), (100_000, 107_000)),
}  # fmt: skip
SHAPES = HELD_OUT | LOOKED_AT
EPSILONS = (0.2, 1.0, 4.0)
USERS = (2000, 20_000)
RELEASED = ((2000, 1.0),)
QUESTIONS = ("mean", "sum", "variance", "median")


def drawn(name: str, users: int) -> pd.DataFrame:
    """A table of the shape; users have up to some dozens of rows."""
    rng = np.random.default_rng([14, users, *name.encode()])
    user = np.repeat(np.arange(users), np.minimum(rng.geometric(0.15, users), 60))
    return pd.DataFrame({"u": user, "v": SHAPES[name][0](rng, user)})


def quantile_search(most: Array, least: Array, epsilon: float, rng: Rng) -> Bounds:
    """Unbounded quantile search on the users' largest and smallest values."""
    bounds = np.append(0.0, 1.05 ** np.arange(1200) / 1000)

    def end(values: Array) -> float:
        below = np.searchsorted(np.sort(values), bounds, side="right") - 0.99 * len(values)
        passed = below + rng.laplace(0, 8 / epsilon, len(bounds)) >= rng.laplace(0, 4 / epsilon)
        return float(bounds[passed.argmax()]) if passed.any() else 1e15

    high, low = end(most), -end(-least)
    return (low, high) if low < high else (low, low + 1.0)


def two_steps(means: Array, epsilon: float, rng: Rng) -> Bounds:
    """From the first to the last cell between signed powers of two that stands out in a noisy histogram of users' means; one in 1,000 by chance."""
    powers = 2.0 ** np.arange(-10, 50)
    edges = np.concatenate([-powers[::-1], powers])
    noisy = np.histogram(means, edges)[0] + rng.laplace(0, 1 / epsilon, len(edges) - 1)
    seen = np.flatnonzero(noisy > np.log(len(noisy) / 2e-3) / epsilon)
    return (float(edges[seen[0]]), float(edges[seen[-1] + 1])) if len(seen) else (-1e15, 1e15)


def simulated(name: str, users: int, runs: int) -> Iterator[list[str]]:
    """Root mean squared errors of a mean, in multiples of that with well-chosen bounds."""
    rows, chosen, rng = drawn(name, users), SHAPES[name][1], np.random.default_rng(7)
    user, value = rows.u.to_numpy(), rows.v.to_numpy()
    size = np.bincount(user, minlength=users)
    levels, cells, spent = np.array(LEVELS) * (1 + 1e-12), {}, list[float]()

    def noisy(centre: float, epsilon: Decimal) -> list[float]:
        spent.append(float(epsilon))
        if centre not in cells:
            away = value - centre
            place = CELLS // 2 + np.where(away < 0, -1, 1) * np.searchsorted(levels, np.abs(away))
            cells[centre] = np.bincount(place, weights=1 / size[user], minlength=CELLS)
        return (cells[centre] + rng.laplace(0, 1 / float(epsilon), CELLS)).tolist()

    most, least, own = (getattr(rows.groupby("u").v, each)().to_numpy() for each in ("max", "min", "mean"))

    def mean(low: float, high: float) -> float:
        return float((np.clip(value, low, high) / size[user]).sum() / users)

    def error(bounds: Bounds, epsilon: float, added: float = 0.0) -> float:
        noise = math.sqrt(2) * (bounds[1] - bounds[0]) / (users * epsilon)
        return math.hypot(noise, mean(*bounds) + added - mean(-1e99, 1e99))

    for epsilon in EPSILONS:
        paid = float(SHARE) * epsilon
        part, unit, found, ours = Decimal(str(round(paid, 6))), error(chosen, epsilon), [], list[float]()
        for _ in range(runs):
            spent.clear()
            look = look_around(noisy, part, 1, reserve=part)
            left = epsilon - sum(spent)
            one = look.extent(left, (None, None))
            if one.visible and not one.coarse:
                found.append(f"{one.low:.10g} to {one.high:.10g}")
                ours.append(error((one.low, one.high), left, one.cut.sure) / unit)
        searched = [error(quantile_search(most, least, paid, rng), epsilon - paid) / unit for _ in range(runs)]
        stepped = [error(two_steps(own, epsilon / 5, rng), 0.8 * epsilon) / unit for _ in range(runs)]
        usual = max(sorted(set(found)), key=found.count) if found else "-"
        yield [name, f"{users:,}", f"{epsilon:g}", *(_spread(np.array(each)) for each in (ours, searched, stepped)),
               f"{1 - len(ours) / runs:.0%}", usual]  # fmt: skip


def released(name: str, users: int, epsilon: float, runs: int) -> Iterator[list[str]]:
    """Errors of real releases, in multiples of the root mean squared error with well-chosen bounds."""
    rows, chosen = drawn(name, users), SHAPES[name][1]
    with tempfile.TemporaryDirectory() as folder:
        session = eh.Session(eh.read(rows, user="u"), eh.Ledger(f"{folder}/b.db", epsilon=10**6))
        for question in QUESTIONS:
            ask: Any = getattr(session, question)
            truth = rows.v.var(ddof=0) if question == "variance" else getattr(rows.v, question)()
            given = np.array([ask("v", bounds=chosen, epsilon=epsilon).value for _ in range(runs)]) - truth
            ours = [one for one in (ask("v", epsilon=epsilon) for _ in range(runs)) if _found(one)]
            seen = [one.value - truth for one in ours]
            held = np.mean([low <= truth <= high for low, high in (one.interval(0.95) for one in ours)])
            unit = math.sqrt(np.mean(given**2))
            errors = [f"{math.sqrt(np.mean(np.square(each))):.3g}" for each in (given, seen)]
            ratio = f"{math.sqrt(np.mean(np.square(seen))) / unit:.2f}" if unit else "-"
            usable = np.mean([one.usable for one in ours])
            yield [name, f"{users:,}", f"{epsilon:g}", question, *errors, ratio, f"{held:.0%}", f"{usable:.0%}",
                   f"{1 - len(seen) / runs:.0%}"]  # fmt: skip


HEAVY: dict[str, Values] = {
    "log-normal 1": lambda rng, u: rng.lognormal(3, 1, len(u)),
    "log-normal 2": lambda rng, u: rng.lognormal(3, 2, len(u)),
    "Pareto 1.5": lambda rng, u: 10 * (1 + rng.pareto(1.5, len(u))),
    "log-normal 2, of users": lambda rng, u: rng.lognormal(3, 2, u.max() + 1)[u],
}
COVERED = ("mean", "sum", "std", "median", "mean by group", "sum by group")


def covered(name: str, users: int, epsilon: float, runs: int) -> Iterator[list[str]]:
    """How often intervals hold the truth, with bounds left out; each table is drawn anew."""
    rng = np.random.default_rng([15, users, *name.encode()])
    held: dict[str, list[tuple[bool, bool, float, float]]] = {question: [] for question in COVERED}
    for _ in range(runs):
        user = np.repeat(np.arange(users), np.minimum(rng.geometric(0.15, users), 60))
        group = np.array(["a", "b", "c"])[rng.choice(3, len(user), p=[0.6, 0.3, 0.1])]
        rows = pd.DataFrame({"u": user, "v": HEAVY[name](rng, user), "g": group})
        with tempfile.TemporaryDirectory() as folder:
            session = eh.Session(eh.read(rows, user="u"), eh.Ledger(f"{folder}/b.db", epsilon=10**6))
            for question in COVERED:
                held[question] += _held(session, rows, question, epsilon)
    for question, runs_of in held.items():
        inside, usable, error, reach = (np.array(each) for each in zip(*runs_of, strict=True))
        sure = f"{inside[usable].mean():.0%}" if usable.any() else "-"
        yield [name, f"{users:,}", f"{epsilon:g}", question, f"{inside.mean():.0%}", f"{usable.mean():.0%}", sure,
               f"{np.median(error):.1%}", f"{np.median(reach):.1%}"]  # fmt: skip


def _held(
    session: eh.Session, rows: pd.DataFrame, question: str, epsilon: float
) -> list[tuple[bool, bool, float, float]]:
    """For each number: whether its 95% interval holds the truth, whether it is usable, relative error and half width."""
    statistic, _, grouped = question.partition(" by ")
    truth: Any = (lambda v: v.std(ddof=0)) if statistic == "std" else (lambda v: getattr(v, statistic)())
    ask: Any = getattr(session, statistic)
    if not grouped:
        release = ask("v", epsilon=epsilon)
        answers = [(truth(rows.v), release.value, *release.interval(0.95), release.usable)]
    else:
        release = ask("v", by="g", keys=["a", "b", "c"], epsilon=epsilon)
        ends = release.interval(0.95)
        columns = (release.value[statistic], ends[f"{statistic}_low"], ends[f"{statistic}_high"])
        each = zip(*columns, release.verdicts().usable, strict=True)
        answers = [(truth(rows.v[rows.g == key]), *one) for key, one in zip("abc", each, strict=True)]
    return [(low <= true <= high, bool(usable), abs(value / true - 1), (high - low) / 2 / true)
            for true, value, low, high, usable in answers]  # fmt: skip


def _found(release: eh.Release) -> bool:
    return "no bounds" not in release.details["finding"]["words"]


def _spread(errors: Array) -> str:
    if len(errors) < 5:
        return "-"
    return f"{np.median(errors):.2f} / {np.quantile(errors, 0.95):.3g}"


FOUND = ["shape", "users", "ε", "found", "quantile search", "two steps", "none found", "bounds"]
REAL = ["shape", "users", "ε", "question", "well-chosen", "left out", "ratio", "coverage", "usable", "none found"]
HELD = ["shape", "users", "ε", "question", "coverage", "usable", "coverage of usable", "error", "half width"]


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="of each simulated case")
    parser.add_argument("--releases", type=int, default=20, help="of each real one")
    parser.add_argument("--tables", type=int, default=100, help="drawn for each coverage")
    arguments = parser.parse_args()
    means = [row for users in USERS for name in SHAPES for row in simulated(name, users, arguments.runs)]
    print(table(FOUND, means), flush=True)
    held = [row for name in HEAVY for row in covered(name, 2000, 1.0, arguments.tables)]
    print(table(HELD, held), flush=True)
    real = [
        row for users, epsilon in RELEASED for name in HELD_OUT for row in released(name, users, epsilon, arguments.releases)
    ]  # fmt: skip
    today = datetime.date.today().isoformat()
    text = f"""# Bounds that are left out, {today}

Simulated means under presence: expected RMSE given the bounds, in multiples of that with well-chosen bounds and all of ε; median / 95% quantile of
{arguments.runs} searches. The first ten shapes were held out. *None found*: how often the release would say so; those are left out. *Bounds*: found most often.

{table(FOUND, means)}

Heavy tails, real releases under presence, each of {arguments.tables} tables drawn anew: how often the 95% interval holds the truth of the table, how often the
release calls itself usable, and how often the interval holds the truth then; median error and median half width as parts of the truth.

{table(HELD, held)}

Real releases through DuckDB under presence: RMSE of {arguments.releases} each with well-chosen bounds and with bounds left out; how often the 95%
interval holds the truth of the table where bounds were left out, and how often the release calls itself usable.

{table(REAL, real)}
"""
    print(text)
    place = Path(__file__).parent / "results" / f"{today}-found-bounds.md"
    place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

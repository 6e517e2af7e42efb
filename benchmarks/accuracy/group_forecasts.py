"""How far plans by group are from what happens: ``python -m benchmarks.accuracy.group_forecasts``; writes results/DATE-group-forecasts.md.

Tables are generated: row counts of a shape, rows put into groups whose sizes are *not* the assumed ones (steeper, flatter), by
users who are like each other, or who keep to a few groups. A profile is bought for ε = 0.05; the plan is made from it. Then the
planned bound is applied to the table, and the error of its small, middling and large groups is worked out exactly (noise is
added as its variance). "noise alone" is what a preview without a profile can say.
"""

from __future__ import annotations

import argparse
import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.cases import COUNTS
from benchmarks.results import keep, table
from evenhand.guarantee import Guarantee, Relation
from evenhand.planning import GroupPlan, plan
from evenhand.profiles import Profile, row_buckets

SHAPES = ("shop", "course", "Pareto 1.5, 5k users", "log-normal 1, 20k users")
STEEPNESS = (0.4, 1.0)
GROUPS = (20, 300)
EPSILONS = ("0.2", "1")
BOUGHT = 0.05
GUARANTEE = Guarantee(Decimal(str(BOUGHT)), Decimal(0), Relation.PRESENCE, ("user",))

Places = npt.NDArray[np.int64]


def groups_of_rows(users: Places, groups: int, steep: float, loyal: bool, random: np.random.Generator) -> Places:
    """The group of each row: by size; a loyal user has three groups of their own, drawn by size."""
    parts = np.arange(1, groups + 1) ** -steep
    parts = parts / parts.sum()
    if not loyal:
        return random.choice(groups, len(users), p=parts)
    own = random.choice(groups, (int(users.max()) + 1, 3), p=parts)
    return own[users, random.integers(0, 3, len(users))]


def bought(counts: Places, random: np.random.Generator) -> Profile:
    """A profile as a session buys it, with NumPy's noise."""
    buckets = row_buckets()
    exact = np.bincount(buckets.index(counts), minlength=buckets.size)
    noisy = np.round(exact + random.laplace(0, 1 / BOUGHT, buckets.size)).astype(int)
    return Profile.bought(buckets, noisy.tolist(), GUARANTEE)


def errors(made: GroupPlan, users: Places, placed: Places) -> dict[str, float]:
    """The true error of small, middling and large groups under the planned bound."""
    groups, bound = made.groups, made.best.bound
    pairs, rows = np.unique(users * groups + placed, return_counts=True)
    who, where = pairs // groups, pairs % groups
    norm = np.bincount(who, weights=rows**2.0) ** 0.5 if bound.gaussian else np.bincount(who, weights=rows)
    kept = rows * np.minimum(1.0, bound.amount / np.maximum(norm, 1e-9)[who])
    lost = np.bincount(where, weights=rows - kept, minlength=groups)
    lost = lost[np.argsort(-np.bincount(placed, minlength=groups), kind="stable")]
    found = {}
    for name, rank in (("small", 0.9), ("middling", 0.5), ("large", 0.1)):
        place, around = math.ceil(rank * groups) - 1, round(0.02 * groups)
        near = lost[max(place - around, 0) : place + around + 1]
        found[name] = math.sqrt(bound.noise**2 + float((near**2).mean()))
    return found


def kept_share(made: GroupPlan, users: Places, placed: Places) -> float:
    """The part of the groups that is shown, on average over the noise of the selection."""
    names = made.best.names
    assert names is not None
    pairs = np.unique(users * made.groups + placed)
    visited = np.bincount(pairs // made.groups)
    kept = np.minimum(1.0, names.groups_per_user / np.maximum(visited, 1)) * names.weight(visited.astype(np.float64))
    weight = kept[pairs // made.groups]
    supporters = np.bincount(pairs % made.groups, weights=weight, minlength=made.groups).astype(np.float64)
    return float(names.shown(supporters).mean())


def run() -> list[dict[str, Any]]:
    """All measurements."""
    random, result = np.random.default_rng(5), []
    for shape in SHAPES:
        counts = np.asarray(COUNTS[shape]())
        users = np.repeat(np.arange(len(counts)), counts)
        for groups in GROUPS:
            for steep in STEEPNESS:
                for loyal in (False, True):
                    placed = groups_of_rows(users, groups, steep, loyal, random)
                    for epsilon in EPSILONS:
                        profile = bought(counts, random)
                        made = plan("count", profile, epsilon, groups=groups, delta=1e-6)
                        true = errors(made, users, placed)
                        hidden = plan("users", profile, epsilon, groups=groups, delta=1e-6, hidden=True)
                        sizes = np.maximum(np.bincount(placed, minlength=groups), 1).tolist()
                        known = plan("users", profile, epsilon, groups=sizes, delta=1e-6, hidden=True)
                        for group in made.best.typical:
                            result.append(
                                {
                                    "shape": shape,
                                    "groups": groups,
                                    "steep": steep,
                                    "loyal": loyal,
                                    "epsilon": epsilon,
                                    "group": group.name,
                                    "forecast": group.error / true[group.name],
                                    "noise alone": group.noise / true[group.name],
                                    "off": abs((hidden.best.share_shown or 0) - kept_share(hidden, users, placed)),
                                    "off, sizes known": abs(
                                        (known.best.share_shown or 0) - kept_share(known, users, placed)
                                    ),
                                }
                            )
    return result


def report(rows: list[dict[str, Any]], today: str) -> str:
    """Medians and 95% quantiles of how far off a forecast is, as a factor."""

    def off(some: list[dict[str, Any]], name: str) -> list[str]:
        factors = np.exp(np.abs(np.log([row[name] for row in some])))
        return [f"{np.median(factors):.2f}", f"{np.quantile(factors, 0.95):.2f}"]

    kinds = [("all", rows)]
    for words, loyal in (("users alike", False), ("users with three groups", True)):
        for size in ("small", "middling", "large"):
            some = [row for row in rows if row["loyal"] is loyal and row["group"] == size]
            kinds.append((f"{words}, {size} groups", some))
    lines = [[name, str(len(some)), *off(some, "forecast"), *off(some, "noise alone")] for name, some in kinds]
    head = ["", "cases", "forecast: median", "95%", "noise alone: median", "95%"]
    names = {"group sizes assumed": "off", "group sizes known": "off, sizes known"}
    shown = [[words, *(_shown(rows[::3], loyal, name) for loyal in (False, True))] for words, name in names.items()]
    return (
        f"# Forecasts for groups, {today}\n\nHow far the forecast error of a group is from the true one, as a factor (1 is exact).\n\n"
        f"{table(head, lines)}\n\n"
        "The forecast takes users to be alike: those who keep to a few groups have a larger L2 norm than their number of rows lets expect, "
        f"so more is cut off.\n\n"
        "Share of hidden names shown: difference from the true share, median / 95%.\n\n"
        f"{table(['', 'users alike', 'users with three groups'], shown)}\n"
    )


def _shown(rows: list[dict[str, Any]], loyal: bool, name: str) -> str:
    off = [row[name] for row in rows if row["loyal"] is loyal]
    return f"{np.median(off):.1%} / {np.quantile(off, 0.95):.1%}"


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    today = datetime.date.today().isoformat()
    rows = run()
    keep(parser.parse_args().out, f"{today}-group-forecasts", report(rows, today), {"rows": rows})


if __name__ == "__main__":
    main()

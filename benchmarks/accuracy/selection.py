"""Hidden group names: how many groups are found, against the best mechanism and k in hindsight.

    python -m benchmarks.accuracy.selection [--short]

Both sides have the same (ε, δ) for the names alone, half of the ε that is listed; ours also pays for its choice out of it. (A release pays for names and numbers
together where it can: `hidden_numbers`.) The mechanisms are the ones
of a release (`evenhand.noise.passing`: the same scales, thresholds and weights), with NumPy's noise. Hindsight knows which of
`candidates` finds most on this table. *Missing mass* is the share of (user, group) pairs whose group is not shown.
The shapes differ from those on which the rule in `statistics/support_choice.py` was tuned (log-normal with medians 2, 3, 7, 10, 20 and 70 and spreads
of 0.7 to 1.7, Pareto 0.9, 1.2 and 1.5, one group; 1,000 to 100,000 users; keys by rank to the power −0.6 to −1.1), but for `course-like`, `shop-like` and
`Pareto 1`, on other draws of which one constant each was set.
"""

from __future__ import annotations

import argparse
import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import shapes
from benchmarks.results import keep, table
from evenhand.noise import UNIT, NormalThreshold, TruncatedGeometric, Way
from evenhand.noise.counted import BITS, law
from evenhand.profiles import support_of_histogram
from evenhand.statistics.selection import CHOICE
from evenhand.statistics.support_choice import BUCKETS, Purse, Purses, chosen_way

Array = npt.NDArray[np.int64]
DELTA = Decimal("9e-7")
EPSILONS = ("0.4", "1", "4")  # of the release; the selection has half of it


class Table:
    """Who is in which group: one entry for each pair."""

    def __init__(self, rows: Array, keys: int, exponent: float, rng: np.random.Generator) -> None:
        popularity = (np.arange(keys) + 3.0) ** -exponent
        user = np.repeat(np.arange(len(rows)), rows)
        pairs = np.unique(user * keys + rng.choice(keys, len(user), p=popularity / popularity.sum()))
        self.user, self.key, self.keys, self.rng = pairs // keys, pairs % keys, keys, rng
        self.groups = np.bincount(self.user, minlength=len(rows))
        self.sizes = np.bincount(self.key, minlength=keys)
        self._order = np.argsort(self.user + rng.random(len(self.user)), kind="stable")
        self._rank = np.arange(len(pairs)) - (np.cumsum(self.groups) - self.groups)[self.user]

    def shown(self, way: Way) -> npt.NDArray[np.bool_]:
        """Which groups pass, with the mechanism's noise."""
        kept = self._order[self._rank < way.groups]
        user, key = self.user[kept], self.key[kept]
        shown = np.zeros(self.keys, dtype=bool)
        for look in way.rounds:
            left = ~shown[key]
            user, key = user[left], key[left]
            if isinstance(look, NormalThreshold):
                groups = np.bincount(user, minlength=len(self.groups))
                support = np.bincount(key, weights=UNIT / np.sqrt(groups[user]), minlength=self.keys)
                shown |= (support > 0) & (support + self.rng.normal(0, look.scale, self.keys) >= look.threshold)
            elif isinstance(look, TruncatedGeometric):
                support = np.bincount(key, minlength=self.keys)
                chances = np.array([*law(look.factor, look.step), 2**BITS]) / 2**BITS
                shown |= self.rng.random(self.keys) < chances[np.minimum(support, len(chances) - 1)].astype(float)
        return shown

    def ours(self, epsilon: Decimal) -> Way:
        """What a release would choose, from a histogram with fresh noise."""
        paid = 2 * epsilon * Decimal(CHOICE.numerator) / CHOICE.denominator
        histogram = BUCKETS.histogram(self.groups[self.groups > 0])
        noisy = histogram + np.rint(self.rng.laplace(0, 1 / float(paid), len(histogram)))
        purse = Purse(epsilon - paid, DELTA)
        return chosen_way(support_of_histogram(BUCKETS, noisy, 1 / float(paid)), Purses(purse, purse))


def candidates(epsilon: Decimal) -> dict[str, Way]:
    """What hindsight may choose from."""
    ways = {f"counted {k}": TruncatedGeometric.way(k, epsilon, DELTA) for k in (1, 2, 4, 8, 16)}
    for k in (4, 16, 64, 256, 1024):
        ways |= {f"weighted {k}, {n} rounds": NormalThreshold.way(k, epsilon, DELTA, n) for n in (1, 2)}
    return ways


def tables(rng: np.random.Generator) -> dict[str, Table]:
    """Ratings-like, log-normal, Pareto, and (nearly) one group per user; keys by rank to some power."""
    ratings = rng.choice(shapes.movielens_20m(), 8_000)
    return {
        "MovieLens-like, 8k users": Table(ratings, 12_000, 0.9, rng),
        "course-like, 3k users": Table(shapes.course(), 400, 0.8, rng),
        "log-normal 5/1, 20k users": Table(shapes.lognormal(20_000, 5.0, 1.0, rng), 10_000, 0.85, rng),
        "log-normal 15/0.6, 15k users": Table(shapes.lognormal(15_000, 15.0, 0.6, rng), 5_000, 0.7, rng),
        "Pareto 1.3, 40k users": Table(shapes.pareto(40_000, 1.3, rng), 8_000, 0.9, rng),
        "Pareto 1, 25k users": Table(shapes.pareto(25_000, 1.0, rng, largest=3_000), 12_000, 1.05, rng),
        "shop-like, 24k users": Table(shapes.shop(), 4_000, 1.0, rng),
        "one group, 30k users": Table(shapes.equal(30_000, 1), 3_000, 0.9, rng),
        "two groups, 20k users": Table(shapes.equal(20_000, 2), 3_000, 0.9, rng),
        "one group, 1k users": Table(shapes.equal(1_000, 1), 60, 0.9, rng),
    }


def measure(data: Table, epsilon: Decimal, runs: int) -> dict[str, Any]:
    """Groups found by us and by the best in hindsight, and the missing mass of both."""

    def found(shown: npt.NDArray[np.bool_]) -> tuple[int, float]:
        return int(shown.sum()), 1 - float(data.sizes[shown].sum() / data.sizes.sum())

    hindsight = {
        name: np.median([found(data.shown(way)) for _ in range(max(3, runs // 4))], axis=0)
        for name, way in candidates(epsilon).items()
    }
    best = max(hindsight, key=lambda name: float(hindsight[name][0]))
    ways = [data.ours(epsilon) for _ in range(runs)]
    ours = np.array([found(data.shown(way)) for way in ways])
    return {
        "best": best,
        "hindsight": float(hindsight[best][0]),
        "hindsight missing": float(hindsight[best][1]),
        "median": float(np.median(ours[:, 0])),
        "5%": float(np.quantile(ours[:, 0], 0.05)),
        "missing": float(np.median(ours[:, 1])),
        "missing 95%": float(np.quantile(ours[:, 1], 0.95)),
    }


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few repetitions")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    runs = 8 if arguments.short else 20
    raw: dict[str, Any] = {}
    rows: list[list[str]] = []
    for name, data in tables(np.random.default_rng(977)).items():
        for total in EPSILONS:
            row = measure(data, Decimal(total) / 2, runs)
            raw[f"{name}, {total}"] = row
            share = f"{row['median'] / max(row['hindsight'], 1):.2f} / {row['5%'] / max(row['hindsight'], 1):.2f}"
            mass = f"{row['missing']:.1%} / {row['missing 95%']:.1%}, {row['hindsight missing']:.1%}"
            rows.append([name, total, f"{row['median']:.0f} of {row['hindsight']:.0f}", share, str(row["best"]), mass])
            print(*rows[-1], flush=True)
    head = ["table", "ε", "groups found, of the best in hindsight", "share, median / 5%", "best in hindsight"]
    today = datetime.date.today().isoformat()
    text = f"# Hidden group names, {today}\n\n{table([*head, 'missing mass, median / 95%, hindsight'], rows)}\n"
    keep(arguments.out, f"{today}-selection", text, raw)


if __name__ == "__main__":
    main()

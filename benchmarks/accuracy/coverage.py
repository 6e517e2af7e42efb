"""Does the 95% interval of a count or sum hold the truth? ``python -m benchmarks.accuracy.coverage [--repeats 200] [--engine]``.

At the level of the mechanism: the posterior, correction and interval of a release, on tables that are drawn anew in each run (a published
shape is resampled user by user), with exact profiles of users by bucket plus noise. ``--engine`` runs a sample of cases as releases.
Which shapes were looked at when: `coverage_tables.py`.
"""

from __future__ import annotations

import argparse
import datetime
import math
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from benchmarks.accuracy.coverage_tables import DRAWN, FRESH, HELD_OUT, NEW, TUNED, Draw
from benchmarks.accuracy.threshold_rule import total_caps
from benchmarks.accuracy.totals import Truth, buckets_for, user_totals
from benchmarks.results import keep, table
from evenhand.bounding import PROFILE_SHARE
from evenhand.noise import Laplace
from evenhand.profiles import CutTotal, Population
from evenhand.release import Additive
from evenhand.release.intervals import why_not
from evenhand.release.verdicts import PART
from evenhand.statistics.believing import corrected

EPSILONS = (0.1, 0.3, 1.0, 4.0)
_SHARE = float(PROFILE_SHARE)
_DOUBT = 0.05


def runs(draw: Draw, statistic: str, epsilon: float, repeats: int, seed: Sequence[int]) -> dict[str, float]:
    """Errors in oracle RMSEs of Evenhand and of the rule before (paired), coverage, width, and how often it can't tell.

    As many runs as asked for, then four times as many if either bar is still in doubt: with 20 runs a case that covers 95% shows at
    least 92% only three times in four.
    """
    rng, buckets, left = np.random.default_rng(seed), buckets_for(statistic), (1 - _SHARE) * epsilon
    made = [_once(draw, statistic, epsilon, left, rng, buckets) for _ in range(repeats)]
    if in_doubt(np.array(made)):
        made += [_once(draw, statistic, epsilon, left, rng, buckets) for _ in range(3 * repeats)]
    before, now, covered, width, flagged, far, noisy = np.array(made).T
    told = flagged == 0
    worse = _paired(before, now)
    return {
        "runs": float(len(made)),
        "hits": float(covered[told].sum()),
        "told": float(told.sum()),
        "worse": worse,
        "unusable": float(noisy.mean()),
        "before": float(np.median(before)),
        "before 95%": float(np.quantile(before, 0.95)),
        "now": float(np.median(now)),
        "now 95%": float(np.quantile(now, 0.95)),
        "covers": float(covered[told].mean()) if told.any() else math.nan,
        "width": float(np.median(width)),
        "untold": float(1 - told.mean()),
        "caps 10 times too large": float(far.mean()),
    }


def in_doubt(made: npt.NDArray[np.float64]) -> bool:
    """Whether the coverage is neither clearly above nor clearly below 92% or 80%, or the error neither better nor worse than before by a tenth."""
    told = made[:, 4] == 0
    hits, trials = int(made[told, 2].sum()), int(told.sum())
    clear = binom.sf(hits - 1, trials, 0.92) < _DOUBT or binom.cdf(hits, trials, 0.8) < _DOUBT
    return bool(trials) and not (clear and not 0.8 < _paired(made[:, 0], made[:, 1]) < 1.4)


def _paired(before: npt.NDArray[np.float64], now: npt.NDArray[np.float64]) -> float:
    """Median error now, in those before, on the same tables with the same noise."""
    return float(np.median(now) / np.median(before))


def short_of(bar: float, row: dict[str, float]) -> bool:
    """Whether a case misses a bar so clearly that a case which just reaches it would do so in one of twenty benchmarks."""
    return bool(row["told"]) and float(binom.cdf(row["hits"], row["told"], bar)) < _DOUBT


def _once(
    draw: Draw, statistic: str, epsilon: float, left: float, rng: np.random.Generator, buckets: Any
) -> tuple[float, ...]:
    rows = draw(rng)
    truth = Truth(rows if statistic == "count" else user_totals(rows, rng))
    oracle, best, total = *truth.best(epsilon), float(truth.sums[-1])
    scale = 1 / (_SHARE * epsilon)
    noisy = buckets.histogram(truth.sorted.astype(np.int64)) + np.rint(rng.laplace(0, scale, buckets.size))
    noise = rng.laplace()
    old = float(total_caps(buckets, noisy[None, :], 1 / scale, left)[0][0])
    before = abs(noise * old / left - float(truth.bias(np.array([old]))[0]))
    believed = Population.behind(buckets, noisy, scale)
    cap = believed.best(math.sqrt(2) / left)
    measured = total - float(truth.bias(np.array([float(cap)]))[0]) + noise * cap / left
    law = Laplace(Fraction(cap / left))
    cut = CutTotal(believed, cap).given(measured, law.variance)
    made = corrected(Additive(measured, law, 1.0), cut, whole=statistic == "count")
    low, high = made.interval.at(0.95)
    own = 2 * math.log(20) * best / epsilon  # the best fixed cap's own 95% range
    flagged = float(bool(why_not(made.interval)))
    covered, far = float(low <= total <= high), float(cap > 10 * max(old, best))
    noisy = float((high - low) / 2 > PART * abs(made.value))
    return before / oracle, abs(made.value - total) / oracle, covered, (high - low) / own, flagged, far, noisy


def through_engine(epsilon: float, repeats: int, seed: int) -> dict[str, dict[str, float]]:
    """The same for whole releases."""
    import pandas as pd

    import evenhand as eh

    rng, result = np.random.default_rng(seed), {}
    for name in ("log-normal 1.2, 6k", "Pareto 1.8, 12k", "geometric, 2k"):
        hits: dict[str, list[bool]] = {"count": [], "sum": []}
        for _ in range(repeats):
            rows = TUNED[name](rng)
            frame = pd.DataFrame({"u": np.repeat(np.arange(len(rows)), rows)})
            frame["x"] = rng.gamma(4, 10, len(frame)).clip(0, 200)
            with tempfile.TemporaryDirectory() as folder:
                ledger = eh.Ledger(f"{folder}/ledger.db", epsilon=2 * epsilon)
                session = eh.Session(eh.read(frame, user="u"), ledger)
                answers = session.count(epsilon=epsilon), session.sum("x", bounds=(0, 200), epsilon=epsilon)
                for release, truth in zip(answers, (len(frame), frame["x"].sum()), strict=True):
                    low, high = release.interval(0.95)
                    hits["count" if release is answers[0] else "sum"].append(bool(low <= truth <= high))
        result[name] = {statistic: float(np.mean(hit)) for statistic, hit in hits.items()}
    return result


def report(result: dict[str, Any], date: str, repeats: int) -> str:
    """Markdown: the bars, then a row for each case."""
    parts = [
        f"# Intervals that hold the truth: count and sum, {date}",
        f"{repeats} runs for each case and {4 * repeats} where a bar is in doubt, each with a table of its own; figures for ε = {', '.join(map(str, EPSILONS))}.",
        """- before, now: median |error| in RMSEs of the best fixed cap in hindsight; 95% quantiles behind the stroke
- covers: how often the 95% interval holds the truth, releases that say they can't tell left out
- width: median, in 95% ranges of the best fixed cap; *can't tell*: releases that flag themselves""",
    ]
    for title, cases in (
        ("Shapes that the priors were chosen on", TUNED),
        ("Held out", HELD_OUT),
        ("Looked at once", FRESH),
        ("New: nothing was chosen on them", NEW),
        ("Mixtures drawn at random: nothing was chosen on them", DRAWN),
    ):
        if not any(key.split(" | ")[0] in cases for key in result):
            continue
        cells = {key: row for key, row in result.items() if key.split(" | ")[0] in cases}
        parts += [f"## {title}", _summary(list(cells.values())), _table(cells, cases)]
    if "engine" in result:
        rows = [[name, *(f"{hit:.0%}" for hit in hits.values())] for name, hits in result["engine"].items()]
        parts += ["## Through the engine, ε = 1", table(["shape", "count covers", "sum covers"], rows)]
    return "\n\n".join(parts) + "\n"


def _summary(rows: list[dict[str, float]]) -> str:
    told = np.array([row["covers"] for row in rows if row["told"]])
    reached, low = (np.mean([not short_of(bar, row) for row in rows]) for bar in (0.92, 0.8))
    mean = {key: float(np.exp(np.mean(np.log([row[key] for row in rows])))) for key in ("before", "now")}
    worse = sum(row["worse"] > 1.1 for row in rows)
    return (
        f"{len(rows)} cases: observed coverage at least 92% in {(told >= 0.92).mean():.0%} of them, clearly less (binomial test at {_DOUBT:.0%}) in "
        f"{1 - reached:.0%}; observed below 80% in {(told < 0.8).sum()}, clearly in {(1 - low) * len(rows):.0f}, lowest {told.min():.0%}; median width "
        f"{np.median([row['width'] for row in rows]):.1f}; can't tell {np.mean([row['untold'] for row in rows]):.1%} of releases, not usable for that or "
        f"for the width of the interval {np.mean([row['unusable'] for row in rows]):.1%}; geometric mean of the median errors {mean['now']:.2f}, "
        f"before {mean['before']:.2f}; {worse} cases worse than before by more than a tenth; caps more than 10 times too large: "
        f"{np.mean([row['caps 10 times too large'] for row in rows]):.2%}."
    )


def _table(cells: dict[str, dict[str, float]], cases: dict[str, Draw]) -> str:
    rows = []
    for name in cases:
        for statistic in ("count", "sum"):
            found = [cells[f"{name} | {statistic} | {epsilon}"] for epsilon in EPSILONS]
            rows.append(
                [
                    name,
                    statistic,
                    *(
                        f"{one['before']:.2g}/{one['before 95%']:.2g} → {one['now']:.2g}/{one['now 95%']:.2g}, {one['covers']:.0%}, "
                        f"×{one['width']:.1f}" + (f", {one['untold']:.0%} can't tell" if one["untold"] else "")
                        for one in found
                    ),
                ]
            )
    head = [f"ε = {epsilon}: before → now, covers, width" for epsilon in EPSILONS]
    return table(["shape", "", *head], rows)


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--only", choices=("tuned", "held-out", "fresh", "new", "drawn"), help="a part of the shapes")
    parser.add_argument("--engine", action="store_true", help="a sample of cases as whole releases, too")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    result: dict[str, Any] = {}
    parts = {"tuned": TUNED, "held-out": HELD_OUT, "fresh": FRESH, "new": NEW, "drawn": DRAWN}
    cases = parts.get(arguments.only) or {name: draw for part in parts.values() for name, draw in part.items()}
    for name, draw in cases.items():
        for statistic in ("count", "sum"):
            for epsilon in EPSILONS:
                key = f"{name} | {statistic} | {epsilon}"  # a stream of its own, so that cases don't miss together
                result[key] = runs(draw, statistic, epsilon, arguments.repeats, [5, *key.encode()])
        print(name, flush=True)
    if arguments.engine:
        result["engine"] = through_engine(1.0, arguments.repeats // 2, seed=6)
    today = datetime.date.today().isoformat()
    keep(arguments.out, f"coverage-{today}", report(result, today, arguments.repeats), result)


if __name__ == "__main__":
    main()

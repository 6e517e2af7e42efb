"""How often the 95% interval of a mean holds the truth, and how wide it is: ``python -m benchmarks.accuracy.mean_coverage [--runs 100]``.

Simulated in NumPy with the code that buys, chooses, corrects and believes. The table is drawn anew in each run. The width is half the
interval over 1.96 RMSEs of the best fixed bound in hindsight, over the first few tables (`means.py`); the error is the median
over that RMSE, with the correction and without.
"""

from __future__ import annotations

import argparse
import datetime
import math
import zlib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.accuracy.mean_tables import HARD, HELD_OUT, SEEN, TUNED, Draw
from benchmarks.accuracy.means import GRID, Table, choose, clipped, smooth
from benchmarks.accuracy.noise import discrete_laplace
from benchmarks.results import table as as_table
from evenhand.bounding import ROWS_SHARE, Choice, LocatedMean
from evenhand.guarantee import Relation, split
from evenhand.noise import Laplace
from evenhand.release import Additive, Bounding, Error, Ratio
from evenhand.statistics import Outcome
from evenhand.statistics.believed_means import believed

EPSILONS = ("0.1", "1", "4")
_BOUNDING = Bounding("auto", None, "")
_HINDSIGHT = 8  # tables


def measured(table: Table, choice: Choice, left: Decimal, relation: Relation, rng: np.random.Generator) -> Outcome:
    """The bounded mean of a table with fresh noise, as `UserMeans.bounded` releases it."""
    made, rows, presence = choice.strategy, float(table.rows.sum()), relation is Relation.PRESENCE

    def noisy(exact: float, scale: float) -> tuple[int, Laplace]:
        return int(exact) + int(discrete_laplace(rng, scale, 1)[0]), Laplace(Fraction(scale))

    if isinstance(made, LocatedMean):
        total = np.clip(table.sums - table.rows * made.centre, -made.below, made.above).sum()
        if made.rows_cap is None:
            above, noise = noisy(total, (made.below + made.above) / float(left))
            interval = Additive(made.centre / GRID + above / (GRID * rows), noise, 1 / (GRID * rows), (0.0, 1.0))
            return _outcome(interval.value, interval, noise.variance**0.5 * interval.unit)
        for_rows, for_sum = split(left, ROWS_SHARE)
        above, noise = noisy(total, max(made.below, made.above) / float(for_sum))
        below, other = noisy(np.minimum(table.rows, made.rows_cap).sum(), made.rows_cap / float(for_rows))
        feasible = (-float(made.centre), float(GRID - made.centre))
        ratio = Ratio(above, below, (noise, other), feasible, made.centre / GRID, 1 / GRID, False, made.rows)
        return _outcome(ratio.value, ratio, ratio.spread)
    weight = np.minimum(float(made.bound), table.rows)
    total, scale = (weight * table.means).sum() * GRID, float(made.bound) * GRID / float(left)
    above, noise = noisy(total, scale)
    if presence:
        below, _ = noisy(weight.sum() * GRID - total, scale)
        ratio = Ratio(above, above + below, (noise, noise), (0.0, 1.0), 0.0, 1.0, paired=True)
        return _outcome(ratio.value, ratio, ratio.spread)
    unit = 1 / (GRID * weight.sum())
    return _outcome(above * unit, Additive(above * unit, noise, unit, (0.0, 1.0)), noise.variance**0.5 * unit)


def _outcome(value: float, interval: Ratio | Additive, noise: float) -> Outcome:
    return Outcome(min(max(value, 0.0), 1.0), interval, _BOUNDING, Error(noise))


def hindsight(tables: list[Table], centres: list[float], epsilon: float, relation: Relation) -> float:
    """Root mean squared error of the best fixed bound: smooth weights, or clipped around the centre that was found, paying nothing."""
    rows, largest = [float(table.rows.sum()) for table in tables], max(float(table.rows.max()) for table in tables)
    weights = (np.mean([smooth(table, h, epsilon, relation) for table in tables]) for h in np.geomspace(1, largest, 30))
    caps = (
        np.mean(
            [
                clipped(table, centre, (cap, cap), epsilon, count, relation)
                for table, centre, count in zip(tables, centres, rows, strict=True)
            ]
        )
        for cap in np.geomspace(largest * 1e-3, largest, 30)
    )
    return math.sqrt(min(*weights, *caps))


def measure(name: str, draw: Draw, epsilon: str, relation: Relation, runs: int) -> dict[str, float]:
    """Coverage of the interval and of the noise interval, width, and errors."""
    found, tables, centres = [], [], []
    for run in range(runs):
        rng = np.random.default_rng(zlib.crc32(f"{name} {epsilon} {relation} {run}".encode()))
        table = Table(*draw(rng))
        choice, left = choose(table, Decimal(epsilon), relation, rng)
        assert choice.belief is not None
        plain = measured(table, choice, left, relation, rng)
        outcome = believed(plain, choice.belief, (0.0, 1.0), relation.counts_are_public)
        low, high = outcome.interval.at(0.95)
        first, last = plain.interval.at(0.95)
        errors = abs(outcome.value - table.truth), abs(plain.value - table.truth)
        told = choice.belief.visible
        found.append((low <= table.truth <= high, first <= table.truth <= last, high - low, *errors, told))
        if run < _HINDSIGHT:
            tables.append(table)
            centres.append(choice.belief.centre)
    best = hindsight(tables, centres, float(epsilon), relation)
    held, noise_alone, width, corrected, uncorrected, tells = (np.array(column) for column in zip(*found, strict=True))
    return {
        "told": float(tells.mean()),
        "covers": float(held[tells].mean()) if tells.any() else math.nan,
        "noise": float(noise_alone.mean()),
        "width": float(np.median(width)) / (2 * 1.96 * best),
        "error": float(np.median(corrected)) / best,
        "before": float(np.median(uncorrected)) / best,
        "95%": float(np.quantile(corrected, 0.95) / max(np.quantile(uncorrected, 0.95), 1e-300)),
    }


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    lists = {"held out": HELD_OUT, "seen": SEEN, "tuned": TUNED, "hard": HARD}
    rows, cells = [], []
    for relation in (Relation.PRESENCE, Relation.VALUES):
        for kind, draws in lists.items():
            for name, draw in draws.items():
                if arguments.only not in name:
                    continue
                line = [relation.value, kind, name]
                for epsilon in EPSILONS:
                    row = measure(name, draw, epsilon, relation, arguments.runs)
                    cells.append((kind, row))
                    line.append(f"{row['noise']:.0%} → {row['covers']:.0%}, {row['width']:.1f}, {row['error']:.2f}")
                rows.append(line)
                print(*line, sep=" | ", flush=True)
    head = ["relation", "list", "table", *(f"ε = {epsilon}" for epsilon in EPSILONS)]
    text = "\n".join(
        [
            f"# Coverage of means, {datetime.date.today().isoformat()}, {arguments.runs} tables for each cell\n",
            "Coverage of the 95% noise interval → of the 95% interval; median width in 95% ranges of the best fixed bound in",
            "hindsight; median error in its RMSEs, corrected.\n",
            *(_summary(kind, [row for one, row in cells if one == kind]) for kind in lists),
            "",
            as_table(head, rows),
        ]
    )
    print(text)
    (arguments.out / f"{datetime.date.today().isoformat()}-mean-coverage.md").write_text(text + "\n", encoding="utf-8")


def _summary(kind: str, rows: list[dict[str, float]]) -> str:
    if not rows:
        return ""
    covers = np.array([row["covers"] for row in rows])
    ratio = np.exp(np.mean([math.log(row["error"] / row["before"]) for row in rows]))
    return (
        f"- {kind}: {np.mean(covers >= 0.92):.0%} of {len(rows)} cells cover at least 92%, lowest {covers.min():.0%}; "
        f"width at most 3 in {np.mean([row['width'] <= 3 for row in rows]):.0%}; the correction changes the median error by "
        f"{ratio - 1:+.0%} (worst {max(row['error'] / row['before'] for row in rows) - 1:+.0%})"
    )


if __name__ == "__main__":
    main()

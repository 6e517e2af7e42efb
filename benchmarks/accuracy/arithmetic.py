"""How often 95% intervals of computed numbers hold the truth: ``python -m benchmarks.accuracy.arithmetic [--runs 10]``.

Quotients and differences of two answers, and of groups within one; totals that are released with their groups. Each run draws a table of its own.
Numbers whose parts say that they can't be used are left out. Beside it, how often the numbers hold that were computed with: what a part misses, the
whole may miss too.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import evenhand as eh
from benchmarks.accuracy.release_tables import HELD_OUT, SEEN, Draw
from benchmarks.results import keep, table

EPSILONS = (0.3, 1.0, 4.0)
KEYS = ["a", "b", "c"]
Cell = tuple[str, eh.Release, float]


def answers(rows_of: Draw, rng: np.random.Generator, epsilon: float, folder: str) -> Iterator[Cell]:
    """By name, what was computed, and what is true."""
    rows = rows_of(rng)
    session = eh.Session(eh.read(rows, user="u"), eh.Ledger(f"{folder}/b.db", epsilon=100 * epsilon))
    spend, visits = session.sum("x", bounds=(0, 200), epsilon=epsilon), session.count(epsilon=epsilon)
    yield "sum", spend, rows.x.sum()
    yield "count", visits, len(rows)
    yield "sum / count", spend / visits, rows.x.mean()
    yield "sum - 20 count", spend - 20 * visits, rows.x.sum() - 20 * len(rows)
    people = session.users(epsilon=epsilon)
    yield "count / users", visits / people, len(rows) / rows.u.nunique()
    groups, sizes = session.count(by="g", keys=KEYS, epsilon=epsilon), rows.g.value_counts()
    yield "group", groups["a"], sizes["a"]
    yield "group - group", groups["a"] - groups["b"], sizes["a"] - sizes["b"]
    yield "group / group", groups["b"] / groups["c"], sizes["b"] / sizes["c"]
    yield "group / total", groups["a"] / groups.total(), sizes["a"] / len(rows)
    yield "total of groups", groups.total(), len(rows)
    fitted = session.count(by="g", keys=KEYS, totals=True, epsilon=epsilon)
    yield "released total", fitted["total"], len(rows)
    means, true = session.mean("x", bounds=(0, 200), by="g", keys=KEYS, epsilon=epsilon), rows.groupby("g").x.mean()
    yield "mean of group", means["a"], true["a"]
    yield "mean - mean", means["a"] - means["b"], true["a"] - true["b"]
    average = session.aggregate(x=eh.sum("x", bounds=(0, 200)) / eh.count(), epsilon=2 * epsilon)["x"]
    yield "asked as a formula", average, rows.x.mean()


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    cells: dict[str, list[tuple[float, float, float, float]]] = {}
    for name, draw in {**SEEN, **HELD_OUT}.items():
        for epsilon in EPSILONS:
            for run in range(arguments.runs):
                rng = np.random.default_rng(zlib.crc32(f"{name} {run}".encode()))
                with tempfile.TemporaryDirectory() as folder:
                    for what, answer, true in answers(draw, rng, epsilon, folder):
                        low, high = answer.interval()
                        error = abs(answer.value - true) / max(high - low, 1e-300) * 2
                        width = (high - low) / 2 / abs(true)
                        cells.setdefault(what, []).append((answer.usable, low <= true <= high, error, width))
        print(name, flush=True)
    lines = []
    for what, found in cells.items():
        usable = np.array([one for one in found if one[0]] or [(0, np.nan, np.nan, np.nan)], dtype=float)
        lines.append(
            [
                what,
                str(len(found)),
                f"{np.mean([one[0] for one in found]):.0%}",
                f"{usable[:, 1].mean():.1%}",
                f"{np.median(usable[:, 3]):.1%}",
                f"{np.median(usable[:, 2]):.2f}",
            ]
        )
    names = ["number", "answers", "usable", "usable that hold", "half width", "error over half width"]
    text = f"# Arithmetic on releases, {datetime.date.today().isoformat()}\n\n{arguments.runs} runs for each of {len(SEEN) + len(HELD_OUT)} tables and ε in {EPSILONS}.\n\n{table(names, lines)}\n"
    print(text)
    keep(arguments.out, f"arithmetic-{datetime.date.today().isoformat()}", text, cells)


if __name__ == "__main__":
    main()

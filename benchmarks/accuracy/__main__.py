"""Run with ``python -m benchmarks.accuracy [--short]``; writes results/DATE.md and raw/DATE.json."""

from __future__ import annotations

import argparse
import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.accuracy import means, totals
from benchmarks.accuracy.cases import COUNTS, EPSILONS, HARD, VALUES, draw_means
from benchmarks.accuracy.report import report
from benchmarks.results import keep
from evenhand.guarantee import Relation

TABLES = 8  # with the same counts and fresh user means


def run(repeats: int, mean_repeats: int) -> dict[str, Any]:
    """All measurements."""
    result: dict[str, Any] = {"count": {}, "sum": {}, "mean": {}}
    for name, make in {**COUNTS, **HARD}.items():
        rows = make()
        for epsilon in EPSILONS:
            for statistic in ("count", "sum"):
                row = totals.measure(statistic, rows, epsilon, repeats, seed=1)
                result[statistic].setdefault(name, {})[str(epsilon)] = row
        print(name, flush=True)
    for name, make in COUNTS.items():
        rows = make()
        for kind in VALUES:
            tables = [means.Table(rows, draw_means(kind, rows, 20 + k)) for k in range(TABLES)]
            for epsilon in EPSILONS:
                for relation in (Relation.VALUES, Relation.PRESENCE):
                    row = means.measure(tables, Decimal(str(epsilon)), relation, mean_repeats, seed=2)
                    result["mean"].setdefault(f"{name} / {kind}", {}).setdefault(str(epsilon), {})[relation.value] = row
        print(name, "mean", flush=True)
    return result


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few repetitions: a minute instead of ten")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    result = run(*((2000, 1) if arguments.short else (10000, 3)))
    today = datetime.date.today().isoformat()
    keep(arguments.out, today, report(result, today), result)


if __name__ == "__main__":
    main()

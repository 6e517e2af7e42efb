"""Eight processes release from one table and one ledger at the same time: how many a second, and does the budget hold?

Run ``python tests/audit/load.py --seconds 60``; prints one JSON object, exit code 0 if nothing failed and nothing was overspent.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

EPSILON = Decimal("0.001")
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Outcome:
    """What eight processes did together."""

    processes: int
    seconds: float
    released: int
    refused: int
    errors: list[str]
    spent: str
    total: str

    @property
    def sound(self) -> bool:
        """Nobody failed, every release is paid for, and the total held."""
        return not self.errors and self.released * EPSILON == Decimal(self.spent) <= Decimal(self.total)


def work(folder: str, seconds: float, barrier: Any, results: Any) -> None:
    """Release until the time is over or the budget is spent."""
    import evenhand as eh

    released = refused = 0
    error = None
    try:
        session = eh.Session(eh.read(f"{folder}/rows.parquet", user="u"), eh.Ledger(f"{folder}/budget.db"))
        session.preview.count(epsilon=EPSILON)
        barrier.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end and not refused:
            try:
                release = session.sum("v", bounds=(0, 1), epsilon=EPSILON, bounding=eh.TotalCap(5))
                released += release.event is not None
            except eh.BudgetExceeded:
                refused += 1
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    results.put((released, refused, error))


def load(processes: int = 8, seconds: float = 60, total: str = "1000000") -> Outcome:
    """Run the processes and count."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import evenhand as eh

    with tempfile.TemporaryDirectory() as folder:
        rows = 20_000
        table = pa.table({"u": [row % 997 for row in range(rows)], "v": [row % 7 / 7 for row in range(rows)]})
        pq.write_table(table, Path(folder) / "rows.parquet")
        ledger = eh.Ledger(f"{folder}/budget.db", epsilon=total)
        barrier, results = SPAWN.Barrier(processes), SPAWN.Queue()
        crew = [SPAWN.Process(target=work, args=(folder, seconds, barrier, results)) for _ in range(processes)]
        for process in crew:
            process.start()
        told = [results.get(timeout=seconds + 240) for _ in crew]
        for process in crew:
            process.join()
        ledger.verify()
        errors = [error for _, _, error in told if error]
        released, refused = (sum(count[place] for count in told) for place in (0, 1))
        return Outcome(processes, seconds, released, refused, errors, str(ledger.spent.epsilon), total)


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--total", default="1000000")
    outcome = load(**vars(parser.parse_args()))
    each = {"releases_per_second": round(outcome.released / outcome.seconds, 1)}
    print(json.dumps(asdict(outcome) | each | {"sound": outcome.sound}))
    return 0 if outcome.sound else 1


if __name__ == "__main__":
    sys.exit(main())

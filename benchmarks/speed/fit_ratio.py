"""A fit of `WeightedERM` on a table of an engine against the same fit on arrays in memory, and the memory that it takes.

    python -m benchmarks.speed.fit_ratio                   # 100,000 rows of 50 features: ratios
    python -m benchmarks.speed.fit_ratio --rows 5000000    # one fit each, 2 GB on disk

Each engine has a process of its own, whose fits alternate with fits on arrays; the best of each counts, by the clock and in processor
seconds of the process and its JVM. Peak memory (VmHWM) is from before arrays are read.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BAR = 3.0
ENGINES = ("duckdb", "spark")
_PART = 500_000  # rows generated at a time


def generated(rows: int, features: int) -> Path:
    """The Parquet file, made once and kept in the temporary folder; users have 1 to about 50 rows, in no order."""
    path = Path(tempfile.gettempdir()) / f"evenhand-fit-{rows}-{features}.parquet"
    if path.exists():
        return path
    random = np.random.default_rng(11)
    slope = random.normal(0, 0.3, features)
    users = rows // 10
    with tempfile.TemporaryDirectory() as folder:
        unfinished = Path(folder) / path.name
        writer = None
        for start in range(0, rows, _PART):
            count = min(_PART, rows - start)
            X = random.normal(size=(count, features))
            y = (random.random(count) < 1 / (1 + np.exp(-X @ slope))).astype(np.int64)
            who = (users * random.random(count) ** 2).astype(np.int64)
            part = pa.table({"id": who, "y": y} | {f"x{place}": X[:, place] for place in range(features)})
            writer = writer or pq.ParquetWriter(unfinished, part.schema, compression="none")
            writer.write_table(part)
        assert writer is not None
        writer.close()
        unfinished.replace(path)
    return path


def measure(engine: str, path: Path, repeats: int, steps: int) -> dict[str, float]:
    """Seconds of a fit on the engine and on arrays, and peak memory in GB."""
    import evenhand as eh
    from evenhand.learning import WeightedERM

    model = WeightedERM(1, 1e-6, feature_bounds=(-5, 5), steps=steps)
    model.fit(np.zeros((100, 2)), np.zeros(100), users=np.arange(100))  # imports
    table = eh.read(str(path), user="id", engine=engine)
    figures = {"before the fit, GB": peak("self")}
    first = seconds(lambda: model.fit(table, "y"))
    figures |= {"peak, GB": peak("self"), "JVM, GB": sum(peak(child) for child in children())}
    figures |= {"first fit, s": first[0], "first fit, processor s": first[1]}
    if not repeats:
        return figures
    rows = pq.read_table(path)
    X = np.column_stack([rows[name].to_numpy() for name in rows.column_names[2:]])
    y, who = rows["y"].to_numpy(), rows["id"].to_numpy()
    own, arrays = [], []
    for _ in range(repeats):
        own.append(seconds(lambda: model.fit(table, "y")))
        arrays.append(seconds(lambda: model.fit(X, y, users=who)))
    for place, name in enumerate(("s", "processor s")):
        ours, theirs = min(times[place] for times in own), min(times[place] for times in arrays)
        figures |= {f"fit, {name}": ours, f"on arrays, {name}": theirs, f"ratio of {name}": ours / theirs}
    return figures


def peak(process: str) -> float:
    """The largest resident memory that a process had, in GB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


def children() -> list[str]:
    """The processes that this one started."""
    return [child for one in Path("/proc/self/task").glob("*/children") for child in one.read_text().split()]


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and in processor seconds of this process and those that it started."""
    before = time.perf_counter(), _processor()
    run()
    return time.perf_counter() - before[0], _processor() - before[1]


def _processor() -> float:
    stat = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split() for child in children()]
    return time.process_time() + sum(int(words[11]) + int(words[12]) for words in stat) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """One process for each engine, or the measurement itself."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--repeats", type=int, help="3, and 0 from a million rows on")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--engine", choices=ENGINES, help="measure this one here, in this process")
    given, _ = parser.parse_known_args()
    path = generated(given.rows, given.features)
    if given.engine is None:
        again = [sys.executable, "-m", "benchmarks.speed.fit_ratio", *sys.argv[1:], "--engine"]
        return sum(subprocess.run([*again, engine], check=False).returncode for engine in ENGINES)
    repeats = (3 if given.rows < 1_000_000 else 0) if given.repeats is None else given.repeats
    figures = measure(given.engine, path, repeats, given.steps)
    print(f"{given.engine}, {given.rows:,} x {given.features} (bar {BAR:g})")
    print("\n".join(f"  {name:<24} {value:8.2f}" for name, value in figures.items()), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

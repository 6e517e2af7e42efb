"""How often 95% intervals hold the truth, through real releases: ``python -m benchmarks.accuracy.release_coverage [--runs 20]``.

For the statistics that the other benchmarks of coverage leave out: variance, std, ratios, means per user, histograms, and ratios by group. Each
run draws a table of its own. Numbers of one release count one by one; those that are not usable are left out.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import evenhand as eh
from benchmarks.results import keep, table

EPSILONS = (0.3, 2.0)
EDGES = [0, 20, 40, 80, 200]
Rng = np.random.Generator


def _rows(counts: Any, tilt: float, rng: Rng) -> pd.DataFrame:
    size = np.minimum(np.ceil(counts), 20_000).astype(int)
    user = np.repeat(np.arange(len(size)), size)
    mean = np.maximum(40 + tilt * np.log(size) + rng.normal(0, 8, len(size)), 1)
    frame = pd.DataFrame({"u": user, "x": np.clip(rng.gamma(4, mean[user] / 4), 0, 200)})
    frame["g"] = rng.choice(["a", "b", "c"], len(frame), p=[0.5, 0.3, 0.2])
    return frame


TABLES: dict[str, Callable[[Rng], pd.DataFrame]] = {
    "log-normal 1.2, 6k": lambda rng: _rows(rng.lognormal(2.6, 1.2, 6_000), -2, rng),
    "uniform to 60, 3k": lambda rng: _rows(rng.integers(1, 60, 3_000), 0, rng),
    "Pareto 1.8, 12k": lambda rng: _rows(rng.pareto(1.8, 12_000) + 1, 3, rng),
}


def _asked(session: eh.Session, rows: pd.DataFrame, epsilon: float) -> dict[str, tuple[eh.Release, Any]]:
    """Releases with what is true."""
    spent: dict[str, Any] = {"epsilon": epsilon}
    bounds: dict[str, Any] = {"bounds": (0, 200), **spent}
    cells = np.histogram(rows.x, EDGES)[0]
    by = rows.groupby("g").x.agg(["sum", "count"])
    above = eh.sum("x", bounds=(0, 200))
    return {
        "variance": (session.variance("x", **bounds), rows.x.var(ddof=0)),
        "std": (session.std("x", **bounds), rows.x.std(ddof=0)),
        "ratio": (session.ratio(above, eh.count(), **spent), rows.x.mean()),
        "ratio to users": (session.ratio(above, eh.users(), **spent), rows.x.sum() / rows.u.nunique()),
        "per_user_mean": (session.per_user_mean("x", **bounds), rows.groupby("u").x.mean().mean()),
        "histogram": (session.histogram("x", edges=EDGES, **spent), cells),
        "ratio by group": (
            session.ratio(above, eh.count(), by="g", keys=["a", "b", "c"], **spent),
            (by["sum"] / by["count"]).to_numpy(),
        ),
    }


def covered(
    draw: Callable[[Rng], pd.DataFrame], epsilon: float, runs: int, seed: int
) -> dict[str, tuple[int, int, int]]:
    """Hits, numbers that were usable, and all numbers, by statistic."""
    rng = np.random.default_rng(seed)
    found: dict[str, tuple[int, int, int]] = {}
    for _ in range(runs):
        rows = draw(rng)
        with tempfile.TemporaryDirectory() as folder:
            session = eh.Session(eh.read(rows, user="u"), eh.Ledger(f"{folder}/b.db", epsilon=7 * epsilon))
            for name, (release, truth) in _asked(session, rows, epsilon).items():
                ends = release.interval(0.95)
                if isinstance(ends, pd.DataFrame):
                    (column,) = release.value_columns
                    ends = ends[[f"{column}_low", f"{column}_high"]].to_numpy()
                low, high = np.atleast_2d(np.asarray(ends, dtype=np.float64)).T
                held, size = (low <= truth) & (truth <= high), len(low)
                hits, used, told = found.get(name, (0, 0, 0))
                usable = bool(release.usable)
                found[name] = (hits + int(held.sum()) * usable, used + size * usable, told + size)
    return found


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    raw = {
        f"{name}, ε = {epsilon}": covered(draw, epsilon, arguments.runs, seed=21)
        for name, draw in TABLES.items()
        for epsilon in EPSILONS
    }
    today = datetime.date.today().isoformat()
    names = list(next(iter(raw.values())))
    cells = [
        [
            key,
            *(
                f"{hits / used:.0%}" + (f" of {used / told:.0%}" if used < told else "") if used else "-"
                for hits, used, told in row.values()
            ),
        ]
        for key, row in raw.items()
    ]
    text = (
        f"# Intervals that hold the truth: other statistics, through releases, {today}\n\n{arguments.runs} runs for each row, each with a table "
        "of its own. How often the 95% interval holds the truth; *of*: the part of the numbers that were usable.\n\n"
        + table(["table and ε", *names], cells)
        + "\n"
    )
    keep(arguments.out, f"release-coverage-{today}", text, raw)


if __name__ == "__main__":
    main()

"""How often 95% intervals hold the truth, through real releases: ``python -m benchmarks.accuracy.release_coverage [--runs 30]``.

For averages and what is made of them: means, variances, standard deviations, ratios, means per user, histograms, alone and by group, under both
relations. Each run draws a table of its own. Numbers of one release count one by one; a number whose release says that its model can't tell is
left out. The width is the median of the interval over the noise's own.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import evenhand as eh
from benchmarks.accuracy.release_tables import FEW, HARD, HELD_OUT, SEEN, Draw
from benchmarks.results import keep, table
from evenhand.release.intervals import why_not

EPSILONS = (0.1, 1.0, 4.0)
EDGES = [0, 20, 40, 80, 200]
KEYS = ["a", "b", "c"]
GROUPED = ("log-normal 1.2, 6k", "Pareto 1.8, 12k", "machines, 8k", "stars, Weibull 0.6, 9k", "two crowds, 7k")
LISTS = {"seen": SEEN, "held out": HELD_OUT, "hard": HARD, "few": FEW}
Asked = tuple[Callable[..., eh.Release], Callable[[pd.DataFrame], Any]]


def asked(session: eh.Session) -> dict[str, Asked]:
    """By name, what is asked with ε (and groups), and what is true."""
    bounds: dict[str, Any] = {"bounds": (0, 200)}
    above = eh.sum("x", **bounds)

    def total(rows: pd.DataFrame) -> Any:
        return rows.groupby("u").x.sum()

    return {
        "mean": (lambda **spent: session.mean("x", **bounds, **spent), lambda rows: rows.x.mean()),
        "variance": (lambda **spent: session.variance("x", **bounds, **spent), lambda rows: rows.x.var(ddof=0)),
        "std": (lambda **spent: session.std("x", **bounds, **spent), lambda rows: rows.x.std(ddof=0)),
        "ratio": (lambda **spent: session.ratio(above, eh.count(), **spent), lambda rows: rows.x.mean()),
        "ratio to users": (
            lambda **spent: session.ratio(above, eh.users(), **spent),
            lambda rows: total(rows).mean(),
        ),
        "per_user_mean": (
            lambda **spent: session.per_user_mean("x", **bounds, **spent),
            lambda rows: rows.groupby("u").x.mean().mean(),
        ),
        "per_user_mean of totals": (
            lambda **spent: session.per_user_mean("x", bounds=(0, 20_000), of="total", **spent),
            lambda rows: total(rows).clip(0, 20_000).mean(),
        ),
        "histogram": (
            lambda **spent: session.histogram("x", edges=EDGES, **spent),
            lambda rows: np.histogram(rows.x, EDGES)[0],
        ),
    }


def _ends(release: eh.Release, ends: Any) -> tuple[Any, Any]:
    if isinstance(ends, pd.DataFrame):
        (column,) = release.value_columns
        ends = ends[[f"{column}_low", f"{column}_high"]].to_numpy()
    low, high = np.atleast_2d(np.asarray(ends, dtype=np.float64)).T
    return low, high


def _flags(release: eh.Release, size: int) -> Any:
    """Which numbers can't be told, as the release says."""
    interval: Any = release._interval
    estimates = getattr(interval, "estimates", None)
    intervals = [interval] if estimates is None else [one.interval for one in next(iter(estimates.values()))]
    return np.array([bool(why_not(one)) for one in intervals])[:size]


def covered(draw: Draw, name: str, epsilon: float, runs: int, protects: str, grouped: bool) -> dict[str, Any]:
    """By statistic, for every number: whether it is held, flagged, usable; and its width over that of the noise."""
    found: dict[str, list[Any]] = {}
    for run in range(runs):
        rows = draw(np.random.default_rng(zlib.crc32(f"{name} {run}".encode())))
        with tempfile.TemporaryDirectory() as folder:
            public = ["g"] if protects == "values" else []
            source = eh.read(rows, user="u", protects=protects, public=public)
            session = eh.Session(source, eh.Ledger(f"{folder}/b.db", epsilon=40 * epsilon))
            for statistic, (ask, truth) in asked(session).items():
                if grouped and statistic == "histogram":
                    continue
                by: dict[str, Any] = {"by": "g", "keys": KEYS} if grouped else {}
                release = ask(epsilon=epsilon, **by)
                true = np.array([truth(rows[rows.g == key]) for key in KEYS]) if grouped else truth(rows)
                low, high = _ends(release, release.interval(0.95))
                first, last = _ends(release, release.noise_interval(0.95))
                with np.errstate(all="ignore"):
                    wide = (high - low) / (last - first)
                held = (low <= true) & (true <= high)
                error = np.abs(np.atleast_1d(_value(release)) - true)
                usable = np.full(len(low), release.usable)
                for cell in zip(held, _flags(release, len(low)), usable, wide, error, strict=True):
                    found.setdefault(f"{statistic}{' by group' if grouped else ''}", []).append(
                        [float(x) for x in cell]
                    )
    return {statistic: _summary(np.array(cells)) for statistic, cells in found.items()}


def _value(release: eh.Release) -> Any:
    return release.value[release.value_columns[0]].to_numpy() if release.grouped else release.value


def _summary(cells: Any) -> dict[str, float]:
    told = cells[:, 1] == 0
    return {
        "covers": float(cells[told, 0].mean()) if told.any() else float("nan"),
        "told": float(told.mean()),
        "usable": float(cells[:, 2].mean()),
        "width": float(np.nanmedian(cells[:, 3])),
        "error": float(np.nanmedian(cells[:, 4])),
    }


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--lists", nargs="*", default=list(LISTS))
    parser.add_argument("--epsilons", nargs="*", type=float, default=list(EPSILONS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    raw: dict[str, Any] = {}
    tables = [(kind, name) for kind in arguments.lists for name in LISTS[kind]]
    for protects, grouped in itertools.product(("presence", "values"), (False, True)):
        for kind, name in tables:
            if grouped and name not in GROUPED:
                continue
            for epsilon in arguments.epsilons:
                for statistic, cell in covered(
                    LISTS[kind][name], name, epsilon, arguments.runs, protects, grouped
                ).items():
                    key = f"{kind} | {protects} | {statistic} | {name} | {epsilon}"
                    raw[key] = cell
                    print(key, *(f"{name} {number:.3g}" for name, number in cell.items()), sep=" | ", flush=True)
    keep(arguments.out, f"release-coverage-{datetime.date.today().isoformat()}", report(raw, arguments.runs), raw)


def report(raw: dict[str, Any], runs: int) -> str:
    """One row for each statistic and relation, and the cells that miss."""
    cells = {tuple(key.split(" | ")): row for key, row in raw.items()}
    lines, short = [], []
    for head in dict.fromkeys(key[:3] for key in cells):
        rows = {key: row for key, row in cells.items() if key[:3] == head}
        covers = np.array([row["covers"] for row in rows.values() if row["told"]] or [np.nan])
        told = np.array([row["told"] for row in rows.values()])
        width = np.array([row["width"] for row in rows.values() if row["told"]] or [np.nan])
        lines.append([
            *head, str(len(rows)), f"{np.mean(covers >= 0.92):.0%}", f"{np.mean(covers):.1%}", f"{covers.min():.0%}", f"{1 - told.mean():.0%}",
            f"{np.median(width):.2f}", f"{np.mean([row['usable'] for row in rows.values()]):.0%}",
        ])  # fmt: skip
        short += [
            [*key, f"{row['covers']:.0%}", f"{row['told']:.0%}", f"{row['width']:.1f}"]
            for key, row in rows.items()
            if row["covers"] < 0.88
        ]
    names = ["list", "protects", "statistic", "cells", "cover ≥ 92%", "mean", "lowest", "can't tell", "width", "usable"]
    return (
        f"# Intervals that hold the truth: averages, through releases, {datetime.date.today().isoformat()}\n\n{runs} runs for each cell, each with a "
        "table of its own. Coverage of the 95% interval where the release can tell; the median width in those of the noise.\n\n"
        + table(names, lines) + "\n\nCells that cover less than 88%:\n\n"
        + table(["list", "protects", "statistic", "table", "ε", "covers", "told", "width"], short) + "\n"
    )  # fmt: skip


if __name__ == "__main__":
    main()

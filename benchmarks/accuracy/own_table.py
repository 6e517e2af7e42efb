"""Our defaults on a table of yours: do the 95% intervals hold the truth, how large are the errors, what can't be used?

    python -m benchmarks.accuracy.own_table --data visits.csv --user patient --value cost --bounds 0:5000 --by clinic

THIS IS NOT PRIVATE: it computes the exact answers and compares them with many releases. Use a table that you may look at, and keep the
output where the table is. The ledgers are thrown away; nothing is written.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import evenhand as eh
from benchmarks.results import table

CHANCES = [0.1, 0.5, 0.9]
KEYS = 20  # groups with the most rows, which the questions with public names ask about
Floats = np.ndarray[Any, np.dtype[np.float64]]


class Question(NamedTuple):
    """A default release, the truth about its numbers in their order (or by group), and the error of the best fixed bound, where that is simple."""

    ask: Callable[..., eh.Release]
    truth: Any
    best: Callable[[float], float] | None = None


def _best_cap(totals: Floats) -> Callable[[float], float]:
    """The least root mean squared error of Laplace noise and a cap on each user's total, over all caps."""
    caps = np.unique(np.quantile(totals, np.r_[np.linspace(0, 0.99, 100), np.linspace(0.99, 1, 100)]))
    lost = np.array([np.maximum(totals - cap, 0).sum() for cap in caps])
    return lambda epsilon: float(np.sqrt(2 * (caps / epsilon) ** 2 + lost**2).min())


def _best_weights(counts: Floats, sums: Floats, width: float) -> Callable[[float], float]:
    """The same for a mean of values that are this wide, over all numbers of rows that a user may count as."""
    limits = np.unique(np.quantile(counts, np.linspace(0, 1, 200)))
    weights = np.minimum(counts, limits[:, None]) / counts
    rows = weights @ counts
    bias = weights @ sums / rows - sums.sum() / counts.sum()
    return lambda epsilon: float(np.sqrt((limits * width / (epsilon * rows)) ** 2 / 2 + bias**2).min())


def questions(rows: pd.DataFrame, bounds: tuple[float, float]) -> Iterator[tuple[str, Question]]:
    """What is asked of a table with the columns ``user``, ``value`` and perhaps ``group``."""
    known = rows.dropna(subset="value")
    value, users = known.value, known.groupby("user").value
    counts, sums = np.asarray(users.size(), np.float64), np.asarray(users.sum(), np.float64)
    cap, weights = _best_cap(np.abs(sums)), _best_weights(counts, sums, bounds[1] - bounds[0])
    given = {"bounds": bounds}
    all_rows = np.asarray(rows.groupby("user").size(), np.float64)
    yield "count", Question(lambda s, **e: s.count(**e), len(rows), _best_cap(all_rows))
    yield "users", Question(lambda s, **e: s.users(**e), len(all_rows), lambda epsilon: float(np.sqrt(2) / epsilon))
    for name, how in ("", given), (", no bounds", {}):
        yield f"sum{name}", Question(lambda s, how=how, **e: s.sum("value", **how, **e), value.sum(), cap)
        yield f"mean{name}", Question(lambda s, how=how, **e: s.mean("value", **how, **e), value.mean(), weights)
        yield f"std{name}", Question(lambda s, how=how, **e: s.std("value", **how, **e), value.std(ddof=0))
        yield (
            f"quantiles{name}",
            Question(
                lambda s, how=how, **e: s.quantiles("value", CHANCES, **how, **e),
                value.quantile(CHANCES, interpolation="lower").to_numpy(),
            ),
        )
    yield "variance", Question(lambda s, **e: s.variance("value", **given, **e), value.var(ddof=0))
    yield "histogram, no edges", Question(lambda s, **e: s.histogram("value", **e), known)
    total = eh.sum("value", **given)
    yield "sum per user", Question(lambda s, **e: s.ratio(total, eh.users(), **e), value.sum() / len(all_rows))
    yield "per_user_mean", Question(lambda s, **e: s.per_user_mean("value", **given, **e), users.mean().mean())
    if "group" not in rows:
        return
    by, value_by = rows.groupby("group"), known.groupby("group").value
    public: dict[str, Any] = {"by": "group", "keys": by.size().nlargest(KEYS).index.tolist()}
    hidden: dict[str, Any] = {"by": "group", "delta": 1e-6}
    yield "count by group", Question(lambda s, **e: s.count(**public, **e), by.size())
    yield "mean by group", Question(lambda s, **e: s.mean("value", **given, **public, **e), value_by.mean())
    yield "sum by group, no bounds", Question(lambda s, **e: s.sum("value", **public, **e), value_by.sum())
    yield "count by hidden group", Question(lambda s, **e: s.count(**hidden, **e), by.size())
    yield "mean by hidden group", Question(lambda s, **e: s.mean("value", **given, **hidden, **e), value_by.mean())


def _numbers(release: eh.Release, truth: Any) -> pd.DataFrame:
    """One row for each number of a release: value, low, high, truth, usable; the truth may be a number, a list, a Series by group, or rows."""
    ends = release.interval(0.95)
    if not isinstance(ends, pd.DataFrame):
        low, high = np.atleast_2d(np.asarray(ends, dtype=np.float64)).T
        usable = bool(release.usable)
        return pd.DataFrame({"value": np.atleast_1d(release.value), "low": low, "high": high, "truth": truth, "usable": usable})  # fmt: skip
    (column,) = release.value_columns
    if isinstance(truth, pd.DataFrame):  # of a histogram whose edges were found
        edges = np.r_[ends.iloc[:, 0].to_numpy(), ends.iloc[-1, 1]].astype(float)
        inside = np.clip(truth.value.to_numpy(float), edges[0], edges[-1])
        told = np.histogram(inside, edges)[0]
    else:
        told = truth.reindex(ends["group"].to_numpy()).fillna(0).to_numpy()
    ends = ends.assign(truth=told).rename(columns={column: "value", f"{column}_low": "low", f"{column}_high": "high"})
    return ends.assign(usable=release.verdicts()["usable"].to_numpy())


def measure(asked: Question, source: eh.Table, epsilon: float, runs: int) -> dict[str, float]:
    """Coverage and relative errors over many releases of one question; a group is a number of its own."""
    found, seconds = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            session = eh.Session(source, eh.Ledger(f"{folder}/budget.db", epsilon=epsilon, delta=1e-5))
            began = time.perf_counter()
            release = asked.ask(session, epsilon=epsilon)
            seconds.append(time.perf_counter() - began)
            found.append(_numbers(release, asked.truth))
    numbers = pd.concat(found)
    held = (numbers.low <= numbers.truth) & (numbers.truth <= numbers.high)
    usable = numbers.usable.to_numpy(dtype=bool)
    away = (numbers.value - numbers.truth).abs()
    size = numbers.truth.abs().replace(0, np.nan)  # there is no relative error of nothing
    relative, width = away / size, (numbers.high - numbers.low) / 2 / size
    return {
        "numbers": len(numbers) / runs, "usable": float(usable.mean()) if len(usable) else np.nan, "held": float(held.mean()),
        "held, usable": float(held[usable].mean()), "error": float(relative.median()),
        "95% error": float(relative.quantile(0.95)), "± half": float(width.median()),
        "times best": float(np.sqrt((away**2).mean())) / asked.best(epsilon) if asked.best else np.nan,
        "s": float(np.median(seconds)),
    }  # fmt: skip


def main() -> None:
    """Ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a CSV or Parquet file")
    for name in ("user", "value"):
        parser.add_argument(f"--{name}", required=True, help=f"the column with the {name}")
    parser.add_argument("--by", help="a column with groups")
    parser.add_argument("--bounds", help="LOW:HIGH of the value; the least and the greatest unless given")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--only", help="a question whose name starts so")
    given = parser.parse_args()
    print("Not private: the exact answers of this table are used below.", flush=True)
    read = pd.read_parquet if given.data.suffix == ".parquet" else pd.read_csv
    columns = {given.user: "user", given.value: "value"} | ({given.by: "group"} if given.by else {})
    rows = (
        read(given.data, columns=list(columns)) if read is pd.read_parquet else read(given.data, usecols=list(columns))
    )
    rows = rows.rename(columns=columns).dropna(subset="user")
    low, high = map(float, given.bounds.split(":")) if given.bounds else (rows.value.min(), rows.value.max())
    rows["value"] = rows.value.clip(low, high)  # a bound that is given is a fact about the column
    source = eh.read(rows, user="user")
    print(f"{given.data.name}: {len(rows):,} rows of {rows.user.nunique():,} users; value from {low:g} to {high:g}")
    head = [
        "question",
        "ε",
        "numbers",
        "usable",
        "held",
        "held, usable",
        "error",
        "95% error",
        "± half",
        "times best",
        "s",
    ]
    print(table(head, []), flush=True)
    for name, asked in questions(rows, (float(low), float(high))):
        if given.only and not name.startswith(given.only):
            continue
        for epsilon in given.epsilon:
            one = measure(asked, source, epsilon, given.runs)
            told = [f"{one[k]:.0%}" for k in head[3:6]] + [f"{one[k]:.2g}" for k in head[6:]]
            print(f"| {name} | {epsilon:g} | {one['numbers']:.3g} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()

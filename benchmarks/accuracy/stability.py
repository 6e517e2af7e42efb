"""The same question again: how much width and verdict change with the noise alone. ``python -m benchmarks.accuracy.stability`` (ten minutes).

Tables come from fixed seeds; each question is asked `RUNS` times of each, with fresh noise. A reader who asks twice should get the same verdict, and
an interval about as wide. *Widest* is the 99% quantile of the widths over their median; it should be at most 5. *Verdict* is how often the verdict
is the more frequent one. *Held* is how often the interval holds the truth, and *wider than the number* how often it is of no use at all.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import evenhand as eh
from benchmarks.results import table

RUNS = 60
USERS = 3000
Whole = npt.NDArray[np.int64]
Rng = np.random.Generator

SIZES: dict[str, Callable[[Rng], Whole]] = {
    "alike": lambda rng: np.minimum(rng.geometric(0.1, USERS), 80),
    "log-normal": lambda rng: np.minimum(np.ceil(rng.lognormal(1.5, 1.2, USERS)), 3000).astype(np.int64),
    "Pareto 1.5": lambda rng: np.minimum(np.ceil(2 * (1 + rng.pareto(1.5, USERS))), 20_000).astype(np.int64),
}
Ask = Callable[[eh.Session, float], eh.Release]
QUESTIONS: dict[str, tuple[Ask, Callable[[pd.DataFrame], float]]] = {
    "count": (lambda s, e: s.count(epsilon=e), lambda rows: len(rows)),
    "sum, bounds given": (lambda s, e: s.sum("v", bounds=(0, 300), epsilon=e), lambda rows: rows.v.clip(0, 300).sum()),
    "sum": (lambda s, e: s.sum("v", epsilon=e), lambda rows: rows.v.sum()),
    "mean, bounds given": (lambda s, e: s.mean("v", bounds=(0, 300), epsilon=e), lambda rows: rows.v.clip(0, 300).mean()),
    "mean": (lambda s, e: s.mean("v", epsilon=e), lambda rows: rows.v.mean()),
    "variance, bounds given": (
        lambda s, e: s.variance("v", bounds=(0, 300), epsilon=e), lambda rows: rows.v.clip(0, 300).var(ddof=0),
    ),
    "variance": (lambda s, e: s.variance("v", epsilon=e), lambda rows: rows.v.var(ddof=0)),
    "distinct": (lambda s, e: s.distinct("thing", epsilon=e), lambda rows: rows.thing.nunique()),
}  # fmt: skip
EPSILONS = (0.1, 1.0)


def drawn(name: str) -> pd.DataFrame:
    """A table: users with so many rows, amounts with a moderate tail, things of which some are popular."""
    rng = np.random.default_rng([35, *name.encode()])
    user = np.repeat(np.arange(USERS), SIZES[name](rng))
    value = np.round(rng.lognormal(3, 0.8, len(user)), 2)
    return pd.DataFrame({"u": user, "v": value, "thing": np.minimum(rng.zipf(1.4, len(user)), 10**6)})


def asked(name: str, question: str, epsilon: float, runs: int) -> list[str]:
    """One line of the table."""
    rows, (ask, exact) = drawn(name), QUESTIONS[question]
    true, found = exact(rows), list[tuple[float, float, bool, bool]]()
    with tempfile.TemporaryDirectory() as folder:
        source: Any = eh.read(rows, user="u")
        ledger = eh.Ledger(f"{folder}/b.db", epsilon=10**6)
        for _ in range(runs):
            release = ask(eh.Session(source, ledger), epsilon)  # a new session keeps no profile
            low, high = release.interval(0.95)
            found.append((release.value, high - low, bool(release.usable), bool(low <= true <= high)))
    value, width, usable, held = (np.array(each) for each in zip(*found, strict=True))
    median = float(np.median(width))
    widest = float(np.quantile(width, 0.99)) / median if median else float("nan")
    often = float(usable.mean())
    return [name, question, f"{epsilon:g}", f"{np.median(np.abs(value / true - 1)):.2%}", f"{median / 2 / abs(true):.2%}", f"{widest:.2f}",
            f"{max(often, 1 - often):.0%} {'usable' if often >= 0.5 else 'not'}", f"{held.mean():.0%}",
            f"{(width > np.abs(value)).mean():.0%}"]  # fmt: skip


HEADER = ["table", "question", "ε", "error", "half width", "widest", "verdict", "held", "wider than the number"]


def lines(runs: int, only: str) -> Iterator[list[str]]:
    """All of them."""
    for name in SIZES:
        for question in QUESTIONS:
            for epsilon in EPSILONS:
                if only in question:
                    yield asked(name, question, epsilon, runs)


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each question")
    parser.add_argument("--only", default="", help="questions with this in their name; nothing is written")
    arguments = parser.parse_args()
    found = list(lines(arguments.runs, arguments.only))
    today = datetime.date.today().isoformat()
    text = f"# The same question again, {today}\n\n{USERS:,} users, {arguments.runs} releases of each question of one table, with fresh noise.\n\n"
    text += table(HEADER, found) + "\n"
    print(text)
    if not arguments.only:
        (Path(__file__).parent / "results" / f"{today}-stability.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Error, coverage and width of the usual questions on the same tables and the same noise each time: ``python -m benchmarks.accuracy.same_seeds``.

For judging a change to how answers come about: run it before and after, then ``--against raw/before.json``. Whole releases through the engine, defaults
throughout, NumPy's noise from a stream for each table, question and ε. An error's unit is the RMSE of the best fixed bound in hindsight, all of ε spent on the
answer: caps on totals for counts and sums, rows per user for means, either over all groups together. ``--part`` asks about some of the shapes; ``--only`` about some
questions. All of it takes some 20 minutes on one core.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import zlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import evenhand as eh
from benchmarks.results import keep, table
from evenhand.noise import seam
from evenhand.release import Receipt, Release
from evenhand.session import Drafts

EPSILONS = (0.02, 0.1, 0.3, 1.0)
GROUPS = 8
HIGH = 200.0
Array = npt.NDArray[np.float64]
Rng = np.random.Generator


def _whole(sizes: Any) -> Any:
    return np.clip(np.ceil(sizes), 1, 100_000).astype(np.int64)


SHAPES: dict[str, Callable[[Rng], Any]] = {
    "Pareto 1.1": lambda r: np.minimum(_whole(3 * (1 + r.pareto(1.1, 4000))), 20_000),
    "Pareto 1.5": lambda r: np.minimum(_whole(4 * (1 + r.pareto(1.5, 5000))), 2000),
    "log-normal, narrow": lambda r: _whole(r.lognormal(2, 0.7, 4000)),
    "log-normal, wide": lambda r: np.minimum(_whole(r.lognormal(1, 1.8, 4000)), 5000),
    "Poisson": lambda r: 1 + r.poisson(8, 4000),
    "Weibull": lambda r: _whole(10 * r.weibull(0.6, 4000)),
    "robots": lambda r: np.concatenate([1 + r.poisson(5, 4940), 1 + r.poisson(1000, 60)]),
    "two crowds": lambda r: np.concatenate([1 + r.poisson(5, 4800), 1 + r.poisson(200, 200)]),
    "3% Pareto on Poisson": lambda r: np.concatenate([1 + r.poisson(5, 4850), _whole(30 * (1 + r.pareto(1.6, 150)))]),
    "all alike": lambda r: np.full(3000, 20),
    "uniform": lambda r: r.integers(1, 61, 3000),
    "one row each": lambda r: np.ones(4000, dtype=np.int64),
    "60 people": lambda r: _whole(r.lognormal(2, 1, 60)),
    "300 people": lambda r: _whole(r.lognormal(2, 1, 300)),
    "60 people, one row each": lambda r: np.ones(60, dtype=np.int64),
    "panel of 200": lambda r: np.full(200, 365) - r.integers(0, 20, 200),
    "one giant": lambda r: np.append(r.geometric(0.1, 3000), 30_000),
}
"""Rows of each user."""


def people(name: str, repeat: int) -> tuple[Any, Any, Any]:
    """User, value and group of each row: busy users have larger values, everybody prefers one group."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), repeat])
    rows = SHAPES[name](rng)
    user = np.repeat(np.arange(len(rows)), rows)
    mean = np.maximum(40 + rng.normal(0, 4) * np.log(rows) + rng.normal(0, 10, len(rows)), 2)
    value = np.minimum(rng.gamma(3, mean[user] / 3), HIGH)
    favourite, size = rng.choice(GROUPS, len(rows), p=_PARTS), len(user)
    group = np.where(rng.random(size) < 0.4, favourite[user], rng.choice(GROUPS, size, p=_PARTS))
    return user, value, group


_PARTS = np.arange(1, GROUPS + 1) ** -0.8 / (np.arange(1, GROUPS + 1) ** -0.8).sum()


class Truth:
    """What is asked about in each question, and the error of the best fixed bound.

    Args:
        user: of each row.
        value: of each row.
        group: of each row.
    """

    def __init__(self, user: Any, value: Any, group: Any) -> None:
        cell = user.astype(np.int64) * GROUPS + group.astype(np.int64)
        cells = (int(user.max()) + 1) * GROUPS
        self.rows = np.bincount(cell, minlength=cells).reshape(-1, GROUPS).astype(float)
        self.totals = np.bincount(cell, weights=value, minlength=cells).reshape(-1, GROUPS)

    def of(self, question: str) -> Array:
        """The true answer, by group or alone."""
        rows, totals = self.rows.sum(axis=0), self.totals.sum(axis=0)
        return np.atleast_1d(
            {
                "count": rows.sum(),
                "sum": totals.sum(),
                "mean": totals.sum() / rows.sum(),
                "count by group": rows,
                "mean by group": totals / np.maximum(rows, 1),
            }[question]
        )

    def oracle(self, question: str, epsilon: float) -> float:
        """RMSE, over groups, of the best bound in hindsight."""
        grouped = "group" in question
        rows, totals = (x if grouped else x.sum(axis=1, keepdims=True) for x in (self.rows, self.totals))
        added = totals if question == "sum" else rows
        each, truth, best = added.sum(axis=1), self.of(question), math.inf
        for bound in np.unique(np.quantile(each[each > 0], 1 - np.geomspace(1 / len(each), 1, 40))):
            part = np.minimum(1.0, bound / np.maximum(each, 1e-9))[:, None]
            kept, weight = (part * totals).sum(axis=0), (part * rows).sum(axis=0)
            if "mean" in question:
                answer = kept / np.maximum(weight, 1e-9)
                noise = math.sqrt(2) * bound * np.maximum(answer, HIGH - answer) / epsilon / np.maximum(weight, 1e-9)
            else:
                answer, noise = (part * added).sum(axis=0), np.full(len(truth), math.sqrt(2) * bound / epsilon)
            best = min(best, math.sqrt(float(np.mean((answer - truth) ** 2 + noise**2))))
        return best


ASKED: dict[str, Callable[[Any, float], Any]] = {
    "count": lambda ask, epsilon: ask.count(epsilon=epsilon),
    "sum": lambda ask, epsilon: ask.sum("x", bounds=(0, HIGH), epsilon=epsilon),
    "mean": lambda ask, epsilon: ask.mean("x", bounds=(0, HIGH), epsilon=epsilon),
    "count by group": lambda ask, epsilon: ask.count(by="g", keys=list(range(GROUPS)), epsilon=epsilon),
    "mean by group": lambda ask, epsilon: ask.mean(
        "x", bounds=(0, HIGH), by="g", keys=list(range(GROUPS)), epsilon=epsilon
    ),
}


def released(opened: eh.Table, question: str, epsilon: float, seed: Sequence[int]) -> Release:
    """One release, without a ledger."""
    rng = np.random.default_rng(seed)

    def laplace(name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        return [value + round(rng.laplace(0, float(scale))) for value in values]

    draft = ASKED[question](Drafts(opened), epsilon)
    with seam.replaced(laplace):
        found: Release = draft.drawn(Receipt(draft.cost.epsilon, draft.cost.delta, "benchmark"))
    return found


def measured(opened: eh.Table, truth: Truth, name: str, question: str, epsilon: float, repeat: int) -> dict[str, Any]:
    """Error and width in oracle RMSEs, and which of the intervals hold the truth."""
    release = released(opened, question, epsilon, [repeat, zlib.crc32(f"{name}{question}{epsilon}".encode())])
    true, unit = truth.of(question), max(truth.oracle(question, epsilon), 1e-9)
    if release.grouped:
        frame = release.interval().sort_values("g")
        value, low, high = (frame[f"{question.split()[0]}{end}"].to_numpy(float) for end in ("", "_low", "_high"))
        usable = np.array(release.verdict.rows)
    else:
        value, (low, high), usable = release.value, release.interval(), np.array([release.usable])
    held = (np.asarray(low) <= true) & (true <= np.asarray(high))
    return {
        "error": math.sqrt(float(np.mean((value - true) ** 2))) / unit,
        "width": float(np.median(np.asarray(high) - low)) / unit,
        "held": float(held.mean()),
        "usable": float(usable.mean()),
        "both": float((held & usable).mean()),
        "outside": float(np.mean((value < np.asarray(low)) | (value > np.asarray(high)))),
    }


def run(names: Sequence[str], asked: Sequence[str], repeats: int) -> dict[str, list[dict[str, Any]]]:
    """All runs by shape, question and ε."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        for repeat in range(repeats):
            user, value, group = people(name, repeat)
            truth = Truth(user, value, group)
            opened = eh.read(pa.table({"u": user, "x": value, "g": group}), user="u")
            for question in asked:
                for epsilon in EPSILONS:
                    one = measured(opened, truth, name, question, epsilon, repeat)
                    found.setdefault(f"{name} | {question} | {epsilon}", []).append(one)
        print(name, flush=True)
    return found


def cell(runs: list[dict[str, Any]]) -> dict[str, float]:
    """One shape, question and ε."""
    error, width = (np.array([one[key] for one in runs]) for key in ("error", "width"))
    usable = sum(one["usable"] for one in runs)
    finite = np.where(np.isfinite(width), width, 1e9)
    middle = max(float(np.median(finite)), 1e-9)
    return {
        "error": float(np.median(error)),
        "error 95%": float(np.quantile(error, 0.95)),
        "held": float(np.mean([one["held"] for one in runs])),
        "width": middle,
        "spread": float(np.quantile(finite, 0.99)) / middle,
        "usable": usable / len(runs),
        "usable held": sum(one["both"] for one in runs) / usable if usable else math.nan,
        "outside": float(np.mean([one["outside"] for one in runs])),
    }


def summary(cells: Sequence[dict[str, float]]) -> list[str]:
    """A row of figures over cells."""

    def middle(key: str) -> float:
        return float(np.exp(np.mean(np.log(np.maximum([one[key] for one in cells], 1e-6)))))

    held = np.array([one["held"] for one in cells])
    weights = np.array([one["usable"] for one in cells])
    good = np.nansum([one["usable"] * one["usable held"] for one in cells if one["usable"]])
    return [
        f"{middle('error'):.2f}",
        f"{middle('error 95%'):.2f}",
        f"{held.mean():.1%}",
        f"{(held < 0.8).sum()}/{len(cells)}",
        f"{middle('width'):.1f}",
        f"{middle('width') / middle('error'):.1f}",
        f"{middle('spread'):.1f}",
        f"{weights.mean():.0%}",
        f"{good / weights.sum():.1%}" if weights.sum() else "",
        f"{np.mean([one['outside'] for one in cells]):.1%}",
    ]


HEAD = ["error", "95%", "held", "cells < 80%", "width", "width/error", "99% width", "usable", "usable held", "outside"]


def report(cells: dict[str, dict[str, float]], before: dict[str, dict[str, float]], title: str) -> str:
    """Markdown: by question, by ε, by shape, each before and after where there is a before."""
    parts = [
        f"# {title}",
        "Geometric means over cells of a shape and an ε; error, 95% error and width in RMSEs of the best fixed bound in hindsight. *cells < 80%*: where fewer "
        "intervals hold the truth; *99% width*: over the median width; *usable held*: of answers that call themselves usable; *outside*: estimates outside their own interval.",
    ]
    questions = list(dict.fromkeys(key.split(" | ")[1] for key in cells))
    for place, name in enumerate(("shape", "question", "ε")):
        rows = []
        for question in questions:
            mine = {key: one for key, one in cells.items() if key.split(" | ")[1] == question}
            kinds = dict.fromkeys(key.split(" | ")[place] for key in mine)
            if name == "question":
                kinds = dict.fromkeys([question])
            for kind in kinds:
                keys = [key for key in mine if key.split(" | ")[place] == kind]
                label = question if name == "question" else f"{question}, {kind}"
                rows.append([label, *summary([cells[key] for key in keys])])
                if old := [before[key] for key in keys if key in before]:
                    rows.append(["(before)", *summary(old)])
        parts += [f"## By {name}", table([name, *HEAD], rows)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=16)
    parser.add_argument("--part", nargs="*", help="some of the shapes", default=list(SHAPES))
    parser.add_argument("--only", nargs="*", help="some of the questions", default=list(ASKED))
    parser.add_argument("--against", type=Path, help="raw numbers of an earlier run")
    parser.add_argument("--name", default=f"same-seeds-{datetime.date.today().isoformat()}")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    cells = {key: cell(runs) for key, runs in run(arguments.part, arguments.only, arguments.repeats).items()}
    before = json.loads(arguments.against.read_text(encoding="utf-8")) if arguments.against else {}
    title = f"Same tables, same noise, {arguments.repeats} runs a cell"
    keep(arguments.out, arguments.name, report(cells, before, title), cells)


if __name__ == "__main__":
    main()

"""How often the 95% interval of a group holds that group's truth, through `Session` on DuckDB, with a new table in each run.

    python -m benchmarks.accuracy.group_coverage [--short]

For each case: the part of all groups and runs whose interval holds the truth, for all groups and for the third with the least and
the third with the most rows; the same for the noise alone; the median width in multiples of the noise interval's; and the root mean squared
error of the corrected values over that of the measured ones. Groups that the release itself flags as unable to tell are left out
and counted.
"""

from __future__ import annotations

import argparse
import datetime
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import evenhand as eh
from benchmarks import shapes
from benchmarks.accuracy import group_tables as drawn
from benchmarks.accuracy.group_tables import Floats, Table
from benchmarks.accuracy.groups import DELTA
from benchmarks.results import keep, table
from evenhand.statistics.believed_groups import MOSTLY, REFUTED

Make = Callable[[int], Table]


def _one_group(seed: int, users: int, groups: int) -> Table:
    rng = np.random.default_rng(seed)
    user = drawn._users(drawn._lognormal(rng, users, 1.2, 1.0))
    return drawn._stars(rng, user, drawn.popular(rng, users, groups, 0.6)[user], groups)


def _zipf(seed: int) -> Table:
    return drawn._shaped(seed, shapes.zipf(15_000, 2.5, np.random.default_rng(seed + 1), 5_000), 300, 0.9)


def _exponential(seed: int) -> Table:
    rows = np.ceil(np.random.default_rng(seed + 1).exponential(20, 4_000)).astype(np.int64)
    return drawn._shaped(seed, rows, 6, 0.3)


TUNED: dict[str, Make] = {
    "shops, 40": lambda seed: drawn.rated(seed, 8_000, 1.2, 1.0, 40, 0.6),
    "films, 400": lambda seed: drawn.rated(seed, 3_000, 3.5, 1.1, 400, 0.8),
    "one group per user, 50": lambda seed: _one_group(seed, 8_000, 50),
    "Pareto 1.3, 60": lambda seed: drawn._pareto(seed, 10_000, 1.3, 60),
    "genres, 12": lambda seed: drawn.rated(seed, 4_000, 3.5, 1.1, 12, 0.5),
    "two groups": lambda seed: drawn.rated(seed, 5_000, 2.0, 1.0, 2, 0.0),
    "home and away, 100": lambda seed: drawn._home_and_away(seed, 100),
    "heavy users, rare groups, 200": lambda seed: drawn._rare_tastes(seed, 200),
}
"""In view while the model was made."""

OTHERS: dict[str, Make] = {
    "3 favourites, 80": lambda seed: drawn._favourites(seed, 80, 3),
    "uniform to 100 rows, 20": lambda seed: drawn._uniform(seed, 20),
    "Zipf 2.5, 300": _zipf,
    "exponential, 6": _exponential,
    "log-normal 1.5, 200": lambda seed: drawn.rated(seed, 6_000, 1.5, 1.5, 200, 0.5),
    "Pareto 1.8, 20": lambda seed: drawn._pareto(seed, 8_000, 1.8, 20),
    "purchases, 60": lambda seed: drawn._shaped(seed, shapes.shop(), 60, 0.9),
    "course ratings, 150": lambda seed: drawn._shaped(seed, shapes.course(), 150, 0.5),
}
"""Coverage on these decided nothing. The size of the correction (`SURE`) was set with most of them in view, too; purchases and course
ratings were not looked at before."""

SPENDING: dict[str, Make] = {
    "spending, 30": lambda seed: drawn._spending(seed, 6_000, 30),
    "spending of 3,000 people, 100": lambda seed: drawn._spending(seed, 3_000, 100),
}


def with_tastes(rows: Table, seed: int) -> Table:
    """Ratings of users who differ, the busy ones on average too, in groups that differ."""
    rng = np.random.default_rng(seed + 7)
    busy = np.log(np.bincount(rows.user))
    own = 0.45 * rng.standard_normal(len(busy)) + rng.choice([-0.15, 0.15]) * (busy - busy.mean())
    centre = 3.5 + 0.3 * rng.standard_normal(rows.groups)
    value = centre[rows.group] + own[rows.user] + 0.8 * rng.standard_normal(len(rows.user))
    return replace(rows, value=np.clip(value, 0.5, 5.0))


@dataclass(frozen=True)
class Question:
    """A statistic: how it is asked, and its truth by group."""

    ask: Callable[[eh.Session, Table, dict[str, Any]], eh.Release]
    truth: Callable[[Table], Floats]
    column: str


def _sums(rows: Table, power: int) -> Floats:
    return np.bincount(rows.group, weights=rows.value**power, minlength=rows.groups).astype(np.float64)


def _counts(rows: Table) -> Floats:
    return np.bincount(rows.group, minlength=rows.groups).astype(np.float64)


def _users(rows: Table) -> Floats:
    pairs = np.unique(rows.user * rows.groups + rows.group)
    return np.bincount(pairs % rows.groups, minlength=rows.groups).astype(np.float64)


def _mean(rows: Table) -> Floats:
    return _sums(rows, 1) / np.maximum(_counts(rows), 1)


def _variance(rows: Table) -> Floats:
    return _sums(rows, 2) / np.maximum(_counts(rows), 1) - _mean(rows) ** 2


def _cells(rows: Table) -> Floats:
    place = np.clip(np.searchsorted(EDGES, rows.value, side="right") - 1, 0, len(EDGES) - 2)
    return np.bincount(rows.group * (len(EDGES) - 1) + place, minlength=rows.groups * (len(EDGES) - 1)).astype(
        np.float64
    )


EDGES = [0.5, 2.0, 3.0, 4.0, 5.0]
STARS = (0.5, 5.0)

QUESTIONS: dict[str, Question] = {
    "count": Question(lambda s, rows, how: s.count(**how), _counts, "count"),
    "users": Question(lambda s, rows, how: s.users(**how), _users, "users"),
    "sum": Question(
        lambda s, rows, how: s.sum("value", bounds=(0, rows.largest), **how), lambda rows: _sums(rows, 1), "sum"
    ),
    "mean": Question(lambda s, rows, how: s.mean("value", bounds=STARS, **how), _mean, "mean"),
    "variance": Question(lambda s, rows, how: s.variance("value", bounds=STARS, **how), _variance, "variance"),
    "std": Question(
        lambda s, rows, how: s.std("value", bounds=STARS, **how), lambda rows: np.sqrt(_variance(rows)), "std"
    ),
    "ratio": Question(
        lambda s, rows, how: s.ratio(eh.sum("value", bounds=(0, 5)), eh.users(), **how),
        lambda rows: _sums(rows, 1) / np.maximum(_users(rows), 1),
        "ratio",
    ),
    "histogram": Question(lambda s, rows, how: s.histogram("value", edges=EDGES, **how), _cells, "count"),
    "mean with count": Question(
        lambda s, rows, how: s.aggregate(mean=eh.mean("value", bounds=STARS), count=eh.count(), **how), _mean, "mean"
    ),
}


@dataclass(frozen=True)
class Case:
    """One line of the result."""

    name: str
    make: Make
    question: str
    epsilon: float
    delta: float
    protects: str = "presence"
    hidden: bool = False
    tuned: bool = False


def cases(short: bool) -> list[Case]:
    """Counts and users everywhere, the others on every second table."""
    found = []
    some = ((0.1, 0.0), (0.4, DELTA), (1.0, 0.0), (4.0, DELTA))
    for tuned, tables in ((True, TUNED), (False, OTHERS)):
        for place, (name, make) in enumerate(tables.items()):
            found += [Case(name, make, "count", *pair, tuned=tuned) for pair in some]
            found += [Case(name, make, "users", *pair, tuned=tuned) for pair in some[1:3]]
            found += [Case(name, make, "mean", *pair, tuned=tuned) for pair in (*some[1:3], some[3])]
            found += [Case(name, make, "mean", 1.0, 0.0, "values", tuned=tuned)]
            found += [Case(name, make, "count", 1.0, DELTA, hidden=True, tuned=tuned)]
            if place % 2 == 0:
                others = ("sum", "variance", "std", "ratio", "histogram", "mean with count")
                found += [Case(name, make, one, 1.0, 0.0, tuned=tuned) for one in others]
                found += [
                    Case(name, make, one, 1.0, 0.0, "values", tuned=tuned) for one in ("sum", "variance", "histogram")
                ]
                found += [Case(name, make, "sum", 4.0, DELTA, tuned=tuned)]
    for name, make in SPENDING.items():
        found += [Case(name, make, "sum", *pair, tuned=name == "spending, 30") for pair in some]
    return found[::5] if short else found


def released(case: Case, seed: int) -> tuple[eh.Release, Table, Floats, Floats]:
    """A release of a new table, the truth of the groups that are shown, and their numbers of rows."""
    question, rows = QUESTIONS[case.question], case.make(seed)
    rows = rows if case.name in SPENDING else with_tastes(rows, seed)
    frame = pa.table({"user": rows.user, "group": rows.group, "value": rows.value})
    how: dict[str, Any] = {"by": "group", "epsilon": case.epsilon, "delta": case.delta}
    if not case.hidden:
        how["keys"] = list(range(rows.groups))
    with tempfile.TemporaryDirectory() as folder:
        public = ["group"] if case.protects == "values" else []
        source = eh.read(frame, user="user", protects=case.protects, public=public)
        session = eh.Session(source, eh.Ledger(Path(folder) / "ledger.db", epsilon=100, delta=0.5))
        release = question.ask(session, rows, how)
    shown = release.value["group"].to_numpy().astype(int)
    places = shown if case.question != "histogram" else np.arange(len(shown))
    return release, rows, question.truth(rows)[places], _counts(rows)[shown]


def measure(case: Case, runs: int) -> dict[str, Any] | None:
    """One case; None if nothing was shown."""
    column, found, flagged = QUESTIONS[case.question].column, [], []
    for seed in range(runs):
        release, _, truth, rows = released(case, 1_000 + seed)
        if not len(truth):
            continue
        value = release.value[column].to_numpy(dtype=float)
        ends, noise = release.interval(), release.noise_interval()
        low, high, least, most = (
            frame[f"{column}_{side}"].to_numpy(dtype=float) for frame in (ends, noise) for side in ("low", "high")
        )
        added = release.details.get("correction", {}).get("added", {}).get(column, np.zeros(len(value)))
        numbers = release.verdict.numbers[column]
        can = np.array([number.why not in (MOSTLY, REFUTED) for number in numbers]) & (rows > 0)
        order = np.argsort(np.argsort(rows, kind="stable"), kind="stable") / len(rows)
        width = (high - low) / np.maximum(most - least, 1e-12)
        flagged.append(float(np.mean([number.why in (MOSTLY, REFUTED) for number in numbers])))
        inside, by_noise = (low <= truth) & (truth <= high), (least <= truth) & (truth <= most)
        finite = np.isfinite(value)
        found.append((inside, by_noise, order, width, can & finite, value - truth, value - np.array(added) - truth))
    if not found or not any(one[4].any() for one in found):
        return None
    inside, by_noise, order, width, can, error, before = (np.concatenate(one) for one in zip(*found, strict=True))
    third = [
        float(inside[can & part].mean()) if (can & part).any() else math.nan for part in (order < 1 / 3, order >= 2 / 3)
    ]
    return {
        "table": case.name,
        "question": case.question,
        "ε": case.epsilon,
        "δ": case.delta,
        "protects": case.protects,
        "hidden": case.hidden,
        "tuned": case.tuned,
        "covers": float(inside[can].mean()),
        "small": third[0],
        "large": third[1],
        "noise alone": float(by_noise[can].mean()),
        "width": float(np.median(width[can])),
        "flagged": float(np.mean(flagged)),
        "error": math.sqrt(float((error[can] ** 2).mean()) / max(float((before[can] ** 2).mean()), 1e-300)),
    }


def report(found: list[dict[str, Any]], runs: int, date: str) -> str:
    """Markdown: the bars, what misses them, and all cases."""
    bars = []
    for name, some in (
        ("in view", [one for one in found if one["tuned"]]),
        ("others", [one for one in found if not one["tuned"]]),
    ):
        for statistic in dict.fromkeys(one["question"] for one in some):
            mine = [one for one in some if one["question"] == statistic]
            covers = np.array([one["covers"] for one in mine])
            bars.append(
                [
                    name,
                    statistic,
                    str(len(mine)),
                    f"{(covers >= 0.92).mean():.0%}",
                    f"{covers.min():.0%}",
                    f"{np.median([one['noise alone'] for one in mine]):.0%}",
                    f"{np.median([one['width'] for one in mine]):.2f}",
                    f"{np.mean([one['flagged'] for one in mine]):.0%}",
                    f"{max(one['error'] for one in mine):.2f}",
                ]
            )
    head = [
        "tables",
        "statistic",
        "cases",
        "cover ≥ 92%",
        "worst",
        "noise alone (median)",
        "width",
        "flagged",
        "worst error",
    ]
    covers = np.array([one["covers"] for one in found])
    lines = [
        [
            one["table"],
            one["question"]
            + (" (hidden keys)" if one["hidden"] else "")
            + (" (values)" if one["protects"] == "values" else ""),
            f"{one['ε']:g}",
            f"{one['δ']:g}",
            f"{one['covers']:.0%} ({one['small']:.0%} / {one['large']:.0%})",
            f"{one['noise alone']:.0%}",
            f"{one['width']:.2f}",
            f"{one['flagged']:.0%}",
            f"{one['error']:.2f}",
        ]
        for one in sorted(found, key=lambda one: one["covers"])
    ]
    columns = ["table", "statistic", "ε", "δ", "covers (small / large)", "noise alone", "width", "flagged", "error"]
    return f"""# Coverage of 95% intervals by group, {date}

{runs} releases of newly drawn tables each, through the session on DuckDB. Width and error are multiples of the noise interval's and of the
uncorrected values'. Of {len(found)} cases {(covers >= 0.92).mean():.0%} cover at least 92%, {int((covers < 0.8).sum())} less than 80%.

{table(head, bars)}

## All cases, the worst first

{table(columns, lines)}
"""


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few repetitions, fewer cases")
    parser.add_argument("--only", help="one statistic")
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    runs, found = arguments.runs or (3 if arguments.short else 8), []
    for case in cases(arguments.short):
        if arguments.only and case.question not in arguments.only.split(","):
            continue
        result = measure(case, runs)
        if result is not None:
            found.append(result)
            keys = ("covers", "small", "large", "noise alone", "width", "flagged", "error")
            about = [case.name, case.question, case.epsilon, case.delta, case.protects, "hidden" if case.hidden else ""]
            print(*about, *(f"{key} {result[key]:.2f}" for key in keys), flush=True)
    today = datetime.date.today().isoformat()
    keep(arguments.out, f"group-coverage-{today}", report(found, runs, today), {"cases": found})


if __name__ == "__main__":
    main()

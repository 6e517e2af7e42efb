"""What is released under fixed noise: a list of questions on small tables, so that a change to how answers come about shows what it changed.

``python tests/frozen_questions.py`` (with ``src`` on the path) writes ``tests/contract/frozen.jsonl`` anew, one line a question; the difference
in version control is what a change did. Noise is drawn by inversion from a stream of its own for each question.
"""

from __future__ import annotations

import json
import math
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa

import evenhand as eh
from evenhand.noise import seam
from evenhand.release import Receipt, Release
from evenhand.session import Drafts

KEPT = Path(__file__).parent / "contract" / "frozen.jsonl"
_GROUPS, _FEW_GROUPS = [f"g{place}" for place in range(12)], ["g1", "g5"]
_DIGITS, _SHOWN = 6, 4

Question = Callable[[Any], Any]  # of Drafts


def noise_of(name: str) -> seam.Sampler:
    """Noise that is the same in each run, for one question; none where groups come in the engine's order."""
    if "hidden" in name:
        return seam.silent
    stream = random.Random(zlib.crc32(name.encode()))

    def draw(law: str, values: Sequence[int], scale: Fraction) -> list[int]:
        if law in ("normal", "gaussian", "spherical", "blockwise"):
            return [value + round(stream.gauss(0, 1) * float(scale)) for value in values]
        return [value + round(_laplace(stream.random()) * float(scale)) for value in values]

    return draw


def _laplace(place: float) -> float:
    return math.log(max(2 * min(place, 1 - place), 1e-300)) * (1 if place < 0.5 else -1)


def _people(rows: Any, seed: int) -> pa.Table:
    """Rows of these users: busy ones have larger values, and are in other groups."""
    stream, user = np.random.default_rng(seed), np.repeat(np.arange(len(rows)), rows)
    busy = np.log(np.asarray(rows, dtype=np.float64))[user]
    amount = np.round(10 + 4 * busy + 60 * stream.random(len(user)) ** 4 * (1 + stream.random(len(rows))[user]), 2)
    group = np.minimum((12 * stream.random(len(user)) ** (1 + busy / 3)).astype(int), 11)
    return pa.table(
        {
            "u": user,
            "x": amount,
            "y": np.round(stream.random(len(user)) - 0.4, 3),
            "did": (stream.random(len(user)) < 0.06).astype(np.int64),
            "g": [f"g{place}" for place in group],
        }
    )


def _tables() -> dict[str, pa.Table]:
    place = (np.arange(700) + 0.5) / 700
    normal = np.array([NormalDist().inv_cdf(one) for one in place])
    return {
        "usual": _people(np.ceil(np.exp(1.3 + 1.1 * normal)).astype(int), 1),
        "heavy": _people(np.minimum(np.ceil(2 * (1 - place) ** (-1 / 1.4)), 4000).astype(int), 2),
        "few": _people(np.ceil(5 * place[::12] ** -0.6).astype(int), 3),
        "alike": _people(np.full(300, 7), 4),
        "once": _people(np.ones(400, dtype=int), 5),
        "robots": _people(np.concatenate([np.ceil(6 * place), np.full(12, 400)]).astype(int), 6),
    }


X: dict[str, Any] = {"bounds": (0, 200)}
Y: dict[str, Any] = {"bounds": (-0.5, 0.7)}
PUBLIC: dict[str, Any] = {"by": "g", "keys": _GROUPS}
FEW: dict[str, Any] = {"by": "g", "keys": _FEW_GROUPS}
HIDDEN: dict[str, Any] = {
    "by": "g",
    "delta": 1e-6,
    "groups_per_user": 12,
}  # nobody is in more, so none is drawn at random


def questions() -> Iterator[tuple[str, str, str, Question]]:
    """Name, table, relation and question, in order."""
    for table in ("usual", "heavy", "few", "alike", "once", "robots"):
        for relation in ("presence", "values"):
            for epsilon in (0.1, 1):
                for name, ask in _plain(epsilon, relation).items():
                    yield f"{table}.{relation}.{name}.{epsilon}", table, relation, ask
    for relation in ("presence", "values"):
        for name, ask in {**_by_group(0.8, relation), **_bounded(relation), **_others(1, relation)}.items():
            yield f"usual.{relation}.{name}", "usual", relation, ask
    for name, ask in _by_group(0.3, "presence").items():
        yield f"heavy.presence.{name}", "heavy", "presence", ask


def _plain(epsilon: float, relation: str) -> dict[str, Question]:
    found: dict[str, Question] = {
        "sum": lambda ask: ask.sum("x", **X, epsilon=epsilon),
        "mean": lambda ask: ask.mean("x", **X, epsilon=epsilon),
        "mean of either sign": lambda ask: ask.mean("y", **Y, epsilon=epsilon),
        "share": lambda ask: ask.share("did = 1", epsilon=epsilon),
    }
    if relation == "presence":
        found["count"] = lambda ask: ask.count(epsilon=epsilon)
        found["sum of either sign"] = lambda ask: ask.sum("y", **Y, epsilon=epsilon)
    return found


def _by_group(epsilon: float, relation: str) -> dict[str, Question]:
    found: dict[str, Question] = {
        "sum by group": lambda ask: ask.sum("x", **X, **PUBLIC, epsilon=epsilon),
        "mean by group": lambda ask: ask.mean("x", **X, **PUBLIC, epsilon=epsilon),
        "mean by two": lambda ask: ask.mean("x", **X, **FEW, epsilon=epsilon),
        "share by group": lambda ask: ask.share("did = 1", **PUBLIC, epsilon=epsilon),
        "Gaussian sum by group": lambda ask: ask.sum("x", **X, **PUBLIC, epsilon=epsilon, delta=1e-6),
    }
    if relation == "presence":
        found |= {
            "count by group": lambda ask: ask.count(**PUBLIC, epsilon=epsilon),
            "count by two": lambda ask: ask.count(**FEW, epsilon=epsilon),
            "count by hidden group": lambda ask: ask.count(**HIDDEN, epsilon=epsilon),
            "users by group": lambda ask: ask.users(**PUBLIC, epsilon=epsilon),
            "sum by hidden group": lambda ask: ask.sum("x", **X, **HIDDEN, epsilon=epsilon),
            "mean by hidden group": lambda ask: ask.mean("x", **X, **HIDDEN, epsilon=epsilon),
            "total per user by group": lambda ask: ask.per_user_mean(
                "x", bounds=(0, 500), of="total", **PUBLIC, epsilon=epsilon
            ),
        }
    return found


def _bounded(relation: str) -> dict[str, Question]:
    found: dict[str, Question] = {
        "sum TotalCap": lambda ask: ask.sum("x", **X, epsilon=1, bounding=eh.TotalCap(500)),
        "mean SmoothWeights": lambda ask: ask.mean("x", **X, epsilon=1, bounding=eh.SmoothWeights(4)),
        "sum SmoothWeights": lambda ask: ask.sum("x", **X, epsilon=1, bounding=eh.SmoothWeights(4)),
        "mean chosen SmoothWeights": lambda ask: ask.mean("x", **X, epsilon=1, bounding=eh.SmoothWeights()),
        "mean by group SmoothWeights": lambda ask: ask.mean(
            "x", **X, **PUBLIC, epsilon=1, bounding=eh.SmoothWeights(4)
        ),
    }
    if relation == "presence":
        found["sum chosen TotalCap"] = lambda ask: ask.sum("x", **X, epsilon=1, bounding=eh.TotalCap())
        found["count TotalCap"] = lambda ask: ask.count(epsilon=1, bounding=eh.TotalCap(10))
        found["count by group NormClip"] = lambda ask: ask.count(**PUBLIC, epsilon=1, bounding=eh.NormClip(6))
    else:
        found["mean CentredInterval"] = lambda ask: ask.mean("x", **X, epsilon=1, bounding=eh.CentredInterval(40))
        found["mean chosen CentredInterval"] = lambda ask: ask.mean("x", **X, epsilon=1, bounding=eh.CentredInterval())
    return found


def _others(epsilon: float, relation: str) -> dict[str, Question]:
    found: dict[str, Question] = {
        "median": lambda ask: ask.median("x", **X, epsilon=epsilon),
        "quantiles": lambda ask: ask.quantiles("x", [0.1, 0.9], **X, epsilon=epsilon),
        "median by two": lambda ask: ask.median("x", **X, **FEW, epsilon=epsilon),
        "variance": lambda ask: ask.variance("x", **X, epsilon=epsilon),
        "std": lambda ask: ask.std("x", **X, epsilon=epsilon),
        "mean per user": lambda ask: ask.per_user_mean("x", **X, epsilon=epsilon),
        "total per user": lambda ask: ask.per_user_mean("x", bounds=(0, 500), of="total", epsilon=epsilon),
        "ratio": lambda ask: ask.ratio(eh.sum("x", **X), eh.count(), epsilon=epsilon),
        "histogram": lambda ask: ask.histogram("x", [0, 10, 20, 50, 200], epsilon=epsilon),
        "distinct": lambda ask: ask.distinct("g", epsilon=epsilon),
        "bounds left out": lambda ask: ask.mean("x", epsilon=epsilon),
        "sum, bounds left out": lambda ask: ask.sum("x", epsilon=epsilon),
        "several": lambda ask: ask.aggregate(
            **PUBLIC, epsilon=epsilon, n=eh.count(), total=eh.sum("x", **X), average=eh.mean("x", **X)
        ),
    }
    if relation == "presence":
        found["share of users"] = lambda ask: ask.share("did = 1", of="users", epsilon=epsilon)
        found["users"] = lambda ask: ask.users(epsilon=epsilon)
        found["top"] = lambda ask: ask.top("g", 3, keys=_GROUPS, epsilon=epsilon)
    return found


def released(opened: eh.Table, name: str, ask: Question) -> Release:
    """The release of one question, without a ledger."""
    draft = ask(Drafts(opened))
    paid = draft.cost
    with seam.replaced(noise_of(name)):
        receipt = Receipt(paid.epsilon, paid.delta, "test") if paid else Receipt(Decimal(0), Decimal(0), "test")
        found: Release = draft.drawn(receipt)
    return found


def shown(release: Release) -> dict[str, Any]:
    """What is kept of a release."""
    if not release.grouped:
        values = release.value if isinstance(release.value, list | tuple) else [release.value]
        ends = release.interval() if isinstance(release.interval(), list) else [release.interval()]
        numbers = {"value": list(values), "interval": [end for pair in ends for end in pair]}
    else:
        frame = release.interval()
        frame = frame.sort_values(list(frame.columns[: max(len(release.value.columns) - 1, 1)]), kind="stable")
        numeric = frame.select_dtypes("number").astype(float)
        first = numeric.to_numpy()[:_SHOWN].ravel().tolist()
        numbers = {"value": [len(frame), *first], "interval": np.nansum(numeric.to_numpy(), axis=0).tolist()}
    return {
        **{name: [_rounded(one) for one in found] for name, found in numbers.items()},
        "usable": release.usable,
        "paid": [float(release.guarantee.epsilon), float(release.guarantee.delta)],
        "bounding": [release.bounding.strategy, _rounded(release.bounding.parameter)],
    }


def _rounded(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return float(f"{float(value):.{_DIGITS}g}") if math.isfinite(value) else str(value)


def answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """All questions with what is kept of their releases."""
    tables = _tables()
    opened = {
        (name, relation): eh.read(table, user="u", protects=relation, public=["g"] if relation == "values" else [])
        for name, table in tables.items()
        for relation in ("presence", "values")
    }
    for name, table, relation, ask in questions():
        yield name, shown(released(opened[table, relation], name, ask))


def lines() -> list[str]:
    """The kept file, line by line."""
    return [json.dumps({"question": name, **answer}, ensure_ascii=False) for name, answer in answers()]


if __name__ == "__main__":
    KEPT.write_text("\n".join(lines()) + "\n", encoding="utf-8")

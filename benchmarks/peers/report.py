"""The comparison as tables that a person can read: who wins where."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.peers.measure import COLUMNS
from benchmarks.peers.questions import Question
from benchmarks.results import table

CLOSE = 1.1  # within ten per cent nobody wins
ENOUGH = 5  # runs without groups; a run gives a single |error| there, and the smallest of few is chance
Sides = Mapping[str, Mapping[str, Any]]
"""What was kept of each side, Evenhand first."""


def middle(kept: Mapping[str, Any], figure: str) -> float:
    """The median over runs."""
    return float(np.median(kept[figure])) if kept.get(figure) else math.nan


def best(tried: Sequence[Mapping[str, Any]], hidden: bool) -> Mapping[str, Any] | None:
    """Of several sets of parameters the one with the best median: most keys found, or the smallest error."""
    ran = [kept for kept in tried if kept.get("rmse") is not None]
    if not ran:
        return None
    return (
        max(ran, key=lambda kept: middle(kept, "found")) if hidden else min(ran, key=lambda kept: middle(kept, "rmse"))
    )


def answered(side: Mapping[str, Any], question: Question, column: str) -> Mapping[str, Any] | None:
    """What a side has for a question."""
    tried = side.get("questions", {}).get(question.name, {}).get(column, [])
    return best(tried, question.hidden)


def report(sides: Sides, questions: Sequence[Question], date: str) -> str:
    """Markdown."""
    mine, others = sides["Evenhand"], {name: side for name, side in sides.items() if name != "Evenhand"}
    public = [question for question in questions if not question.hidden and answered(mine, question, "default")]
    hidden = [question for question in questions if question.hidden and answered(mine, question, "default")]
    return f"""# Evenhand beside other libraries, {date}

{_installed(sides)}

{_verdicts(mine, others, [*public, *hidden])}

## Error relative to Evenhand's: median / 95% quantile over runs, both divided by Evenhand's median

Below 1 the library is more accurate. "Advised": parameters as its documentation advises. "Known": the best parameters in hindsight,
which are not private. Evenhand's column: its median error (|error| without groups, RMSE over groups with them), and its own 95%
quantile over that median.

{_errors(mine, others, public)}

## Hidden group names: keys found (share of user and group pairs in groups not found)

{_keys(mine, others, hidden)}

## Seconds for one release, median (load of the machine)

Comparable only where the load is known and alike; "?" where it was not recorded.

{_seconds(mine, others, [*public, *hidden])}
"""


def _heads(others: Sides) -> list[str]:
    return [f"{name.rsplit(' ', 1)[0]}, {column}" for name in others for column in COLUMNS]


def _cells(others: Sides, question: Question) -> list[Mapping[str, Any] | None]:
    return [answered(side, question, column) for side in others.values() for column in COLUMNS]


def _runs(side: Mapping[str, Any]) -> str:
    by = side.get("questions", {}).values()
    runs = [len(one["seconds"]) for columns in by for tried in columns.values() for one in tried if "seconds" in one]
    return f"{min(runs)} to {max(runs)} runs of each question" if runs else "no answers"


def _installed(others: Sides) -> str:
    lines = []
    for name, side in others.items():
        ran = f"run on {side.get('date')}, {_runs(side)}"
        lines.append(f"- {name}: " + (f"not run: {side['reason']}" if "reason" in side else ran))
        errors = sorted(
            {
                error
                for by in side.get("questions", {}).values()
                for tried in by.values()
                for one in tried
                for error in one.get("error", [])
            }
        )
        lines += [f"  - failed: {error.splitlines()[0][:160]}" for error in errors]
    return "\n".join(lines)


def _advantage(mine: Mapping[str, Any], question: Question, other: Mapping[str, Any]) -> float:
    """How many times better Evenhand is than another."""
    own = answered(mine, question, "default")
    if own is None:
        return math.nan
    if question.hidden:
        return (middle(own, "found") + 1) / (middle(other, "found") + 1)
    return middle(other, "rmse") / middle(own, "rmse")


def _verdicts(mine: Mapping[str, Any], others: Sides, questions: Sequence[Question]) -> str:
    lines = []
    for column, words in (
        ("advised", "as their documentation advises"),
        ("known", "with parameters known in hindsight"),
    ):
        won, close, lost = 0, 0, []
        for question in questions:
            rivals = [
                (name, found)
                for name, side in others.items()
                if (found := answered(side, question, column)) and (question.by or len(found["rmse"]) >= ENOUGH)
            ]
            if not rivals:
                continue
            ahead, name, found = min(
                ((_advantage(mine, question, found), name, found) for name, found in rivals), key=lambda one: one[0]
            )
            won, close = won + (ahead > CLOSE), close + (1 / CLOSE <= ahead <= CLOSE)
            if ahead < 1 / CLOSE:
                by = f"error {1 / ahead:.2g} times smaller"
                if question.hidden:
                    own = answered(mine, question, "default") or {}
                    by = f"{middle(found, 'found'):,.0f} keys against {middle(own, 'found'):,.0f}"
                lost.append(f"{question.name} ({name.rsplit(' ', 1)[0]}: {by})")
        text = f"Against the best of the others {words}: Evenhand is better in {won} questions, within 10% in {close}, worse in {len(lost)}"
        lines.append(text + (": " + "; ".join(lost) if lost else "") + ".")
    lines.append(f"Without groups a library counts here from {ENOUGH} runs on; there factors below 2 may be chance.")
    return "\n\n".join(lines)


def _errors(mine: Mapping[str, Any], others: Sides, questions: Iterable[Question]) -> str:
    rows = []
    for question in questions:
        own = answered(mine, question, "default") or {}
        unit = middle(own, "rmse")
        cells = [_pair(found, unit) for found in _cells(others, question)]
        rows.append([question.name, f"{unit:.3g}; 95% {_high(own) / unit:.2f}", *cells])
    return table(["question", "Evenhand", *_heads(others)], rows)


def _high(kept: Mapping[str, Any]) -> float:
    return float(np.quantile(kept["rmse"], 0.95))


def _pair(found: Mapping[str, Any] | None, unit: float) -> str:
    return "-" if found is None else f"{middle(found, 'rmse') / unit:.2g} / {_high(found) / unit:.2g}"


def _keys(mine: Mapping[str, Any], others: Sides, questions: Iterable[Question]) -> str:
    def cell(found: Mapping[str, Any] | None) -> str:
        if found is None:
            return "-"
        way = found["parameters"].get("selection")
        return f"{middle(found, 'found'):,.0f} ({middle(found, 'missing'):.0%})" + (f", {way}" if way else "")

    rows = [
        [question.name, cell(answered(mine, question, "default")), *(cell(found) for found in _cells(others, question))]
        for question in questions
    ]
    return table(["question", "Evenhand", *_heads(others)], rows)


def _seconds(mine: Mapping[str, Any], others: Sides, questions: Iterable[Question]) -> str:
    def cell(found: Mapping[str, Any] | None) -> str:
        if found is None:
            return "-"
        return (
            f"{middle(found, 'seconds'):.2f} ({middle(found, 'load'):.0f})"
            if "load" in found
            else f"{middle(found, 'seconds'):.2f} (?)"
        )

    names = [name.rsplit(" ", 1)[0] for name in others]
    rows = [
        [
            question.name,
            cell(answered(mine, question, "default")),
            *(cell(answered(side, question, "known")) for side in others.values()),
        ]
        for question in questions
    ]
    return table(["question", "Evenhand", *names], rows)

"""What people type into the page's forms, as a question; and CSV that a spreadsheet may open."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.statistics import STATISTICS

OFFERED = [name for name in STATISTICS if name not in ("ratio", "histogram", "top", "share")]
MOST_GUESSED = 1e12
"""People, or rows, that a forecast is made for."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|inf)")
_WHOLE_ROWS = ("count", "users")


def question_of(given: Mapping[str, str]) -> dict[str, Any]:
    """The form as a question, without the fields that its choices hide; what is wrong with it is said by the session, as everywhere."""
    ask = given.get("ask", "count")
    question: dict[str, Any] = {"ask": ask, "epsilon": given.get("epsilon", "").strip() or "0.1"}
    names = ["text"] if ask == "sql" else ["by"] if ask in _WHOLE_ROWS else ["column", "by"]
    for name in (*names, "delta"):
        if given.get(name, "").strip():
            question[name] = given[name].strip()
    if given.get("bounds", "").strip() and ask not in (*_WHOLE_ROWS, "distinct", "sql"):
        ends = given["bounds"].replace("to", " ").replace(",", " ").replace(":", " ").split()
        question["bounds"] = [number(end) for end in ends]
    if given.get("quantiles", "").strip() and ask == "quantiles":
        question["quantiles"] = [number(part) for part in given["quantiles"].replace(",", " ").split()]
    if given.get("keys", "").strip() and "by" in question:
        question["keys"] = _listed(given["keys"])
    return question


def number(text: str) -> float:
    """A number that somebody typed."""
    try:
        found = float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"{text[:40]!r} is not a number.")
    return found


def guess(given: Mapping[str, str], name: str) -> float | None:
    """A number of people or rows that somebody typed; None if nothing is there."""
    text = given.get(name, "").strip()
    if not text:
        return None
    found = number(text)
    if not 1 <= found <= MOST_GUESSED:
        raise UsageError(f"about how many {name}: {text[:40]!r}; expected a number from 1 to {MOST_GUESSED:.0e}.")
    return found


def _listed(text: str) -> list[str]:
    """Names with commas between them, on one line or several."""
    try:
        return [
            key.strip() for row in csv.reader(text.splitlines(), skipinitialspace=True) for key in row if key.strip()
        ]
    except csv.Error:
        raise UsageError(
            f"the names of the groups can't be read: {text[:40]!r}; expected names with commas between them."
        ) from None


def harmless(text: str) -> str:
    """CSV in which no cell is a formula for a spreadsheet; numbers stay as they are."""
    rows = list(csv.reader(io.StringIO(text)))
    out = io.StringIO()
    csv.writer(out).writerows([[f"'{cell}" if _formula(cell) else cell for cell in row] for row in rows])
    return out.getvalue()


def _formula(cell: str) -> bool:
    return cell[:1] in ("=", "+", "-", "@", "\t", "\r") and _NUMBER.fullmatch(cell) is None

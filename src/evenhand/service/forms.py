"""What people type into the page's forms, as a question; and CSV that a spreadsheet may open."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.statistics import STATISTICS

OFFERED = [name for name in STATISTICS if name not in ("ratio", "histogram", "top")]
TITLES = {
    "count": "Number of rows",
    "users": "Number of people",
    "sum": "Sum",
    "mean": "Average",
    "per_user_mean": "Average over people",
    "variance": "Variance",
    "std": "Standard deviation",
    "median": "Median",
    "quantiles": "Quantiles",
    "distinct": "Number of different values",
}


def question_of(given: Mapping[str, str]) -> dict[str, Any]:
    """The form as a question; what is wrong with it is said by the session, as everywhere."""
    question: dict[str, Any] = {"ask": given.get("ask", "count"), "epsilon": given.get("epsilon", "").strip() or "0.1"}
    for name in ("column", "by", "delta", "text"):
        if given.get(name, "").strip():
            question[name] = given[name].strip()
    if given.get("bounds", "").strip():
        ends = given["bounds"].replace("to", " ").replace(",", " ").replace(":", " ").split()
        question["bounds"] = [_number(end) for end in ends]
    if given.get("quantiles", "").strip() and question["ask"] == "quantiles":
        question["quantiles"] = [_number(part) for part in given["quantiles"].replace(",", " ").split()]
    if given.get("keys", "").strip():
        question["keys"] = [key.strip() for key in next(csv.reader([given["keys"]]))]
    return question


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is not a number.") from None


def harmless(text: str) -> str:
    """CSV in which no cell is a formula for a spreadsheet."""
    rows = list(csv.reader(io.StringIO(text)))
    out = io.StringIO()
    csv.writer(out).writerows([[f"'{cell}" if cell[:1] in "=+@\t\r" else cell for cell in row] for row in rows])
    return out.getvalue()

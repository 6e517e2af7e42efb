"""Questions, columns and budgets in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from evenhand.pages.pictures import budget_bar
from evenhand.pages.service.frame import NOTHING, amount, badge, grid, html, joined, when

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
    "profile": "People by number of rows",
}
_STANDINGS = {
    "waiting": ("waits for approval", "wait"),
    "approved": ("approved", "wait"),
    "denied": ("denied", "bad"),
    "paid": ("paid", "good"),
}
_KINDS = {"float": "number", "decimal": "number", "int": "whole number", "uint": "whole number", "string": "text"}


def question_words(question: Mapping[str, Any]) -> str:
    """A question as a line: what is asked, of which column, by which groups, then its other parameters."""
    ask = str(question.get("ask", ""))
    if ask == "sql":
        return _short(" ".join(str(question.get("text", "")).split()), 160)
    words = [f"{question.get('estimator')} of {question.get('label')}" if ask == "fit" else TITLES.get(ask, ask)]
    if question.get("column"):
        words.append(f"of {_plain(question['column'])}")
    if question.get("by"):
        words.append(f"by {_plain(question['by'])}")
    named = ("ask", "epsilon", "delta", "column", "by", "estimator", "label")
    rest = [f"{name} {_short(_plain(value), 60)}" for name, value in question.items() if name not in named]
    return " ".join(words) + (f" ({'; '.join(rest)})" if rest else "")


def titled(question: Mapping[str, Any]) -> tuple[str, Markup]:
    """A title for a page about a question, and the query below it if it is one in SQL."""
    if question.get("ask") != "sql":
        return question_words(question), NOTHING
    return "A query in SQL", html('<pre class="card">{}</pre>', question.get("text", ""))


def kind_words(kind: str) -> str:
    """The type of a column."""
    plain = kind.removeprefix("!").lower()
    return next((words for name, words in _KINDS.items() if plain.startswith(name)), plain)


def column_words(column: Mapping[str, Any]) -> str:
    """What is known of a column."""
    low, high = column.get("bounds") or (None, None)
    ends = [f"{name} {end:g}" for name, end in (("from", low), ("to", high)) if end is not None]
    unit, keys = column.get("unit"), column.get("keys", [])
    listed = ", ".join(keys[:12]) + (f" and {len(keys) - 12} more" if len(keys) > 12 else "")
    parts = [
        column.get("description"),
        " ".join([*ends, *([unit] if unit else [])]),
        f"one of {listed}" if keys else "",
    ]
    return "; ".join(part for part in parts if part) or "nothing is stated"


def columns_table(described: Mapping[str, Any]) -> Markup:
    """The columns of a table, with what they mean."""
    rows = []
    for column in described["columns"]:
        whose = column["name"] in described["user"]
        meaning = "names the person; answers protect all rows of one person together" if whose else column_words(column)
        rows.append([html("<code>{}</code>", column["name"]), kind_words(column["type"]), meaning])
    return grid(f"Columns of {described['name']}", ["column", "type", "meaning"], rows)


def questions_table(asked: Sequence[Mapping[str, Any]], *, names: bool) -> Markup:
    """What was asked, newest first, each with a link to its answer."""
    if not asked:
        return Markup("<p>Nothing was asked yet.</p>")
    head = ["time (UTC)", "question", "table", *(["asked by"] if names else []), "cost", "standing"]
    rows = [
        [
            when(one["time"]),
            html('<a href="/answers/{}">{}</a>', one["id"], question_words(one["question"])),
            one["table"],
            *([one["analyst"]] if names else []),
            amount(one["cost"]),
            standing(one),
        ]
        for one in sorted(asked, key=lambda one: one["time"], reverse=True)
    ]
    return grid("Questions", head, rows)


def standing(one: Mapping[str, Any]) -> Markup:
    """Where a question stands, and who decided it."""
    text, kind = _STANDINGS.get(one["standing"], (one["standing"], "plain"))
    who = one.get("decided_by")
    by = html(" <span>by {}</span>", who) if who and one["standing"] == "denied" else NOTHING
    approved = html(" <span>approved by {}</span>", who) if who and one["standing"] == "paid" else NOTHING
    return badge(text, kind) + by + approved


def purses(listed: Sequence[Mapping[str, Any]], cost: str = "0") -> Markup:
    """Budgets with what is spent of each, and what a question would take."""
    return joined(_purse(one, cost) for one in listed)


def _purse(one: Mapping[str, Any], cost: str) -> Markup:
    total, spent, left = (one[name] for name in ("total", "spent", "left"))
    asked = float(cost)
    words = f"{one['name']}: ε = {spent['epsilon']} of {total['epsilon']} is spent" + (
        f", this question takes ε = {cost}" if asked else ""
    )
    bar = Markup(budget_bar(float(spent["epsilon"]), asked, float(total["epsilon"]), words))
    rare = f"; δ = {left['delta']} of {total['delta']} left" if total["delta"] != "0" else ""
    return html(
        '<div class="budget"><p class="row"><span>{}</span><b>ε = {} left</b></p>{}<p class="note">of ε = {}{}</p></div>',
        one["name"], left["epsilon"], bar, total["epsilon"], rare,
    )  # fmt: skip


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"

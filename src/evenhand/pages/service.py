"""The pages of a keeper's server: forms and tables, no script. Takes plain data, as the server's JSON has it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from evenhand.pages.style import _STYLE, lines, table, warning

if TYPE_CHECKING:
    from evenhand.release import Release

_FORMS = """
.evenhand nav { display: flex; gap: 1rem; flex-wrap: wrap; align-items: center; border-bottom: 1px solid #ddd; padding-bottom: .5rem; }
.evenhand nav form { margin-left: auto; }
.evenhand label { display: block; margin: .7rem 0; }
.evenhand label span { display: block; color: #555; font-size: .9rem; }
.evenhand input, .evenhand select, .evenhand textarea { font: inherit; padding: .4rem; width: 100%; box-sizing: border-box; border: 1px solid #767676; border-radius: .3rem; }
.evenhand button { font: inherit; padding: .5rem 1rem; border: 1px solid #1f4e79; border-radius: .3rem; background: #1f4e79; color: #fff; }
.evenhand button.second { background: #fff; color: #1f4e79; }
.evenhand :focus-visible { outline: 3px solid #f0a202; outline-offset: 1px; }
.evenhand .side { display: flex; gap: .6rem; flex-wrap: wrap; }
.evenhand img { max-width: 100%; height: auto; }
.evenhand pre { white-space: pre-wrap; }
"""
STYLE = _STYLE + _FORMS
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
_RELEASE_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}' 'sha256-{_RELEASE_DIGEST}'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy: this style, pictures and forms of this server, and nothing else; no script at all."""


def whole(title: str, body: str, csrf: str = "", who: str = "") -> str:
    """A page, with who is signed in."""
    top = ""
    if who:
        out = form("/out", [], "Sign out", csrf, second=True)
        top = f'<nav aria-label="Main"><a href="/">Home</a><span>Signed in as {escape(who)}</span>{out}</nav>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)} · Evenhand</title><style>{STYLE}</style></head><body class="evenhand">'
        f"{top}<main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def form(action: str, parts: Iterable[str], button: str, csrf: str, *, second: bool = False) -> str:
    """A form that posts, with what protects it from other sites."""
    hidden = field_hidden("csrf", csrf)
    look = ' class="second"' if second else ""
    return f'<form method="post" action="{escape(action)}">{hidden}{"".join(parts)}<button{look}>{escape(button)}</button></form>'


def field_hidden(name: str, value: str) -> str:
    """A part of a form that nobody sees."""
    return f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'


def field_text(name: str, label: str, help: str = "", value: str = "", *, kind: str = "text") -> str:
    """A line to type in."""
    more = f"<span>{escape(help)}</span>" if help else ""
    return (
        f'<label>{escape(label)}{more}<input type="{kind}" name="{escape(name)}" value="{escape(value)}" autocomplete="off">'
        "</label>"
    )


def field_area(name: str, label: str, help: str = "", value: str = "") -> str:
    """Lines to type in."""
    return (
        f"<label>{escape(label)}<span>{escape(help)}</span>"
        f'<textarea name="{escape(name)}" rows="4" spellcheck="false">{escape(value)}</textarea></label>'
    )


def field_choice(name: str, label: str, choices: Sequence[tuple[str, str]], chosen: str = "", help: str = "") -> str:
    """A list to choose from."""
    more = f"<span>{escape(help)}</span>" if help else ""
    options = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(text)}</option>'
        for value, text in choices
    )
    return f'<label>{escape(label)}{more}<select name="{escape(name)}">{options}</select></label>'


def sign_in(message: str = "") -> str:
    """The page for somebody who is not signed in."""
    parts = [field_text("token", "Token", "From the keeper of the data.", kind="password")]
    return whole(
        "Ask about the data, not about anybody in it",
        f"{warning(message)}{form('/in', parts, 'Sign in', '')}<p>Questions are answered with noise, so that no answer depends on "
        "any one person. What an answer costs is shown before it is paid for.</p>",
    )


def not_done(message: str, csrf: str = "", who: str = "") -> str:
    """Why nothing happened."""
    return whole("Not done", f'{warning(message)}<p><a href="/">Back</a></p>', csrf, who)


def home(
    tables: Sequence[Mapping[str, Any]],
    budget: Mapping[str, Any],
    asked: Sequence[Mapping[str, Any]],
    csrf: str,
    who: str,
) -> str:
    """What an analyst sees first: tables, what is left, what was asked."""
    parts = "".join(
        f"<h2>{escape(one['name'])}</h2><p>{escape(one['description'])}</p>{columns_table(one)}"
        f'<p><a href="/ask?table={escape(one["name"])}">Ask about {escape(one["name"])}</a></p>'
        for one in tables
    )
    body = f"{parts}<h2>Budget</h2>{budget_lines(budget)}<h2>Asked before</h2>{questions_table(asked, names=False)}"
    return whole("Ask", body, csrf, who)


def overview(
    asked: Sequence[Mapping[str, Any]], populations: Mapping[str, Mapping[str, str]], csrf: str, who: str
) -> str:
    """What the keeper sees: what waits for approval, budgets, questions."""
    decisions = "".join(_decision(one, csrf) for one in asked if one["standing"] == "waiting")
    budgets = "".join(f"<h3>{escape(name)}</h3>{lines(list(rows.items()))}" for name, rows in populations.items())
    body = (
        f"<h2>Waiting for your approval</h2>{decisions or '<p>Nothing waits.</p>'}<h2>Budgets</h2>{budgets}"
        f"<h2>Questions</h2>{questions_table(asked, names=True)}"
    )
    return whole("The keeper's view", body, csrf, who)


def _decision(one: Mapping[str, Any], csrf: str) -> str:
    facts = lines([("by", one["analyst"]), ("table", one["table"]), ("cost", _amount(one["cost"]))])
    buttons = "".join(
        form(
            "/decide", [field_hidden("id", one["id"]), field_hidden("approve", value)], text, csrf, second=value == "no"
        )
        for value, text in (("yes", "Approve"), ("no", "Deny"))
    )
    return f'<h3>{escape(in_words(one["question"]))}</h3>{facts}<div class="side">{buttons}</div>'


def ask(described: Mapping[str, Any], offered: Sequence[tuple[str, str]], csrf: str, who: str) -> str:
    """The forms to build a question about a table: by choosing, and in SQL."""
    name = described["name"]
    columns = [("", "—"), *((column["name"], column["name"]) for column in described["columns"])]
    price = [
        field_text("epsilon", "ε", "What to spend; a smaller one protects more.", "0.1"),
        field_text("delta", "δ", "For hidden group names, such as 1e-6."),
    ]
    parts = [
        field_hidden("table", name),
        field_choice("ask", "What", offered),
        field_choice("column", "Of which column", columns, help="For counts, leave it out."),
        field_text(
            "bounds", "Smallest and largest value", "Such as 0 to 240; left out, they are as known, or found privately."
        ),
        field_text("quantiles", "Quantiles", "For quantiles, such as 0.5, 0.9."),
        field_choice("by", "By group", columns),
        field_text("keys", "Group names", "If they are public: such as drama, comedy. Hidden names need δ."),
        *price,
    ]
    query = field_area("text", "Query", "Such as SELECT genre, COUNT(*) FROM table GROUP BY genre")
    sql = [field_hidden("table", name), field_hidden("ask", "sql"), query, *price]
    body = (
        f"{columns_table(described)}<h2>By choosing</h2>{form('/price', parts, 'Show the price', csrf)}"
        f"<h2>In SQL</h2>{form('/price', sql, 'Show the price', csrf)}"
    )
    return whole(f"Ask about {name}", body, csrf, who)


def price(preview: Mapping[str, Any], table: str, key: str, question: Mapping[str, Any], csrf: str, who: str) -> str:
    """What a question would cost, and the button that pays for it."""
    hidden = [field_hidden("table", table), field_hidden("key", key), field_hidden("question", json.dumps(question))]
    pay = form("/pay", hidden, f"Pay ε = {question['epsilon']} and ask", csrf)
    enough = pay if preview["affordable"] else warning("This is more than your budget, or everybody's, holds.")
    again = f'<p><a href="/ask?table={escape(table)}">Another question</a></p>'
    return whole("What it would cost", f"<pre>{escape(preview['text'])}</pre>{enough}{again}", csrf, who)


def answer(asked: Mapping[str, Any], release: Release | None, csrf: str, who: str) -> str:
    """A question with its answer, or when that appears."""
    title, place = in_words(asked["question"]), f"/answers/{escape(asked['id'])}"
    if release is None:
        ready = asked.get("ready")
        text = f"The answer appears at {ready[:19]} UTC." if ready else f"This question is {asked['standing']}."
        return whole(title, f"<p>{escape(text)}</p>", csrf, who)
    links = "".join(f'<a href="{place}/{kind}">{kind.upper()}</a>' for kind in ("csv", "json", "html"))
    picture = ""
    if release.grouped and len(release.value):
        picture = f'<figure><img src="{place}/svg" alt="The groups with their 95% intervals"></figure>'
    shown = release._repr_html_().partition("</style>")[2].removesuffix("</section>")
    return whole(title, f'{shown}{picture}<h2>Download</h2><p class="side">{links}</p>', csrf, who)


def budget_lines(budget: Mapping[str, Any]) -> str:
    """What an analyst has left, and everybody together."""
    named = [("yours, in all", _amount(budget["yours"]["total"]))]
    named += [("spent by you", _amount(one)) for one in budget["yours"]["spent"]]
    named += [
        ("left for everybody", f"{_amount(one['remaining'])} of {_amount(one['total'])}")
        for one in budget["populations"]
    ]
    return lines(named)


def questions_table(asked: Sequence[Mapping[str, Any]], *, names: bool) -> str:
    """What was asked, newest first, each with a link to its answer."""
    if not asked:
        return "<p>Nothing was asked yet.</p>"
    head = ["question", *(["by"] if names else []), "cost", "standing", "time", ""]
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in _asked_cells(one, names))
        + f'<td><a href="/answers/{escape(one["id"])}">open</a></td></tr>'
        for one in reversed(asked)
    )
    heading = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return f'<div class="wide"><table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table></div>'


def columns_table(described: Mapping[str, Any]) -> str:
    """The columns of a table, with what is known about them."""
    rows = [[column["name"], column["type"], _known(column)] for column in described["columns"]]
    return table(["column", "type", "what is known"], rows)


def _known(column: Mapping[str, Any]) -> str:
    low, high = column.get("bounds") or (None, None)
    ends = [f"{name} {end:g}" for name, end in (("from", low), ("to", high)) if end is not None]
    unit = column.get("unit")
    keys = ", ".join(column.get("keys", [])[:12])
    parts = [column.get("description"), " ".join([*ends, *([unit] if unit else [])]), f"one of {keys}" if keys else ""]
    return "; ".join(part for part in parts if part)


def in_words(question: Mapping[str, Any]) -> str:
    """A question as a line: what is asked, then its parameters."""
    rest = {name: value for name, value in question.items() if name not in ("ask", "epsilon", "delta")}
    return " ".join([str(question.get("ask", "")), *(f"{name}={_short(value)}" for name, value in rest.items())])


def _asked_cells(one: Mapping[str, Any], names: bool) -> list[str]:
    question = f"{in_words(one['question'])} ({one['table']})"
    return [question, *([one["analyst"]] if names else []), _amount(one["cost"]), one["standing"], one["time"][:16]]


def _amount(one: Mapping[str, str]) -> str:
    return f"ε = {one['epsilon']}" + (f", δ = {one['delta']}" if one["delta"] != "0" else "")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

"""The pages of a keeper's server: forms and tables, no script. Takes plain data, as the server's JSON has it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from evenhand.pages.style import _STYLE, lines, table, warning

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

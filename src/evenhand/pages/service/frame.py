"""The frame of every page, and the parts that several pages share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from evenhand.pages.service.look import ICON, STYLE

Links = Sequence[tuple[str, str]]

ANALYST: Links = (("/", "Tables"), ("/history", "History"))
KEEPER: Links = (("/", "Overview"), ("/history", "Questions"), ("/ledgers", "Ledgers and hand-outs"))

_LOOKS = {"cost": "amount", "ε spent": "amount", "ε left": "amount", "time (UTC)": "time"}
_LONGEST_WORD = 24
_TAGS = re.compile("<[^>]*>")


class Person:
    """Who looks at a page: a name, the token that forms carry against other sites, and the pages there are.

    Args:
        name: who is signed in; empty for nobody.
        csrf: for forms.
        links: the pages in the header.
    """

    def __init__(self, name: str = "", csrf: str = "", links: Links = ANALYST) -> None:
        self.name, self.csrf, self.links = name, csrf, links


NOBODY = Person()


def whole(title: str, body: str, person: Person = NOBODY, *, lead: str = "", here: str = "") -> str:
    """A page, with who is signed in."""
    inside = ""
    if person.name:
        links = "".join(
            f'<a href="{place}"{" aria-current=page" if place == here else ""}>{escape(text)}</a>'
            for place, text in person.links
        )
        out = form("/out", [], "Sign out", person, look="second small")
        inside = f'<nav aria-label="Main">{links}</nav><div class="who"><span>Signed in as {escape(person.name)}</span>{out}</div>'
    below = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="{ICON}">'
        f"<title>{escape(title)} · Evenhand</title><style>{STYLE}</style></head><body>"
        f'<a class="skip" href="#main">Skip to the content</a><header><div><b>Evenhand</b>{inside}</div></header>'
        f'<main id="main"><h1>{escape(title)}</h1>{below}{body}</main></body></html>\n'
    )


def card(title: str, body: str) -> str:
    """A part of a page."""
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return f'<section class="card">{heading}{body}</section>'


def alert(text: str) -> str:
    """What went wrong, read out at once by a screen reader; nothing if nothing did."""
    return f'<p class="warning" role="alert">{escape(text)}</p>' if text else ""


def badge(text: str, kind: str = "plain") -> str:
    """A word that says where something stands."""
    return f'<span class="badge {kind}">{escape(text)}</span>'


def facts(named: Iterable[tuple[str, str]]) -> str:
    """Sentences, each beside its name."""
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in named)
    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def grid(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already, which becomes a list on a phone."""
    looks = [_LOOKS.get(name, "") for name in head]
    heading = "".join(
        f'<th scope="col" class="{look}">{escape(name)}</th>' for name, look in zip(head, looks, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{look}{_breaking(cell)}" data-label="{escape(name)}">{cell}</td>'
            for name, look, cell in zip(head, looks, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f'<table class="stack" aria-label="{escape(caption)}"><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>'


def _breaking(cell: str) -> str:
    """Words that would push a table off the screen may be broken."""
    return " long" if any(len(word) > _LONGEST_WORD for word in _TAGS.sub(" ", cell).split()) else ""


def form(
    action: str, parts: Iterable[str], button: str, person: Person, *, look: str = "", builder: bool = False
) -> str:
    """A form that posts, with what protects it from other sites."""
    kind = f' class="{look}"' if look else ""
    whose = ' class="builder"' if builder else ""
    return (
        f'<form method="post" action="{escape(action)}"{whose}>{hidden("csrf", person.csrf)}{"".join(parts)}'
        f"<button{kind}>{escape(button)}</button></form>"
    )


def hidden(name: str, value: str) -> str:
    """A part of a form that nobody sees."""
    return f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'


def field(name: str, label: str, help: str = "", value: str = "", *, kind: str = "text", look: str = "") -> str:
    """A line to type in."""
    typed = f'<input type="{kind}" name="{escape(name)}" value="{escape(value)}" autocomplete="off">'
    return _labelled(label, help, typed, look)


def area(name: str, label: str, help: str = "", value: str = "") -> str:
    """Lines to type in."""
    typed = f'<textarea name="{escape(name)}" rows="6" spellcheck="false">{escape(value)}</textarea>'
    return _labelled(label, help, typed)


def choice(
    name: str, label: str, choices: Sequence[tuple[str, str]], chosen: str = "", help: str = "", look: str = ""
) -> str:
    """A list to choose from."""
    options = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(text)}</option>'
        for value, text in choices
    )
    return _labelled(label, help, f'<select name="{escape(name)}">{options}</select>', look)


def _labelled(label: str, help: str, inside: str, look: str = "") -> str:
    more = f"<span>{escape(help)}</span>" if help else ""
    kind = f' class="{look}"' if look else ""
    return f"<label{kind}>{escape(label)}{more}{inside}</label>"


def amount(one: Mapping[str, Any]) -> str:
    """An ε and a δ."""
    return f"ε = {one['epsilon']}" + (f", δ = {one['delta']}" if one["delta"] != "0" else "")


def when(time: str) -> str:
    """A moment, to the minute."""
    return f"{time[:10]} {time[11:16]}"

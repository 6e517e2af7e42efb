"""The frame of every page, and the parts that several pages share. Templates escape what is put into them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString

from markupsafe import Markup

from evenhand.pages.service.look import ICON, STYLE

Links = Sequence[tuple[str, str]]

ANALYST: Links = (("/", "Tables"), ("/history", "History"))
KEEPER: Links = (("/", "Overview"), ("/history", "Questions"), ("/ledgers", "Ledgers and hand-outs"))

_LOOKS = {"cost": "amount", "ε spent": "amount", "ε left": "amount", "time (UTC)": "time"}
_LONGEST_WORD = 24
NOTHING = Markup()
CURRENT = Markup(" aria-current=page")
_PAGE = Markup(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="icon" href="{icon}">'
    "<title>{title} · Evenhand</title><style>{style}</style></head><body>"
    '<a class="skip" href="#main">Skip to the content</a><header><div><b>Evenhand</b>{inside}</div></header>'
    '<main id="main"><h1>{title}</h1>{lead}{body}</main></body></html>\n'
)


def html(template: LiteralString, *parts: object) -> Markup:
    """A template with its parts in it; a part that is not HTML already is escaped."""
    return Markup(template).format(*parts)


def joined(parts: Iterable[Markup]) -> Markup:
    """Parts one after the other."""
    return NOTHING.join(parts)


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


def whole(title: str, body: Markup, person: Person = NOBODY, *, lead: str = "", here: str = "") -> str:
    """A page, with who is signed in."""
    inside = Markup()
    if person.name:
        links = joined(
            html('<a href="{}"{}>{}</a>', place, CURRENT if place == here else NOTHING, text)
            for place, text in person.links
        )
        out = form("/out", [], "Sign out", person, look="second small")
        inside = html(
            '<nav aria-label="Main">{}</nav><div class="who"><span>Signed in as {}</span>{}</div>',
            links,
            person.name,
            out,
        )
    return _PAGE.format(
        icon=ICON, title=title, style=Markup(STYLE), inside=inside,
        lead=html('<p class="lead">{}</p>', lead) if lead else NOTHING, body=body,
    )  # fmt: skip


def card(title: str, body: Markup) -> Markup:
    """A part of a page."""
    return html('<section class="card">{}{}</section>', html("<h2>{}</h2>", title) if title else NOTHING, body)


def alert(text: str) -> Markup:
    """What went wrong, read out at once by a screen reader; nothing if nothing did."""
    return html('<p class="warning" role="alert">{}</p>', text) if text else NOTHING


def badge(text: str, kind: str = "plain") -> Markup:
    """A word that says where something stands."""
    return html('<span class="badge {}">{}</span>', kind, text)


def facts(named: Iterable[tuple[str, str]]) -> Markup:
    """Sentences, each beside its name."""
    rows = joined(html('<tr><th scope="row">{}</th><td>{}</td></tr>', name, text) for name, text in named)
    return html('<table class="facts"><tbody>{}</tbody></table>', rows)


def grid(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A table, which becomes a list on a phone; a cell is text, or HTML already."""
    looks = [_LOOKS.get(name, "") for name in head]
    heading = joined(
        html('<th scope="col" class="{}">{}</th>', look, name) for name, look in zip(head, looks, strict=True)
    )
    body = joined(
        html(
            "<tr>{}</tr>",
            joined(
                html('<td class="{}{}" data-label="{}">{}</td>', look, _breaking(cell), name, cell)
                for name, look, cell in zip(head, looks, row, strict=True)
            ),
        )
        for row in rows
    )
    return html(
        '<table class="stack" aria-label="{}"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>',
        caption,
        heading,
        body,
    )


def _breaking(cell: str) -> str:
    """Words that would push a table off the screen may be broken."""
    text = cell.striptags() if isinstance(cell, Markup) else cell
    return " long" if any(len(word) > _LONGEST_WORD for word in text.split()) else ""


def form(
    action: str, parts: Iterable[Markup], button: str, person: Person, *, look: str = "", builder: bool = False
) -> Markup:
    """A form that posts, with what protects it from other sites."""
    return html(
        '<form method="post" action="{}"{}>{}{}<button{}>{}</button></form>',
        action, _class("builder" if builder else ""), hidden("csrf", person.csrf), joined(parts), _class(look), button,
    )  # fmt: skip


def hidden(name: str, value: str) -> Markup:
    """A part of a form that nobody sees."""
    return html('<input type="hidden" name="{}" value="{}">', name, value)


def field(name: str, label: str, help: str = "", value: str = "", *, kind: str = "text", look: str = "") -> Markup:
    """A line to type in."""
    typed = html('<input type="{}" name="{}" value="{}" autocomplete="off">', kind, name, value)
    return _labelled(label, help, typed, look)


def area(name: str, label: str, help: str = "", value: str = "") -> Markup:
    """Lines to type in."""
    return _labelled(label, help, html('<textarea name="{}" rows="6" spellcheck="false">{}</textarea>', name, value))


def choice(
    name: str, label: str, choices: Sequence[tuple[str, str]], chosen: str = "", help: str = "", look: str = ""
) -> Markup:
    """A list to choose from."""
    options = joined(
        html('<option value="{}"{}>{}</option>', value, Markup(" selected") if value == chosen else NOTHING, text)
        for value, text in choices
    )
    return _labelled(label, help, html('<select name="{}">{}</select>', name, options), look)


def _labelled(label: str, help: str, inside: Markup, look: str = "") -> Markup:
    more = html("<span>{}</span>", help) if help else NOTHING
    return html("<label{}>{}{}{}</label>", _class(look), label, more, inside)


def _class(look: str) -> Markup:
    return html(' class="{}"', look) if look else NOTHING


def amount(one: Mapping[str, Any]) -> str:
    """An ε and a δ."""
    return f"ε = {one['epsilon']}" + (f", δ = {one['delta']}" if one["delta"] != "0" else "")


def when(time: str) -> str:
    """A moment, to the minute."""
    return f"{time[:10]} {time[11:16]}"

"""What people see first: signing in, the tables, the history, and why something was not done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from evenhand.pages.service.frame import NOBODY, NOTHING, Person, alert, card, field, form, html, joined, whole
from evenhand.pages.service.words import columns_table, purses, questions_table

_PROTECTS = {
    "presence": "An answer does not show whether any one person is in the table.",
    "values": "An answer does not show any value of any one person; who is in the table is treated as public.",
    "labels": "An answer does not show any label of any one person; who is in the table is treated as public.",
}
_RECENT = 8


def sign_in(message: str = "") -> str:
    """The page for somebody who is not signed in."""
    parts = [field("token", "Token", "From the keeper of the data.", kind="password")]
    body = html(
        '<div class="narrow">{}{}</div><p class="note">What an answer costs is shown before it is paid for.</p>',
        alert(message), card("", form("/in", parts, "Sign in", NOBODY)),
    )  # fmt: skip
    lead = "Every answer carries noise, so that it depends on no single person, and an interval that says how far it can be trusted."
    return whole("Ask about the data, not about anybody in it", body, lead=lead)


def not_done(message: str, person: Person = NOBODY) -> str:
    """Why nothing happened."""
    return whole("Not done", alert(message) + Markup('<p><a class="button second" href="/">Back</a></p>'), person)


def home(
    tables: Sequence[Mapping[str, Any]],
    budgets: Sequence[Mapping[str, Any]],
    asked: Sequence[Mapping[str, Any]],
    person: Person,
) -> str:
    """Tables, what is left, what was asked."""
    offered = joined(_table(one) for one in tables) or card(
        "", Markup("<p>There is no table for you yet; ask the keeper.</p>")
    )
    recent = sorted(asked, key=lambda one: one["time"])[-_RECENT:]
    more = Markup('<p><a href="/history">All questions</a></p>') if len(asked) > _RECENT else NOTHING
    side = joined(card(f"Budget: {one['population']}", budget_card(one)) for one in budgets)
    body = html('<div class="columns"><div>{}</div><div>{}</div></div>', offered, side)
    body += card("Asked before", questions_table(recent, names=False) + more)
    return whole(
        "Tables", body, person, here="/", lead="Pick a table, build a question, and see its price before you pay."
    )


def history(asked: Sequence[Mapping[str, Any]], person: Person, *, names: bool, earlier: str = "") -> str:
    """A page of what was asked, with a link to those before the question ``earlier``."""
    title = "Questions" if names else "History"
    lead = (
        "What was asked, by whom, and at which price."
        if names
        else "What you asked, and at which price. Opening an answer again is free."
    )
    link = html('<p><a href="/history?before={}">Earlier questions</a></p>', quote(earlier))
    more = link if earlier else NOTHING
    return whole(title, card("", questions_table(asked, names=names) + more), person, here="/history", lead=lead)


def budget_card(one: Mapping[str, Any], cost: str = "0") -> Markup:
    """What an analyst and everybody have left for one group of people."""
    notes = joined(html('<p class="note">{}</p>', note) for note in one["notes"])
    return purses(one["purses"], cost) + notes


def _table(one: Mapping[str, Any]) -> Markup:
    name, says = one["name"], html("<p>{}</p>", one["description"]) if one["description"] else NOTHING
    ask = html('<p class="side"><a class="button" href="/ask?table={}">Ask about {}</a></p>', quote(name), name)
    return card(name, says + html('<p class="note">{}</p>', _PROTECTS[one["protects"]]) + columns_table(one) + ask)

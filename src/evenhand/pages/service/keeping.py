"""The keeper's view: what waits for approval, budgets, tokens, ledgers and what can be handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from evenhand.pages.service.frame import (
    NOTHING,
    Person,
    amount,
    badge,
    card,
    facts,
    form,
    grid,
    hidden,
    html,
    joined,
    when,
    whole,
)
from evenhand.pages.service.words import purses, question_words, questions_table

_RECENT = 10
_EVENTS = 200
HANDED_OUT = {
    "compliance.html": "Compliance page",
    "registry.yaml": "Registry entry",
    "events.csv": "Events as CSV",
    "events.jsonl": "Events as JSON lines",
}


def overview(
    asked: Sequence[Mapping[str, Any]],
    populations: Sequence[Mapping[str, Any]],
    tokens: Sequence[Mapping[str, Any]],
    person: Person,
) -> str:
    """What waits for approval, budgets, tokens, the latest questions."""
    waiting = [one for one in asked if one["standing"] == "waiting"]
    decisions = joined(_decision(one, person) for one in waiting) or Markup("<p>Nothing waits.</p>")
    budgets = joined(card(f"Budget: {one['name']}", _budget(one)) for one in populations)
    recent = sorted(asked, key=lambda one: one["time"])[-_RECENT:]
    waits = card(f"Waiting for your approval ({len(waiting)})", decisions)
    body = html('<div class="columns"><div>{}</div><div>{}</div></div>', waits, budgets)
    body += card("Latest questions", questions_table(recent, names=True)) + card("Tokens", _tokens(tokens, person))
    return whole(
        "The keeper's view",
        body,
        person,
        here="/",
        lead="Decisions are made on the question and its price; nothing is read before.",
    )


def _decision(one: Mapping[str, Any], person: Person) -> Markup:
    told = [
        ("asked by", one["analyst"]),
        ("table", one["table"]),
        ("cost", amount(one["cost"])),
        ("since", f"{when(one['time'])} UTC"),
    ]
    buttons = joined(
        form("/decide", [hidden("id", one["id"]), hidden("approve", value)], text, person, look=look)
        for value, text, look in (("yes", "Approve", ""), ("no", "Deny", "second"))
    )
    return html('<h3>{}</h3>{}<div class="side">{}</div>', question_words(one["question"]), facts(told), buttons)


def _budget(one: Mapping[str, Any]) -> Markup:
    rows = [[each["name"], each["spent"]["epsilon"], each["left"]["epsilon"]] for each in one["analysts"]]
    shares = grid(f"Analysts of {one['name']}", ["analyst", "ε spent", "ε left"], rows) if rows else NOTHING
    return purses(one["purses"]) + shares


def _tokens(tokens: Sequence[Mapping[str, Any]], person: Person) -> Markup:
    rows = [
        [
            one["name"],
            one["role"],
            when(one["created"]),
            when(one["expires"]),
            badge("revoked", "bad")
            if one["revoked"]
            else form("/revoke", [hidden("id", one["id"])], "Revoke", person, look="second small"),
        ]
        for one in reversed(tokens)
    ]
    return grid("Tokens", ["for", "role", "made (UTC)", "expires (UTC)", "state"], rows)


def ledgers(populations: Sequence[Mapping[str, Any]], person: Person, verified: str = "") -> str:
    """Each ledger: what it promises, whether its history is whole, its events, and what can be handed out."""
    body = html('<p class="card" role="status">{} {}</p>', badge("whole", "good"), verified) if verified else NOTHING
    return whole(
        "Ledgers and hand-outs",
        body + joined(_ledger(one, person) for one in populations),
        person,
        here="/ledgers",
        lead="An event is written before its answer is drawn, and holds the hash of the one before it.",
    )


def _ledger(one: Mapping[str, Any], person: Person) -> Markup:
    place = f"/ledgers/{one['number']}"
    files = joined(
        html('<a class="button second" download href="{}/{}">{}</a>', place, name, text)
        for name, text in HANDED_OUT.items()
    )
    check = form("/verify", [hidden("number", str(one["number"]))], "Verify the history", person)
    rows = [
        [
            str(event["number"]),
            when(event["time"]),
            event["what"],
            event.get("who", ""),
            amount(event),
        ]
        for event in reversed(one["events"][-_EVENTS:])
    ]
    events = grid(f"Events of {one['name']}", ["number", "time (UTC)", "what", "asked by", "cost"], rows)
    more = (
        html('<p class="note">The latest {} of {}; the files hold all.</p>', _EVENTS, len(one["events"]))
        if len(one["events"]) > _EVENTS
        else NOTHING
    )
    told = [("protects", one["protects"]), ("history", f"{len(one['events'])} events; head {one['head'][:16]}")]
    listed = events + more if rows else Markup("<p>Nothing was released yet.</p>")
    side = html('<div class="side">{}{}</div><h3>Events</h3>', check, files if rows else NOTHING)
    return card(one["name"], purses(one["purses"]) + facts(told) + side + listed)

"""The keeper's view: what waits for approval, budgets, tokens, ledgers and what can be handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from evenhand.pages.service.frame import Person, amount, badge, card, facts, form, grid, hidden, when, whole
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
    decisions = "".join(_decision(one, person) for one in waiting) or "<p>Nothing waits.</p>"
    budgets = "".join(card(f"Budget: {one['name']}", _budget(one)) for one in populations)
    recent = sorted(asked, key=lambda one: one["time"])[-_RECENT:]
    waits = card(f"Waiting for your approval ({len(waiting)})", decisions)
    body = (
        f'<div class="columns"><div>{waits}</div><div>{budgets}</div></div>'
        f"{card('Latest questions', questions_table(recent, names=True))}{card('Tokens', _tokens(tokens, person))}"
    )
    return whole(
        "The keeper's view",
        body,
        person,
        here="/",
        lead="Decisions are made on the question and its price; nothing is read before.",
    )


def _decision(one: Mapping[str, Any], person: Person) -> str:
    told = [
        ("asked by", one["analyst"]),
        ("table", one["table"]),
        ("cost", amount(one["cost"])),
        ("since", f"{when(one['time'])} UTC"),
    ]
    buttons = "".join(
        form("/decide", [hidden("id", one["id"]), hidden("approve", value)], text, person, look=look)
        for value, text, look in (("yes", "Approve", ""), ("no", "Deny", "second"))
    )
    return f'<h3>{escape(question_words(one["question"]))}</h3>{facts(told)}<div class="side">{buttons}</div>'


def _budget(one: Mapping[str, Any]) -> str:
    rows = [
        [escape(each["name"]), escape(each["spent"]["epsilon"]), escape(each["left"]["epsilon"])]
        for each in one["analysts"]
    ]
    shares = grid(f"Analysts of {one['name']}", ["analyst", "ε spent", "ε left"], rows) if rows else ""
    return purses(one["purses"]) + shares


def _tokens(tokens: Sequence[Mapping[str, Any]], person: Person) -> str:
    rows = [
        [
            escape(one["name"]),
            escape(one["role"]),
            escape(when(one["created"])),
            escape(when(one["expires"])),
            badge("revoked", "bad")
            if one["revoked"]
            else form("/revoke", [hidden("id", one["id"])], "Revoke", person, look="second small"),
        ]
        for one in reversed(tokens)
    ]
    return grid("Tokens", ["for", "role", "made (UTC)", "expires (UTC)", "state"], rows)


def ledgers(populations: Sequence[Mapping[str, Any]], person: Person, verified: str = "") -> str:
    """Each ledger: what it promises, whether its history is whole, its events, and what can be handed out."""
    body = f'<p class="card" role="status">{badge("whole", "good")} {escape(verified)}</p>' if verified else ""
    return whole(
        "Ledgers and hand-outs",
        body + "".join(_ledger(one, person) for one in populations),
        person,
        here="/ledgers",
        lead="An event is written before its answer is drawn, and holds the hash of the one before it.",
    )


def _ledger(one: Mapping[str, Any], person: Person) -> str:
    place = f"/ledgers/{one['number']}"
    files = "".join(
        f'<a class="button second" download href="{place}/{name}">{escape(text)}</a>'
        for name, text in HANDED_OUT.items()
    )
    check = form("/verify", [hidden("number", str(one["number"]))], "Verify the history", person)
    rows = [
        [
            str(event["number"]),
            escape(when(event["time"])),
            escape(event["what"]),
            escape(event.get("who", "")),
            amount(event),
        ]
        for event in reversed(one["events"][-_EVENTS:])
    ]
    events = grid(f"Events of {one['name']}", ["number", "time (UTC)", "what", "asked by", "cost"], rows)
    more = (
        f'<p class="note">The latest {_EVENTS} of {len(one["events"])}; the files hold all.</p>'
        if len(one["events"]) > _EVENTS
        else ""
    )
    told = [("protects", one["protects"]), ("history", f"{len(one['events'])} events; head {one['head'][:16]}")]
    listed = f"{events}{more}" if rows else "<p>Nothing was released yet.</p>"
    return card(
        one["name"],
        f'{purses(one["purses"])}{facts(told)}<div class="side">{check}{files if rows else ""}</div><h3>Events</h3>{listed}',
    )

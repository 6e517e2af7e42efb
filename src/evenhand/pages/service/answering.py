"""A question with its answer: as a number, as a table, as a picture, and as files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evenhand.pages.notebook import Card
from evenhand.pages.release import release_pictures
from evenhand.pages.service.frame import (
    NOTHING,
    Person,
    alert,
    amount,
    badge,
    card,
    facts,
    grid,
    html,
    joined,
    when,
    whole,
)
from evenhand.pages.service.words import standing, titled

if TYPE_CHECKING:
    from evenhand.release import Release


def files(found: Release | Card) -> dict[str, str]:
    """The forms in which an answer can be taken home."""
    return {"json": "JSON"} if isinstance(found, Card) else {"csv": "CSV", "json": "JSON", "html": "HTML"}


def answer(asked: Mapping[str, Any], found: Release | Card | None, person: Person) -> str:
    """A question with its answer, or when that appears."""
    title, query = titled(asked["question"])
    told = card("The question", facts(_asked(asked)) + html('<p class="side">{}</p>', standing(asked)))
    if found is None:
        return whole(title, query + card("", html('<p role="status">{}</p>', _when(asked))) + told, person)
    links = joined(
        html('<a class="button second" download href="/answers/{}/{}">{}</a>', asked["id"], kind, text)
        for kind, text in files(found).items()
    )
    left = _card(found) if isinstance(found, Card) else _release(found)
    side = told + card("Download", html('<p class="side">{}</p>', links))
    body = query + html('<div class="columns"><div>{}</div><div>{}</div></div>', left, side)
    return whole(title, body, person)


def _card(found: Card) -> Markup:
    """A profile or a model: its table, and what is to be said of it."""
    return card(found.title, grid(found.title, found.head, found.rows)) + card("How it was made", facts(found.named))


def _release(release: Release) -> Markup:
    verdict = badge("usable", "good") if release.usable else badge("too noisy to use", "bad")
    named = dict(release.lines())
    shown = _groups(release) if release.grouped else _numbers(release, named.pop("95% interval", ""))
    said = named.pop("usable", "").removeprefix("yes").lstrip(":, ")
    why = NOTHING if release.usable else alert(f"{release.why[:1].upper()}{release.why[1:]}.")
    main = card("", why + html('<p class="side">{}<span>{}</span></p>', verdict, said) + shown)
    return main + card("How it was made", facts(named.items()))


def _when(asked: Mapping[str, Any]) -> str:
    ready = asked.get("ready")
    if ready:
        return f"Paid. The answer appears at {ready[11:19]} UTC; this page then shows it by itself."
    return {
        "waiting": "This question waits for the keeper's approval. Nothing was read or spent.",
        "denied": "The keeper denied this question. Nothing was read or spent.",
    }.get(asked["standing"], "Paid. The answer is being computed; this page then shows it by itself.")


def _asked(asked: Mapping[str, Any]) -> list[tuple[str, str]]:
    told = [("asked by", asked["analyst"]), ("table", asked["table"]), ("time", f"{when(asked['time'])} UTC")]
    return [*told, ("cost", amount(asked["cost"]))]


def _numbers(release: Release, interval: str) -> Markup:
    """The value, or values, each on a line with its interval."""
    big = release.headline().removeprefix(f"{release.statistic}: ")
    told = html('<p class="big">{}</p><p>95% interval: <b>{}</b></p>', big, interval)
    return told + Markup(release_pictures(release))


def _groups(release: Release) -> Markup:
    """A picture for each column of values, and the table."""
    if not len(release.value):
        return Markup("<p>No group is large enough to be shown.</p>")
    keys = [name for name in release.value.columns if name not in release.value_columns]
    return Markup(release_pictures(release)) + _table(release, keys)


def _table(release: Release, keys: list[str]) -> Markup:
    shown = release.table()
    number = Markup(' class="number"')
    looks = [NOTHING if str(name) in map(str, keys) else number for name in shown.columns]
    heading = joined(
        html('<th scope="col"{}>{}</th>', look, name) for name, look in zip(shown.columns, looks, strict=True)
    )
    body = joined(
        html(
            "<tr{}>{}</tr>",
            NOTHING if usable else Markup(" class=unusable"),
            joined(html("<td{}>{}</td>", look, str(cell)) for cell, look in zip(row, looks, strict=True)),
        )
        for row, usable in zip(shown.itertuples(index=False), release.verdict.rows, strict=True)
    )
    return html(
        '<div class="wide" role="region" aria-label="Answer as a table" tabindex="0"><table><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>",
        heading, body,
    )  # fmt: skip

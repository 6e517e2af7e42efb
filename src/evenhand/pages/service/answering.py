"""A question with its answer: as a number, as a table, as a picture, and as files."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from evenhand.pages.notebook import Card
from evenhand.pages.release import release_pictures
from evenhand.pages.service.frame import Person, alert, amount, badge, card, facts, grid, when, whole
from evenhand.pages.service.words import standing, titled

if TYPE_CHECKING:
    from evenhand.release import Release


def files(found: Release | Card) -> dict[str, str]:
    """The forms in which an answer can be taken home."""
    return {"json": "JSON"} if isinstance(found, Card) else {"csv": "CSV", "json": "JSON", "html": "HTML"}


def answer(asked: Mapping[str, Any], found: Release | Card | None, person: Person) -> str:
    """A question with its answer, or when that appears."""
    title, query = titled(asked["question"])
    told = card("The question", facts(_asked(asked)) + f'<p class="side">{standing(asked)}</p>')
    if found is None:
        return whole(title, query + card("", f'<p role="status">{escape(_when(asked))}</p>') + told, person)
    links = "".join(
        f'<a class="button second" download href="/answers/{escape(asked["id"])}/{kind}">{text}</a>'
        for kind, text in files(found).items()
    )
    left = _card(found) if isinstance(found, Card) else _release(found)
    side = told + card("Download", f'<p class="side">{links}</p>')
    return whole(title, f'{query}<div class="columns"><div>{left}</div><div>{side}</div></div>', person)


def _card(found: Card) -> str:
    """A profile or a model: its table, and what is to be said of it."""
    rows = [[escape(cell) for cell in row] for row in found.rows]
    return card(found.title, grid(found.title, found.head, rows)) + card("How it was made", facts(found.named))


def _release(release: Release) -> str:
    verdict = badge("usable", "good") if release.usable else badge("too noisy to use", "bad")
    named = dict(release.lines())
    shown = _groups(release) if release.grouped else _numbers(release, named.pop("95% interval", ""))
    said = named.pop("usable", "").removeprefix("yes").lstrip(":, ")
    why = "" if release.usable else alert(f"{release.why[:1].upper()}{release.why[1:]}.")
    main = card("", f'{why}<p class="side">{verdict}<span>{escape(said)}</span></p>{shown}')
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


def _numbers(release: Release, interval: str) -> str:
    """The value, or values, each on a line with its interval."""
    big = release.headline().removeprefix(f"{release.statistic}: ")
    return f'<p class="big">{escape(big)}</p><p>95% interval: <b>{escape(interval)}</b></p>{release_pictures(release)}'


def _groups(release: Release) -> str:
    """A picture for each column of values, and the table."""
    if not len(release.value):
        return "<p>No group is large enough to be shown.</p>"
    keys = [name for name in release.value.columns if name not in release.value_columns]
    return f"{release_pictures(release)}{_table(release, keys)}"


def _table(release: Release, keys: list[str]) -> str:
    shown = release.table()
    looks = ["" if str(name) in map(str, keys) else ' class="number"' for name in shown.columns]
    heading = "".join(
        f'<th scope="col"{look}>{escape(str(name))}</th>' for name, look in zip(shown.columns, looks, strict=True)
    )
    body = ""
    for row, usable in zip(shown.itertuples(index=False), release.verdict.rows, strict=True):
        cells = "".join(f"<td{look}>{escape(str(cell))}</td>" for cell, look in zip(row, looks, strict=True))
        body += f"<tr{'' if usable else ' class=unusable'}>{cells}</tr>"
    return (
        f'<div class="wide" role="region" aria-label="Answer as a table" tabindex="0"><table><thead><tr>{heading}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )

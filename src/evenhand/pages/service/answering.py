"""A question with its answer: as a number, as a table, as a picture, and as files."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from evenhand.pages.numbers import ends_in_words, rounded
from evenhand.pages.pictures import Bar, bars, number_line
from evenhand.pages.release import group_label
from evenhand.pages.service.frame import Person, alert, amount, badge, card, facts, when, whole
from evenhand.pages.service.words import standing, titled

if TYPE_CHECKING:
    from evenhand.release import Release

FILES = {"csv": "CSV", "json": "JSON", "html": "HTML"}


def answer(asked: Mapping[str, Any], release: Release | None, person: Person) -> str:
    """A question with its answer, or when that appears."""
    title, query = titled(asked["question"])
    told = card("The question", facts(_asked(asked)) + f'<p class="side">{standing(asked)}</p>')
    if release is None:
        return whole(title, query + card("", f'<p role="status">{escape(_when(asked))}</p>') + told, person)
    links = "".join(
        f'<a class="button second" download href="/answers/{escape(asked["id"])}/{kind}">{text}</a>'
        for kind, text in FILES.items()
    )
    verdict = badge("usable", "good") if release.usable else badge("too noisy to use", "bad")
    named = dict(release.lines())
    shown = _groups(release) if release.grouped else _numbers(release, named.pop("95% interval", ""))
    said = named.pop("usable", "").removeprefix("yes").lstrip(":, ")
    why = "" if release.usable else alert(f"{release.why[:1].upper()}{release.why[1:]}.")
    main = card("", f'{why}<p class="side">{verdict}<span>{escape(said)}</span></p>{shown}')
    rest = card("How it was made", facts(named.items()))
    side = told + card("Download", f'<p class="side">{links}</p>')
    return whole(title, f'{query}<div class="columns"><div>{main}{rest}</div><div>{side}</div></div>', person)


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
    ends = release.interval(0.95)
    several = isinstance(ends, list)
    values = release.value if several else [release.value]
    big = release.headline().removeprefix(f"{release.statistic}: ")
    lines = [
        number_line(float(value), low, high, f"{rounded(value)}, 95% interval {ends_in_words(low, high)}")
        for value, (low, high) in zip(values, ends if several else [ends], strict=True)
        if isinstance(value, int | float)
    ]
    return (
        f'<p class="big">{escape(big)}</p><p>95% interval: <b>{escape(interval)}</b></p>'
        f"<figure>{''.join(lines)}<figcaption>The dot is the answer, the line its 95% interval.</figcaption></figure>"
    )


def _groups(release: Release) -> str:
    """A picture for each column of values, and the table."""
    frame, names = release.interval(0.95), release.value_columns
    keys = [name for name in release.value.columns if name not in names]
    labels = [group_label(key, release.cells) for key in frame[keys].itertuples(index=False)]
    drawn = ""
    for name in names:
        columns = (frame[column].astype(float).tolist() for column in (name, f"{name}_low", f"{name}_high"))
        rows = [Bar(*one) for one in zip(labels, *columns, release.verdict.flags[name], strict=True)]
        drawn += f"<figure>{bars(rows, name)}<figcaption>{escape(name)} with its 95% interval; grey is too noisy to use.</figcaption></figure>"
    return f"{drawn}{_table(release, keys)}" if len(frame) else "<p>No group is large enough to be shown.</p>"


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

"""What all pages share: one style, the frame of a page, tables. No script, no network, readable on a phone."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from html import escape
from pathlib import Path

# All under one class, so that in a notebook it touches nothing else; there, colours and margins are the notebook's own.
_STYLE = """
.evenhand { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; }
body.evenhand { color: #222; color-scheme: light; margin: 0 auto; padding: 1rem; }
.evenhand h1 { font-size: 1.5rem; line-height: 1.2; } .evenhand h2 { font-size: 1.1rem; margin-top: 2rem; }
.evenhand style + h2 { margin-top: .2rem; }
.evenhand .mark { background: #d00000; color: #fff; padding: .6rem 1rem; font-weight: bold; border-radius: .3rem; }
.evenhand .facts { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
.evenhand .facts li { background: #f3f3f0; border-radius: .4rem; padding: .5rem .8rem; }
.evenhand .facts b { display: block; font-size: 1.2rem; }
.evenhand figure { margin: 1rem 0; } .evenhand figure svg { width: 100%; height: auto; } .evenhand figure svg.picture { max-width: 34rem; }
.evenhand figcaption { color: #555; font-size: .9rem; }
.evenhand .wide { overflow-x: auto; } .evenhand table { border-collapse: collapse; font-size: .9rem; min-width: 100%; }
.evenhand th, .evenhand td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid #ddd; white-space: nowrap; }
.evenhand th:first-child, .evenhand td:first-child { text-align: left; vertical-align: top; }
.evenhand .text { text-align: left; }
.evenhand .lines td, .evenhand .lines th { text-align: left; vertical-align: top; }
.evenhand .lines td { white-space: normal; }
.evenhand tr.best { font-weight: bold; background: #f3f3f0; }
.evenhand tr.unusable { color: #767676; }
.evenhand .warning { border-left: .3rem solid #d00000; padding: .3rem .8rem; }
.evenhand footer { color: #555; font-size: .85rem; margin-top: 2rem; }
"""


def page(title: str, body: str, mark: str = "") -> str:
    """A whole page of its own. A mark, such as NOT PRIVATE, stands at both ends."""
    marked = f'<p class="mark">{escape(mark)}</p>' if mark else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><style>{_STYLE}</style></head><body class="evenhand">'
        f"{marked}<h1>{escape(title)}</h1>{body}{marked}</body></html>\n"
    )


def written(html: str, path: str | os.PathLike[str] | None) -> str:
    """The page, also written to ``path`` if that is given."""
    if path is not None:
        Path(path).write_text(html, encoding="utf-8")
    return html


def fragment(title: str, body: str) -> str:
    """A part of another page, such as a notebook."""
    return f'<section class="evenhand"><style>{_STYLE}</style><h2>{escape(title)}</h2>{body}</section>'


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], best: Collection[int] = (), grey: Collection[int] = ()
) -> str:
    """Rows of text under their headings, in a box that scrolls by itself where the screen is narrow."""
    rows = [list(row) for row in rows]
    texts = {
        place for row in rows for place, cell in enumerate(row) if cell and not cell.lstrip("-−±≤~≥ ")[:1].isdigit()
    }
    classes = dict.fromkeys(best, ' class="best"') | dict.fromkeys(grey, ' class="unusable"')
    body = "".join(f"<tr{classes.get(place, '')}>{_cells('td', row, texts)}</tr>" for place, row in enumerate(rows))
    heading = f"<thead><tr>{_cells('th', head, texts)}</tr></thead>" if head else ""
    return f'<div class="wide"><table>{heading}<tbody>{body}</tbody></table></div>'


def lines(named: Iterable[tuple[str, str]]) -> str:
    """Sentences, each beside its name."""
    rows = "".join(f"<tr>{_cells('th', (name,))}{_cells('td', (text,))}</tr>" for name, text in named)
    return f'<table class="lines">{rows}</table>'


def warning(text: str) -> str:
    """What has to be read first; nothing if there is nothing."""
    return f'<p class="warning">{escape(text)}</p>' if text else ""


def paragraphs(text: str) -> str:
    """Text, a paragraph for each line."""
    return "".join(f"<p>{escape(part)}</p>" for part in text.split("\n"))


def _cells(tag: str, cells: Iterable[str], texts: Collection[int] = ()) -> str:
    """Cells; those of columns of text begin at the left, numbers end at the right."""
    left = ' class="text"'
    return "".join(f"<{tag}{left if place in texts else ''}>{escape(cell)}</{tag}>" for place, cell in enumerate(cells))

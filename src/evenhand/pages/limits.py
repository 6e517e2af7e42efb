"""A page for those who plan a campaign of the recommender: how many people it takes, by catalogue size and ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from evenhand.pages.numbers import in_words
from evenhand.pages.pictures import Range, regions
from evenhand.pages.style import page, paragraphs, table


def limits_page(title: str, words: str, panels: Mapping[str, Sequence[Range]], items: str) -> str:
    """The plan in words, a panel for each ε, and the same numbers as a table."""
    said = (
        "How many people it takes by catalogue size, for each ε. Below a curve nothing can work, above another the best "
        "sketch is forecast to, and between them nobody knows. The table has the numbers."
    )
    picture = regions(list(panels.items()), items, "people who answer", said)
    rows = [
        [epsilon, f"{one.at:,.0f}", in_words(one.low), "none would do" if one.high is None else in_words(one.high)]
        for epsilon, ranges in panels.items()
        for one in ranges
    ]
    numbers = table(["", items, "impossible below", "possible from, by forecast"], rows)
    shown = f"<figure>{picture}<figcaption>{escape(said)}</figcaption></figure>{numbers}" if rows else ""
    return page(title, paragraphs(words) + shown)

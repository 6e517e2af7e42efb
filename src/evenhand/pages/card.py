"""A model card as one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.pages.numbers import five_digit_range, five_digits
from evenhand.pages.style import page, paragraphs, table


def card_page(card: Mapping[str, Any]) -> str:
    """The page of what `evenhand.learning.card.model_card` says."""
    coefficients = [
        (row["name"], five_digits(row["value"]), five_digit_range(row["low"], row["high"]))
        for row in card["coefficients"]
    ]
    forecast = [
        (name.replace("_", " "), five_digits(value)) for name, value in card["forecast"].items() if value is not None
    ]
    head = ("name", "value", f"{card['confidence']:.0%} range")
    return page(
        f"{card['model']} of {card['label']}",
        f"{paragraphs(card['guarantee']['words'])}<h2>How each user is bounded</h2>{paragraphs(card['bounding'])}"
        f"<h2>Coefficients</h2>{table(head, coefficients)}{paragraphs(card['range_covers'])}<h2>Forecast</h2>{table((), forecast)}"
        "<footer>Everything on this page is public or was released with the model.</footer>",
    )

"""A model card as one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.pages.style import page, paragraphs, table


def card_page(card: Mapping[str, Any]) -> str:
    """The page of what `evenhand.learning.model_card.model_card` says."""
    head = ("name", "value", f"{card['confidence']:.0%} range")
    forecast = [
        (name.replace("_", " "), f"{value:.5g}") for name, value in card["forecast"].items() if value is not None
    ]
    worth = "".join(paragraphs(line) for line in worth_lines(card))
    return page(
        f"{card['model']} of {card['label']}",
        f"{paragraphs(card['guarantee']['words'] + chr(10) + card['accounting'])}<h2>Is it worth using?</h2>{worth}"
        f"<h2>How each user is bounded</h2>{paragraphs(card['bounding'])}"
        f"<h2>Coefficients</h2>{table(head, coefficients(card))}{paragraphs(card['range_covers'])}<h2>Forecast</h2>{table((), forecast)}"
        "<footer>Everything on this page is public or was released with the model.</footer>",
    )


def worth_lines(card: Mapping[str, Any]) -> list[str]:
    """Whether the model beats a constant one, as far as anybody knows."""
    planned, loss = card.get("planned"), card.get("loss")
    lines = [f"Before the fit: {planned['words']}"] if planned else []
    lines += [f"After the fit: {card['likely']}"] if "likely" in card else []
    lines += [f"Afterwards: {loss['words']}"] if loss else []
    return lines or [
        "Not known: nobody forecast whether it beats a constant model (eh.plan('erm', ...)), or bought its loss (model_loss)."
    ]


def coefficients(card: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The name, value and range of each coefficient, as text."""
    return [
        (row["name"], f"{row['value']:.5g}", "—" if row["low"] is None else f"{row['low']:.5g} to {row['high']:.5g}")
        for row in card["coefficients"]
    ]

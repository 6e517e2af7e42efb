"""How a model shows itself in a notebook: before the fit as scikit-learn's do, afterwards as what was learned and what it is worth."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

_MOST = 20


class ShownAsCard:
    """A model with a card."""

    def _repr_html_(self) -> str:
        # The card knows every model, so no model can know it when it is loaded.
        from evenhand.learning.card import model_card
        from evenhand.pages.card import coefficients, worth_lines
        from evenhand.pages.notebook import Card

        try:
            check_is_fitted(self)
        except NotFittedError:
            return str(estimator_html_repr(self))
        card: dict[str, Any] = model_card(self)  # type: ignore[arg-type]
        rows = coefficients(card)
        more = [] if len(rows) <= _MOST else [("", f"{len(rows) - _MOST} more in coef_", "")]
        named = [
            ("worth", " ".join(worth_lines(card))),
            ("bounding", card["bounding"]),
            ("guarantee", card["guarantee"]["words"]),
            ("cost", card["accounting"]),
            ("ranges", card["range_covers"]),
        ]
        head = ("coefficient", "value", f"{card['confidence']:.0%} range")
        return Card(card["model"], named, head, [*rows[:_MOST], *more]).html()

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

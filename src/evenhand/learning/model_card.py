"""Model cards: what was learned, under which guarantee, how users were bounded, and how far to trust it.

What a card says of one kind of model is in that estimator's ``_card``. In a notebook a model shows itself before the fit as
scikit-learn's do, afterwards as its card.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from evenhand.guarantee import Guarantee, UsageError
from evenhand.learning.data.private_values import Floats
from evenhand.learning.fitting import accounting
from evenhand.ledger import Ledger
from evenhand.pages.card import coefficients, worth_lines
from evenhand.pages.notebook import Card
from evenhand.planning import ModelPlan

if TYPE_CHECKING:
    from evenhand.learning.selection.evaluation import ModelLoss

_SHOWN = 20


class ShownAsCard:
    """A model with a card."""

    ledger: Ledger | None
    guarantee_: Guarantee
    coef_: Floats
    intercept_: Any  # a number, or an array with one per row of ``coef_``

    @abstractmethod
    def _card(self, confidence: float) -> dict[str, Any]:
        """What is said of this kind of model."""

    def _repr_html_(self) -> str:
        try:
            check_is_fitted(self)
        except NotFittedError:
            return str(estimator_html_repr(self))
        card = model_card(self)
        rows = coefficients(card)
        more = [] if len(rows) <= _SHOWN else [("", f"{len(rows) - _SHOWN} more in coef_", "")]
        named = [
            ("worth", " ".join(worth_lines(card))),
            ("bounding", card["bounding"]),
            ("guarantee", card["guarantee"]["words"]),
            ("cost", card["accounting"]),
            ("ranges", card["range_covers"]),
        ]
        head = ("coefficient", "value", f"{card['confidence']:.0%} range")
        return Card(card["model"], named, head, [*rows[:_SHOWN], *more]).html()

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def model_card(
    model: ShownAsCard,
    label: str = "the label",
    confidence: float = 0.95,
    plan: ModelPlan | None = None,
    loss: ModelLoss | None = None,
) -> dict[str, Any]:
    """The card as data; everything in it is public or was released.

    Args:
        model: a fitted model.
        label: what it predicts.
        confidence: of the ranges of coefficients.
        plan: what ``eh.plan("erm", ...)`` forecast before the fit.
        loss: what `model_loss` found afterwards.
    """
    if not isinstance(model, ShownAsCard):
        raise UsageError(f"a card is for a fitted model of this package, not for {type(model).__name__}.")
    facts = model._card(confidence)
    plan, event = plan or getattr(model, "plan_", None), getattr(model, "event_", None)
    return {
        "model": type(model).__name__,
        "label": label,
        "guarantee": model.guarantee_.to_dict(),
        "accounting": accounting(model.ledger) if event is None else f"Debited by a keeper's server, event {event}.",
        "bounding": facts["bounding"],
        "confidence": confidence,
        **facts,
        "planned": plan.to_dict() if plan else None,
        "loss": None if loss is None else loss.card(confidence),
    }


def card_text(card: dict[str, Any]) -> str:
    """The card for a terminal."""
    width = max(len(row["name"]) for row in card["coefficients"])
    lines = [f"{card['model']} of {card['label']}", ""]
    lines += [f"  {name:<{width}}  {value:>12}   {between}" for name, value, between in coefficients(card)]
    lines += [
        "",
        *(f"  {line}" for line in worth_lines(card)),
        f"  {card['range_covers']}",
        f"  {card['bounding']}",
        f"  {card['guarantee']['words']}",
        f"  {card['accounting']}",
    ]
    return "\n".join(lines)


def coefficient_rows(named: list[tuple[str, float]], ranges: Floats | None) -> list[dict[str, Any]]:
    """Coefficients with the ends of their ranges, if there are ranges."""
    ends = [(None, None)] * len(named) if ranges is None else ranges.tolist()
    pairs = zip(named, ends, strict=True)
    return [{"name": name, "value": value, "low": low, "high": high} for (name, value), (low, high) in pairs]

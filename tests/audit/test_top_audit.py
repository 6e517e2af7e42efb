"""Choosing several candidates keeps its claim, with hidden names too; and twins that break it are caught.

`audit` refutes a sound mechanism with probability below 3·10⁻⁷.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from test_learning_audit import caught

from evenhand.audit import BlackBox, Claim, Pair, audit
from evenhand.audit.broken_receipts import NoMargin
from evenhand.noise import TopK

DELTA = Decimal("0.02")
RISING = (Pair("all but the best rise", (2, 0, 0, 0, 0), (2, 2, 2, 2, 2)), Pair("the best rises", (0, 0, 0), (2, 0, 0)))
ALONE = (Pair("eight names of one user", (3, 3, *[1] * 8), (3, 3)),)


@dataclass(frozen=True)
class Unshared(TopK):
    """Each choice gets all of ε."""

    @property
    def scale(self) -> Fraction:
        return super().scale / self.count


def _public(top: TopK) -> BlackBox:
    """When the first candidate is chosen tells most: that it is never chosen is as unlikely as all choices together allow."""

    def run(scores: Sequence[int]) -> list[float]:
        chosen = top.choose_top(scores)
        return [float(place) for place in (chosen.index(0) if 0 in chosen else top.count, *chosen)]

    return BlackBox("top", Claim(float(top.epsilon)), run)


def _hidden(top: TopK) -> BlackBox:
    def run(scores: Sequence[int]) -> list[float]:
        chosen = top.choose_top(scores, DELTA)
        return [float(place) for place in (*chosen, *[-1] * (top.count - len(chosen)))]

    return BlackBox("top of hidden names", Claim(float(top.epsilon), float(DELTA)), run)


def test_choices_that_share_epsilon_stand_and_others_are_caught() -> None:
    assert not audit(_public(TopK(3, 2, None, Decimal(2))), RISING, 3000).refuted
    assert caught(
        _public(Unshared(3, 2, None, Decimal(2))), RISING[:1], 3000
    )  # on the pair that gives it away: 2.5 or more


def test_hidden_names_stand_and_without_a_margin_they_are_caught() -> None:
    assert not audit(_hidden(TopK(2, 1, None, Decimal(2))), ALONE, 3000).refuted
    assert not audit(_hidden(TopK(2, 1, 1, Decimal(2))), (Pair("one name", (9, 8, 1), (9, 8)),), 3000).refuted
    assert caught(_hidden(NoMargin(2, 1, None, Decimal(2))), ALONE, 600)

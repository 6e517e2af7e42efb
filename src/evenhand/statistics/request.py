"""What every statistic is asked with: a table, ε and δ, and a bounding; checked once, here."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from evenhand.bounding import Auto, Strategy, parse_bounding
from evenhand.guarantee import Amount, Guarantee, Relation, UsageError, parse_delta, parse_epsilon
from evenhand.ledger import Cost
from evenhand.planning import Profile
from evenhand.release import Bounding
from evenhand.statistics.shelf import Shelf
from evenhand.tables import Table


@dataclass(frozen=True)
class Request:
    """A checked request for a release.

    Args:
        table: where from.
        epsilon: how much may be spent.
        delta: the δ that may be spent.
        bounding: a strategy with its bound, or `Auto`.
        shelf: profiles that the session has already paid for.
        known: the profile that will choose the bound, if there is one already; settled before the debit.
    """

    table: Table
    epsilon: Decimal
    delta: Decimal
    bounding: Strategy | Auto
    shelf: Shelf
    known: Profile | None = None

    @classmethod
    def parse(
        cls,
        table: Table,
        epsilon: Amount | None,
        delta: Amount = 0,
        bounding: Any = "auto",
        shelf: Shelf | None = None,
    ) -> Request:
        """Check ε, δ and the bounding, with errors that say what to do."""
        if epsilon is None:
            raise UsageError("epsilon is missing; expected a positive number such as epsilon=0.5.")
        if table.relation is Relation.LABELS:
            raise UsageError(
                "protects='labels' is for learning (evenhand.learning.LabelPrivateRegression); "
                "statistics need protects='presence' or 'values'."
            )
        table.engine.require_unchanged()
        request = cls(
            table,
            parse_epsilon(epsilon),
            parse_delta(delta),
            parse_bounding(bounding),
            Shelf() if shelf is None else shelf,
        )
        strategy = request.bounding.strategy if isinstance(request.bounding, Auto) else request.bounding
        if strategy is not None and not strategy.supports(table.relation):
            raise UsageError(
                f"{strategy.title} does not bound anything under protects={table.relation.value!r}; "
                "use eh.SmoothWeights or leave bounding='auto'."
            )
        return request

    @property
    def relation(self) -> Relation:
        """Which neighbours count."""
        return self.table.relation

    def guarantee(self, delta: Decimal = Decimal(0)) -> Guarantee:
        """What a release will promise; with Laplace noise only it needs no δ, even if some was granted."""
        promise = self.table.guarantee(self.epsilon, delta)
        return promise if self.known is None else promise.resting_on(*self.known.purchases(self.relation))

    def pure(self) -> Cost:
        """The cost of a release with Laplace noise only."""
        return Cost.pure(self.epsilon)


def given(strategy: Strategy) -> Bounding:
    """How a strategy that the analyst gave appears in the release."""
    assert strategy.parameter is not None
    return Bounding(strategy.title, float(strategy.parameter), strategy.describe())


def free(request: Request) -> Guarantee:
    """The guarantee of a public fact: nothing about private values is revealed."""
    return request.table.guarantee(Decimal(0), Decimal(0))

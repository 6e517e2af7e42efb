"""What every statistic is asked with: a table, ε and δ, and a bounding; checked once, here."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from evenhand.bounding import PROFILE_SHARE, Auto, Strategy, parse_bounding
from evenhand.guarantee import Amount, Guarantee, Relation, UsageError, parse_delta, parse_epsilon
from evenhand.ledger import Cost
from evenhand.profiles import EVERY_ROW, ONE_ROW_EACH, About, Shelf, Wanted
from evenhand.profiles.location import LOCATION_SHARES
from evenhand.release import Bounding
from evenhand.tables import Table


@dataclass(frozen=True)
class Request:
    """A checked request for a release.

    Args:
        table: where from.
        epsilon: how much may be spent.
        delta: the δ that may be spent.
        strategy: with its bound, as the analyst gave it; None if something is to be chosen.
        auto: what may be chosen.
        shelf: profiles that the session has already paid for.
    """

    table: Table
    epsilon: Decimal
    delta: Decimal
    strategy: Strategy | None
    auto: Auto
    shelf: Shelf

    @classmethod
    def parse(
        cls,
        table: Table,
        epsilon: Amount | None,
        delta: Amount = 0,
        bounding: object = "auto",
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
        strategy, auto = parse_bounding(bounding)
        request = cls(
            table, parse_epsilon(epsilon), parse_delta(delta), strategy, auto, Shelf() if shelf is None else shelf
        )
        if request.named is not None and not request.named.supports(table.relation):
            raise UsageError(
                f"{request.named.title} does not bound anything under protects={table.relation.value!r}; "
                "use eh.SmoothWeights or leave bounding='auto'."
            )
        return request

    @property
    def relation(self) -> Relation:
        """Which neighbours count."""
        return self.table.relation

    @property
    def named(self) -> Strategy | None:
        """The strategy that the analyst named, with or without a bound."""
        return self.auto.strategy if self.strategy is None else self.strategy

    def wants(self, about: About | None, of_rows: bool = False) -> Wanted | None:
        """The profile that will choose the bound; None where the bound is given or row counts are public.

        Args:
            about: what it counts; None if that is not known before rows are read, so that none is kept.
            of_rows: whether it counts rows of a user, or groups of a user.
        """
        if self.strategy is not None or self.relation.counts_are_public:
            return None
        if of_rows and self.table.one_row and self.auto.profile is None:
            return Wanted(EVERY_ROW if about is None else about, ONE_ROW_EACH)
        if about is None:
            return Wanted(EVERY_ROW, self.auto.profile, table=self.table)
        return Wanted.settle(self.table, self.shelf, about, self.auto.profile)

    def pending(self, wanted: Wanted | None, share: Decimal = PROFILE_SHARE, located: bool = False) -> Bounding:
        """How a bound that will be chosen appears before anything is spent.

        Args:
            wanted: the profile that will choose it.
            share: the part of ε that buys it, unless the analyst says otherwise.
            located: whether part of the rest may be spent on finding out where users are.
        """
        part, named = 0.0, self.auto.strategy
        if wanted is None:
            words = "the bound will be chosen from the public counts"
        elif wanted.given is ONE_ROW_EACH:
            words = "each user has one row, so nothing needs a bound"
        elif wanted.given is not None:
            words = "the bound will be chosen from the given profile"
        elif wanted.kept is not None:
            words = "the bound will be chosen from a profile that this session has bought"
        else:
            words, part = "the bound will be chosen privately", float(self.auto.share or share)
        price = f"for about {part:.0%} of ε" if part else "free of charge"
        if located and named is None:
            most = part + (1 - part) * LOCATION_SHARES[1]
            price = f"for {f'{part:.0%} to ' if part else 'at most '}{most:.0%} of ε"
        return Bounding("auto" if named is None else named.title, None, words, f"auto, {price}")

    def guarantee(self, delta: Decimal = Decimal(0)) -> Guarantee:
        """What a release will promise; with Laplace noise only it needs no δ, even if some was granted."""
        return self.table.guarantee(self.epsilon, delta)

    def promise(self, wanted: Wanted | None, delta: Decimal = Decimal(0)) -> Guarantee:
        """The guarantee, with the purchases that the release rests on."""
        guarantee = self.guarantee(delta)
        return guarantee if wanted is None else guarantee.resting_on(*wanted.purchases)

    @property
    def free(self) -> Guarantee:
        """The guarantee of a public fact: nothing about private values is revealed."""
        return self.table.guarantee(Decimal(0), Decimal(0))

    def pure(self) -> Cost:
        """The cost of a release with Laplace noise only."""
        return Cost.pure(self.epsilon)

"""`Auto`: leave strategy and bound to Evenhand, which compares forecasts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from evenhand.bounding.choice import Choice
from evenhand.bounding.located_mean import choose_located
from evenhand.bounding.smooth_weights import choose_smooth
from evenhand.bounding.strategy import Strategy
from evenhand.bounding.total_cap import TotalCap
from evenhand.guarantee import Relation, UsageError
from evenhand.profiles import Basis, Location, Profile, Support
from evenhand.tables import Grid

PROFILE_SHARE = Decimal("0.35")
"""Share of ε that buys a profile for a count, a sum or groups. A bound that is twice too large doubles the noise, which half as much ε would
do as well; the error is flat between 0.3 and 0.4."""

MEAN_SHARE = Decimal("0.25")
"""Share of ε that buys the profile of row counts for a mean, less than for a total: a weight that is off moves a mean little. The rest
locates and releases it."""

FORECAST = "forecast from the profile; more if heavy users differ much"


@dataclass(frozen=True)
class Auto:
    """Choose the bound: from public facts where the guarantee allows, else privately out of the same ε.

    Args:
        share: the part of ε that may be spent on choosing, between 0 and 0.9; a tested default if left out.
        profile: a contribution profile to choose from instead of buying one: a public prior
            (``eh.Profile.pareto(...)``) or one bought before (``session.profile(...)``).
        strategy: restrict the choice to this strategy, such as ``eh.SmoothWeights()``.
    """

    share: float | None = None
    profile: Profile | None = None
    strategy: Strategy | None = None

    def __post_init__(self) -> None:
        if self.share is not None and not (isinstance(self.share, int | float) and 0 < self.share <= 0.9):
            raise UsageError(f"Auto(share={self.share!r}): expected a part of epsilon between 0 and 0.9, such as 0.3.")
        if self.profile is not None and not isinstance(self.profile, Profile):
            raise UsageError(f"Auto(profile={type(self.profile).__name__}): expected an eh.Profile.")
        if self.profile is not None and self.profile.basis is Basis.EXACT:
            raise UsageError(
                "Auto(profile=...) was given an exact profile, which is NOT PRIVATE: a bound chosen from it would leak. "
                "Buy one with session.profile(epsilon=...), or state a public prior such as eh.Profile.pareto(...)."
            )

    def require(self, purpose: str, words: str) -> None:
        """Refuse, before any debit, a named strategy whose bound can't be chosen for this purpose."""
        if self.strategy is not None and purpose not in self.strategy.chosen_for:
            raise self.strategy.refuse(words)

    @property
    def for_total(self) -> Strategy:
        """The strategy whose bound is chosen for a count or sum."""
        return TotalCap() if self.strategy is None else self.strategy

    def for_mean(self, support: Support, grid: Grid, epsilon: Decimal, relation: Relation) -> Choice:
        """The named strategy with its best bound for a mean."""
        assert self.strategy is not None
        basis = (
            "the public number of rows of each user" if relation.counts_are_public else "a noisy profile of row counts"
        )
        return Choice(self.strategy.best_for_mean(support, grid, float(epsilon), relation), basis)


def best_mean(
    support: Support, grid: Grid, epsilon: Decimal, relation: Relation, location: Location | None = None
) -> Choice:
    """The strategy and bound with the smallest forecast error of a mean: located where users were found, else smooth weights.

    Guarantee: reads public facts and bought ones only.

    Args:
        support: users by number of rows: public under values, bought under presence.
        grid: of the value column.
        epsilon: what is left for the release.
        relation: the neighbour relation.
        location: what `locate` found; None if nothing was bought or found.
    """
    basis = "the public number of rows of each user"
    if relation is Relation.PRESENCE:
        basis = "a noisy histogram of users by number of rows, bought with part of ε"
    best = replace(choose_smooth(support, float(grid.width), float(epsilon), relation, location), basis=basis)
    located = None if location is None else choose_located(support, grid, epsilon, relation, location)
    if located is not None and located.forecast <= best.forecast:
        best = replace(located, basis=f"{basis}, and a noisy histogram of user means")
    return replace(best, bias=grid.units(Fraction(best.bias or 0)), bias_basis=FORECAST)

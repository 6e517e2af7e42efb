"""`Auto`: leave strategy and bound to Evenhand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.bounding.strategy import Strategy
from evenhand.guarantee import UsageError


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
    profile: Any = None
    strategy: Strategy | None = None

    def __post_init__(self) -> None:
        if self.share is not None and not (isinstance(self.share, int | float) and 0 < self.share <= 0.9):
            raise UsageError(f"Auto(share={self.share!r}): expected a part of epsilon between 0 and 0.9, such as 0.3.")


def parse_bounding(given: Any) -> Strategy | Auto:
    """Read ``bounding=``: a strategy with its bound, or something that leaves it to be chosen."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return Auto()
    if isinstance(given, Auto):
        return given
    if isinstance(given, Strategy):
        return given if given.parameter is not None else Auto(strategy=given)
    if isinstance(given, type) and issubclass(given, Strategy | Auto):
        return parse_bounding(given())
    raise UsageError(
        f"bounding={given!r} is not a strategy; expected 'auto' or one of eh.TotalCap(T), eh.SmoothWeights(h), eh.RowLimit(h), "
        "eh.CentredInterval(T), eh.NormClip(T), eh.Auto(share=...)."
    )

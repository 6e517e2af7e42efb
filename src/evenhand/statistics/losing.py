"""What a chosen bound takes from totals by group, from what was bought to choose it."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.bounding import NOT_KNOWN, ONCE_EACH, Breadth, Lost, Norm, breadth_of_rows, fitted_breadths
from evenhand.population import Population, Support
from evenhand.profiles import Histogram


def lost_to(
    bound: float,
    norm: Norm,
    unit: float,
    distinct: bool,
    supports: Sequence[Support],
    histograms: Sequence[Histogram],
    groups: int,
    rows: bool,
) -> Lost:
    """What the bound takes from all groups together.

    Args:
        bound: in the unit of the norm.
        norm: that is bounded.
        unit: what one row adds to it at most.
        distinct: whether a user counts once in each group.
        supports: users by each norm.
        histograms: that they were read from; none if numbers of rows are public.
        groups: how many.
        rows: whether a profile was given: it counts rows, over all groups.
    """
    breadths: tuple[Breadth, ...] = NOT_KNOWN
    if distinct:
        breadths = ONCE_EACH
    elif rows:
        breadths = breadth_of_rows(groups, unit)
    elif len(histograms) > 1:
        breadths = fitted_breadths(supports[0], histograms[1], groups)
    if not histograms:
        return Lost.of(Population.exactly(supports[0]), breadths, bound, gaussian=False)
    of_l2 = norm.gaussian and len(supports) == 1 and not rows
    return Lost.of(histograms[0].posterior, breadths, bound, norm.gaussian, of_l2)

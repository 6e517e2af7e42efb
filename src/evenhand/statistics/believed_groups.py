"""Estimates by group with what bounding did to them: a correction, and intervals that hold the truth on a stated model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.bounding import (
    NOT_KNOWN,
    ONCE_EACH,
    Breadth,
    Lost,
    Moved,
    MovedWeight,
    Norm,
    breadth_of_rows,
    fitted_breadths,
    losses_by_group,
)
from evenhand.pages.numbers import three_digits
from evenhand.population import Population, Support
from evenhand.profiles import Histogram, sure_part
from evenhand.release import Additive, Believed, Error, Unknown
from evenhand.release.believed import Beyond, Widened
from evenhand.release.intervals import Fieller, noise_only
from evenhand.statistics.believed_means import LEAST_SHOWN
from evenhand.statistics.believing import UNKNOWN
from evenhand.statistics.count import Count
from evenhand.statistics.histogram import RowsInCells
from evenhand.statistics.mean import Mean
from evenhand.statistics.statistic import Estimate, OfColumn, Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.variance import RootInterval, Std, Variance

TOTALS = "covers the noise and what users above the bound lost, if each group lost in proportion to its size, give or take 40% and chance; one user far above all others may hide"
WEIGHTED = (
    "covers the noise and the weight that moved from busy users to others, if users' means differ by a tenth of the range, and busy "
    "users from others by a fortieth; one user with a large part of a group's rows may hide"
)
LOCATED = (
    "covers the noise and what was cut from users far from the centres, those too few to be seen included, if four fifths of that lie on one "
    "side, and all of it where only one is possible; one user with a large part of a group's rows may hide"
)
SIGNED = (
    "covers the noise and what users above the bound lost, if that has either sign and is spread evenly over the groups"
)
MOSTLY = "more than half of it may come from users above the bound, who were cut"
REFUTED = "the groups hold far more than the profile that chose the bound says: too few people for this ε to choose one"

IN_INTERVAL = Error(None, None, "of bounding is in the interval, by a model")

_MOSTLY = 0.25  # how probable that has to be: one group in four called usable would be off by half
_SIGNS = np.array([-1.0, -0.4, 0.0, 0.4, 1.0])
"""A prior: which part of what is lost, in absolute values, is left after positive and negative values cancel."""


def sign_of(statistic: Statistic) -> int | None:
    """Whether what is lost of a total is positive or negative; 0 if it may be either, None if it is no such total."""
    if isinstance(statistic, Sum):
        low, high = statistic.range
        return 1 if low >= 0 else -1 if high <= 0 else 0
    return 1 if isinstance(statistic, Count | RowsInCells) else None


def believed_totals(statistic: Statistic, estimates: Sequence[Estimate], lost: Lost) -> list[Estimate]:
    """Totals by group, corrected by what each group probably lost at least."""
    sign, intervals = sign_of(statistic), [estimate.interval for estimate in estimates]
    noisy = [one for one in intervals if isinstance(one, Additive)]
    if sign is None or not lost.total.any() or len(noisy) < len(intervals):
        return list(estimates)
    unit = 1.0 if statistic.sum_grid is None else statistic.sum_grid.units(1)
    released = np.array([one.value for one in noisy]) / unit
    deviation = estimates[0].noise / unit
    if not sign:
        return _either_way(estimates, noisy, lost, released, deviation, unit)
    losses = losses_by_group(lost, sign * released, deviation)
    amounts, sure = sign * unit * losses.amounts, sign * unit * losses.sure
    found = []
    for group, (estimate, interval) in enumerate(zip(estimates, noisy, strict=True)):
        correction = round(float(sure[group])) if isinstance(estimate.value, int) else float(sure[group])
        why = REFUTED if losses.refuted else MOSTLY if losses.mostly[group] > _MOSTLY else ""
        believed = Believed(interval, amounts[group], losses.weights, TOTALS, why)
        found.append(replace(estimate, value=estimate.value + correction, interval=believed, correction=correction))
    return found


def _either_way(
    estimates: Sequence[Estimate],
    noisy: Sequence[Additive],
    lost: Lost,
    released: npt.NDArray[np.float64],
    deviation: float,
    unit: float,
) -> list[Estimate]:
    """Where values have both signs nothing is added, and a group's size says little about what it lost."""
    even = np.full(len(released), float(lost.weights @ lost.kept) / len(released))
    losses = losses_by_group(lost, even, deviation)
    amounts = (losses.amounts[:, :, None] * _SIGNS * unit).reshape(len(even), -1)
    weights = np.repeat(losses.weights / len(_SIGNS), len(_SIGNS))
    return [
        replace(estimate, interval=Believed(interval, amount, weights, SIGNED))
        for estimate, interval, amount in zip(estimates, noisy, amounts, strict=True)
    ]


def believed_averages(statistic: Statistic, estimates: Sequence[Estimate], moved: MovedWeight) -> list[Estimate]:
    """Averages by group whose users are weighted."""
    rows = np.maximum([1.0 if estimate.rows is None else estimate.rows for estimate in estimates], 1e-9)
    return widened(statistic, estimates, moved.deviation(rows / rows.sum()), WEIGHTED)


def believed_distances(statistic: OfColumn, estimates: Sequence[Estimate], moved: Moved) -> list[Estimate]:
    """Averages by group around centres, corrected by what was surely cut on one side."""
    range, weights = statistic.range, np.full(moved.amounts.shape[1], 1 / moved.amounts.shape[1])
    found = widened(statistic, estimates, moved.deviation, LOCATED)
    for group, (estimate, amounts) in enumerate(zip(found, moved.amounts * (range[1] - range[0]), strict=True)):
        if np.abs(amounts).max() > LEAST_SHOWN * estimate.noise:
            sure = sure_part(amounts, weights)
            added = sure if abs(sure) > LEAST_SHOWN * estimate.noise else 0.0
            value = min(max(estimate.value + added, range[0]), range[1])
            interval = Beyond(estimate.interval, estimate.value, amounts, weights, added, "", feasible=range)
            found[group] = replace(estimate, value=value, interval=interval, correction=value - estimate.value)
    return found


def widened(
    statistic: Statistic, estimates: Sequence[Estimate], deviations: npt.NDArray[np.float64], words: str
) -> list[Estimate]:
    """Averages by group, their intervals widened by what bounding may have done, as a part of the range."""
    if not isinstance(statistic, OfColumn) or not deviations.any():
        return list(estimates)
    low, high = statistic.range
    found = []
    for estimate, part in zip(estimates, deviations.tolist(), strict=True):
        interval, value, unit = estimate.interval, estimate.value, high - low
        feasible: tuple[float, float] = (low, high)
        if isinstance(statistic, Variance):
            feasible, unit = (0.0, (unit / 2) ** 2), (unit / 2) ** 2
            root = isinstance(interval, RootInterval)
            inner = interval.interval if isinstance(interval, RootInterval) else interval
            wide = Widened(inner, value**2 if root else value, part * unit, words, feasible)
            found.append(replace(estimate, interval=RootInterval(wide) if root else wide))
            continue
        if isinstance(statistic, Sum):  # the public number of rows times a mean
            rows = estimate.rows or 0.0
            feasible, unit = (low * rows, high * rows), unit * rows
        found.append(replace(estimate, interval=Widened(interval, value, part * unit, words, feasible)))
    return found


def corrections(estimates: Mapping[str, Sequence[Estimate]]) -> dict[str, Any]:
    """For the details of a release: what was added to the values of each column."""
    added = {name: [estimate.correction for estimate in column] for name, column in estimates.items()}
    some = {name: column for name, column in added.items() if any(column)}
    if not some:
        return {}
    words = "; ".join(
        f"{f'{name}: ' if len(estimates) > 1 else ''}{_added(estimates[name], column)}, which users above "
        "the bound probably lost at least"
        for name, column in some.items()
    )
    return {"correction": {"words": words, "added": some}}


def _added(estimates: Sequence[Estimate], column: Sequence[float]) -> str:
    if isinstance(noise_only(estimates[0].interval), Fieller):  # averages do not add up
        most = max(column, key=abs)
        return f"up to {three_digits(abs(most))} was {'added to' if most > 0 else 'taken from'} a group"
    return f"{three_digits(math.fsum(column))} was added over all groups"


def of_given_bound(statistic: Statistic, estimates: Sequence[Estimate]) -> list[Estimate]:
    """Under a bound that the analyst gave, nothing is known about what it took: the interval is open where it took."""
    sign = sign_of(statistic)
    least, most = (None if sign == 1 else -math.inf), (None if sign == -1 else math.inf)
    if isinstance(statistic, Mean):
        least, most = statistic.range
    if isinstance(statistic, Variance):
        width = statistic.range[1] - statistic.range[0]
        least, most = 0.0, width / 2 if isinstance(statistic, Std) else (width / 2) ** 2
    if sign is None and not isinstance(statistic, Mean):
        return list(estimates)
    return [replace(estimate, interval=Unknown(estimate.interval, UNKNOWN, least, most)) for estimate in estimates]


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

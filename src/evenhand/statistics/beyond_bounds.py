"""Numbers whose bounds were found, with what probably lies beyond them: the correction, and the interval that holds the truth.

The bounds were read from a noisy histogram of users by value, and the same posterior says what they cut off, every user counting once
(`profiles/beyond.py`). It is taken to be the same for every row: what users differ in is in the interval already. A sum and a variance of a
heavy tail may depend on values that nobody can see; then the release says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from evenhand.guarantee import plain
from evenhand.pages.numbers import rounded, written
from evenhand.profiles import Cut, Extent, added
from evenhand.release import Bounding, NothingFound
from evenhand.release.believed import Beyond, Unknown
from evenhand.release.intervals import noise_only
from evenhand.statistics.believed_groups import corrections
from evenhand.statistics.believed_means import corrected
from evenhand.statistics.draft import Outcome
from evenhand.statistics.frames import GroupedInterval, ListedInterval, frame
from evenhand.statistics.level_cells import OPEN
from evenhand.statistics.mean import Mean
from evenhand.statistics.rank_intervals import RankInterval
from evenhand.statistics.ranks import OfRanks
from evenhand.statistics.ratio import RatioOf
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.std import RootInterval, Std
from evenhand.statistics.sum import Sum
from evenhand.statistics.variance import Variance

WORDS = "and values beyond the bounds that were found, if their number falls off smoothly"
_NOTICED = 0.05  # standard deviations of the noise from which a correction is worth making
_LIKELY = 0.975  # the upper end of a 95% interval


def nothing_found(extent: Extent, statistic: str, value: object) -> NothingFound | None:
    """Why numbers within such bounds say nothing; None if they do."""
    if extent.open:
        return NothingFound(why=OPEN, help="give bounds=(low, high)")
    if not extent.visible:
        return NothingFound()
    coarse = extent.coarse or extent.contradicted(statistic, value)
    return NothingFound("only coarse bounds") if coarse else None


@dataclass(frozen=True)
class Found:
    """A statistic with the bounds that were found for it.

    Args:
        asked: as it was asked for.
        statistic: with bounds.
        extents: what was found, in the order in which it was wanted.
    """

    asked: Statistic
    statistic: Statistic
    extents: Sequence[Extent]

    def completed(self, estimate: Estimate, bounding: Bounding | None) -> Estimate:
        """A released number with what probably lies beyond its bounds.

        Args:
            estimate: the number.
            bounding: how users were bounded, if it is the only number.
        """
        statistic, extent, interval, value = self.statistic, self.extents[0], estimate.interval, estimate.value
        if any(one.open for one in self.extents):
            return replace(
                estimate, interval=Unknown(noise_only(interval), f"covers anything: {OPEN}", -math.inf, math.inf)
            )
        if isinstance(statistic, OfRanks):
            wider = replace(interval, beyond=extent.outer) if isinstance(interval, RankInterval) else interval
            return replace(estimate, interval=wider)
        if isinstance(statistic, Std) and isinstance(interval, RootInterval):
            variance = replace(estimate, value=value**2, interval=interval.interval, noise=2 * value * estimate.noise)
            found = self._with(variance, extent.cut_of_squares)
            return replace(estimate, interval=RootInterval(found.interval))
        capped = isinstance(statistic, Sum) and bounding is not None and bounding.strategy == "TotalCap"
        if bounding is not None and capped and _within(bounding.parameter, extent):
            return estimate  # a user with a value beyond the bounds is beyond the cap too, and what that took is in the interval
        cut = self._cut(estimate, bounding)
        return estimate if cut is None else self._with(estimate, cut)

    def _cut(self, estimate: Estimate, bounding: Bounding | None) -> Cut | None:
        """What the bounds probably took from a number; None where no model tells."""
        statistic, extent, size = self.statistic, self.extents[0], abs(estimate.value)
        if isinstance(self.asked, RatioOf):
            above = len(self.asked.numerator.wants_bounds)
            signs = [1] * above + [-1] * (len(self.extents) - above)
            parts = zip(self.extents, signs, strict=True)
            return added([one.cut.times(sign * size / one.size) for one, sign in parts if one.size])
        if isinstance(statistic, Variance):
            return extent.cut_of_squares
        if isinstance(statistic, Mean):
            low, high = statistic.range
            # Of groups, one with larger values has more of those beyond.
            larger = bounding is None and (low >= 0 or high <= 0) and extent.mean
            return extent.cut.times(size / abs(extent.mean)) if larger else extent.cut
        if not isinstance(statistic, Sum) or not extent.size:
            return None
        if estimate.rows is not None:  # they are public
            return extent.cut.times(estimate.rows)
        if bounding is not None and bounding.strategy == "TotalCap" and extent.low < 0 < extent.high:
            # Signs cancel in a total, so it does not tell how many rows there are: at most what the cap lets through.
            size = extent.people * float(bounding.parameter or 0.0)
        return extent.cut.times(size / extent.size)

    def _with(self, estimate: Estimate, cut: Cut) -> Estimate:
        value, (least, most) = estimate.value, (cut.quantile(1 - _LIKELY), cut.quantile(_LIKELY))
        # A tail of squares is mostly guessed: it is in the interval, and not in the value.
        sure = 0.0 if isinstance(self.statistic, Variance) else cut.sure
        correction = sure if abs(sure) > _NOTICED * estimate.noise else 0.0
        why = self._why(value, least, most)
        interval = Beyond(estimate.interval, value, cut.amounts, cut.weights, correction, WORDS, why)
        return replace(
            estimate, value=value + correction, interval=interval, correction=estimate.correction + correction
        )

    def _why(self, value: float, least: float, most: float) -> str:
        """Why a number to which so much may have to be added can't be told; empty if it can. For a standard deviation they are squares."""
        if isinstance(self.statistic, Std):
            root = math.sqrt(max(value, 0.0))
            value, least, most = root, *(math.sqrt(max(value + one, 0.0)) - root for one in (least, most))
        if most - least <= 2 * self.statistic.rule.allowed(value):
            return ""
        farthest = rounded(float(f"{max(most, -least):.2g}"))
        return (
            f"values beyond the bounds that were found may change it by up to about {farthest}: too few people, or too little ε, to see "
            "them"
        )


def _within(cap: float | None, extent: Extent) -> bool:
    return cap is not None and cap < max(abs(extent.low), abs(extent.high)) * (1 - 1e-6)


def completed(outcome: Outcome, found: Mapping[str, Found], owner: Callable[[str], str]) -> Outcome:
    """The outcome of a release with what probably lies beyond the bounds that were found.

    Args:
        outcome: of the question with these bounds.
        found: by statistic.
        owner: which statistic a column belongs to.
    """
    interval = outcome.interval
    if isinstance(interval, GroupedInterval):
        estimates = {
            name: [found[owner(name)].completed(one, None) for one in column] if owner(name) in found else column
            for name, column in interval.estimates.items()
        }
        value = frame(interval.labels, {name: [one.value for one in column] for name, column in estimates.items()})
        details = {**outcome.details, **corrections(estimates)}
        return replace(outcome, value=value, interval=GroupedInterval(interval.labels, estimates), details=details)
    if isinstance(interval, ListedInterval):
        names = list(outcome.rules) or [""] * len(interval.intervals)
        noises = [outcome.error.parts.get(name) or 0.0 for name in names]
        listed = [
            found[owner(name)].completed(Estimate(*one), None) if owner(name) in found else Estimate(*one)
            for name, one in zip(names, zip(outcome.value, interval.intervals, noises, strict=True), strict=True)
        ]
        return replace(
            outcome, value=[one.value for one in listed], interval=ListedInterval([one.interval for one in listed])
        )
    (alone,) = found.values()
    noise = outcome.error.noise or 0.0
    one = alone.completed(Estimate(outcome.value, interval, noise, outcome.public_rows), outcome.bounding)
    outcome = replace(outcome, interval=one.interval)
    if one.value == outcome.value:
        return outcome
    measured = outcome.details.get("correction", {}).get("measured", outcome.value)
    details = {**outcome.details, "correction": corrected(measured, one.value, noise)}
    return replace(outcome, value=one.value, details=details)


def unanswered(value: Any, names: Sequence[str], lost: Sequence[bool]) -> Any:  # noqa: ANN401 - a number, several, or a frame
    """Released values without those that are noise over the whole outer range: they would look like numbers."""
    gone = [name for name, nothing in zip(names, lost, strict=True) if nothing]
    if hasattr(value, "columns"):
        return value.assign(**{name: math.nan for name in gone if name in value.columns})
    if isinstance(value, list):
        return [math.nan if nothing else one for one, nothing in zip(value, lost, strict=True)]
    return math.nan if gone else value


def in_words(pairs: Mapping[str, Sequence[float]], paid: Decimal, blind: Mapping[str, NothingFound]) -> str:
    """Which bounds were found, or why none, and what that cost."""
    if blind:
        found = next(iter(blind.values()))
        which = f" for {', '.join(blind)}" if len(pairs) > 1 else ""
        help = found.help[0].upper() + found.help[1:]
        return f"{found.what} could be found{which} with ε = {plain(paid)} of this release: {found.why}. {help}"
    shown = {name: _shown(low, high) for name, (low, high) in pairs.items()}
    which = "; ".join(f"{text} for {name}" if len(shown) > 1 else text for name, text in shown.items())
    low, high = next(iter(pairs.values()))
    again = f"give bounds=({low:.12g}, {high:.12g})" if len(shown) == 1 else "give them as bounds"
    return f"{which} were found with ε = {plain(paid)} of this release; {again} to save that"


def _shown(low: float, high: float) -> str:
    """With digits enough to tell them apart."""
    digits = 3 + max(0, math.ceil(math.log10(max(abs(low), abs(high)) / (high - low))))
    return f"{written(low, digits)} to {written(high, digits)}"

"""Bounds that the analyst left out: found privately first, out of the same ε; then the question is asked with them.

One reading: the columns are copied once, noisy histograms of users over public cells are bought (`profiles/centre.py`), the bounds are read
from them, and the same road as for given bounds runs on the copy with the rest of ε. All checks are made before the debit, with bounds that
stand in for those to be found. Whatever is found passes them too, so nothing can be refused once rows have been read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from evenhand.guarantee import divide, exact_difference, exact_sum, plain, split
from evenhand.ledger import Cost, rho_with_pure
from evenhand.pages.numbers import rounded, written
from evenhand.profiles import FIRST_LOOK, Cut, Extent, Given, Look, added, look_around
from evenhand.release import Bounding, NothingFound, Receipt, noise_for
from evenhand.release.believed import Beyond, Unknown
from evenhand.release.intervals import noise_only
from evenhand.statistics.believed_groups import corrections
from evenhand.statistics.believed_means import corrected
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.frames import GroupedInterval, ListedInterval, frame
from evenhand.statistics.level_cells import (
    OPEN,
    cells_around,
    numbers_of_rows,
    totals_of_users,
    users_by_cell,
    weighted_once,
)
from evenhand.statistics.mean import Mean
from evenhand.statistics.rank_intervals import RankInterval
from evenhand.statistics.ranks import OfRanks
from evenhand.statistics.ratio import RatioOf
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Estimate, Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.variance import RootInterval, Std, Variance
from evenhand.statistics.wanted_bounds import WantedBounds, further
from evenhand.statistics.weighted_rows import FULL, WEIGHT
from evenhand.tables import Bounds, OpenBounds, Table
from evenhand.tables.expressions import Rows

SHARE = Decimal("0.15")
"""Of ε, for finding bounds: with it 300 users at ε = 0.5 mostly stand out, and the rest of the release has 1.18 times the noise. As much again
is in reserve for where it is not enough: bounds many times too wide cost far more."""

By: TypeAlias = str | Sequence[str] | None
Ask: TypeAlias = Callable[[Request, Mapping[str, Statistic]], Draft]


def with_bounds(request: Request, statistics: Mapping[str, Statistic], by: By, ask: Ask) -> Draft:
    """The draft of a question, after bounds have been found for those statistics that lack them.

    Args:
        request: table, ε and bounding.
        statistics: by name; some may lack bounds.
        by: the group columns.
        ask: makes the draft, given a request and statistics that have bounds.
    """
    if not any(statistic.wants_bounds for statistic in statistics.values()):
        return ask(request, statistics)
    return _Finding(request, statistics, (by,) if isinstance(by, str) else tuple(by or ()), ask).draft()


@dataclass(frozen=True)
class _Finding:
    request: Request
    statistics: Mapping[str, Statistic]
    by: tuple[str, ...]
    ask: Ask

    @property
    def wants(self) -> list[WantedBounds]:
        """What is to be found, statistic after statistic."""
        return [want for statistic in self.statistics.values() for want in statistic.wants_bounds]

    @property
    def columns(self) -> list[str]:
        """The columns whose values are looked at."""
        return list(dict.fromkeys(want.column for want in self.wants))

    @property
    def _totals(self) -> list[str]:
        """Those of them of which users' totals are looked at too."""
        return list(dict.fromkeys(want.column for want in self.wants if want.total))

    def draft(self) -> Draft:
        """Work the release out from public facts."""
        for want in self.wants:
            self.request.table.require(want.column, "value column")
        paid, left = split(self.request.epsilon, SHARE)
        # Profiles of totals belong to the bounds they were bought with; which of them would serve is not known before the debit.
        request = replace(self.request, epsilon=left, shelf=self.request.shelf.of_rows())
        stand_ins = self._bounded([_stand_in(want.given, self._least) for want in self.wants])
        drafted = self.ask(request, stand_ins)
        assert drafted.cost is not None  # bounds are wanted of what is private
        searches = len(self.columns) + len(self._totals)
        each, moves = divide(paid, searches), FULL * request.relation.moves
        noise_for(moves, moves**2, split(each, FIRST_LOOK)[0])  # refuses an ε whose noise does not fit 64 bits
        # A ρ that was debited is for one division of ε; without one, what is left when reserves are spent must do as well.
        reserve = each if drafted.cost.rho is None else Decimal(0)
        # What is drafted with all of ε and with the least that may be left is drafted with anything between: only noise grows.
        if reserve:
            least = exact_difference(self.request.epsilon, exact_sum([each] * (2 * searches)))
            self.ask(replace(request, epsilon=least), stand_ins)
        read = [*dict.fromkeys(name for statistic in stand_ins.values() for name in statistic.reads), *self.by]
        twice = ", twice that if too little is visible" if reserve else ""
        will = f"bounds of {', '.join(self.columns)} will be found privately, for {float(SHARE):.0%} of ε{twice}"
        bounding = replace(drafted.bounding, words=f"{drafted.bounding.words}; {will}")

        def run(receipt: Receipt) -> Outcome:
            with _copied(self.request.table, read) as copy:
                extents, spent = self._found(copy, each, reserve, receipt)
                found = self._bounded([(one.low, one.high) for one in extents])
                inner = self.ask(
                    replace(request, table=copy, epsilon=exact_difference(self.request.epsilon, spent)), found
                )
                return self._told(inner.run(receipt), inner, found, extents, spent)

        return replace(
            drafted,
            guarantee=replace(drafted.guarantee, epsilon=self.request.epsilon),
            cost=_together(drafted.cost, paid, self.request.epsilon),
            query={**drafted.query, **self._query(drafted), "finding": float(paid)},
            bounding=bounding,
            run=run,
        )

    def _bounded(self, found: Sequence[Bounds]) -> dict[str, Statistic]:
        """The statistics with their bounds."""
        left = iter(found)
        return {
            name: statistic.with_bounds([next(left) for _ in statistic.wants_bounds])
            for name, statistic in self.statistics.items()
        }

    def _found(self, copy: Table, epsilon: Decimal, reserve: Decimal, receipt: Receipt) -> tuple[list[Extent], Decimal]:
        """The bounds, read from the noisy histograms of each column, and what those cost."""
        moves, parts = self.request.relation.moves, list[Decimal]()

        def looked(rows: Rows, given: Given) -> Look:
            with weighted_once(copy, rows) as weighted:

                def buy(centre: float, paid: Decimal) -> list[float]:
                    parts.append(paid)
                    with cells_around(copy, weighted, centre, [WEIGHT]) as placed:
                        return [count / FULL for count in receipt.numbers(users_by_cell(copy, placed), paid).values]

                return look_around(buy, epsilon, moves, given, reserve)

        values, totals = {}, {}
        for column in self.columns:
            with numbers_of_rows(copy, column) as numbers:
                values[column] = looked(numbers, self._given(column, total=False))
        for column in self._totals:
            rows = values[column].extent(_ROWS_OF_TOTALS * float(self.request.epsilon), (None, None))
            if not rows.visible:  # a grid over the outer range would round everything to zero
                totals[column] = values[column]
                continue
            with totals_of_users(copy, column, further(rows.low, rows.high)) as sums:
                totals[column] = looked(sums, self._given(column, total=True))
        spent = max(exact_sum(parts), split(self.request.epsilon, SHARE)[0])
        left = float(exact_difference(self.request.epsilon, spent))
        return [
            self._fitting(
                want,
                (totals if want.total else values)[want.column].extent(
                    self._ease(want) * left, want.given, want.outside, want.narrowest, want.power
                ),
            )
            for want in self.wants
        ], spent

    def _given(self, column: str, total: bool) -> Given:
        """The bounds that were given for a column, if all who want some agree."""
        given = {want.given for want in self.wants if want.column == column and want.total == total}
        return given.pop() if len(given) == 1 else (None, None)

    def _ease(self, want: WantedBounds) -> float:
        """How many times cheaper a wide bound is than for a mean: where a user's total is capped, it hardly matters."""
        return 1.0 if self.request.relation.counts_are_public else want.ease

    def _roomy(self, want: WantedBounds) -> bool:
        """Whether a user's total is capped: then wide bounds cost nothing, and narrow ones cut what no cap shows."""
        request = self.request
        capped = request.named is None or request.named.bounds_values
        return capped and (want.total or self._ease(want) > 1) and request.auto.profile is None

    def _fitting(self, want: WantedBounds, found: Extent) -> Extent:
        """Whole numbers for a column of integers; and room for a cap that was given, so that no noise is too large for it."""
        low, high = further(found.low, found.high, want.given) if self._roomy(want) else (found.low, found.high)
        least = self._least
        if least:
            low = min(low, -least if low < 0 else 0.0) if want.given[0] is None else low
            high = max(high, low + least, 0.0) if want.given[1] is None else high
            low = min(low, high - least) if want.given[0] is None else low
        dtype = self.request.table.expression.schema()[want.column]
        if dtype.is_integer() or dtype.is_boolean():
            low = math.floor(low) if want.given[0] is None else low
            high = math.ceil(high) if want.given[1] is None else high
        return replace(found, low=float(low), high=float(high))

    @property
    def _least(self) -> float:
        """The least size of bounds with which a cap that was given fits the integers; 0 if there is none."""
        cap = None if self.request.strategy is None else self.request.strategy.caps_rows_at
        return 0.0 if cap is None else cap * 2.0**-_CAP_BITS

    def _told(
        self,
        outcome: Outcome,
        inner: Draft,
        bounded: Mapping[str, Statistic],
        extents: Sequence[Extent],
        paid: Decimal,
    ) -> Outcome:
        """The outcome, with what was found, what that cost, and what lies beyond it."""
        by_owner = {
            owner: Found(
                self.statistics[owner],
                bounded[owner],
                [one for name, one in zip(self._owners, extents, strict=True) if name == owner],
            )
            for owner in dict.fromkeys(self._owners)
        }
        outcome = completed(outcome, by_owner, self._owner)
        pairs = {name: [one.low, one.high] for name, one in zip(self._names(), extents, strict=True)}
        alone = next(iter(pairs.values())) if len(pairs) == 1 else pairs
        nothing = [
            nothing_found(one, self.statistics[owner].name, outcome.value)
            for owner, one in zip(self._owners, extents, strict=True)
        ]
        words = in_words(pairs, paid, {name: why for name, why in zip(pairs, nothing, strict=True) if why})
        details = {**outcome.details, "bounds": alone, "finding": {"epsilon": float(paid), "words": words}}
        rules = dict(outcome.rules or inner.rules)
        names = list(rules) or list(outcome.value.columns if hasattr(outcome.value, "columns") else ("",))
        for owner, why in zip(self._owners, nothing, strict=True):
            rules |= {name: why for name in names if why and self._owner(name) == owner}
        lost = [isinstance(rule := rules.get(name), NothingFound) and rule.says_nothing for name in names]
        return replace(outcome, value=unanswered(outcome.value, names, lost), details=details, rules=rules)

    @property
    def _owners(self) -> list[str]:
        """Which statistic wants each pair of bounds."""
        return [name for name, statistic in self.statistics.items() for _ in statistic.wants_bounds]

    def _owner(self, column: str) -> str:
        """Which statistic a column of the result belongs to: it is called after it, if there are several."""
        if len(self.statistics) == 1:
            return next(iter(self.statistics))
        return max((name for name in self.statistics if f"{column}_".startswith(f"{name}_")), key=len, default="")

    def _names(self) -> list[str]:
        """What each pair of bounds is of: the column, or the statistic where several are of one column."""
        wants = self.wants
        if len(wants) == len(self.columns):
            return [want.column for want in wants]
        owners = self._owners
        return owners if len(set(owners)) == len(owners) else [f"{name}.{place}" for place, name in enumerate(owners)]

    def _query(self, drafted: Draft) -> dict[str, Any]:
        """The public parameters as they were given."""
        queries = {name: statistic.query for name, statistic in self.statistics.items()}
        if len(queries) == 1:
            return next(iter(queries.values()))
        if "parts" in drafted.query:
            return {"parts": queries}
        return {"bounds": [query["bounds"] for query in queries.values()]}


_CAP_BITS = 20
"""A cap is at most 2^20 times the bounds that are found: then its integers fit."""


_ROWS_OF_TOTALS = 100.0
"""How many times cheaper wide bounds of rows are than for a mean, where only totals are bounded."""


@contextmanager
def _copied(table: Table, names: Sequence[str]) -> Iterator[Table]:
    """One reading of the columns that a release needs; the copy is asked as the table itself would be."""
    with table.once(names) as copy:
        yield replace(copy, positional=False)


def _stand_in(given: OpenBounds, least: float) -> Bounds:
    """Bounds to check a question with: just below a power of two, and far beyond what was given, so that a grid has the largest integers."""
    low, high = given
    size = max(abs(low or 0.0), abs(high or 0.0), least, 1.0)
    far = (1 - 2.0**-_STAND_IN_BITS) * 2.0 ** (math.frexp(size)[1] + _STAND_IN_BITS)
    return -far if low is None else low, far if high is None else high


_STAND_IN_BITS = 20


def _together(cost: Cost, paid: Decimal, epsilon: Decimal) -> Cost:
    """The cost of a release and of a pure part before it: ε adds up, δ stays, and ρ grows by that of the pure part."""
    if cost.rho is None:
        return replace(cost, epsilon=epsilon)
    return replace(cost, epsilon=epsilon, rho=rho_with_pure(Fraction(cost.rho), paid))


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

"""Several statistics about one reading of which some are no sums over rows, such as numbers of different values: each asked by itself, in one frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from evenhand.bounding import Auto
from evenhand.guarantee import divide, split
from evenhand.release import Ends, Error, Interval, Receipt, Rule
from evenhand.release.intervals import covers, judged, noise_only, why_not
from evenhand.statistics.asking import By, ask_one, ask_together
from evenhand.statistics.draft import EXACT, UNBOUNDED, Draft, Outcome
from evenhand.statistics.request import Request
from evenhand.statistics.several import joint_bounding
from evenhand.statistics.statistic import Statistic
from evenhand.tables import Table

if TYPE_CHECKING:
    import pandas as pd


def ask_beside(
    request: Request, statistics: Mapping[str, Statistic], by: By, keys: object, other: str | None, limit: object
) -> Draft:
    """The draft of statistics that share ε equally, in one frame; its groups, if there are any, are public."""
    request = replace(request, delta=Decimal(0), shelf=request.shelf.frozen())
    summed = {name: one for name, one in statistics.items() if one.aggregates}
    paid, left = split(request.epsilon, Fraction(len(summed), len(statistics)))
    alone = divide(left, len(statistics) - len(summed))

    def drafts(table: Table) -> list[tuple[str, Draft]]:
        free = replace(request, table=table, epsilon=alone, strategy=None, auto=Auto())
        apart = [  # first, since they say which groups they can have
            (name, ask_one(free, one, by, keys, other, None, name=name if by else None))
            for name, one in statistics.items()
            if name not in summed
        ]
        paying = replace(request, table=table, epsilon=paid)
        return [*([("", ask_together(paying, summed, by, keys, other, limit))] if summed else []), *apart]

    each = drafts(request.table)
    order = list(statistics)

    def run(receipt: Receipt) -> Outcome:
        with _copied(request.table, statistics.values(), by) as copy:
            return _in_one_frame([(name, draft.run(receipt)) for name, draft in drafts(copy)], order)

    first = each[0][1]
    public = all(draft.cost is None for _, draft in each)
    rules = {place or name: rule for place, draft in each for name, rule in draft.rules.items()}
    units = {place or name: unit for place, draft in each for name, unit in draft.units.items()}
    bounding = joint_bounding(
        {name or "sums": draft.bounding for name, draft in each if draft.bounding is not UNBOUNDED}
    )
    facts: dict[str, Any] = {}
    for _, draft in each:
        facts |= draft.query.get("facts", {})
    columns = {"by": list(by)} if by and not isinstance(by, str) else {"by": by} if by else {}
    query = {
        "statistic": "aggregate",
        "parts": {name: one.query for name, one in statistics.items()},
        **columns,
        **({"facts": facts} if facts else {}),
        "bounding": bounding.to_dict(),
    }
    earlier = (purchase for _, draft in each for purchase in draft.guarantee.earlier)
    words = ", ".join(one.words for one in statistics.values()) + (
        f" by {by if isinstance(by, str) else ', '.join(by)}" if by else ""
    )
    return Draft(
        words,
        request.free if public else request.guarantee().resting_on(*earlier),
        None if public else request.pure(),
        query,
        bounding,
        EXACT if public else Error(None),
        run,
        rules=rules,
        foreseen=lambda: {place or name: told for place, draft in each for name, told in draft.foreseen().items()},
        units=units,
        source=first.source,
        engine=first.engine,
    )


@contextmanager
def _copied(table: Table, statistics: Iterable[Statistic], by: By) -> Iterator[Table]:
    """One reading: the columns that are asked about, kept in the engine under their own names."""
    wanted = {*table.user, *((by,) if isinstance(by, str) else by or ())}
    for one in statistics:
        wanted |= {*one.reads, *([one.column] if hasattr(one, "column") else [])}
    names = [name for name in table.columns if name in wanted]
    with table.engine.kept(table.expression.select(*names)) as copy:
        yield replace(table, expression=copy)


def _in_one_frame(outcomes: Sequence[tuple[str, Outcome]], order: Sequence[str]) -> Outcome:
    parts = tuple(_Part(name, outcome.value, outcome.interval) for name, outcome in outcomes)
    beside = BesideInterval(parts, tuple(order))
    errors: dict[str, float | None] = {}
    details: dict[str, Any] = {}
    rules: dict[str, Rule] = {}
    for name, outcome in outcomes:
        errors |= {name: outcome.error.noise} if name and not outcome.error.parts else dict(outcome.error.parts)
        details = {**outcome.details, **details}
        rules |= {name or column: rule for column, rule in outcome.rules.items()}
    bounding = joint_bounding({name or "sums": one.bounding for name, one in outcomes if one.bounding is not UNBOUNDED})
    return Outcome(beside.values, beside, bounding, Error(None, parts=errors), details, rules=rules)


@dataclass(frozen=True)
class _Part:
    """One of the outcomes: a frame, or a number with the column that it gets."""

    name: str
    value: Any
    interval: Interval

    def columns(self, ends: Ends | None = None) -> pd.DataFrame:
        import pandas as pd

        if hasattr(self.value, "columns"):
            frame: pd.DataFrame = self.value if ends is None else ends
            return frame
        named = {self.name: [self.value]}
        if ends is not None:
            named |= {f"{self.name}_low": [ends[0]], f"{self.name}_high": [ends[1]]}
        return pd.DataFrame(named)


@dataclass(frozen=True)
class BesideInterval:
    """Intervals of several outcomes about the same groups, in one frame."""

    parts: tuple[_Part, ...]
    order: tuple[str, ...]

    @property
    def values(self) -> pd.DataFrame:
        """The released numbers."""
        return self._side_by_side(lambda part: part.columns())

    @property
    def covers(self) -> str:
        """What the intervals cover, in words."""
        return "; ".join(dict.fromkeys(covers(part.interval) for part in self.parts))

    @property
    def noise_only(self) -> BesideInterval:
        """The noise alone."""
        return self._each(noise_only)

    @property
    def judged(self) -> BesideInterval:
        """What a verdict reads."""
        return self._each(judged)

    @property
    def whys(self) -> dict[str, list[str]]:
        """By column, why the interval of a group can't tell; empty where it can."""
        found: dict[str, list[str]] = {}
        for part in self.parts:
            grouped = getattr(part.interval, "whys", None)
            found |= grouped if isinstance(grouped, dict) else {part.name: [why_not(part.interval)]}
        return found

    @property
    def sizes(self) -> dict[str, list[float | None]]:
        """About how many rows each estimate is about, where that is released."""
        found: dict[str, list[float | None]] = {}
        for part in self.parts:
            found |= getattr(part.interval, "sizes", {})
        return found

    def each(self, name: str) -> list[Interval]:
        """The interval of every group, of one column."""
        for part in self.parts:
            if hasattr(part.value, "columns") and name in part.value.columns:
                found: list[Interval] = cast("Any", part.interval).each(name)
                return found
        return [part.interval for part in self.parts if part.name == name]

    def at(self, confidence: float) -> Ends:
        return self._side_by_side(lambda part: part.columns(part.interval.at(confidence)))

    def _each(self, of: Callable[[Interval], Interval]) -> BesideInterval:
        return replace(self, parts=tuple(replace(part, interval=of(part.interval)) for part in self.parts))

    def _side_by_side(self, of: Callable[[_Part], pd.DataFrame]) -> pd.DataFrame:
        """The columns in their order: those of the groups first."""
        import pandas as pd

        frames = [of(part).reset_index(drop=True) for part in self.parts]
        found = pd.concat(frames, axis=1)
        found = found.loc[:, ~found.columns.duplicated()]
        numbers = [column for name in self.order for column in (name, f"{name}_low", f"{name}_high") if column in found]
        return found[[*(column for column in found.columns if column not in numbers), *numbers]]

"""HAVING, ORDER BY and LIMIT on what was released: made of noisy numbers only, so it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from evenhand.release import Ends, Interval, Receipt
from evenhand.release.intervals import covers, judged, noise_only
from evenhand.sql.arithmetic import Expression, number_in
from evenhand.statistics import Draft, Outcome


@dataclass(frozen=True)
class Order:
    """What the result is sorted by, and its direction."""

    value: Expression
    descending: bool = False


def ordered(
    draft: Draft,
    by: Sequence[Order],
    limit: int | None,
    test: Callable[[Mapping[str, Any]], bool | None] | None,
    hidden: Sequence[str] = (),
) -> Draft:
    """The draft of a release whose groups are sorted, and of which only those that meet a condition, and the first of them, are kept; without the
    ``hidden`` columns, which only told which.
    """
    if not by and limit is None and test is None and not hidden:
        return draft

    def run(receipt: Receipt) -> Outcome:
        outcome = draft.run(receipt)
        if not hasattr(outcome.value, "columns"):
            return outcome
        rows = outcome.value.to_dict("records")
        places = [place for place in _places(outcome.value, by) if test is None or test(rows[place])][:limit]
        kept = outcome.value.iloc[places].reset_index(drop=True).drop(columns=list(hidden))
        error = replace(
            outcome.error, parts={name: noise for name, noise in outcome.error.parts.items() if name not in hidden}
        )
        return replace(
            outcome, value=kept, interval=Picked(outcome.interval, tuple(places), tuple(hidden)), error=error
        )

    return replace(draft, run=run)


def _places(frame: Any, by: Sequence[Order]) -> list[int]:  # noqa: ANN401 - a pandas frame
    """The rows of a frame in their order; what is missing comes last."""
    places = list(range(len(frame)))
    for each in reversed(by):  # the last first: each sort keeps what the others did
        ranks = [rank(number_in(row, each.value)) for row in frame.to_dict("records")]
        present = sorted((place for place in places if ranks[place]), key=lambda at: ranks[at], reverse=each.descending)
        places = [*present, *(place for place in places if not ranks[place])]
    return places


def rank(value: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a cell of a frame
    """What a value is sorted by, of any type: nothing may raise once the release is paid for. Empty if it is missing."""
    if value is None or value != value:
        return ()
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return (0, float(value) if isinstance(value, float | np.floating) else int(value), "")
    return (1, 0, str(value))


@dataclass(frozen=True)
class Picked:
    """Some rows of the intervals of all groups, in another order."""

    interval: Interval
    places: tuple[int, ...]
    hidden: tuple[str, ...] = ()

    @property
    def covers(self) -> str:
        """What the intervals cover, in words."""
        return covers(self.interval)

    @property
    def noise_only(self) -> Picked:
        """The noise alone."""
        return replace(self, interval=noise_only(self.interval))

    @property
    def judged(self) -> Picked:
        """What a verdict reads."""
        return replace(self, interval=judged(self.interval))

    @property
    def whys(self) -> dict[str, list[str]]:
        """By column, why the interval of a group can't tell; empty where it can."""
        return self._picked(getattr(self.interval, "whys", {}))

    @property
    def sizes(self) -> dict[str, list[float | None]]:
        """About how many rows each estimate is about, where that is released."""
        return self._picked(getattr(self.interval, "sizes", {}))

    def each(self, name: str) -> list[Interval]:
        """The interval of every group that was picked, of one column."""
        found: list[Interval] = cast("Any", self.interval).each(name)
        return [found[place] for place in self.places]

    def _picked(self, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {
            name: [column[place] for place in self.places]
            for name, column in columns.items()
            if name not in self.hidden
        }

    def at(self, confidence: float) -> Ends:
        ends = [f"{name}{end}" for name in self.hidden for end in ("", "_low", "_high")]
        return self.interval.at(confidence).iloc[list(self.places)].reset_index(drop=True).drop(columns=ends)

"""One statistic of several columns: each by itself, with its share of ε.

For values in a box this is the right way to clip a vector: rameshwar2024's joint rule (Lemma III.3) understates how far one
user can move it (docs/proofs/centred-interval.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from evenhand.guarantee import UsageError, divide, exact_sum
from evenhand.release import Bounding, Error, Interval, Receipt
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.request import Request


@dataclass(frozen=True)
class Intervals:
    """The intervals of several columns, as a list of pairs."""

    each: tuple[Interval, ...]

    def at(self, confidence: float) -> Any:
        return [interval.at(confidence) for interval in self.each]


def draft_columns(
    request: Request, draft: Callable[[Request, str, Any], Draft], columns: str | Sequence[str], bounds: Any
) -> Draft:
    """Draft a statistic of one column, or of several that share ε equally."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):  # a wrong type is refused below
        return draft(request, columns, bounds)
    if not columns or len(set(columns)) < len(columns):
        raise UsageError(f"columns {list(columns)}: expected one or more different names.")
    # Drafted again below, once there is a copy to ask: on the same shelf, so that it is the same draft.
    share = replace(request, epsilon=divide(request.epsilon, len(columns)), shelf=request.shelf.frozen())
    pairs = bounds_of(columns, bounds)
    drafts = [draft(share, column, pair) for column, pair in zip(columns, pairs, strict=True)]
    query = {**drafts[0].query, "column": list(columns), "bounds": [each.query["bounds"] for each in drafts]}

    def run(receipt: Receipt) -> Outcome:
        with request.table.once(columns) as copy:  # all columns are about one reading
            about = replace(share, table=copy)
            each = [draft(about, column, pair) for column, pair in zip(columns, pairs, strict=True)]
            outcomes = [one.run(receipt) for one in each]
        noises = {name: outcome.error.noise for name, outcome in zip(columns, outcomes, strict=True)}
        bounding = Bounding(
            ", ".join(dict.fromkeys(outcome.bounding.strategy for outcome in outcomes)),
            None,
            "; ".join(f"{name}: {one.bounding.words}" for name, one in zip(columns, outcomes, strict=True)),
            outcomes[0].bounding.chosen,
            exact_sum(outcome.bounding.epsilon or Decimal(0) for outcome in outcomes) or None,
        )
        return Outcome(
            [outcome.value for outcome in outcomes],
            Intervals(tuple(outcome.interval for outcome in outcomes)),
            bounding,
            Error(None, parts=noises),
        )

    words = ", ".join(each.statistic for each in drafts)
    promise = request.guarantee().resting_on(*(purchase for each in drafts for purchase in each.guarantee.earlier))
    return Draft(words, promise, request.pure(), query, drafts[0].bounding, Error(None), run)


def bounds_of(columns: Sequence[str], bounds: Any) -> list[Any]:
    """One pair of bounds a column: ``bounds`` is one pair for all, or a list of pairs."""
    several = list(bounds) if bounds is not None else [None] * len(columns)
    if len(several) == 2 and all(isinstance(bound, int | float) for bound in several):
        several = [tuple(several)] * len(columns)
    if len(several) != len(columns):
        raise UsageError(
            f"bounds= holds {len(several)} pairs for {len(columns)} columns; expected one pair for all, or one pair a column."
        )
    return several

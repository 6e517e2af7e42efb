"""One statistic of several columns without groups: each by itself, with its share of ε.

For values in a box this is the right way to clip a vector: rameshwar2024's joint rule (Lemma III.3) understates how far one
user can move it (docs/proofs/centred-interval.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from evenhand.guarantee import divide, exact_sum
from evenhand.release import Bounding, Error, Receipt
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.frames import ListedInterval
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import OfColumn


def ask_several(request: Request, columns: Mapping[str, OfColumn]) -> Draft:
    """Columns that share ε equally, on one reading."""
    # Drafted again below, once there is a copy to ask: on the same shelf, so that it is the same draft.
    share = replace(request, epsilon=divide(request.epsilon, len(columns)), shelf=request.shelf.frozen())
    drafts = _each(share, columns)
    query = {**drafts[0].query, "column": list(columns), "bounds": [each.query["bounds"] for each in drafts]}

    def run(receipt: Receipt) -> Outcome:
        with request.table.once(list(columns)) as copy:
            outcomes = [one.run(receipt) for one in _each(replace(share, table=copy), columns)]
        named = dict(zip(columns, outcomes, strict=True))
        bounding = Bounding(
            ", ".join(dict.fromkeys(outcome.bounding.strategy for outcome in outcomes)),
            None,
            "; ".join(f"{name}: {one.bounding.words}" for name, one in named.items()),
            outcomes[0].bounding.chosen,
            exact_sum(outcome.bounding.epsilon or Decimal(0) for outcome in outcomes) or None,
        )
        return Outcome(
            [outcome.value for outcome in outcomes],
            ListedInterval([outcome.interval for outcome in outcomes]),
            bounding,
            Error(None, parts={name: outcome.error.noise for name, outcome in named.items()}),
        )

    words = ", ".join(each.statistic for each in drafts)
    earlier = (purchase for each in drafts for purchase in each.guarantee.earlier)
    return Draft(
        words, request.guarantee().resting_on(*earlier), request.pure(), query, drafts[0].bounding, Error(None), run,
        {name: statistic.rule for name, statistic in columns.items()},
    )  # fmt: skip


def _each(request: Request, columns: Mapping[str, OfColumn]) -> list[Draft]:
    drafts = [statistic.ungrouped(request) for statistic in columns.values()]
    return [draft for draft in drafts if draft is not None]

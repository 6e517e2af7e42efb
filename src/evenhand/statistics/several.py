"""One statistic of several columns without groups: each by itself, with its share of ε.

For values in a box this is the right way to clip a vector: rameshwar2024's joint rule (Lemma III.3) understates how far one
user can move it (docs/proofs/centred-interval.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from evenhand.guarantee import divide, exact_sum
from evenhand.release import Bounding, Error, Receipt
from evenhand.statistics.draft import UNBOUNDED, Draft, Outcome
from evenhand.statistics.frames import ListedInterval
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Statistic


def ask_several(request: Request, columns: Mapping[str, Statistic]) -> Draft:
    """Columns that share ε equally, on one reading."""
    share = replace(request, epsilon=divide(request.epsilon, len(columns)))
    drafts, outcomes_of = on_one_reading([share] * len(columns), columns)
    query = {**drafts[0].query, "column": list(columns), "bounds": [each.query["bounds"] for each in drafts]}

    def run(receipt: Receipt) -> Outcome:
        named = outcomes_of(receipt)
        outcomes = list(named.values())
        return Outcome(
            [outcome.value for outcome in outcomes],
            ListedInterval([outcome.interval for outcome in outcomes]),
            joint_bounding({name: outcome.bounding for name, outcome in named.items()}),
            Error(None, parts={name: outcome.error.noise for name, outcome in named.items()}),
        )

    words = ", ".join(each.statistic for each in drafts)
    earlier = (purchase for each in drafts for purchase in each.guarantee.earlier)
    return Draft(
        words, request.guarantee().resting_on(*earlier), request.pure(), query, drafts[0].bounding, Error(None), run,
        {name: statistic.rule for name, statistic in columns.items()},
    )  # fmt: skip


def on_one_reading(
    requests: Sequence[Request], statistics: Mapping[str, Statistic]
) -> tuple[list[Draft], Callable[[Receipt], dict[str, Outcome]]]:
    """Drafts of statistics of one table without groups, each with its share of ε, and what runs them all on one reading."""
    # Drafted again once there is a copy to ask: on the same shelf, so that it is the same draft.
    frozen = [replace(request, shelf=request.shelf.frozen()) for request in requests]
    drafts = _each(frozen, statistics)
    names = [name for statistic in statistics.values() for name, _ in statistic.columns]

    def run(receipt: Receipt) -> dict[str, Outcome]:
        with requests[0].table.once(names) as copy:
            again = _each([replace(request, table=copy) for request in frozen], statistics)
            return {name: one.run(receipt) for name, one in zip(statistics, again, strict=True)}

    return drafts, run


def joint_bounding(parts: Mapping[str, Bounding]) -> Bounding:
    """How several statistics bound users, as one."""
    if not parts:
        return UNBOUNDED
    first = next(iter(parts.values()))
    if all(bound == first for bound in parts.values()):
        return first
    return Bounding(
        ", ".join(dict.fromkeys(bound.strategy for bound in parts.values())),
        None,
        "; ".join(f"{name}: {bound.words}" for name, bound in parts.items()),
        first.chosen,
        exact_sum(bound.epsilon or Decimal(0) for bound in parts.values()) or None,
    )


def _each(requests: Sequence[Request], statistics: Mapping[str, Statistic]) -> list[Draft]:
    drafts = [statistic.ungrouped(one) for one, statistic in zip(requests, statistics.values(), strict=True)]
    return [draft for draft in drafts if draft is not None]

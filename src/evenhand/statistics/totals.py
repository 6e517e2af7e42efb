"""Groups and their total, released once and consistent: ``count(by="month", totals=True)``.

What no group holds goes into one for the rest, so that the groups hold every row. Of many groups the sum is noisy, so the total is measured too, with
a part of ε, and both are fitted to one another by least squares: noise, and what bounding probably took, weigh alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from evenhand.guarantee import UsageError, split
from evenhand.ledger import Cost
from evenhand.release import Receipt, Release
from evenhand.release.arithmetic import deviations, number, operand, released
from evenhand.release.operands import computed, known, with_margins
from evenhand.statistics.draft import Draft, Outcome
from evenhand.statistics.request import Request
from evenhand.statistics.statistic import Statistic

TOTAL_SHARE = Fraction(1, 5)
"""Of ε, for the total of many groups. Its own noise is then below that of their sum, and theirs grows by a quarter."""
FEW = 9
"""Groups up to which a sum is no noisier than a total measured with `TOTAL_SHARE`: 1/G > (4/5)²/G + (1/5)² fails from here on."""
REST, TOTAL = "other", "total"


def with_totals(
    request: Request,
    statistic: Statistic,
    ask: Callable[[Request, bool], Draft],
    columns: Sequence[str],
    groups: int | None,
    labels: set[str],
) -> Draft:
    """The draft of groups and their total.

    Args:
        request: with all of ε.
        statistic: additive.
        ask: the draft of the groups, or of the total alone, with a part of it.
        columns: that both read.
        groups: how many; None if that is not known before.
        labels: of the groups, as far as they are known.
    """
    if not statistic.additive:
        raise UsageError(
            f"totals=True with {statistic.name}: groups of it don't add up, because one user may be in several or it is an average; "
            "expected a count or a sum. Ask for the total itself, without by=."
        )
    if statistic.wants_bounds:
        raise UsageError(
            f"totals=True with {statistic.words}: give bounds=(low, high), so that groups and total are clamped alike."
        )
    label = TOTAL
    while label in labels:
        label = f"({label})"
    alone, rest = (
        (None, request.epsilon) if groups is not None and groups <= FEW else split(request.epsilon, TOTAL_SHARE)
    )
    drafts = _drafts(request, ask, rest, alone)
    if drafts[0].cost is None:
        alone = None  # public: nothing is noisy
    first = drafts[0]

    def run(receipt: Receipt) -> Outcome:
        if alone is None:
            return first.run(receipt)
        with request.table.once(columns) as copy:
            again = _drafts(replace(request, table=copy), ask, rest, alone)
            by_group, total = (draft.run(receipt) for draft in again)
        return replace(by_group, total=total)

    def finish(release: Release, outcome: Outcome) -> Release:
        one = operand(release)
        if one.keys is None or not len(one.values):
            return release
        whole = all(float(value).is_integer() for value in one.values)
        if outcome.total is not None:
            total = number(release, TOTAL, float(outcome.total.value), outcome.total.interval)
            own, joint = deviations(one) ** 2, float(deviations(one.total())[0] ** 2)
            moved = joint / max(joint + float(deviations(total)[0] ** 2), 1e-300)
            gains = moved * own / max(float(own.sum()), 1e-300)
            gap = computed("-", total, one.total())
            one = replace(
                computed("+", one, computed("×", known(gains, one.keys), gap)), words=one.words, column=one.column
            )
        return released(release, {one.column: with_margins(one, label, whole)}, release.event)

    cost = first.cost and (
        Cost.approximate(request.epsilon, first.cost.delta) if first.cost.delta else Cost.pure(request.epsilon)
    )
    guarantee = replace(first.guarantee, epsilon=request.epsilon) if cost else first.guarantee
    earlier = (purchase for draft in drafts for purchase in draft.guarantee.earlier)  # the total may rest on others
    return replace(
        first,
        statistic=f"{first.statistic}, with totals",
        guarantee=guarantee.resting_on(*earlier),
        cost=cost,
        query={**first.query, "totals": True},
        run=run,
        finish=finish,
    )


def _drafts(
    request: Request, ask: Callable[[Request, bool], Draft], rest: Decimal, alone: Decimal | None
) -> list[Draft]:
    """Of the groups, and of the total if it is measured."""
    shared = replace(request, shelf=request.shelf.frozen())
    drafts = [ask(replace(shared, epsilon=rest), True)]
    return drafts if alone is None else [*drafts, ask(replace(shared, epsilon=alone, delta=Decimal(0)), False)]

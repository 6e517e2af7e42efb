"""A plan in plain words, for a person who has never heard of sensitivity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.bounding import STRATEGIES
from evenhand.guarantee import Relation, plain
from evenhand.pages.notebook import Card
from evenhand.pages.numbers import three_digits
from evenhand.planning.checking import EXPECTED

if TYPE_CHECKING:
    from evenhand.planning.plans import Plan
    from evenhand.planning.tables import Forecast

_THEOREMS = {
    "TotalCap": "amin2019, section 3: the ⌈1/ε⌉-th largest total",
    "CentredInterval": "rameshwar2024, Theorem III.1: E_OPT, the least of all interval lengths",
}

_KINDS = {
    "exact": "exactly",
    "bound": "at most, whatever the values are",
    "assumed": "under the assumptions below",
    "seen": "as far as the noisy profile shows",
}


def card(plan: Plan) -> Card:
    """What a notebook shows."""
    table = plan.table()
    title = f"Plan for a {plan.statistic} at ε = {plain(plan.epsilon)}"
    return Card(
        title, [("in words", explain(plan))], table.columns, [row.cells() for row in table.rows], plan.profile.mark
    )


def explain(plan: Plan) -> str:
    """Why this is the best bound: what it does, the two errors it balances, and what the forecast is based on."""
    best = plan.best
    parts = [
        f"For this {plan.statistic} at ε = {plain(plan.epsilon)} the best choice is {best.strategy} at {three_digits(best.bound)}: "
        f"{does(best)}.",
        _prices(best),
        f"The forecast error is {three_digits(best.error)}" + _relative(plan) + ", " + _KINDS[best.kind] + "."
        if plan.objective == EXPECTED
        else _worst_case(best),
        f"It is based on {plan.profile.basis}: {plan.profile.words}.",
    ]
    if plan.statistic == "mean" and plan.bounds is not None and plan.objective == EXPECTED:
        parts.append(assumptions(plan))
    if plan.relation is Relation.PRESENCE and plan.profile.guarantee is None and not plan.profile.mark:
        parts.append("This assumes a public bound. If it is chosen from the table instead, that costs part of ε.")
    text = " ".join(parts)
    return f"{plan.profile.mark}.\n{text}" if plan.profile.mark else text


def does(forecast: Forecast) -> str:
    """What a strategy does to a user, in one clause."""
    effect = next(strategy.effect for strategy in STRATEGIES if strategy.title == forecast.strategy)
    return effect.format(bound=three_digits(forecast.bound), half=three_digits(forecast.bound / 2))


def assumptions(plan: Plan) -> str:
    """What a forecast for a mean takes as given, in the unit of the values."""
    assert plan.bounds is not None
    length = plan.bounds[1] - plan.bounds[0]
    return (
        f"It assumes that a user's rows scatter by {three_digits(plan.assumed.row_sd * length)}, that user means scatter by "
        f"{three_digits(plan.assumed.spread * length)}, and that heavy users differ from the others by up to "
        f"{three_digits(plan.assumed.heterogeneity * length)} times the imbalance that the bound causes; change these if you know better."
    )


def _prices(best: Forecast) -> str:
    users = "No user is" if best.users_cut < 0.5 else f"About {best.users_cut:,.0f} users are"
    return (
        f"{users} cut off by it. A higher bound would need more noise, to hide what one user may then add "
        f"(now {three_digits(best.noise)}); a lower one would cut more off the busiest users and so bias the answer "
        f"(now {three_digits(best.bias)})."
    )


def _worst_case(best: Forecast) -> str:
    """What is proved, and by which theorem."""
    return (
        f"Whatever the values are, the mean absolute error is at most {three_digits(best.worst_case)} for these counts, the least of all bounds that are "
        f"compared ({_THEOREMS.get(best.strategy, 'docs/proofs/chi-square-bias.md')})."
    )


def _relative(plan: Plan) -> str:
    if not plan.value:
        return ""
    return f" ({100 * plan.best.error / plan.value:.2g}% of {plan.value:,.0f})"

"""What can be planned, and how it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, overload

from evenhand.bounding import HETEROGENEITY, ROW_SD, Assumptions
from evenhand.guarantee import Amount, Relation, UsageError, parse_delta, parse_epsilon, suggest
from evenhand.planning.by_group import GroupPlan, plan_groups
from evenhand.planning.checking import parse_objective, parse_value_bounds, part_of_range, relation_of, require_presence
from evenhand.planning.models import ModelPlan, plan_model
from evenhand.planning.plans import SPREAD, Plan, forecast
from evenhand.planning.rows_plan import RowsPlan, plan_rows
from evenhand.planning.selection import SelectionPlan, plan_selection
from evenhand.profiles import Profile
from evenhand.statistics import STATISTICS


@overload
def plan(
    statistic: Literal["erm"],
    profile: Profile,
    epsilon: Amount,
    *,
    dimension: int,
    delta: Amount,
    protects: Relation | str | None = None,
    heterogeneity: float | None = None,
    loss: str | None = None,
    classes: int | Sequence[float] | None = None,
    learnable: float | None = None,
    objective: str | None = None,
) -> ModelPlan: ...


@overload
def plan(
    statistic: Literal["erm"],
    profile: Profile,
    epsilon: Amount,
    *,
    dimension: int,
    protects: Relation | str | None = None,
    heterogeneity: float | None = None,
    loss: str | None = None,
    classes: int | Sequence[float] | None = None,
    learnable: float | None = None,
    objective: str | None = None,
) -> RowsPlan: ...


@overload
def plan(
    statistic: Literal["selection"],
    profile: Profile,
    epsilon: Amount,
    *,
    hypotheses: int,
    protects: Relation | str | None = None,
    heterogeneity: float | None = None,
    loss: str | None = None,
    classes: int | Sequence[float] | None = None,
    learnable: float | None = None,
    objective: str | None = None,
) -> SelectionPlan: ...


@overload
def plan(
    statistic: str,
    profile: Profile,
    epsilon: Amount,
    bounds: tuple[float, float] | None = None,
    protects: Relation | str | None = None,
    *,
    groups: int | Sequence[float],
    delta: Amount = 0,
    hidden: bool = False,
    groups_per_user: int | None = None,
) -> GroupPlan: ...


@overload
def plan(
    statistic: str,
    profile: Profile,
    epsilon: Amount,
    bounds: tuple[float, float] | None = None,
    protects: Relation | str | None = None,
    row_sd: float | None = None,
    heterogeneity: float | None = None,
    spread: float | None = None,
    points: int | None = None,
    *,
    objective: str | None = None,
) -> Plan: ...


def plan(
    statistic: str,
    profile: Profile,
    epsilon: Amount,
    bounds: tuple[float, float] | None = None,
    protects: Relation | str | None = None,
    row_sd: float | None = None,
    heterogeneity: float | None = None,
    spread: float | None = None,
    points: int | None = None,
    *,
    groups: int | Sequence[float] | None = None,
    delta: Amount | None = None,
    hidden: bool = False,
    groups_per_user: int | None = None,
    dimension: int | None = None,
    hypotheses: int | None = None,
    loss: str | None = None,
    classes: int | Sequence[float] | None = None,
    learnable: float | None = None,
    objective: str | None = None,
) -> Plan | GroupPlan | ModelPlan | RowsPlan | SelectionPlan:
    """Forecast the error of a release for every strategy and a range of bounds; with ``groups=``, of a release by group.

    ``plan("erm", ..., delta=1e-6)`` forecasts whether a model (`WeightedERM`) will beat a constant one, and without ``delta`` how many
    rows per user to use (`BoundedERM`); ``plan("selection", ..., hypotheses=len(models))`` what a choice among models loses
    (`HypothesisSelection`). Reads the profile only, spends nothing.

    Edge cases: under ``protects="values"`` the number of rows is public: a plan for a count is refused. So is every parameter
    that would change nothing.

    Args:
        statistic: "count", "sum" or "mean"; by group "count", "users" or "sum"; "erm" for a linear model; "selection".
        profile: users by number of rows: ``Profile.counts``, ``.pareto``, ``.zipf``, ``.lognormal``, ``session.profile``.
        epsilon: ε of the planned release.
        bounds: lowest and highest value; needed for sum and mean.
        protects: "presence" or "values"; the profile's own where it was bought, else "presence".
        row_sd: standard deviation of a user's rows, in the unit of the values (default: a quarter of the range).
        heterogeneity: how much heavy users differ, ρτ, in the unit of the values (default: a fiftieth of the range); of a model, how
            far the average slope of busy users is from that of others, in standard deviations of a row's (default: an eighth); of a
            selection √Var(H), how far busy users' losses lie apart (default: a fiftieth). 0: users are alike.
        spread: standard deviation of user means, in the unit of the values (default: an eighth of the range).
        points: how many bounds each strategy is shown at (default: 120).
        groups: how many groups, whose sizes are then assumed, or their sizes, publicly known or guessed.
        delta: δ of a release by group, or of a model; none for a model with pure ε.
        hidden: the names of the groups are hidden and have to be selected.
        groups_per_user: with hidden names, how many groups a user supports at most.
        dimension: of a model, the number of features; ``hypotheses``: of a selection, how many.
        loss: of a model "logistic", "huber-svm" (without δ) or "squared", of a selection "zero-one", "absolute" or "squared".
        classes: of a model, how many classes, or how many rows each has (or which part), publicly known or guessed.
        learnable: of a model, the part of a constant model's loss that there is to save (default: a tenth).
        objective: what the best bound makes small: "expected" (default), the forecast, or "worst case", what is proved whatever the values are, which
            is how the papers choose: the mean absolute error of a statistic, amin2019's Theorem 1, epasto2020's Theorem 4, or amin2018's Lemma 1.

    Example:
        >>> plan("count", Profile.counts([1] * 900 + [50] * 100), epsilon=0.5).best.bound
        50.0

    Reference: amin2019 §3 and §6; epasto2020 Lemma 3; rameshwar2024 Theorem III.1; docs/planning/README.md.
    """
    given = {
        "bounds": bounds, "row_sd": row_sd, "heterogeneity": heterogeneity, "spread": spread, "points": points, "groups": groups,
        "delta": delta, "hidden": hidden or None, "groups_per_user": groups_per_user, "dimension": dimension, "hypotheses": hypotheses,
        "loss": loss, "classes": classes, "learnable": learnable, "objective": objective,
    }  # fmt: skip
    known = [*(name for name, kind in STATISTICS.items() if kind.planned_as), "erm", "selection"]
    if statistic not in known and groups is None:
        raise UsageError(
            f"statistic={statistic!r} can't be planned; expected one of {known}.{suggest(str(statistic), known)}"
        )
    _require_used(_kind(statistic, given), given, delta or 0)
    aim = parse_objective(objective)
    if statistic == "selection":
        differ = part_of_range("heterogeneity", heterogeneity, 1.0, HETEROGENEITY)
        if loss in ("absolute", "squared") and classes is not None:
            raise _unused(f"a selection with loss={loss!r}", ["classes"], "leave it out, since labels are numbers")
        worth = classes or 2, learnable, differ, aim
        return plan_selection(profile, epsilon, hypotheses, protects, loss or "zero-one", *worth)
    if statistic == "erm":
        if loss == "squared" and classes is not None:
            raise _unused("a model with loss='squared'", ["classes"], "leave it out, since labels are numbers")
        asked = dimension, protects, loss or "logistic", classes or 2, learnable, heterogeneity, aim
        return plan_rows(profile, epsilon, *asked) if delta is None else plan_model(profile, epsilon, delta, *asked)
    if groups is not None:
        require_presence(profile, protects)
        limits = parse_value_bounds(statistic, bounds) if statistic == "sum" else None
        return plan_groups(statistic, profile, epsilon, delta or 0, limits, groups, hidden, groups_per_user)
    relation = relation_of(profile, protects)
    if STATISTICS[statistic].planned_as == "count" and relation.counts_are_public:
        raise UsageError(
            "under protects='values' the number of rows is public: a count needs no noise and no plan. "
            "Use protects='presence' if it is private who is in the table."
        )
    limits = parse_value_bounds(statistic, bounds)
    length = limits[1] - limits[0] if limits else 1.0
    assumed = Assumptions(
        part_of_range("row_sd", row_sd, length, ROW_SD),
        part_of_range("heterogeneity", heterogeneity, length, HETEROGENEITY),
        part_of_range("spread", spread, length, SPREAD),
    )
    points = 120 if points is None else points
    if not 2 <= points <= 2000:
        raise UsageError(f"points={points} is out of range; expected a number between 2 and 2000.")
    return forecast(Plan(statistic, profile, parse_epsilon(epsilon), relation, limits, assumed, (), aim), points)


_VALUES = ("bounds", "row_sd", "heterogeneity", "spread", "points", "objective")
_TAKEN = {
    "a count": ("points", "objective"),
    "a sum": ("bounds", "points", "objective"),
    "a mean": _VALUES,
    "a release by group": ("groups", "delta"),
    "a sum by group": ("groups", "delta", "bounds"),
    "a release by group with hidden names": ("groups", "delta", "hidden", "groups_per_user"),
    "a sum by group with hidden names": ("groups", "delta", "hidden", "groups_per_user", "bounds"),
    "a model with δ": ("delta", "dimension", "heterogeneity", "loss", "classes", "learnable", "objective"),
    "a model with pure ε": ("dimension", "heterogeneity", "loss", "classes", "learnable", "objective"),
    "a selection": ("hypotheses", "heterogeneity", "loss", "classes", "learnable", "objective"),
}
"""What a plan for each kind of release uses."""


def _kind(statistic: str, given: Mapping[str, object]) -> str:
    """Which kind of plan is asked for."""
    if statistic == "erm":
        return "a model with pure ε" if given["delta"] is None else "a model with δ"
    if statistic == "selection":
        return "a selection"
    if given["groups"] is not None:
        kind = "a release by group" if statistic in ("count", "users") else "a sum by group"
        return f"{kind} with hidden names" if given["hidden"] else kind
    as_what = STATISTICS[statistic].planned_as
    return f"a {as_what}"


def _require_used(kind: str, given: Mapping[str, object], delta: Amount) -> None:
    """Refuse what would change nothing."""
    unused = [name for name, value in given.items() if value is not None and name not in _TAKEN[kind]]
    if "delta" in unused and not parse_delta(delta):  # δ = 0 is what a release without δ has
        unused.remove("delta")
    if unused:
        raise _unused(kind, unused, f"leave it out; {_GOES_WITH[unused[0]]}")


_OF_MODELS = "it is for statistic='erm' or 'selection'"
_GOES_WITH = {
    "bounds": "it is for a sum or a mean",
    "row_sd": "it is for a mean",
    "heterogeneity": "it is for a mean, 'erm' and 'selection'",
    "spread": "it is for a mean",
    "points": "it is for plans of bounds",
    "groups": "it is for statistics by group",
    "delta": "it goes with groups=300, or with 'erm'",
    "hidden": "it goes with groups=300",
    "groups_per_user": "it goes with hidden=True and groups=300",
    "dimension": "it is for statistic='erm'",
    "hypotheses": "it is for statistic='selection'",
    "loss": _OF_MODELS,
    "classes": _OF_MODELS,
    "learnable": _OF_MODELS,
    "objective": "it is for statistics without groups and for models",
}
"""What each parameter is for."""


def _unused(kind: str, names: list[str], advice: str) -> UsageError:
    """A refusal that says what was given, what was expected and what to do."""
    taken = ", ".join(f"{name}=" for name in _TAKEN.get(kind, ()))
    expected = f"; expected only {taken}" if taken else ""
    given = ", ".join(f"{name}=" for name in names)
    return UsageError(f"{given} would change nothing in a plan for {kind}{expected}; {advice}.")

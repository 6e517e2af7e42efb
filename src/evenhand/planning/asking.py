"""What can be planned, and how it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from evenhand.bounding import HETEROGENEITY, ROW_SD, Assumptions
from evenhand.guarantee import Amount, Relation, UsageError, parse_delta, parse_epsilon, suggest
from evenhand.planning.by_group import GroupPlan, plan_groups
from evenhand.planning.checking import parse_value_bounds, part_of_range, relation_of, require_presence
from evenhand.planning.models import ModelPlan, plan_model
from evenhand.planning.plans import SPREAD, Plan, forecast
from evenhand.planning.rows_plan import RowsPlan, plan_rows
from evenhand.profiles import Profile
from evenhand.statistics import STATISTICS


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
    points: int = 120,
) -> Plan: ...


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
    statistic: Literal["erm"],
    profile: Profile,
    epsilon: Amount,
    *,
    dimension: int,
    delta: Amount,
    protects: Relation | str | None = None,
    loss: str = "logistic",
    classes: int | Sequence[float] = 2,
    learnable: float | None = None,
) -> ModelPlan: ...


@overload
def plan(
    statistic: Literal["erm"],
    profile: Profile,
    epsilon: Amount,
    *,
    dimension: int,
    protects: Relation | str | None = None,
    loss: str = "logistic",
    classes: int | Sequence[float] = 2,
    learnable: float | None = None,
) -> RowsPlan: ...


def plan(
    statistic: str,
    profile: Profile,
    epsilon: Amount,
    bounds: tuple[float, float] | None = None,
    protects: Relation | str | None = None,
    row_sd: float | None = None,
    heterogeneity: float | None = None,
    spread: float | None = None,
    points: int = 120,
    *,
    groups: int | Sequence[float] | None = None,
    delta: Amount | None = None,
    hidden: bool = False,
    groups_per_user: int | None = None,
    dimension: int | None = None,
    loss: str = "logistic",
    classes: int | Sequence[float] = 2,
    learnable: float | None = None,
) -> Plan | GroupPlan | ModelPlan | RowsPlan:
    """Forecast the error of a release for every strategy and a range of bounds; with ``groups=``, of a release by group.

    ``plan("erm", ..., delta=1e-6)`` forecasts whether a model (`WeightedERM`) will beat a constant one, and without ``delta`` how many
    rows per user to use (`BoundedERM`). Reads the profile only, spends nothing.

    Edge cases: under ``protects="values"`` the number of rows is public: a plan for a count is refused.

    Args:
        statistic: "count", "sum" or "mean"; by group "count", "users" or "sum"; "erm" for a linear model.
        profile: users by number of rows: ``Profile.counts``, ``.pareto``, ``.zipf``, ``.lognormal``, ``session.profile``.
        epsilon: ε of the planned release.
        bounds: lowest and highest value; needed for sum and mean.
        protects: "presence" or "values"; the profile's own where it was bought, else "presence".
        row_sd: standard deviation of a user's rows, in the unit of the values (default: a quarter of the range).
        heterogeneity: how much heavy users differ, ρτ, in the unit of the values (default: a fiftieth of the range).
        spread: standard deviation of user means, in the unit of the values (default: an eighth of the range).
        points: how many bounds each strategy is shown at.
        groups: how many groups, whose sizes are then assumed, or their sizes, publicly known or guessed.
        delta: δ of a release by group, or of a model; none for a model with pure ε.
        hidden: the names of the groups are hidden and have to be selected.
        groups_per_user: with hidden names, how many groups a user supports at most.
        dimension: of a model, the number of features; ``loss``: "logistic" or "squared".
        classes: of a model, how many classes, or how many rows each has (or which part), publicly known or guessed.
        learnable: of a model, the part of a constant model's loss that there is to save (default: a tenth).

    Example:
        >>> plan("count", Profile.counts([1] * 900 + [50] * 100), epsilon=0.5).best.bound
        50.0

    Reference: amin2019 §3 and §6; epasto2020 Lemma 3; rameshwar2024 Theorem III.1; docs/planning.md.
    """
    if statistic == "erm" and delta is None:
        return plan_rows(profile, epsilon, dimension, protects, loss, classes, learnable)
    delta = 0 if delta is None else delta
    if statistic == "erm":
        return plan_model(profile, epsilon, delta, dimension, protects, loss, classes, learnable)
    if groups is not None:
        require_presence(profile, protects)
        limits = parse_value_bounds(statistic, bounds) if statistic == "sum" else None
        return plan_groups(statistic, profile, epsilon, delta, limits, groups, hidden, groups_per_user)
    if hidden or groups_per_user is not None or parse_delta(delta):
        raise UsageError("delta=, hidden= and groups_per_user= are for plans by groups; say how many: groups=300.")
    planned = {name: kind for name, kind in STATISTICS.items() if kind.planned_as}
    if statistic not in planned:
        raise UsageError(
            f"statistic={statistic!r} can't be planned; expected one of {list(planned)}.{suggest(str(statistic), planned)}"
        )
    relation = relation_of(profile, protects)
    if planned[statistic].planned_as == "count" and relation.counts_are_public:
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
    if not 2 <= points <= 2000:
        raise UsageError(f"points={points} is out of range; expected a number between 2 and 2000.")
    return forecast(Plan(statistic, profile, parse_epsilon(epsilon), relation, limits, assumed, curves=()), points)

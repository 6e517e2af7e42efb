"""Plans for models with pure ε: how many rows per user to use (`evenhand.learning.BoundedERM`, amin2019 Algorithm 1).

The forecast is that of `row_choice.py`, from which BoundedERM chooses. Beside it stands what is proved about the bias for every
table: the average loss of a model changes by at most min(TV, √(½ ln(n/n_τ)), χ/2) when a user's rows are cut to τ, for losses in [0, 1]
(amin2019 Proposition 1, with the second term tightened in docs/proofs/chi-square-bias.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.guarantee import Amount, Relation, UsageError, exact_difference, exact_sum, parse_epsilon, plain, split
from evenhand.pages.notebook import Card, InNotebooks
from evenhand.pages.numbers import percent, three_digits
from evenhand.pages.plan import rows_plan_chart, rows_plan_page
from evenhand.pages.style import written
from evenhand.planning.checking import EXPECTED, parse_apart, parse_dimension, relation_of
from evenhand.planning.excess_risk import FAILURE, ExcessRisk, risk_at
from evenhand.planning.row_choice import (
    HETEROGENEITY,
    SHRINKS,
    LossFacts,
    RowChoice,
    RowShape,
    Scales,
    balance_of,
    comparing,
    row_forecasts,
    spread_price,
)
from evenhand.planning.two_phases import FIRST, best_phase, expected, nearer
from evenhand.planning.worth import AgainstConstant, parse_worth
from evenhand.profiles import Profile, Sums

if TYPE_CHECKING:
    from evenhand.pages.charts import Chart

LOSSES = {
    "logistic": LossFacts(1.0, 0.25, 0.7, classifies=True),
    "huber-svm": LossFacts(1.0, 1.0, 1.0, classifies=True),
    "squared": LossFacts(1.0, 1.0, 0.125, classifies=False),  # in units of the width of the label bounds
}


@dataclass(frozen=True)
class RowsForecast:
    """What using at most τ rows per user is forecast to cost, in average loss above the best linear model.

    ``bias`` is for dropping rows, ``shrinkage`` for the regulariser, ``noise`` for privacy; ``bias_bound`` is proved for losses in [0, 1]. ``risk`` is the
    bound of amin2019's Theorem 1 with constants of 1: compare settings with it, don't quote it.
    """

    tau: int
    method: str
    regularisation: float
    bias: float
    shrinkage: float
    noise: float
    excess: float
    users_cut: float
    part_kept: float
    bias_bound: float
    risk: ExcessRisk

    def cells(self) -> tuple[str, ...]:
        """As text, one cell per column of `RowsPlan.columns`."""
        numbers = (self.bias, self.shrinkage, self.noise, self.excess, self.bias_bound)
        return (f"{self.tau:,}", f"{self.users_cut:,.0f}", percent(self.part_kept), *map(three_digits, numbers))


@dataclass(frozen=True, repr=False)
class RowsPlan(AgainstConstant, InNotebooks):
    """A forecast for a linear model of at most τ rows per user, for a range of τ.

    Guarantee: making and showing a plan spends nothing. A plan made from an exact profile is NOT PRIVATE and says so.

    Args:
        profile: users by number of rows.
        epsilon: of the planned fit; ``relation``: the neighbour relation.
        dimension: how many features; ``loss``: "logistic", "huber-svm" or "squared".
        forecasts: one for each τ, from the smallest on.
        shares: the part of the rows in each class; none for numbers.
        learnable: the part of the constant model's loss that there is to save.
        heterogeneity: how far the average slope of busy users is taken to be from that of others, in standard deviations of a row's.
        objective: what the best τ makes small: the forecast, or the bound of amin2019's Theorem 1.
    """

    profile: Profile
    epsilon: Decimal
    relation: Relation
    dimension: int
    loss: str
    forecasts: tuple[RowsForecast, ...]
    shares: tuple[float, ...]
    learnable: float
    heterogeneity: float
    objective: str = EXPECTED

    columns = ("rows per user", "users cut", "rows kept", "bias", "shrinkage", "noise", "excess loss", "bias at most")

    @property
    def best(self) -> RowsForecast:
        """The τ with the smallest forecast, or with the smallest bound."""
        return min(self.forecasts, key=lambda one: one.excess if self.objective == EXPECTED else one.risk.total)

    @property
    def excess(self) -> float:
        """That of the best τ."""
        return self.best.excess

    def at(self, epsilon: Amount) -> RowsPlan:
        """The same plan at another ε."""
        given = self.shares or 2, self.learnable, self.heterogeneity, self.objective
        return plan_rows(self.profile, epsilon, self.dimension, self.relation, self.loss, *given)

    def rows(self) -> list[RowsForecast]:
        """The best τ and a few around it."""
        taus, best = np.array([forecast.tau for forecast in self.forecasts]), self.best.tau
        near = np.abs(taus[:, None] - best * np.array([0.1, 0.3, 1, 3, 10])).argmin(axis=0)
        return [self.forecasts[place] for place in sorted(set(near.tolist()))]

    def explain(self) -> str:
        """Why this is the best τ, in plain words."""
        best = self.best
        users = "no user" if best.users_cut < 0.5 else f"about {best.users_cut:,.0f} users"
        text = (
            f"For a linear model of {self.dimension} features at ε = {plain(self.epsilon)} the best choice is at most {best.tau:,} row{'s' * (best.tau > 1)} per user. That cuts {users} "
            f"and keeps {percent(best.part_kept)} of the rows. More rows per user would need more noise, to hide one user (now {three_digits(best.noise)} in average loss); "
            f"fewer would leave less to learn from, of another mix of users (now {three_digits(best.bias)}). The regulariser costs {three_digits(best.shrinkage)}. "
            f"Together: {three_digits(best.excess)} above the best linear model. {self.verdict} That busy users' average slope is {three_digits(self.heterogeneity)} standard deviations from that of others, and how large coefficients are, is guessed; whatever they are, "
            f"dropping these rows changes the average of a loss between 0 and 1 by at most {three_digits(best.bias_bound)}. "
            f"It is based on {self.profile.basis}: {self.profile.words}."
        )
        return f"{self.profile.mark}.\n{text}" if self.profile.mark else text

    def plot(self) -> Chart:
        """Excess loss and users cut for each τ, as an Altair chart (``.save("plan.png")``)."""
        return rows_plan_chart(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page: the words, the pictures and the table. Written to ``path`` if given."""
        return written(rows_plan_page(self), path)

    def to_dict(self) -> dict[str, Any]:
        """The plan as data."""
        data: dict[str, Any] = {"mark": self.profile.mark} if self.profile.mark else {}
        return data | {
            "statistic": "erm",
            "epsilon": float(self.epsilon),
            "protects": self.relation.value,
            "dimension": self.dimension,
            "loss": self.loss,
            "heterogeneity": self.heterogeneity,
            "objective": self.objective,
            "basis": str(self.profile.basis),
            "users": self.profile.users,
            **self.worth(),
            "best": dict(vars(self.best)),
            "forecasts": [dict(vars(forecast)) for forecast in self.forecasts],
            "words": self.explain(),
        }

    def card(self) -> Card:
        """What a notebook shows."""
        title = f"Plan for a model of {self.dimension} features at ε = {plain(self.epsilon)}"
        return Card(
            title,
            [("usable", "yes" if self.usable else f"no: {self.why}"), ("in words", self.explain())],
            self.columns,
            [row.cells() for row in self.rows()],
            self.profile.mark,
        )

    def __str__(self) -> str:
        lines = [self.columns, *(row.cells() for row in self.rows())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)
        return "\n".join([self.explain(), "", *table])


def plan_rows(
    profile: Profile,
    epsilon: Amount,
    dimension: int | None,
    protects: Relation | str | None,
    loss: str,
    classes: int | Sequence[float] = 2,
    learnable: float | None = None,
    heterogeneity: float | None = None,
    objective: str = EXPECTED,
) -> RowsPlan:
    """Check what was asked for, and plan it: features in given bounds, an intercept, and ε for the fit and its comparison with a constant model."""
    features = parse_dimension(dimension)
    if loss not in LOSSES:
        raise UsageError(f"loss={loss!r} can't be planned; expected one of {list(LOSSES)}.")
    worth = parse_worth(loss, classes, learnable)
    apart = parse_apart(heterogeneity, HETEROGENEITY)
    if len(worth[0]) > 2:
        raise UsageError(
            f"classes={classes!r}; expected two of them for BoundedERM. With delta= a plan is for WeightedERM, which takes more."
        )
    relation, granted = relation_of(profile, protects), parse_epsilon(epsilon)
    sums, shares = Sums.of(profile.support), worth[0]
    balance = balance_of(*shares) if shares else 1.0
    facts, people = replace(LOSSES[loss], typical=balance), profile.support.people
    parts = comparing(granted, people), spread_price(granted, people), comparing(granted, people, balance)
    left = exact_difference(granted, exact_sum(parts))
    one, other = split(left, FIRST)

    def ways(amount: Decimal) -> list[tuple[int, Scales]]:
        shapes = {factor: RowShape(features, edge=1 / math.sqrt(features)).shrunk(factor) for factor in SHRINKS}
        found = {one: Scales.of(facts, shapes[one], None, relation.moves, float(amount)) for one in SHRINKS}
        return [(factor, replace(scales, apart=apart)) for factor, scales in found.items()]

    first = best_phase(profile.support, ways(one), "objective", None)
    tried = [("auto", scales) for _, scales in ways(left)]
    if math.isfinite(first.excess):
        tried += [("objective", scales) for _, scales in nearer(ways(other), first, expected(first))]
    found: dict[int, RowChoice] = {}
    for method, scales in tried:
        for choice in row_forecasts(profile.support, scales, method):
            if choice.tau not in found or choice.excess < found[choice.tau].excess:
                found[choice.tau] = choice
    forecasts = tuple(_judged(sums, found[tau], features, float(granted)) for tau in sorted(found))
    return RowsPlan(profile, granted, relation, features, loss, forecasts, *worth, apart, objective)


def _judged(sums: Sums, choice: RowChoice, features: int, epsilon: float) -> RowsForecast:
    at = np.array([float(choice.tau)])
    part = min(choice.kept / max(sums.support.rows, 1.0), 1.0)
    pinsker = math.sqrt(max(-math.log(part), 0.0) / 2)
    bound = min(float(sums.total_variation(at)[0]), pinsker, math.sqrt(float(sums.chi_square(at)[0])) / 2)
    parts = (choice.bias, choice.shrinkage, choice.noise, choice.excess)
    cut = float(sums.at(at)[1][0])
    risk = risk_at(sums, choice.tau, epsilon, FAILURE, features + 1)
    return RowsForecast(choice.tau, choice.method, choice.regularisation, *parts, cut, part, bound, risk)

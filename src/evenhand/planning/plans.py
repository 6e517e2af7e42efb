"""Plans: the forecast for every strategy and a range of bounds, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.bounding import STRATEGIES, Assumptions, Curve, Question, same_name
from evenhand.bounding.forecasts import curve
from evenhand.guarantee import Amount, Relation, UsageError, parse_epsilon, suggest
from evenhand.pages.notebook import Card, InNotebooks
from evenhand.pages.plan import plan_chart, plan_page
from evenhand.pages.style import written
from evenhand.planning.checking import EXPECTED
from evenhand.planning.searching import smallest
from evenhand.planning.tables import Forecast, ForecastTable
from evenhand.planning.words import card, explain
from evenhand.profiles import Basis, Profile
from evenhand.statistics import STATISTICS

if TYPE_CHECKING:
    from evenhand.pages.charts import Chart

SPREAD = 1 / 8
"""Default standard deviation of user means as a part of the value range, for the forecast of a located mean."""

_FEW = 2  # points of a plan that is only asked for its best bound, as the inverse questions do many times


@dataclass(frozen=True, repr=False)
class Plan(InNotebooks):
    """A forecast of what each bound costs, made from public facts, a bought profile, or (marked) the exact table.

    Guarantee: making and showing a plan spends nothing. A plan made from an exact profile is NOT PRIVATE and says so.

    Args:
        statistic: "count", "sum" or "mean"; ``profile``: users by number of rows.
        epsilon: ε of the planned release; ``relation``: the neighbour relation.
        bounds: of the values.
        assumed: what the forecast takes as given.
        curves: one per strategy.
        objective: what the best bound makes small: "expected", the forecast error, or "worst case", the mean absolute error at most.
    """

    statistic: str
    profile: Profile
    epsilon: Decimal
    relation: Relation
    bounds: tuple[float, float] | None
    assumed: Assumptions
    curves: tuple[Curve, ...]
    objective: str = EXPECTED

    @property
    def best(self) -> Forecast:
        """The strategy and bound with the smallest error."""
        return self._ordered()[0]

    def best_of(self, strategy: str) -> Forecast:
        """The best bound for one strategy."""
        return Forecast.best(self.curve(strategy), self.objective)

    def _ordered(self) -> list[Forecast]:
        """The best bound of every strategy, the smallest error first."""
        found = [Forecast.best(curve, self.objective) for curve in self.curves]
        return sorted(found, key=lambda forecast: forecast.by(self.objective))

    def curve(self, strategy: str) -> Curve:
        """The forecast over the whole range of bounds, for one strategy."""
        for candidate in self.curves:
            if same_name(candidate.strategy, strategy):
                return candidate
        names = [candidate.strategy for candidate in self.curves]
        raise UsageError(f"strategy={strategy!r} is not planned; expected one of {names}.{suggest(strategy, names)}")

    @property
    def value(self) -> float | None:
        """The size of the answer, where the profile tells it: the number of rows of a count."""
        return self.profile.rows if self.bounds is None else None

    def table(self) -> ForecastTable:
        """The best bound of every strategy, and a few around the best of all."""
        best, main = self.best, self.curve(self.best.strategy)
        near = np.unique(np.abs(main.bounds[:, None] - best.bound * np.array([0.1, 0.3, 1, 3, 10])).argmin(axis=0))
        around = [Forecast.at(main, int(k)) for k in near]
        return ForecastTable(tuple(around + self._ordered()[1:]), best, self.profile.mark)

    def explain(self) -> str:
        """Why this is the best bound, in plain words."""
        return explain(self)

    def plot(self) -> Chart:
        """The trade-off curve, the users it cuts, and the error against ε, as an Altair chart (``.save("plan.png")``)."""
        return plan_chart(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page: the words, the pictures and the table. Written to ``path`` if given."""
        return written(plan_page(self), path)

    def to_dict(self) -> dict[str, Any]:
        """The plan as data."""
        data: dict[str, Any] = {"mark": self.profile.mark} if self.profile.mark else {}
        return data | {
            "statistic": self.statistic,
            "epsilon": float(self.epsilon),
            "protects": self.relation.value,
            "bounds": list(self.bounds) if self.bounds else None,
            "basis": str(self.profile.basis),
            "profile": self.profile.words,
            "users": self.profile.users,
            "rows": self.profile.rows,
            "assumed": asdict(self.assumed),
            "objective": self.objective,
            "best": self.best.to_dict(),
            "strategies": [self.best_of(curve.strategy).to_dict() for curve in self.curves],
            "words": self.explain(),
        }

    def at(self, epsilon: Amount) -> Plan:
        """The same plan at another ε."""
        return forecast(replace(self, epsilon=parse_epsilon(epsilon)), _FEW)

    def over_epsilon(self, epsilons: Iterable[Amount]) -> list[tuple[Decimal, Forecast]]:
        """How the best bound moves with ε."""
        return [(plan.epsilon, plan.best) for plan in (self.at(epsilon) for epsilon in epsilons)]

    def epsilon_for(self, error: float, relative: bool = False) -> float:
        """The smallest ε whose best forecast error is at most ``error``.

        Args:
            error: in the unit of the statistic.
            relative: ``error`` is a part of the answer (counts only: the size of a sum or mean is not known beforehand).
        """
        goal = self._goal(error, relative)
        return smallest(lambda eps: goal(replace(self, epsilon=Decimal(repr(eps)))), 1e-6, 1e4, "ε")

    def users_for(self, error: float, relative: bool = False) -> int:
        """How many users of the same shape the best forecast error needs to be at most ``error`` at this ε."""
        goal, own = self._goal(error, relative), self.profile

        def enough(users: float) -> bool:
            return goal(replace(self, profile=own.scaled(users / own.users)))

        return math.ceil(smallest(enough, 1.0, 1e12, "number of users"))

    def card(self) -> Card:
        """What a notebook shows."""
        return card(self)

    def __str__(self) -> str:
        return f"{self.explain()}\n\n{self.table()}"

    def _goal(self, error: float, relative: bool) -> Callable[[Plan], bool]:
        """Whether another plan, with another ε or profile, reaches the error."""
        if not (error > 0 and math.isfinite(error)):
            raise UsageError(f"error={error} is not an error to aim at; expected a positive number.")
        if relative and self.bounds is not None:
            raise UsageError(
                f"relative=True needs the size of the answer; for a {self.statistic} give the error itself."
            )
        return lambda plan: (
            forecast(plan, _FEW).best.by(self.objective) <= error * (plan.profile.rows if relative else 1)
        )


def forecast(plan: Plan, points: int) -> Plan:
    """The same plan with its curves, at so many bounds each and at the best one."""
    kind = STATISTICS[plan.statistic]
    limits = (0.0, 1.0) if plan.bounds is None else kind.planned_bounds(plan.bounds)
    question = Question(str(kind.planned_as), limits, plan.epsilon, plan.relation, plan.assumed)
    pairs = (strategy.forecast(question, plan.profile.support) for strategy in STRATEGIES)
    curves = tuple(curve(*pair, points) for pair in pairs if pair is not None)
    if plan.profile.basis is Basis.BOUGHT:  # noisy counts prove nothing exactly
        curves = tuple(c if c.kind == "assumed" else replace(c, kind="seen") for c in curves)
    return replace(plan, curves=curves)

"""Plans for a choice among finitely many hypotheses (`evenhand.learning.HypothesisSelection`; amin2018, section 4).

What is proved: permute-and-flip over k hypotheses loses at most m·τ·ln(k)/(ε·n_τ) of average loss over the kept rows in expectation, and with probability 1 − β at most
m·τ·ln(k/β)/(ε·n_τ), with m = 1 under presence, where all totals move in one direction, and m = 2 under values. The first since the exponential mechanism with
exponents −u/s loses at most s times the entropy of its choice, the second since a hypothesis that loses s·ln(k/β) more than the best is β/k times as likely
as that; and permute-and-flip loses no more than the exponential mechanism (McKenna and Sheldon 2020, theorem 2). That is amin2018's Lemma 1 for finite sets. Beside it stands the bias of dropping rows:
assumed, and the bound that is proved for losses in [0, 1] (docs/proofs/chi-square-bias.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from evenhand.bounding import HETEROGENEITY
from evenhand.guarantee import Amount, Relation, UsageError, parse_epsilon, plain
from evenhand.pages.notebook import Card, InNotebooks
from evenhand.pages.numbers import percent, three_digits
from evenhand.planning.checking import EXPECTED, relation_of
from evenhand.planning.row_choice import LARGEST_TAU, limits_to_try
from evenhand.planning.worth import LABEL_SD, AgainstConstant, beats_constant, parse_worth
from evenhand.profiles import Profile, Sums, Support

LOSSES = ("zero-one", "absolute", "squared")


@dataclass(frozen=True)
class SelectionForecast:
    """What choosing with at most τ rows per user costs, in average loss above the best hypothesis.

    Args:
        tau: τ; ``part_kept``, ``users_cut``: what that leaves.
        noise: what the choice loses of the kept rows' average loss, in expectation, at most; ``noise_at_95``: with probability 0.95. Both are proved.
        bias: what dropping rows is assumed to cost; ``bias_bound``: what it costs at most, for every table with these counts.
    """

    tau: int
    noise: float
    noise_at_95: float
    bias: float
    bias_bound: float
    part_kept: float
    users_cut: float

    @property
    def excess(self) -> float:
        """The forecast: noise and bias together."""
        return self.noise + self.bias

    @property
    def excess_bound(self) -> float:
        """What is proved, sampling apart: the choice's loss in expectation, and the bias twice, of the best hypothesis and of the chosen one."""
        return self.noise + 2 * self.bias_bound

    def usable(self, loss: str, classes: int = 2) -> bool:
        """Whether more than half of what there may be to learn is left: a tenth of the loss of a constant hypothesis."""
        return beats_constant(self.excess, constant_hypothesis(loss, [1 / classes] * classes)) == "yes"


def selection_forecasts(
    support: Support,
    hypotheses: int,
    epsilon: Decimal,
    relation: Relation,
    tau: int | None = None,
    heterogeneity: float = HETEROGENEITY,
) -> list[SelectionForecast]:
    """The forecast for each τ, or the one that is given."""
    sums, rows = Sums.of(support), max(support.rows, 1.0)
    taus = np.array(limits_to_try(min(float(support.sizes.max()), LARGEST_TAU)) if tau is None else [float(tau)])
    kept, cut = np.maximum(sums.kept(taus), 1.0), sums.at(taus)[1]
    spread, chi = sums.total_variation(taus), np.sqrt(sums.chi_square(taus))
    pinsker = np.sqrt(np.maximum(np.log(rows / kept), 0.0) / 2)
    bound = np.minimum(np.minimum(spread, pinsker), chi / 2)
    scale = relation.moves * taus / (float(epsilon) * kept)
    columns = (
        taus, scale * math.log(hypotheses), scale * math.log(20 * hypotheses),
        np.minimum(bound, heterogeneity * chi), bound, np.minimum(kept / rows, 1.0), cut,
    )  # fmt: skip
    return [SelectionForecast(int(tau), *map(float, rest)) for tau, *rest in zip(*columns, strict=True)]


def best_selection(forecasts: Sequence[SelectionForecast]) -> SelectionForecast:
    """The τ with the smallest forecast."""
    return min(forecasts, key=lambda one: one.excess)


def safest_selection(forecasts: Sequence[SelectionForecast]) -> SelectionForecast:
    """The τ for which what is proved of the excess risk is least: the choice's loss and twice the bias."""
    return min(forecasts, key=lambda one: one.excess_bound)


@dataclass(frozen=True, repr=False)
class SelectionPlan(AgainstConstant, InNotebooks):
    """A forecast for a choice among hypotheses with at most τ rows per user, for a range of τ.

    Guarantee: making and showing a plan spends nothing. A plan made from an exact profile is NOT PRIVATE and says so.

    Args:
        profile: users by number of rows.
        epsilon: of the planned fit; ``relation``: the neighbour relation.
        hypotheses: how many; ``loss``: "zero-one", "absolute" or "squared".
        heterogeneity: what is assumed of how much busy users' losses differ.
        shares: the part of the rows in each class; none for numbers.
        learnable: the part of the best constant hypothesis' loss that there is to save.
        objective: what the best τ makes small: the forecast, or what is proved.
    """

    profile: Profile
    epsilon: Decimal
    relation: Relation
    hypotheses: int
    loss: str
    heterogeneity: float
    shares: tuple[float, ...]
    learnable: float
    objective: str = EXPECTED

    falls_with_people = 1

    @functools.cached_property
    def forecasts(self) -> tuple[SelectionForecast, ...]:
        """One for each τ, from the smallest on."""
        given = self.hypotheses, self.epsilon, self.relation, None, self.heterogeneity
        return tuple(selection_forecasts(self.profile.support, *given))

    @property
    def best(self) -> SelectionForecast:
        """The τ with the smallest forecast, or for which what is proved is least."""
        return (best_selection if self.objective == EXPECTED else safest_selection)(self.forecasts)

    @property
    def excess(self) -> float:
        """That of the best τ."""
        return self.best.excess

    @property
    def constant(self) -> float:
        """The loss of the best constant hypothesis."""
        return constant_hypothesis(self.loss, self.shares)

    def at(self, epsilon: Amount) -> SelectionPlan:
        """The same plan at another ε."""
        given = (
            self.hypotheses,
            self.relation,
            self.loss,
            self.shares or 2,
            self.learnable,
            self.heterogeneity,
            self.objective,
        )
        return plan_selection(self.profile, epsilon, *given)

    def explain(self) -> str:
        """Why this is the best τ, in plain words."""
        best = self.best
        text = (
            f"A choice among {self.hypotheses:,} hypotheses at ε = {plain(self.epsilon)} is best made with at most {best.tau:,} row{'s' * (best.tau > 1)} per user, "
            f"which keeps {percent(best.part_kept)} of the rows. Over those rows the choice has at most {three_digits(best.noise)} more average loss than the best hypothesis, in "
            f"expectation, and at most {three_digits(best.noise_at_95)} with probability 95% (proved: amin2018, Lemma 1, for finite sets). Dropping rows is "
            f"assumed to cost {three_digits(best.bias)}; it changes the average of a loss by at most {three_digits(best.bias_bound)}, so that the choice is at most "
            f"{three_digits(best.excess_bound)} above the best hypothesis on these rows. {self.verdict} "
            f"It is based on {self.profile.basis}: {self.profile.words}."
        )
        return f"{self.profile.mark}.\n{text}" if self.profile.mark else text

    def to_dict(self) -> dict[str, Any]:
        """The plan as data."""
        data: dict[str, Any] = {"mark": self.profile.mark} if self.profile.mark else {}
        return data | {
            "statistic": "selection",
            "epsilon": float(self.epsilon),
            "protects": self.relation.value,
            "hypotheses": self.hypotheses,
            "loss": self.loss,
            "heterogeneity": self.heterogeneity,
            "basis": str(self.profile.basis),
            "users": self.profile.users,
            "objective": self.objective,
            "best": asdict(self.best) | {"excess_bound": self.best.excess_bound},
            **self.worth(),
            "words": self.explain(),
        }

    def card(self) -> Card:
        """What a notebook shows."""
        title = f"Plan for a choice among {self.hypotheses:,} hypotheses at ε = {plain(self.epsilon)}"
        named = [("usable", "yes" if self.usable else f"no: {self.why}"), ("in words", self.explain())]
        return Card(title, named, mark=self.profile.mark)

    def __str__(self) -> str:
        return self.explain()


def constant_hypothesis(loss: str, shares: Sequence[float]) -> float:
    """The average loss of the best constant, for classes of these sizes or for a label as spread as in other plans."""
    if loss == "zero-one":
        return 1 - max(shares)
    return LABEL_SD**2 if loss == "squared" else LABEL_SD * math.sqrt(2 / math.pi)


def plan_selection(
    profile: Profile,
    epsilon: Amount,
    hypotheses: int | None,
    protects: Relation | str | None,
    loss: str = "zero-one",
    classes: int | Sequence[float] = 2,
    learnable: float | None = None,
    heterogeneity: float = HETEROGENEITY,
    objective: str = EXPECTED,
) -> SelectionPlan:
    """Check what was asked for, and plan it."""
    if hypotheses is None or isinstance(hypotheses, bool) or not 1 <= hypotheses <= 10**9:
        raise UsageError(
            f"hypotheses={hypotheses!r}; a plan for a selection needs how many there are to choose from, such as hypotheses=len(models)."
        )
    if loss not in LOSSES:
        raise UsageError(f"loss={loss!r} can't be planned; expected one of {list(LOSSES)}.")
    shares, part = parse_worth("squared" if loss != "zero-one" else loss, classes, learnable)
    relation = relation_of(profile, protects)
    return SelectionPlan(
        profile, parse_epsilon(epsilon), relation, int(hypotheses), loss, heterogeneity, shares, part, objective
    )

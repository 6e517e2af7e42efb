"""One user never moves what is handed to the noise by more than was declared: with any bounds, ε, caps and statistics.

Bounds at all magnitudes, narrow ones far from zero, ones whose ends lie halfway between two steps of the grid, so that
rounding decides; values at the bounds and next to them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.session import Drafts
from neighbouring import compare
from watch import Ask

Bounds = tuple[float, float]

TIE = (2.0**52 + 1, 2.0**52 + 1 + 2**15)
"""0.5 − low·2^e lies between two doubles and is rounded to even: upwards."""
NEGATIVE_TIE = (-(2.0**52 + 1 + 2**15), -(2.0**52 + 1))
AWKWARD: tuple[Bounds, ...] = (
    TIE, NEGATIVE_TIE, (393830.24, 393830.62), (0.0, 1e90), (0.0, 1e-140), (-1e140, 1e140), (0.1, 0.3), (1 / 3, 1.0),
    (5e-150, 1e-149), (-1e-149, 1.0), (1e15, 1e15 + 0.25), (2.0**53, 2.0**53 + 2),
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A question with everything that may be chosen about it."""

    statistic: str
    relation: str
    bounds: Bounds
    epsilon: Any
    strategy: str
    size: float
    other: str | None = None

    def bounding(self) -> Any:
        low, high = self.bounds
        cap = min(max(high - low, abs(low) / 100, abs(high) / 100) * self.size, 2.0**199)
        made: dict[str, Callable[[], Any]] = {
            "auto": lambda: "auto",
            "SmoothWeights": lambda: eh.SmoothWeights(self.size),
            "TotalCap": lambda: eh.TotalCap(cap),
            "NormClip": lambda: eh.NormClip(self.size),
            "NormClip, value": lambda: eh.NormClip(cap),
            "NormClip, L2": lambda: eh.NormClip(self.size, norm=2),
            "CentredInterval": lambda: eh.CentredInterval(cap),
        }
        return made[self.strategy]()

    def __call__(self, ask: Drafts) -> Any:
        low, high = self.bounds
        options: dict[str, Any] = {"epsilon": self.epsilon, "bounding": self.bounding()}
        if self.strategy.endswith("L2"):
            options["delta"] = "1e-6"
        name, _, grouped = self.statistic.partition(" ")
        if name == "per_user_total":
            name, options["of"] = "per_user_mean", "total"
        if grouped:
            options |= {"by": "g", "keys": ["a", "b"], "other": self.other}
        if name == "histogram":
            middle = low + (high - low) / 2
            return ask.histogram("v", [low, middle, high] if low < middle < high else [low, high], **options)
        if name == "aggregate":
            return ask.aggregate(
                n=eh.count(), s=eh.sum("v", bounds=self.bounds), m=eh.mean("v", bounds=self.bounds), **options
            )
        if name == "quantiles":
            options.pop("delta", None)
            return ask.quantiles("v", [0.5], bounds=self.bounds, **options)
        return getattr(ask, name)("v", bounds=self.bounds, **options)


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
    """Two numbers at least 10⁻¹⁴⁹ apart and below 10¹⁴⁹."""
    kind = draw(st.sampled_from(["awkward", "plain", "relative", "tie", "from zero"]))
    if kind == "awkward":
        return draw(st.sampled_from(AWKWARD))
    unit = 10.0 ** draw(st.floats(-140, 140))
    if kind == "plain":
        low, high = draw(st.floats(-10, 10)), draw(st.floats(-10, 10))
    elif kind == "relative":
        low = unit * draw(st.sampled_from([-1, 1]))
        high = low + unit * 10 ** draw(st.floats(-15.5, 1))
    elif kind == "tie":
        odd, exponent = 2 * draw(st.integers(2**51, 2**52 - 1)) + 1, draw(st.integers(-60, 60))
        low = math.ldexp(odd, -exponent) * draw(st.sampled_from([-1, 1]))
        high = low + math.ldexp(draw(st.floats(1, 2)), draw(st.sampled_from([5, 11, 15, 27])) - exponent)
    else:
        low, high = (0.0, unit) if draw(st.booleans()) else (-unit, 0.0)
    low, high = min(low, high), max(low, high)
    return (low, high) if high - low > 1e-149 else (low, low + max(1.0, abs(low)))


STATISTICS = (
    "sum",
    "mean",
    "variance",
    "per_user_mean",
    "per_user_total",
    "quantiles",
    "histogram",
    "sum by",
    "mean by",
    "variance by",
    "per_user_total by",
    "aggregate by",
)
STRATEGIES = (
    "auto",
    "auto",
    "SmoothWeights",
    "TotalCap",
    "NormClip",
    "NormClip, value",
    "NormClip, L2",
    "CentredInterval",
)

questions = st.builds(
    Asked,
    st.sampled_from(STATISTICS),
    st.sampled_from(["presence", "values"]),
    bounds(),
    st.sampled_from([1, "0.001", 50, "1e-6", 1000]),
    st.sampled_from(STRATEGIES),
    st.sampled_from([1, 2, 1.5, 10, 1000, 0.01]),
    st.sampled_from([None, "rest"]),
)


def tables(asked: Asked, seed: int) -> tuple[eh.Table, eh.Table]:
    """Two neighbouring tables with values where bounds hurt."""
    rng, (low, high) = random.Random(seed), asked.bounds
    ends = [low, high, math.nextafter(low, high), math.nextafter(high, low), low + (high - low) / 2]
    odd = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, rng.uniform(low, high)]

    def values(count: int) -> list[float | None]:
        return [rng.choice(ends if rng.random() < 0.7 else odd) for _ in range(count)]

    own, others = rng.choice([1, 1, 2, 7, 150]), rng.randint(0, 5)
    users = ["me"] * own + [f"o{number % 3}" for number in range(others)]
    groups = [rng.choice(["a", "a", "b", "c", None]) for _ in users]
    rest = values(others)
    one = (users, groups, values(own) + rest)
    two = (users[own:], groups[own:], rest) if asked.relation == "presence" else (users, groups, values(own) + rest)
    return opened(asked.relation, *one), opened(asked.relation, *two)


def opened(relation: str, users: list[str], groups: list[Any], values: list[Any]) -> eh.Table:
    types = (pa.string(), pa.string(), pa.float64())
    columns = zip("ugv", (users, groups, values), types, strict=True)
    table = pa.table({name: pa.array(column, dtype) for name, column, dtype in columns})
    return eh.read(table, user="u", protects=relation, public=["g"] if relation == "values" else [])


def check(ask: Ask, one: eh.Table, other: eh.Table, seed: int | None = None) -> None:
    """Compare, unless the question is refused, which happens before anything is paid for or read."""
    try:
        ask(Drafts(one))
    except eh.UsageError:
        return
    compare(ask, one, other, seed)


@settings(max_examples=5 * settings().max_examples, phases=[Phase.explicit, Phase.generate])
@given(asked=questions, seed=st.integers(0, 2**32), noise=st.sampled_from([None, 1]))
@example(Asked("mean by", "presence", TIE, 1, "SmoothWeights", 1), 1, None)
@example(Asked("sum by", "values", (393830.24, 393830.62), 1, "auto", 1), 1, None)
@example(Asked("variance", "values", (0.0, 1e90), 1, "auto", 1), 1, None)
def test_any_bounds(asked: Asked, seed: int, noise: int | None) -> None:
    check(asked, *tables(asked, seed), noise)


@pytest.mark.parametrize("bounds", AWKWARD, ids=str)
@pytest.mark.parametrize("statistic", ["sum by", "mean by", "variance"])
def test_awkward_bounds(statistic: str, bounds: Bounds) -> None:
    """One user with one row at the end of the bounds, under presence; at the other end of them, under values."""
    for relation in ("presence", "values"):
        asked = Asked(statistic, relation, bounds, 1, "NormClip" if statistic == "variance" else "SmoothWeights", 1)
        for value in bounds:
            one = opened(relation, ["x", "me"], ["a", "a"], [bounds[0], value])
            altered = opened(relation, ["x", "me"], ["a", "a"], [bounds[0], bounds[0] + bounds[1] - value])
            check(asked, one, opened(relation, ["x"], ["a"], [bounds[0]]) if relation == "presence" else altered)

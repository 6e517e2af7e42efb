"""What the reproductions share: how many users a simulated campaign needs, and fits on log scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import parse_epsilon
from evenhand.recommender.planning import users_needed
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import Setting
from reproductions.outcomes import Check, median_interval

WRONG = 0.1
"""Campaigns are compared at this share of items wrong, which a few simulations can tell reliably."""


def simulated_needs(
    sketch: str, tastes: Tastes, items: int, rated: int, epsilon: float, seeds: Sequence[int]
) -> list[float]:
    """For each seed the users after which a simulated campaign gets `WRONG` of the items wrong, read off between its points.

    The forecast only says where to look: from a quarter to four times its number.
    """
    near = users_needed(Setting(sketch, items, rated, parse_epsilon(epsilon)), tastes, WRONG)
    assert near is not None, "the sketch can't see these tastes"
    stops = [max(1, round(near * 2 ** (step / 2))) for step in range(-4, 5)]
    runs = [study(tastes, items, rated, epsilon, stops, [sketch], seed=seed) for seed in seeds]
    return [crossing(stops, [point.wrong for point in run]) for run in runs]


def crossing(stops: Sequence[int], wrong: Sequence[float] | NDArray[np.float64]) -> float:
    """Users after which one campaign gets `WRONG` of the items wrong, read off between its points."""
    return float(np.exp(np.interp(-WRONG, -np.minimum.accumulate(wrong), np.log(stops))))


def geometric(needs: Sequence[float]) -> tuple[float, float]:
    """The geometric mean of what several campaigns needed, and its relative standard error."""
    logs = np.log(needs)
    return float(np.exp(logs.mean())), float(logs.std(ddof=1) / np.sqrt(len(logs)))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of the power law through points."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def exponent(name: str, x: Sequence[float], needs: Sequence[Sequence[float]], least: float, most: float) -> Check:
    """The exponent of the power law through what each seed needed: its median over seeds, and an interval."""
    middle, low, high = median_interval([slope(x, list(each)) for each in zip(*needs, strict=True)])
    return Check(name, middle, least, most, (low, high))


def line_chart(rows: list[dict[str, Any]], x: str, y: str, by: str, title: str) -> Any:
    """Lines with points on two logarithmic axes."""
    import altair as alt

    axes = {name: alt.Scale(type="log") for name in (x, y)}
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True)
    return chart.encode(x=alt.X(f"{x}:Q", scale=axes[x]), y=alt.Y(f"{y}:Q", scale=axes[y]), color=f"{by}:N").properties(
        title=title, width=420, height=300
    )

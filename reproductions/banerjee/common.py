"""What the reproductions share: how many users a simulated campaign needs, and fits on log scales."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenhand.recommender.forecasting import Setting, users_needed
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import Tastes

Size = Literal["small", "full"]

WRONG = 0.1
"""Campaigns are compared at this share of items wrong, which a few simulations can tell reliably."""


@dataclass(frozen=True)
class Check:
    """One number of the reproduction, and the range in which it must lie."""

    name: str
    found: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low <= self.found <= self.high


@dataclass
class Outcome:
    """What a reproduction found, and where its pictures are."""

    title: str
    checks: list[Check]
    rows: list[dict[str, Any]]
    files: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    def write(self, out: Path, name: str, chart: Any) -> Outcome:
        """Write numbers and picture to a folder."""
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n")
        self.files = [str(out / f"{name}{kind}") for kind in (".json", ".png", ".html")]
        for path in self.files[1:]:
            chart.save(path)
        return self


def simulated_need(sketch: str, tastes: Tastes, items: int, rated: int, epsilon: float, seeds: Sequence[int]) -> float:
    """Users after which simulated campaigns get `WRONG` of the items wrong, read off between simulated points.

    The forecast only says where to look: from a quarter to four times its number.
    """
    from evenhand.guarantee import parse_epsilon

    near = users_needed(Setting(sketch, items, rated, parse_epsilon(epsilon)), tastes, WRONG)
    assert near is not None, "the sketch can't see these tastes"
    stops = [max(1, round(near * 2 ** (step / 2))) for step in range(-4, 5)]
    wrong = np.zeros(len(stops))
    for seed in seeds:
        wrong += [point.wrong for point in study(tastes, items, rated, epsilon, stops, [sketch], seed=seed)]
    smooth = np.minimum.accumulate(wrong / len(seeds))
    return float(np.exp(np.interp(-WRONG, -smooth, np.log(stops))))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of the power law through points."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def line_chart(rows: list[dict[str, Any]], x: str, y: str, by: str, title: str) -> Any:
    """Lines with points on two logarithmic axes."""
    import altair as alt

    axes = {name: alt.Scale(type="log") for name in (x, y)}
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True)
    return chart.encode(x=alt.X(f"{x}:Q", scale=axes[x]), y=alt.Y(f"{y}:Q", scale=axes[y]), color=f"{by}:N").properties(
        title=title, width=420, height=300
    )

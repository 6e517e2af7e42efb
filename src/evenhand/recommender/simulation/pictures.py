"""Pictures of a simulation, from one specification to PNG, SVG and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.simulation.quality import Quality
from evenhand.recommender.simulation.study import Point

if TYPE_CHECKING:
    import altair as alt

_FORMATS = (".html", ".png", ".svg")


def wrong_chart(points: Sequence[Point], guessing: float, title: str) -> alt.TopLevelMixin:
    """Items wrong against users, a line for each sketch; dashes show what was forecast."""
    import altair as alt

    data = alt.InlineData(values=[asdict(point) for point in points])
    users = alt.X("users:Q", scale=alt.Scale(type="log"), title="people who answered")
    sketch = alt.Color("sketch:N", title="sketch")

    def share(name: str) -> alt.Y:
        return alt.Y(f"{name}:Q", axis=alt.Axis(format="%"), title="items in the wrong cluster")

    base = alt.Chart(data)
    seen = base.mark_line(point=True).encode(x=users, y=share("wrong"), color=sketch)
    forecast = base.mark_line(strokeDash=[4, 4], opacity=0.7).encode(x=users, y=share("expected"), color=sketch)
    rule = alt.Chart(alt.InlineData(values=[{"guessing": guessing}])).mark_rule(color="gray", strokeDash=[1, 3])
    layers = alt.layer(rule.encode(y="guessing:Q"), forecast, seen)
    subtitle = "solid: simulated; dashed: forecast; dotted: guessing"
    return layers.properties(title=alt.Title(title, subtitle=subtitle), width=480, height=300)


def quality_chart(qualities: Sequence[Quality], title: str) -> alt.TopLevelMixin:
    """Hit rate and NDCG of each method."""
    import altair as alt

    rows = [
        {"method": quality.method, "measure": measure, "value": value}
        for quality in qualities
        for measure, value in (("hit rate @10", quality.hit_rate), ("NDCG @10", quality.ndcg))
    ]
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    chart: alt.TopLevelMixin = bars.encode(
        x=alt.X("value:Q", title=None), y=alt.Y("method:N", title=None, sort=None), row=alt.Row("measure:N", title=None)
    ).properties(title=title, width=420)
    return chart


def save(chart: alt.TopLevelMixin, path: str | PathLike[str]) -> Path:
    """Write a chart to a .png, .svg or .html file."""
    target = Path(path)
    if target.suffix not in _FORMATS:
        raise UsageError(f"{target.name} has an unknown format; expected a name that ends in {', '.join(_FORMATS)}.")
    try:
        chart.save(str(target), scale_factor=2 if target.suffix == ".png" else 1)
    except OSError as error:
        raise DataError(f"{target} can't be written: {error.strerror}.") from None
    return target

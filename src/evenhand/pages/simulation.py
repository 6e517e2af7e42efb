"""Pictures of a simulated campaign of the recommender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from evenhand.pages.charts import alt

if TYPE_CHECKING:
    from evenhand.pages.charts import Chart
    from evenhand.recommender.simulation import Point, Quality


def wrong_chart(points: Sequence[Point], guessing: float, title: str) -> Chart:
    """Items wrong against users, a line for each sketch; dashes show what was forecast."""
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


def quality_chart(qualities: Sequence[Quality], title: str) -> Chart:
    """Hit rate and NDCG of each method."""
    rows = [
        {"method": quality.method, "measure": measure, "value": value}
        for quality in qualities
        for measure, value in (("hit rate @10", quality.hit_rate), ("NDCG @10", quality.ndcg))
    ]
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    return bars.encode(
        x=alt.X("value:Q", title=None), y=alt.Y("method:N", title=None, sort=None), row=alt.Row("measure:N", title=None)
    ).properties(title=title, width=420)

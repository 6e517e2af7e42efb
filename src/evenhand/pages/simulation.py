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


def ratings_chart(qualities: Sequence[Quality], title: str) -> Chart:
    """NDCG against people who answered, a line for each method and a column for each ε; dashes see the table."""
    levels = list(dict.fromkeys(one.epsilon for one in qualities if one.epsilon is not None))
    stops = sorted({one.users for one in qualities if one.users is not None})
    rows = [
        {
            "method": one.method,
            "users": users,
            "NDCG": one.ndcg,
            "epsilon": f"ε = {level}",
            "private": one.users == users,
        }
        for one in qualities
        for level in (levels if one.epsilon is None else [one.epsilon])
        for users in (stops if one.users is None else [one.users])
    ]
    lines = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True)
    return lines.encode(
        x=alt.X("users:Q", scale=alt.Scale(type="log"), title="people who answered"),
        y=alt.Y("NDCG:Q", title="NDCG @10"),
        color=alt.Color("method:N", title=None, sort=None),
        strokeDash=alt.condition("datum.private", alt.value([1, 0]), alt.value([4, 4])),
        column=alt.Column("epsilon:N", title=None, sort=None),
    ).properties(title=title, width=260, height=260)

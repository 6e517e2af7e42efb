"""A release as a fragment for a notebook, as a page, and as a picture."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.pages.charts import BLUE, GREY, WIDTH, alt, styled
from evenhand.pages.style import fragment, lines, page, table, warning

if TYPE_CHECKING:
    from evenhand.pages.charts import Chart
    from evenhand.release import Release


def release_fragment(release: Release) -> str:
    """What a notebook shows."""
    return fragment(release.headline(), _body(release))


def release_page(release: Release) -> str:
    """The same as a page of its own."""
    return page(release.headline(), _body(release))


def release_chart(release: Release) -> Chart:
    """A bar for each group with its 95% interval, one picture for each column of values."""
    if not release.grouped:
        raise UsageError(
            f"{release.statistic} has no groups to draw; print it, or release it by groups, such as by='country'."
        )
    frame, names = release.interval(0.95), release.value_columns
    keys = [name for name in release.value.columns if name not in names]
    # Groups by place, not by label: two may look alike.
    labels = json.dumps([group_label(key, release.cells) for key in frame[keys].itertuples(index=False)])
    groups = alt.Y("place:O", title=", ".join(keys), axis=alt.Axis(labelExpr=f"{labels}[datum.value]"))

    def bars(name: str) -> Chart:
        columns = (frame[column].tolist() for column in (name, f"{name}_low", f"{name}_high"))
        rows = [
            {"place": place, "value": value, "low": low, "high": high, "usable": usable}
            for place, (value, low, high, usable) in enumerate(zip(*columns, release.verdict.flags[name], strict=True))
        ]
        chart = alt.Chart(alt.Data(values=rows)).encode(y=groups)
        colour = alt.condition("datum.usable", alt.value(BLUE), alt.value(GREY))
        values = chart.mark_bar(opacity=0.6).encode(x=alt.X("value:Q", title=name), color=colour)
        return (values + chart.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")).properties(width=WIDTH)

    subtitle = f"lines: 95% interval ({release.covers}){'; grey: too noisy to use' if release.why else ''}"
    title = alt.Title(release.headline(), subtitle=subtitle, anchor="start")
    return styled(alt.vconcat(*map(bars, names), title=title))


def group_label(key: tuple[object, ...], cell: bool) -> str:
    """The key of a group; a cell of a histogram ends in its two edges."""
    return ", ".join([*map(str, key[:-2]), f"{key[-2]} to {key[-1]}"] if cell else map(str, key))


def _body(release: Release) -> str:
    frame = ""
    if release.grouped:
        shown = release.table()
        rows = [[str(cell) for cell in row] for row in shown.itertuples(index=False)]
        noisy = {place for place, usable in enumerate(release.verdict.rows) if not usable}
        frame = table([str(name) for name in shown.columns], rows, grey=noisy)
    return f"{warning(release.warning())}{frame}{lines(release.lines())}"

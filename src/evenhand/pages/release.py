"""A release as a fragment for a notebook, as a page, and as a picture."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.pages.charts import BLUE, GREY, WIDTH, alt, styled
from evenhand.pages.numbers import ends_in_words, rounded
from evenhand.pages.pictures import Bar, bars, number_line
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


def release_pictures(release: Release) -> str:
    """A bar for each group, a picture for each column of values; without groups, each number on a line with its interval."""
    ends = release.interval(0.95)
    if not release.grouped:
        several = isinstance(ends, list)
        pairs = zip(release.value if several else [release.value], ends if several else [ends], strict=True)
        drawn = "".join(
            number_line(float(value), low, high, f"{rounded(value)}, 95% interval {ends_in_words(low, high)}")
            for value, (low, high) in pairs
            if isinstance(value, int | float)
        )
        return _figure(drawn, "The dot is the answer, the line its 95% interval.")
    names = release.value_columns
    keys = [name for name in release.value.columns if name not in names]
    labels = [group_label(key, release.cells) for key in ends[keys].itertuples(index=False)]
    figures = ""
    for name in names:
        columns = (ends[column].astype(float).tolist() for column in (name, f"{name}_low", f"{name}_high"))
        rows = [Bar(*one) for one in zip(labels, *columns, release.verdict.flags[name], strict=True)]
        figures += _figure(bars(rows, name), f"{name} with its 95% interval; grey is too noisy to use.")
    return figures


def _figure(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>" if drawn else ""


def _body(release: Release) -> str:
    frame = ""
    if release.grouped:
        shown = release.table()
        rows = [[str(cell) for cell in row] for row in shown.itertuples(index=False)]
        noisy = {place for place, usable in enumerate(release.verdict.rows) if not usable}
        frame = table([str(name) for name in shown.columns], rows, grey=noisy)
    return f"{warning(release.warning())}{frame}{release_pictures(release)}{lines(release.lines())}"

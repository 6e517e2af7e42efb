"""What all pictures share: Altair when it is needed, colours, logarithmic axes, and writing a chart to a file."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from html import escape
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypeAlias

from evenhand.guarantee import DataError, UsageError
from evenhand.pages.style import page

if TYPE_CHECKING:
    import altair as alt
    from altair.typing import ChartType

    Chart: TypeAlias = ChartType
else:

    class _Altair:
        """Altair, imported when it is first used: it is slow to load, and not installed everywhere."""

        def __getattr__(self, name: str) -> object:
            return getattr(_load("altair"), name)

    alt = _Altair()

__all__ = ["BLUE", "GREY", "WIDTH", "alt", "figure", "log_scale", "save", "styled"]

BLUE = "#0072B2"
GREY = "#AAAAAA"
WIDTH = 520


def styled(chart: Chart) -> Chart:
    """Common fonts, grid and legend."""
    return (
        chart.configure_axis(grid=True, gridOpacity=0.4, labelFontSize=12, titleFontSize=12)
        .configure_legend(orient="top", title=None, labelFontSize=12, symbolType="stroke", symbolStrokeWidth=3)
        .configure_view(stroke=None)
    )


def log_scale(field: str, title: str, values: Iterable[float], axis: Literal["X", "Y"] = "X") -> alt.X | alt.Y:
    """A logarithmic channel that spans exactly the given values, with labels at 1, 2, 5 or at powers of ten only."""
    spanned = [float(value) for value in values]
    low, high = min(spanned), max(spanned)
    if low == high:
        low, high = low / 2, high * 2
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
    label = "datum.value >= 10000 ? format(datum.value, '~s') : format(datum.value, '~g')"
    return (alt.X if axis == "X" else alt.Y)(
        f"{field}:Q",
        scale=alt.Scale(type="log", nice=False, domain=[low, high]),
        title=title,
        axis=alt.Axis(values=ticks, labelExpr=label, labelOverlap=True),
    )


def figure(chart: Chart, caption: str = "") -> str:
    """A chart as a figure of a page: SVG, rendered without a browser or a network."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{_load('vl_convert').vegalite_to_svg(chart.to_dict())}{below}</figure>"


def save(chart: Chart, path: Path, title: str) -> list[str]:
    """Write ``path``.png, .svg and .html, the last a page with this title; the names of the files."""
    files = [path.with_name(path.name + kind) for kind in (".png", ".svg", ".html")]
    try:
        chart.save(str(files[0]), scale_factor=2)
        chart.save(str(files[1]))
        files[2].write_text(page(title, figure(chart)), encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} can't be written: {error.strerror}; give a writable folder.") from None
    return [str(file) for file in files]


def _load(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            "pictures need altair and vl-convert; install them with: pip install 'evenhand[plots]'"
        ) from None

"""Pictures of a plan: what the bound costs, whom it touches, and how the error falls with ε."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand.guarantee import UsageError, plain
from evenhand.planning.plans import Plan
from evenhand.planning.tables import number

# Colours that stay apart for the colour-blind (Okabe and Ito), and in grey.
COLOURS = {"bias": "#0072B2", "noise": "#E69F00", "sampling": "#999999", "total": "#000000"}
_STRATEGIES = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"]
_WIDTH = 520
_EPSILONS = 13


def picture(plan: Plan) -> Any:
    """Trade-off curve, users cut, and error against ε, one below the other."""
    alt = _altair()
    title: dict[str, Any] = {"text": f"The price of the bound: {plan.statistic}, ε = {plain(plan.epsilon)}"}
    if plan.profile.mark:
        title |= {"subtitle": [plan.profile.mark], "subtitleColor": "#D00000"}
    parts = [trade_off(plan), users_cut(plan), error_by_epsilon(plan)]
    chart = alt.vconcat(*parts, title=alt.TitleParams(**title, anchor="start"), spacing=24)
    return styled(chart.resolve_scale(color="independent", x="independent"))


def styled(chart: Any) -> Any:
    """Common fonts, grid and legend."""
    return (
        chart.configure_axis(grid=True, gridOpacity=0.4, labelFontSize=12, titleFontSize=12)
        .configure_legend(orient="top", title=None, labelFontSize=12, symbolType="stroke", symbolStrokeWidth=3)
        .configure_view(stroke=None)
    )


def trade_off(plan: Plan) -> Any:
    """Bias falls and noise grows with the bound; their sum has a lowest point, which is marked."""
    alt = _altair()
    best = plan.best
    curve = plan.curve(best.strategy)
    parts = {"bias": curve.bias, "noise": curve.noise, "total": curve.error}
    if curve.sampling.any():
        parts["sampling"] = curve.sampling
    floor = curve.error.min() / 30  # below that a part no longer matters, and a logarithm would stretch the picture
    points: list[dict[str, Any]] = [
        {"bound": float(bound), "error": float(value), "part": name}
        for name, values in parts.items()
        for bound, value in zip(curve.bounds, values, strict=True)
        if value > floor
    ]
    names = [name for name in COLOURS if name in parts]
    x = _log(alt, "bound", f"bound ({best.strategy})", curve.bounds)
    y = _log(alt, "error", "error", [floor, 1.5 * max(point["error"] for point in points)], "Y")
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=x,
            y=y,
            color=alt.Color("part:N", scale=alt.Scale(domain=names, range=[COLOURS[name] for name in names])),
            strokeDash=alt.condition("datum.part == 'total'", alt.value([1, 0]), alt.value([6, 3])),
            tooltip=["part:N", alt.Tooltip("bound:Q", format=",.4s"), alt.Tooltip("error:Q", format=",.3s")],
        )
    )
    chosen = {
        "bound": best.bound,
        "error": best.error,
        "label": f"best bound {number(best.bound)}, error {number(best.error)}",
    }
    mark = alt.Chart(alt.Data(values=[chosen])).encode(x=x)
    right = math.log(best.bound / curve.bounds[0]) > 0.5 * math.log(max(curve.bounds[-1] / curve.bounds[0], 1.0001))
    label = mark.mark_text(
        align="right" if right else "left", dx=-8 if right else 8, fontWeight="bold", fontSize=12
    ).encode(y=alt.value(10), text="label:N")
    rule = mark.mark_rule(strokeDash=[2, 2], color="#555555")
    dot = mark.mark_point(filled=True, size=90, color="black", opacity=1).encode(y=y)
    return (lines + rule + dot + label).properties(width=_WIDTH, height=260)


def users_cut(plan: Plan) -> Any:
    """How many users each bound holds back."""
    alt = _altair()
    curve, best = plan.curve(plan.best.strategy), plan.best
    points = [
        {"bound": float(b), "users": float(u)} for b, u in zip(curve.bounds, curve.users_cut, strict=True) if u >= 0.5
    ]
    if not points:
        points = [{"bound": best.bound, "users": 0.5}]
    x = _log(alt, "bound", f"bound ({best.strategy})", curve.bounds)
    area = (
        alt.Chart(alt.Data(values=points))
        .mark_area(opacity=0.35, color="#0072B2", line={"color": "#0072B2"})
        .encode(
            x=x,
            y=_log(alt, "users", "users held back", [0.5, max(point["users"] for point in points)], "Y").stack(None),
        )
    )
    rule = alt.Chart(alt.Data(values=[{"bound": best.bound}])).mark_rule(strokeDash=[2, 2], color="#555555").encode(x=x)
    return (area + rule).properties(width=_WIDTH, height=110)


def error_by_epsilon(plan: Plan) -> Any:
    """The best error of each strategy as ε varies by a factor of 30 either way."""
    alt = _altair()
    centre = float(plan.epsilon)
    points = []
    for epsilon in np.geomspace(max(centre / 30, 1e-6), min(centre * 30, 1e3), _EPSILONS):
        other = plan.at(round(float(epsilon), 9))
        points += [
            {"epsilon": float(other.epsilon), "error": float(c.error.min()), "strategy": c.strategy}
            for c in other.curves
        ]
    names = [curve.strategy for curve in plan.curves]
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=_log(alt, "epsilon", "ε (a smaller ε protects more)", [point["epsilon"] for point in points]),
            y=_log(alt, "error", "best forecast error", [point["error"] for point in points], "Y"),
            color=alt.Color("strategy:N", scale=alt.Scale(domain=names, range=_STRATEGIES[: len(names)])),
            strokeDash=alt.condition("datum.strategy == 'row limit'", alt.value([6, 5]), alt.value([1, 0])),
            tooltip=["strategy:N", alt.Tooltip("epsilon:Q", format=".3~g"), alt.Tooltip("error:Q", format=".3~s")],
        )
    )
    here = (
        alt.Chart(alt.Data(values=[{"epsilon": centre}]))
        .mark_rule(strokeDash=[2, 2], color="#555555")
        .encode(x="epsilon:Q")
    )
    return (lines + here).properties(width=_WIDTH, height=180)


def to_svg(chart: Any) -> str:
    """A chart as SVG text, rendered without a browser or a network."""
    try:
        import vl_convert
    except ImportError:
        raise _missing() from None
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def _axis(alt: Any, low: float, high: float) -> Any:
    """A logarithmic axis with a label at 1, 2, 5 or at powers of ten only, as plain numbers."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    values = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
    label = "datum.value >= 10000 ? format(datum.value, '~s') : format(datum.value, '~g')"
    return alt.Axis(values=values, labelExpr=label, labelOverlap=True)


def _log(alt: Any, field: str, title: str, values: Any, kind: str = "X") -> Any:
    """A logarithmic channel that spans exactly the given values."""
    low, high = float(min(values)), float(max(values))
    if low == high:
        low, high = low / 2, high * 2
    scale = alt.Scale(type="log", nice=False, domain=[low, high])
    return getattr(alt, kind)(f"{field}:Q", scale=scale, title=title, axis=_axis(alt, low, high))


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise _missing() from None
    return altair


def _missing() -> UsageError:
    return UsageError("pictures need altair and vl-convert; install them with: pip install 'evenhand[plots]'")

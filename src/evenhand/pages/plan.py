"""A plan as a page and as pictures: what the bound costs, whom it touches, and how the error falls with ε."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import plain
from evenhand.pages.charts import BLUE, WIDTH, alt, figure, log_scale, styled
from evenhand.pages.numbers import percent, three_digits
from evenhand.pages.style import page, paragraphs, table

if TYPE_CHECKING:
    from evenhand.bounding import Curve
    from evenhand.pages.charts import Chart
    from evenhand.planning import GroupPlan, Plan, RowsPlan

Array = npt.NDArray[np.float64]

# Colours that stay apart for the colour-blind (Okabe and Ito), and in grey.
_PARTS = {"bias": BLUE, "noise": "#E69F00", "sampling": "#999999", "shrinkage": "#009E73", "total": "#000000"}
_STRATEGIES = [BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9"]
_RULE: dict[str, Any] = {"strokeDash": [2, 2], "color": "#555555"}
_EPSILONS = 13
_BLOCKS = " ▁▂▃▄▅▆▇█"


def plan_page(plan: Plan) -> str:
    """The words, the pictures and the table."""
    best, forecasts = plan.best, plan.table()
    facts = [
        (best.strategy, "strategy"),
        (three_digits(best.bound), "bound"),
        (three_digits(best.error), "forecast error"),
        (f"{best.users_cut:,.0f} of {plan.profile.users:,.0f}", "users held back"),
    ]
    cards = "".join(f"<li><b>{escape(value)}</b>{escape(name)}</li>" for value, name in facts)
    figures = "".join(
        f"<h2>{escape(heading)}</h2>{figure(styled(draw(plan)), caption)}" for heading, draw, caption in _SECTIONS
    )
    marked = [place for place, row in enumerate(forecasts.rows) if row == forecasts.best]
    numbers = table(forecasts.columns, [row.cells() for row in forecasts.rows], marked)
    return page(
        f"Plan for a {plan.statistic} at ε = {plain(plan.epsilon)}",
        f'<ul class="facts">{cards}</ul>{paragraphs(plan.explain())}{figures}<h2>In numbers</h2>{numbers}'
        "<p>≤ marks a proven bound, ~ a forecast under the stated assumptions or from a noisy profile. Errors are root mean squares.</p>"
        f"<footer>Made from {escape(str(plan.profile.basis))} ({escape(plan.profile.words)}). Nothing was spent to make this page."
        "</footer>",
        plan.profile.mark,
    )


def group_plan_page(plan: GroupPlan) -> str:
    """The words and the table of a plan by groups."""
    best, (head, rows) = plan.best, plan.cells()
    facts = [
        (three_digits(best.bound.amount), best.mechanism),
        (f"± {three_digits(best.bound.noise)}", "noise in each group"),
        (three_digits(best.error), "error over all groups"),
        *([(percent(best.share_shown), "of the groups shown")] if best.share_shown is not None else []),
    ]
    cards = "".join(f"<li><b>{escape(value)}</b>{escape(name)}</li>" for value, name in facts)
    return page(
        f"Plan for a {plan.statistic} by {plan.groups:,} groups at ε = {plain(plan.epsilon)}",
        f'<ul class="facts">{cards}</ul>{paragraphs(plan.explain())}<h2>In numbers</h2>{table(head, rows)}'
        "<footer>Nothing was spent to make this page.</footer>",
        plan.profile.mark,
    )


def rows_plan_page(plan: RowsPlan) -> str:
    """The words, the pictures and the table of a plan for rows per user."""
    best = plan.best
    facts = [
        (f"{best.tau:,}", "rows per user"),
        (three_digits(best.excess), "forecast excess loss"),
        (f"{best.users_cut:,.0f} of {plan.profile.users:,.0f}", "users held back"),
    ]
    cards = "".join(f"<li><b>{escape(value)}</b>{escape(name)}</li>" for value, name in facts)
    numbers = table(plan.columns, [row.cells() for row in plan.rows()], [plan.rows().index(best)])
    caption = "Few rows per user change the mix of users, many need more noise to hide one user; the best number is the lowest point of the black line."
    return page(
        f"Plan for a model of {plan.dimension} features at ε = {plain(plan.epsilon)}",
        f'<ul class="facts">{cards}</ul>{paragraphs(plan.explain())}<h2>Excess loss for each number of rows per user</h2>'
        f"{figure(styled(_rows_trade_off(plan)), caption)}{figure(styled(_rows_users_cut(plan)), 'How many users are held back.')}"
        f"<h2>In numbers</h2>{numbers}<footer>Nothing was spent to make this page.</footer>",
        plan.profile.mark,
    )


def plan_chart(plan: Plan) -> Chart:
    """Trade-off curve, users cut, and error against ε, one below the other."""
    return _stacked(
        f"Error for each bound: {plan.statistic}, ε = {plain(plan.epsilon)}",
        plan.profile.mark,
        *(draw(plan) for _, draw, _ in _SECTIONS),
    )


def rows_plan_chart(plan: RowsPlan) -> Chart:
    """Excess loss and users cut for each τ, one below the other."""
    title = f"Excess loss for each number of rows per user: {plan.dimension} features, ε = {plain(plan.epsilon)}"
    return _stacked(title, plan.profile.mark, _rows_trade_off(plan), _rows_users_cut(plan))


def _stacked(text: str, mark: str, *charts: Chart) -> Chart:
    title: dict[str, Any] = {"text": text}
    if mark:
        title |= {"subtitle": [mark], "subtitleColor": "#D00000"}
    chart = alt.vconcat(*charts, title=alt.TitleParams(**title, anchor="start"), spacing=24)
    return styled(chart.resolve_scale(color="independent", x="independent"))


def small_curve(curve: Curve, width: int = 60, height: int = 4) -> str:
    """The total error over the range of bounds, both on logarithmic scales, as a few lines of text for a terminal."""
    best = int(curve.error.argmin())
    low, high = np.log(curve.bounds[0]), np.log(curve.bounds[-1])
    if high <= low:
        return f"the only bound is {three_digits(float(curve.bounds[0]))}: error {three_digits(float(curve.error[0]))}"
    at = np.linspace(low, high, width)
    error = np.interp(at, np.log(curve.bounds), np.log(curve.error))
    level = (error - error.min()) / max(float(np.ptp(error)), 1e-12) * (8 * height - 1) + 1
    lines = [
        "".join(_BLOCKS[int(np.clip(value - 8 * row, 0, 8))] for value in level) for row in range(height - 1, -1, -1)
    ]
    place = round((np.log(curve.bounds[best]) - low) / (high - low) * (width - 1))
    left, right = three_digits(float(curve.bounds[0])), three_digits(float(curve.bounds[-1]))
    ruler = f"{left}{right.rjust(width - len(left))}"
    return "\n".join(["error", *lines, " " * place + "▲ best bound " + three_digits(float(curve.bounds[best])), ruler])


def _trade_off(plan: Plan) -> Chart:
    """Bias falls and noise grows with the bound; their sum has a lowest point, which is marked."""
    best = plan.best
    curve = plan.curve(best.strategy)
    parts = {"bias": curve.bias, "noise": curve.noise, "total": curve.error}
    if curve.sampling.any():
        parts["sampling"] = curve.sampling
    return _parts(curve.bounds, parts, f"bound ({best.strategy})", "error", (best.bound, best.error))


def _rows_trade_off(plan: RowsPlan) -> Chart:
    """The sweet spot of τ."""
    taus = np.array([float(one.tau) for one in plan.forecasts])
    parts = {name: np.array([getattr(one, name) for one in plan.forecasts]) for name in ("bias", "shrinkage", "noise")}
    parts["total"] = np.array([one.excess for one in plan.forecasts])
    return _parts(taus, parts, "rows per user", "excess loss", (float(plan.best.tau), plan.best.excess))


def _parts(bounds: Array, parts: dict[str, Array], title: str, unit: str, best: tuple[float, float]) -> Chart:
    """The parts of an error for each bound, their total, and its lowest point."""
    floor = parts["total"].min() / 30  # below that a part no longer matters, and a logarithm would stretch the picture
    points: list[dict[str, Any]] = [
        {"bound": float(bound), "error": float(value), "part": name}
        for name, values in parts.items()
        for bound, value in zip(bounds, values, strict=True)
        if value > floor
    ]
    names = [name for name in _PARTS if name in parts]
    x = log_scale("bound", title, bounds)
    y = log_scale("error", unit, [floor, 1.5 * max(point["error"] for point in points)], "Y")
    lines = _lines(points).encode(
        x=x,
        y=y,
        color=alt.Color("part:N", scale=alt.Scale(domain=names, range=[_PARTS[name] for name in names])),
        strokeDash=alt.condition("datum.part == 'total'", alt.value([1, 0]), alt.value([6, 3])),
        tooltip=["part:N", alt.Tooltip("bound:Q", format=",.4s"), alt.Tooltip("error:Q", format=",.3s")],
    )
    words = f"best: {three_digits(best[0])}, {unit} {three_digits(best[1])}"
    mark = alt.Chart(alt.Data(values=[{"bound": best[0], "error": best[1], "label": words}])).encode(x=x)
    right = math.log(best[0] / bounds[0]) > 0.5 * math.log(max(bounds[-1] / bounds[0], 1.0001))
    label = mark.mark_text(
        align="right" if right else "left", dx=-8 if right else 8, fontWeight="bold", fontSize=12
    ).encode(y=alt.value(10), text="label:N")
    rule = mark.mark_rule(**_RULE)
    dot = mark.mark_point(filled=True, size=90, color="black", opacity=1).encode(y=y)
    return (lines + rule + dot + label).properties(width=WIDTH, height=260)


def _users_cut(plan: Plan) -> Chart:
    """How many users each bound cuts off."""
    curve, best = plan.curve(plan.best.strategy), plan.best
    return _cut(curve.bounds, curve.users_cut, f"bound ({best.strategy})", best.bound)


def _rows_users_cut(plan: RowsPlan) -> Chart:
    pairs = np.array([(one.tau, one.users_cut) for one in plan.forecasts], dtype=np.float64)
    return _cut(pairs[:, 0], pairs[:, 1], "rows per user", float(plan.best.tau))


def _cut(bounds: Array, users: Array, title: str, best: float) -> Chart:
    points = [{"bound": float(b), "users": float(u)} for b, u in zip(bounds, users, strict=True) if u >= 0.5]
    if not points:
        points = [{"bound": best, "users": 0.5}]
    x = log_scale("bound", title, bounds)
    y = log_scale("users", "users held back", [0.5, max(point["users"] for point in points)], "Y").stack(None)
    area = alt.Chart(alt.Data(values=points)).mark_area(opacity=0.35, color=BLUE, line={"color": BLUE}).encode(x=x, y=y)
    rule = alt.Chart(alt.Data(values=[{"bound": best}])).mark_rule(**_RULE).encode(x=x)
    return (area + rule).properties(width=WIDTH, height=110)


def _error_by_epsilon(plan: Plan) -> Chart:
    """The best error of each strategy as ε varies by a factor of 30 either way."""
    centre = float(plan.epsilon)
    points: list[dict[str, Any]] = []
    for epsilon in np.geomspace(max(centre / 30, 1e-6), min(centre * 30, 1e3), _EPSILONS):
        other = plan.at(round(float(epsilon), 9))
        points += [
            {"epsilon": float(other.epsilon), "error": float(c.error.min()), "strategy": c.strategy}
            for c in other.curves
        ]
    names = [curve.strategy for curve in plan.curves]
    lines = _lines(points).encode(
        x=log_scale("epsilon", "ε (a smaller ε protects more)", [point["epsilon"] for point in points]),
        y=log_scale("error", "best forecast error", [point["error"] for point in points], "Y"),
        color=alt.Color("strategy:N", scale=alt.Scale(domain=names, range=_STRATEGIES[: len(names)])),
        strokeDash=alt.condition("datum.strategy == 'RowLimit'", alt.value([6, 5]), alt.value([1, 0])),
        tooltip=["strategy:N", alt.Tooltip("epsilon:Q", format=".3~g"), alt.Tooltip("error:Q", format=".3~s")],
    )
    here = alt.Chart(alt.Data(values=[{"epsilon": centre}])).mark_rule(**_RULE).encode(x="epsilon:Q")
    return (lines + here).properties(width=WIDTH, height=180)


def _lines(points: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=2.5)


_SECTIONS = (
    (
        "Error for each bound",
        _trade_off,
        "A low bound cuts off the heaviest users, which causes bias. A high bound needs more noise to hide one user. "
        "The black line is both together, and the best bound is its lowest point.",
    ),
    ("Whom it touches", _users_cut, "How many users a bound holds back; all others count in full."),
    ("Error for each ε", _error_by_epsilon, "The best error each strategy reaches, from strong to weak protection."),
)

"""Small pictures as inline SVG: no script, no style attribute, no library, so that the strictest content policy shows them.

Every picture says in words what it shows (``aria-label``), and colours that mean something differ in lightness too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

INK, FAINT, BLUE, GREY, AMBER = "#1b2733", "#d5dbe1", "#2b6ca3", "#9aa5b1", "#d98200"
_FADED = {INK: 0.7, AMBER: 0.45, BLUE: 0.35}
_WIDTH = 400
_MOST = 40
_LONGEST = 20


class Range(NamedTuple):
    """From where on something can be done: impossible below ``low``, known to be possible above ``high``, if anywhere."""

    at: int
    low: int
    high: int | None


class Bar(NamedTuple):
    """A group with its interval."""

    label: str
    value: float
    low: float
    high: float
    usable: bool


def budget_bar(spent: float, asked: float, total: float, words: str) -> str:
    """What is spent of a total, and what a question would take of it."""
    scale = _WIDTH / max(total, spent + asked, 1e-300)
    parts = [_box(0, 0, _WIDTH, 14, FAINT), _box(0, 0, spent * scale, 14, BLUE)]
    if asked:
        parts.append(_box(spent * scale, 0, max(asked * scale, 3), 14, AMBER))
    return _svg(14, words, parts, "bar")


def number_line(value: float, low: float, high: float, words: str) -> str:
    """One number with its interval. Open ends are not drawn: the words say them."""
    if not _drawable(value):
        return ""
    low, high = (end if _drawable(end) else math.copysign(math.inf, end) for end in (low, high))
    ends = [end for end in (low, high, value) if math.isfinite(end)]
    span = max(ends) - min(ends) or abs(value) or 1.0
    ticks = _ticks(min(ends) - 0.15 * span, max(ends) + 0.15 * span)
    at = _scale(ticks, 20, _WIDTH - 20)
    left = at(low) if math.isfinite(low) else 0
    right = at(high) if math.isfinite(high) else _WIDTH
    parts = [_line(20, 34, _WIDTH - 20, 34, FAINT), *_axis(ticks, at, 34, 6)]
    parts += [_line(left, 20, right, 20, BLUE, 5), *(_line(end, 11, end, 29, BLUE, 3) for end in (left, right))]
    parts.append(f'<circle cx="{at(value):.1f}" cy="20" r="7" fill="{INK}"/>')
    return _svg(60, words, parts)


def bars(groups: Sequence[Bar], name: str) -> str:
    """A bar for each group with its interval; what is too noisy to use is grey."""
    drawn = [one for one in groups if _drawable(one.value)][:_MOST]
    if not drawn:
        return ""
    reach = [end for one in drawn for end in (0.0, one.value, one.low, one.high) if _drawable(end)]
    ticks = _ticks(min(reach), max(reach))
    names = [one.label if len(one.label) <= _LONGEST else f"{one.label[: _LONGEST - 1]}…" for one in drawn]
    left = 16 + 7.2 * max(map(len, names))
    at = _scale(ticks, left, _WIDTH - 24)
    parts, bottom = [], 26 * len(drawn) + 4
    for tick in ticks:
        parts.append(_line(at(tick), 0, at(tick), bottom, FAINT))
    for row, (one, label) in enumerate(zip(drawn, names, strict=True)):
        y = 26 * row + 4
        start, end = sorted((at(0.0), at(one.value)))
        parts.append(_box(start, y, max(end - start, 1), 18, BLUE if one.usable else GREY, 0.75))
        low, high = (at(end) if _drawable(end) else None for end in (one.low, one.high))
        ends = (left if low is None else low, _WIDTH - 4 if high is None else high)
        parts.append(_line(ends[0], y + 9, ends[1], y + 9, INK, 2))
        parts += [_line(end, y + 4, end, y + 14, INK, 2) for end in (low, high) if end is not None]
        parts.append(_text(left - 8, y + 14, label, "end"))
    parts += _axis(ticks, at, bottom, 4)
    left_out = f"; the first {_MOST} of {len(groups)}" if len(groups) > len(drawn) == _MOST else ""
    return _svg(bottom + 24, f"{name} by group, each with its 95% interval{left_out}", parts)


def curve(points: Sequence[tuple[float, float, float]], here: float, title: str, words: str) -> str:
    """Between which errors an answer lies for each ε, on logarithmic scales, with the ε that was chosen."""
    xs = [x for x, _, _ in points]
    left, right, top, bottom = 58.0, _WIDTH - 16.0, 22.0, 172.0
    low, high = math.log10(min(low for _, low, _ in points)), math.log10(max(high for _, _, high in points))
    if high - low < 0.5:
        low, high = low - 0.25, high + 0.25

    def x(value: float) -> float:
        return left + (math.log10(value / xs[0])) / math.log10(xs[-1] / xs[0]) * (right - left)

    def y(value: float) -> float:
        return bottom - (math.log10(value) - low) / (high - low) * (bottom - top)

    parts = [_text(4, 12, title)]
    for tick in _powers(10**low, 10**high):
        parts += [_line(left, y(tick), right, y(tick), FAINT), _text(left - 8, y(tick) + 4, _short(tick), "end")]
    for tick in _powers(xs[0], xs[-1]):
        parts += [_line(x(tick), bottom, x(tick), bottom + 5, INK), _text(x(tick), bottom + 19, f"{tick:g}", "middle")]
    edge = [(one, lower) for one, lower, _ in points] + [(one, upper) for one, _, upper in reversed(points)]
    path = " ".join(f"{x(one):.1f},{y(other):.1f}" for one, other in edge)
    parts.append(f'<polygon points="{path}" fill="{BLUE}" fill-opacity="0.35" stroke="{BLUE}" stroke-width="3"/>')
    parts += [_line(x(here), top, x(here), bottom, AMBER, 2)]
    parts += [
        f'<circle cx="{x(here):.1f}" cy="{y(error):.1f}" r="5" fill="{INK}"/>'
        for one, *errors in points
        for error in errors
        if one == here
    ]
    parts += [_line(left, bottom, right, bottom, INK), _text(right, bottom + 36, "ε", "end")]
    return _svg(int(bottom) + 42, words, parts)


def regions(panels: Sequence[tuple[str, Sequence[Range]]], across: str, along: str, words: str) -> str:
    """What is impossible, unknown and possible, a panel below the other, on common logarithmic scales."""
    every = [one for _, ranges in panels for one in ranges]
    if not every:
        return ""
    xs = sorted({one.at for one in every})
    low = math.floor(math.log10(min(one.low for one in every)))
    high = math.ceil(math.log10(max(one.high or one.low for one in every))) + 1
    left, right, tall, gap = 58.0, _WIDTH - 16.0, 130.0, 40.0

    def x(value: float) -> float:
        return left + math.log10(value / xs[0]) / (math.log10(xs[-1] / xs[0]) or 1.0) * (right - left)

    parts = [_text(4, 12, along)]
    for place, (name, colour) in enumerate((("impossible", INK), ("unknown", AMBER), ("possible", BLUE))):
        parts += [
            _box(left + 105 * place, 22, 14, 14, colour, _FADED[colour]),
            _text(left + 105 * place + 20, 34, name),
        ]
    for number, (title, ranges) in enumerate(panels):
        bottom = 50 + (tall + gap) * number + tall

        def y(value: float, bottom: float = bottom) -> float:
            return bottom - (math.log10(value) - low) / (high - low) * tall

        top, floor = 10.0**high, 10.0**low
        kinds = (
            (INK, [(one.at, floor, one.low) for one in ranges]),
            (AMBER, [(one.at, one.low, one.high or top) for one in ranges]),
            (BLUE, [(one.at, one.high or top, top) for one in ranges]),
        )
        for colour, spans in kinds:
            edge = [(at, y(one)) for at, one, _ in spans] + [(at, y(other)) for at, _, other in reversed(spans)]
            path = " ".join(f"{x(at):.1f},{where:.1f}" for at, where in edge)
            parts.append(f'<polygon points="{path}" fill="{colour}" fill-opacity="{_FADED[colour]:g}"/>')
        for tick in (10.0**power for power in range(low, high + 1) if power % 3 == 0):
            parts += [_line(left - 4, y(tick), left, y(tick), INK), _text(left - 8, y(tick) + 4, _short(tick), "end")]
        for tick in _powers(xs[0], xs[-1]):
            parts += [
                _line(x(tick), bottom, x(tick), bottom + 5, INK),
                _text(x(tick), bottom + 19, _short(tick), "middle"),
            ]
        parts += [_line(left, bottom, right, bottom, INK), _text(left + 8, bottom - tall + 18, title)]
    ended = 50 + (tall + gap) * len(panels)
    return _svg(ended + 10, words, [*parts, _text(right, ended, across, "end")])


def _svg(height: float, words: str, parts: Iterable[str], kind: str = "picture") -> str:
    return (
        f'<svg class="{kind}" role="img" aria-label="{escape(words)}" viewBox="0 0 {_WIDTH} {height:g}" '
        f'preserveAspectRatio="{"none" if kind == "bar" else "xMinYMin"}">'
        f"{''.join(parts)}</svg>"
    )


def _axis(ticks: Sequence[float], at: _Scale, y: float, length: float) -> list[str]:
    marks = [_line(at(tick), y, at(tick), y + length, INK) for tick in ticks]
    return [*marks, *(_text(at(tick), y + length + 14, _short(tick), "middle") for tick in ticks)]


def _short(value: float) -> str:
    for size, letter in ((1e12, "tn"), (1e9, "bn"), (1e6, "m"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:,.10g}"


def _drawable(value: float) -> bool:
    """Whether an axis can reach a number: distances to it have to be doubles too."""
    return math.isfinite(value) and abs(value) < 1e300


class _Scale:
    def __init__(self, low: float, high: float, left: float, right: float) -> None:
        self._low, self._left, self._by = low, left, (right - left) / ((high - low) or 1.0)

    def __call__(self, value: float) -> float:
        return self._left + (value - self._low) * self._by


def _scale(ticks: Sequence[float], left: float, right: float) -> _Scale:
    return _Scale(ticks[0], ticks[-1], left, right)


def _ticks(low: float, high: float) -> list[float]:
    """Four to seven round numbers that span a range."""
    if not high > low:
        low, high = low - 0.5 * abs(low or 1), high + 0.5 * abs(high or 1)
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [factor * 10.0**decade for decade in decades for factor in (1, 2, 5)]
    found = [one for one in every if low * 0.999 <= one <= high * 1.001]
    return found if len(found) <= 7 else [one for one in found if round(math.log10(one), 6) % 1 == 0]


def _box(x: float, y: float, width: float, height: float, colour: str, opacity: float = 1) -> str:
    faded = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<rect x="{x:.1f}" y="{y:g}" width="{max(width, 0):.1f}" height="{height:g}" fill="{colour}"{faded}/>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: float = 1) -> str:
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'
    )


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12.5" fill="{INK}">{escape(words)}</text>'

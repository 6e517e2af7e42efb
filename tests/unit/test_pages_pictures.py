"""Pictures are in proportion, say what they show, and survive what a release may hold: infinite ends, nothing, names that are code."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from evenhand.pages.pictures import Bar, Range, bars, budget_bar, curve, number_line, regions

SCRIPT = '"><script>alert(1)</script>'


def boxes(svg: str, colour: str) -> list[float]:
    """The widths of the boxes of a colour."""
    return [float(width) for width in re.findall(rf'width="([\d.]+)" height="[\d.]+" fill="{colour}"', svg)]


def test_bars_are_in_proportion() -> None:
    svg = bars([Bar("a", 30, 25, 35, True), Bar("b", 10, -5, 25, False), Bar(SCRIPT, 20, 10, 30, True)], SCRIPT)
    first, third = boxes(svg, "#2b6ca3")
    (second,) = boxes(svg, "#9aa5b1")  # too noisy: grey
    assert (first / second, third / second) == pytest.approx((3, 2), rel=0.01)
    assert "<script" not in svg
    assert ElementTree.fromstring(svg).get("aria-label", "").startswith(SCRIPT)


def test_regions_meet_where_the_numbers_say() -> None:
    svg = regions([(SCRIPT, [Range(10, 10, 1000), Range(1000, 1000, None)])], "items", "people", "words")
    assert "<script" not in svg
    shapes = [
        [tuple(map(float, point.split(","))) for point in found.split()]
        for found in re.findall('points="([^"]+)"', svg)
    ]
    impossible, unknown, possible = shapes
    assert impossible[:1:-1] == unknown[:2]  # the upper edge of one is the lower edge of the next
    assert unknown[:1:-1] == possible[:2]
    bottom, ten, thousand, top = impossible[0][1], unknown[0][1], unknown[1][1], possible[2][1]
    assert (bottom - ten, ten - thousand, thousand - top) == pytest.approx(
        (0, 2 * (thousand - top), thousand - top), abs=0.2
    )


def test_a_budget_bar_is_in_proportion() -> None:
    svg = budget_bar(1, 0.5, 4, "words")
    assert boxes(svg, "#2b6ca3")[0] == 2 * boxes(svg, "#d98200")[0] == boxes(svg, "#d5dbe1")[0] / 4


@pytest.mark.parametrize(
    "svg",
    [
        bars([Bar("a", 3, -math.inf, math.inf, True), Bar("b", math.nan, 0, 1, True)], "n"),
        bars([Bar("a", 0, 0, 0, True)], "n"),
        bars([Bar(str(place), 1e12 * place, 0, 1e13, True) for place in range(100)], "n"),
        number_line(5, -math.inf, math.inf, "w"),
        number_line(0, 0, 0, "w"),
        number_line(0, -1.7e308, 1.7e308, "w"),
        bars([Bar("a", 1, -1.7e308, 1.7e308, True), Bar("b", 1e308, 0, 1e308, True)], "n"),
        number_line(-1e-9, -2e-9, 1e15, "w"),
        budget_bar(0, 0, 0, "w"),
        budget_bar(9, 9, 1, "w"),
        curve([(0.01, 5, 5), (0.1, 5, 5), (1, 5, 5)], 0.1, "t", "w"),
        curve([(1e-9, 1e9, 1e12), (1e-8, 1, 1e3)], 1e-8, "t", "w"),
        regions([("a", [Range(50, 7, 70)])], "x", "y", "w"),
        regions([("ε = 1", [Range(2, 1, None), Range(65_536, 10**14, None)])], "x", "y", "w"),
        regions(
            [("a", [Range(50, 1, 1), Range(51, 1, 2)]), ("b", [Range(50, 1, 9), Range(51, 3, None)])], "x", "y", "w"
        ),
    ],
)
def test_odd_numbers_are_drawn(svg: str) -> None:
    drawn = ElementTree.fromstring(svg)
    assert drawn.get("aria-label")
    numbers = [
        float(text)
        for one in drawn.iter()
        for name, text in one.attrib.items()
        if name in ("x", "x1", "x2", "cx", "width")
    ]
    assert all(-1 <= number <= 401 for number in numbers)
    assert "nan" not in svg.lower().replace("xminymin", "")


def test_nothing_to_draw() -> None:
    assert regions([("a", []), ("b", [])], "x", "y", "w") == ""
    assert bars([Bar("a", math.nan, 0, 1, True)], "n") == number_line(math.nan, math.nan, math.nan, "w") == ""

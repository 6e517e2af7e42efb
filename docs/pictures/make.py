"""Draw the pictures of the strategies: what each does to what one user adds.

Every point comes out of the library itself: a table with one made-up user is released with the noise silenced, and what
remains is that user's contribution. The pictures show the code, not a sketch of it. After changing a strategy run
``python docs/pictures/make.py``; tests/apps/test_docs.py notices when a picture shows something else than the code does.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

import evenhand as eh
from evenhand.bounding import LocatedMean, Strategy, Summary
from evenhand.guarantee import Relation
from evenhand.noise import seam
from evenhand.tables import Grid
from evenhand.tables.summaries import per_user

FOLDER = Path(__file__).parent

# Middle tones that read on a light and on a dark page; blue and orange stay apart for the colour-blind.
GREY, BLUE, ORANGE, GREEN = "#8a8a8a", "#3a8ad0", "#e07b27", "#2a9d6f"
AS_IS = "as it is"
WIDTH, HEIGHT = 380, 230
STARS = (0.0, 5.0)

Points = list[dict[str, Any]]


@dataclass(frozen=True)
class Picture:
    """A chart, and the points in it that depend on no randomness."""

    points: Points
    chart: Any

    @property
    def digest(self) -> str:
        """Changes when the strategy does something else."""
        rounded = [{key: round(at, 6) if isinstance(at, float) else at for key, at in p.items()} for p in self.points]
        return hashlib.sha256(json.dumps(rounded, sort_keys=True).encode()).hexdigest()[:16]

    def svg(self) -> str:
        """The picture without a background, its digest inside."""
        text = vl_convert.vegalite_to_svg(self.chart.to_dict())
        start = text.index(">", text.index("<svg")) + 1
        return f"{text[:start]}<desc>points {self.digest}</desc>{text[start:]}\n"


class Person:
    """A table with one user, asked with the noise silenced, so that the answer is what this user adds."""

    def __init__(self, values: Sequence[float], protects: str = "presence", **columns: Sequence[Any]) -> None:
        self.frame = pd.DataFrame({"user": 1, "value": np.asarray(values, dtype=float), **columns})
        self.protects = protects

    def ask(self, question: Callable[[eh.Session], eh.Release]) -> Any:
        with tempfile.TemporaryDirectory() as folder, seam.replaced(seam.silent):
            public = [name for name in self.frame.columns if name not in ("user", "value")]
            table = eh.read(self.frame, user="user", protects=self.protects, public=public)
            return question(eh.Session(table, eh.Ledger(Path(folder) / "budget.db", epsilon=1))).value

    def adds(self, strategy: Strategy, bounds: tuple[float, float]) -> float:
        return float(self.ask(lambda session: session.sum("value", bounds=bounds, epsilon=1, bounding=strategy)))


def total_cap() -> Picture:
    """x: a user's total; y: what is added."""
    totals, strategy = [0, 100, 200, 240, 300, 400, 500, 600], eh.TotalCap(240)
    points: Points = []
    for total in totals:
        person = Person([total / 10] * 10)
        points += [
            {"x": total, "y": float(total), "series": AS_IS},
            {"x": total, "y": person.adds(strategy, (0, 60)), "series": "TotalCap(240)"},
        ]
    chart = lines(points, [AS_IS, "TotalCap(240)"], "minutes that a user watched", "minutes added")
    return Picture(points, styled(chart))


def row_limit() -> Picture:
    """x: a user's rows; y: the sum over those that are kept."""
    return _many_users(eh.RowLimit(10), "RowLimit(10)", fixed=False)


def smooth_weights() -> Picture:
    """x: a user's rows; y: their mean times the rows they count as."""
    return _many_users(eh.SmoothWeights(10), "SmoothWeights(10)", fixed=True)


def _many_users(strategy: Strategy, name: str, fixed: bool) -> Picture:
    """Users with 1 to 39 rows of stars. ``fixed``: the strategy draws nothing at random."""
    random = np.random.default_rng(5)
    before, after = [], []
    for rows in range(1, 41, 2):
        stars = random.choice([1.0, 2.0, 3.0, 4.0, 5.0], rows, p=[0.1, 0.1, 0.2, 0.3, 0.3])
        before.append({"x": rows, "y": float(stars.sum()), "series": AS_IS})
        after.append({"x": rows, "y": Person(stars.tolist()).adds(strategy, STARS), "series": name})
    bound = 10 * STARS[1]
    chart = dots(before + after, [AS_IS, name], "rows of a user", "stars added") + rule(bound, "bound 10 · 5 = 50")
    return Picture(before + after if fixed else before, styled(chart))


def centred_interval() -> Picture:
    """x: a user's rows; y: how low and how high the user's sum may be."""
    strategy, name = eh.CentredInterval(50), "CentredInterval(50)"
    points: Points = []
    for rows in (1, 5, 10, 15, 20, 30, 40):
        ends = [Person([star] * rows, "values").adds(strategy, STARS) for star in STARS]
        points += [
            {"x": rows, "low": 0.0, "high": 5.0 * rows, "series": AS_IS},
            {"x": rows, "low": ends[0], "high": ends[1], "series": name},
        ]
    chart = bands(points, [AS_IS, name], "rows of a user", "where the user's stars may lie")
    return Picture(points, styled(chart))


def located_mean() -> Picture:
    """x: a user's rows; y: how far the user's sum may lie from rows times the centre."""
    name = "LocatedMean, caps of 30"
    grid = Grid.about(STARS, origin=0.0)
    strategy = LocatedMean(centre=grid.steps(Fraction("3.5")), below=grid.steps(30), above=grid.steps(30))
    points: Points = []
    for rows in (1, 5, 10, 15, 20, 30, 40):
        low, high = (_residual([star] * rows, strategy, grid) for star in STARS)
        points += [
            {"x": rows, "low": -3.5 * rows, "high": 1.5 * rows, "series": AS_IS},
            {"x": rows, "low": low, "high": high, "series": name},
        ]
    random = np.random.default_rng(3)
    people: Points = []
    for rows in range(2, 41, 2):
        stars = np.clip(random.normal(random.normal(3.5, 0.25), 1.0, rows), *STARS)
        people.append({"x": rows, "y": _residual(stars.tolist(), strategy, grid), "series": "users near the centre"})
    spots = dots(people, [AS_IS, name, "users near the centre"], "", "")
    band = bands(points, [AS_IS, name, "users near the centre"], "rows of a user", "stars − 3.5 · rows")
    return Picture(points + people, styled(band + spots))


def _residual(values: Sequence[float], strategy: LocatedMean, grid: Grid) -> float:
    """Made by Auto only, so its expression is asked directly."""
    table = eh.read(Person(values).frame, user="user")
    users = per_user(table, [("value", grid)])
    residual = strategy.of_mean(Summary(users.rows, users.above_0, grid), Relation.VALUES).sums.integers[0]
    return grid.units(int(table.engine.fetch(users.select(residual=residual)).reveal()["residual"][0].as_py()))


def norm_clip() -> Picture:
    """Rows by group of a light and of a heavy user, before and after."""
    name, genres = "NormClip(20)", ["drama", "comedy", "crime", "nature"]
    points: Points = []
    for who, rows in (("a user with 12 rows", [6, 3, 2, 1]), ("a user with 60 rows", [30, 18, 9, 3])):
        genre = np.repeat(genres, rows).tolist()
        person = Person([1.0] * len(genre), genre=genre)
        after = person.ask(
            lambda session: session.sum(
                "value", bounds=(0, 1), by="genre", keys=genres, epsilon=1, bounding=eh.NormClip(20)
            )
        )
        for group, exact, shown in zip(genres, rows, after["sum"], strict=True):
            points += [
                {"who": who, "genre": group, "y": float(exact), "series": AS_IS},
                {"who": who, "genre": group, "y": round(float(shown), 3), "series": name},
            ]
    chart = (
        alt.Chart(alt.Data(values=points))
        .mark_bar()
        .encode(
            x=alt.X("genre:N", sort=genres, title=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("series:N", sort=[AS_IS, name]),
            y=alt.Y("y:Q", title="rows"),
            color=_colour([AS_IS, name]),
        )
        .properties(width=WIDTH, height=110)
        .facet(row=alt.Row("who:N", title=None, header=alt.Header(labelOrient="top", labelAnchor="start")))
    )
    return Picture(points, styled(chart))


def auto(times: int = 60) -> Picture:
    """x: the cap; y: noise, bias and error of a count; the larger a dot, the more often Auto chose its cap."""
    random = np.random.default_rng(11)
    rows = np.ceil(random.lognormal(2.6, 1.2, 3000)).astype(int)
    frame = pd.DataFrame({"user": np.repeat(np.arange(len(rows)), rows)})

    def sampler(name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        """Noise that comes out the same each time the picture is drawn."""
        return [value + round(float(random.laplace(0, float(scale)))) for value in values]

    with tempfile.TemporaryDirectory() as folder, seam.replaced(sampler):
        table, ledger = eh.read(frame, user="user"), eh.Ledger(Path(folder) / "budget.db", epsilon=times)
        releases = [eh.Session(table, ledger).count(epsilon=0.5) for _ in range(times)]
    often = Counter(release.bounding.parameter for release in releases)
    chosen = [{"x": cap, "times": times, "series": "chosen by Auto"} for cap, times in often.items()]
    noise_per_row = round((releases[0].error.noise or 0) / (releases[0].bounding.parameter or 1), 3)
    points: Points = []
    for cap in np.unique(np.geomspace(10, 1.2 * rows.max(), 40).round()):
        noise, bias = noise_per_row * cap, float(np.maximum(rows - cap, 0).sum())
        parts = {"noise": noise, "bias": bias, "both": float(np.hypot(noise, bias))}
        points += [{"x": float(cap), "y": y, "series": part} for part, y in parts.items() if y >= 100]
    x = _log(alt.X, "x:Q", "cap on a user's rows", [10, 100, 1000], 2000)
    y = _log(alt.Y, "y:Q", "error of the count", [100, 1000, 10_000, 100_000])
    colour = _colour(["noise", "bias", "both", "chosen by Auto"])
    curves = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=3).encode(x=x, y=y, color=colour)
    spots = (
        alt.Chart(alt.Data(values=chosen))
        .mark_circle(opacity=0.9)
        .encode(x=x, y=alt.value(HEIGHT - 16), size=alt.Size("times:Q", legend=None), color=colour)
    )
    return Picture(points, styled((curves + spots).properties(width=WIDTH, height=HEIGHT)))


PICTURES: dict[str, Callable[[], Picture]] = {
    "total-cap": total_cap,
    "row-limit": row_limit,
    "smooth-weights": smooth_weights,
    "centred-interval": centred_interval,
    "located-mean": located_mean,
    "norm-clip": norm_clip,
    "auto": auto,
}


def lines(points: Points, names: list[str], x: str, y: str) -> Any:
    """One line a series, the untouched one dashed."""
    return _xy(points, names, x, y).mark_line(strokeWidth=3).encode(
        strokeDash=alt.condition(f"datum.series == '{AS_IS}'", alt.value([6, 5]), alt.value([1, 0]))
    )  # fmt: skip


def dots(points: Points, names: list[str], x: str, y: str) -> Any:
    """One dot a user."""
    return _xy(points, names, x, y).mark_point(filled=True, size=42, opacity=0.9)


def bands(points: Points, names: list[str], x: str, y: str) -> Any:
    """How far down and up a user may reach."""
    return (
        alt.Chart(alt.Data(values=points))
        .mark_area(opacity=0.45, line=False)
        .encode(
            x=alt.X("x:Q", title=x),
            y=alt.Y("low:Q", title=y, stack=None),
            y2="high:Q",
            color=_colour(names),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )


def rule(at: float, label: str) -> Any:
    """The bound that the guarantee rests on."""
    base = alt.Chart(alt.Data(values=[{"y": at, "label": label}])).encode(y="y:Q")
    text = base.mark_text(align="left", dx=6, dy=-9, fontSize=13, color=BLUE).encode(x=alt.value(0), text="label:N")
    return base.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color=BLUE) + text


def styled(chart: Any) -> Any:
    """Large type, no background, no frame."""
    font = {"labelFontSize": 14, "titleFontSize": 14, "labelColor": GREY, "titleColor": GREY}
    return (
        chart.configure(background="transparent", font="sans-serif")
        .configure_axis(
            **font, titleFontWeight="normal", gridColor=GREY, gridOpacity=0.25, domainColor=GREY, tickColor=GREY
        )
        .configure_legend(orient="top", title=None, labelFontSize=14, labelColor=GREY, symbolSize=140, labelLimit=0)
        .configure_header(labelFontSize=14, labelColor=GREY)
        .configure_view(stroke=None)
    )


def _xy(points: Points, names: list[str], x: str, y: str) -> Any:
    axis_x, axis_y = (alt.X("x:Q"), alt.Y("y:Q")) if not x else (alt.X("x:Q", title=x), alt.Y("y:Q", title=y))
    return (
        alt.Chart(alt.Data(values=points))
        .encode(x=axis_x, y=axis_y, color=_colour(names))
        .properties(width=WIDTH, height=HEIGHT)
    )


def _colour(names: list[str]) -> Any:
    palettes = {2: [GREY, BLUE], 3: [GREY, BLUE, ORANGE], 4: [ORANGE, BLUE, GREY, GREEN]}
    scale = alt.Scale(domain=names, range=palettes[len(names)])
    return alt.Color("series:N", scale=scale, legend=alt.Legend(symbolOpacity=1))


def _log(channel: Any, field: str, title: str, ticks: list[int], end: int | None = None) -> Any:
    """A logarithmic axis from the first tick to the last, or to ``end``."""
    scale = alt.Scale(type="log", nice=False, domain=[ticks[0], end or ticks[-1]])
    return channel(field, scale=scale, title=title, axis=alt.Axis(values=ticks, format=",d", labelOverlap=True))


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
        print(FOLDER / f"{name}.svg")

"""The tables that the benchmark runs on: shapes of published ones and laws with heavy and light tails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks import shapes
from benchmarks.shapes import Rows

EPSILONS = (0.05, 0.1, 0.5, 1.0, 4.0)
FROM = 0.1  # the bars hold from this ε on

_rng = np.random.default_rng

COUNTS: dict[str, Callable[[], Rows]] = {
    "MovieLens-20M": shapes.movielens_20m,
    "Book-Crossing": shapes.book_crossing,
    "shop": shapes.shop,
    "course": shapes.course,
    "Zipf 2, 20k users": lambda: shapes.zipf(20_000, 2.0, _rng(1)),
    "Zipf 2.5, 2k users": lambda: shapes.zipf(2_000, 2.5, _rng(2)),
    "Pareto 1.1, 100k users": lambda: shapes.pareto(100_000, 1.1, _rng(3)),
    "Pareto 1.5, 5k users": lambda: shapes.pareto(5_000, 1.5, _rng(4), least=10),
    "Pareto 3, 2k users": lambda: shapes.pareto(2_000, 3.0, _rng(5), least=20),
    "log-normal 0.5, 2k users": lambda: shapes.lognormal(2_000, 20, 0.5, _rng(6)),
    "log-normal 1, 20k users": lambda: shapes.lognormal(20_000, 20, 1.0, _rng(7)),
    "log-normal 2, 50k users": lambda: shapes.lognormal(50_000, 20, 2.0, _rng(8)),
    "geometric, 2k users": lambda: _rng(9).geometric(0.05, 2_000).astype(np.int64),
    "uniform to 100, 2k users": lambda: _rng(10).integers(1, 101, 2_000),
    "all equal to 1, 2k users": lambda: shapes.equal(2_000, 1),
    "all equal to 1025, 2k users": lambda: shapes.equal(2_000, 1025),
    "one giant among 5k": lambda: shapes.one_giant(5_000, 3, 10**6),
}

PUBLISHED = ("MovieLens-20M", "Book-Crossing", "shop", "course")
"""Shapes of published tables; the other ones are our own, made to be awkward."""

HARD: dict[str, Callable[[], Rows]] = {
    "Zipf 1.5, 2k users (no mean)": lambda: shapes.zipf(2_000, 1.5, _rng(11)),
    "100 users at 1000, 2k at 3": lambda: np.concatenate([shapes.equal(2_000, 3), shapes.equal(100, 1000)]),
}
"""Outside the bars on purpose: single users, or a hundred, hold most rows, and at ε = 0.1 nobody can see them privately."""

VALUES: dict[str, dict[str, float]] = {
    "stars": {"centre": 0.67, "spread": 0.10, "tilt": 0.25, "noise": 0.22},
    "books": {"centre": 0.38, "spread": 0.22, "tilt": 0.25, "noise": 0.35},
    "prices": {"centre": 0.08, "spread": 0.04, "tilt": 0.25, "noise": 0.06},
}
"""User means in [0, 1] that go with the counts: where they lie, how far they spread, how much busy users differ."""


def draw_means(kind: str, rows: Rows, seed: int) -> npt.NDArray[np.float64]:
    """User means of one table of a kind: another centre, another direction and strength in which busy users differ.

    Fresh ones for every table, so that no constant is a lucky guess.
    """
    rng, values = np.random.default_rng(seed), VALUES[kind]
    centre = values["centre"] * rng.uniform(0.75, 1.25)
    tilt = values["tilt"] * rng.uniform(0.4, 1.4) * rng.choice([-1, 1])
    return shapes.user_means(rows, rng, centre, values["spread"], tilt, values["noise"])

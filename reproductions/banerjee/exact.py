"""Theorems 3.5, 5.1 and 5.3 are about exact recovery: how many people until every item is right, over N, w and ε."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.guarantee import parse_epsilon
from evenhand.recommender.bounds import sufficient_users
from evenhand.recommender.planning import users_needed
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import Tastes, preset
from evenhand.recommender.tuning import Setting, best_questions, best_theta, strength
from reproductions.banerjee.common import exponent, line_chart
from reproductions.outcomes import Check, Outcome, Rows, Size, median_interval

STEP = 2 ** (1 / 3)
LOOKS = range(-6, 8)
SEEDS = {"small": range(6), "full": range(12)}


@dataclass(frozen=True)
class Place:
    """A campaign's size."""

    items: int
    rated: int
    epsilon: float = 1.0
    questions: int = 1


def needs(sketch: str, tastes: Tastes, place: Place, seeds: Sequence[int]) -> list[float]:
    """For each seed the people until all items are right, in campaigns that are looked at after each 26% more people."""
    exact = parse_epsilon(place.epsilon)
    setting = Setting(sketch, place.items, place.rated, exact, questions=place.questions)
    near = users_needed(setting, tastes, 0.5 / place.items)
    assert near is not None, "the sketch can't see these tastes"
    stops = [round(near * STEP**step) for step in LOOKS]
    found = []
    for seed in seeds:
        several = place.questions if sketch == "multi-maxsense" else None
        points = study(tastes, place.items, place.rated, place.epsilon, stops, [sketch], questions=several, seed=seed)
        first = next((point.users for point in points if point.wrong == 0), stops[-1] * STEP)
        found.append(first / math.sqrt(STEP))  # somewhere between this look and the one before
    return found


def series(sketch: str, tastes: Tastes, places: Sequence[Place], size: Size) -> tuple[Rows, list[list[float]]]:
    """A row for each place, and the needs of each seed."""
    found = [needs(sketch, tastes, place, SEEDS[size]) for place in places]
    rows: Rows = []
    for place, each in zip(places, found, strict=True):
        middle, low, high = median_interval(each)
        rows.append({**vars(place), "users": middle, "low": low, "high": high, "series": sketch})
    return rows, found


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """MaxSense over N at w = 20 (small: 10), over w and over ε, and the constant C of users = C·N² ln N/(ε̂² δ² w)."""
    tastes, rated = preset("popular"), {"small": 10, "full": 20}[size]
    items = {"small": (30, 60), "full": (50, 100, 200, 400)}[size]
    middle = items[1]
    by_items, found = series("maxsense", tastes, [Place(n, rated) for n in items], size)
    several = {"small": (10, 20), "full": (10, 20, 40)}[size]
    by_rated, of_rated = series("maxsense", tastes, [Place(middle, w) for w in several], size)
    levels = {"small": (0.5, 2.0), "full": (0.5, 1.0, 2.0)}[size]
    by_level, of_level = series("maxsense", tastes, [Place(middle, rated, e) for e in levels], size)
    separation = math.exp(-sum(tastes.like[0]) / 2) * (tastes.like[0][0] - tastes.like[0][1])
    for row in by_items:
        n = row["items"]
        unit = n**2 * math.log(n) / ((2 * strength(1.0)) ** 2 * separation**2 * rated)
        proven = sufficient_users(n, rated, parse_epsilon(1.0), tastes, 1.0)
        assert proven is not None
        row |= {"C": row["users"] / unit, "proven / users": proven / row["users"]}
    constants = [row["C"] for row in by_items]
    logs = [n**2 * math.log(n) for n in items]
    checks = [
        exponent("exponent of N² ln N", logs, found, 0.85, 1.15),
        exponent("exponent of w", several, of_rated, -1.5, -0.8),
        exponent("exponent of ε̂ = 2 tanh(ε/2)", [2 * strength(e) for e in levels], of_level, -2.3, -1.7),
        Check("C, geometric mean over N", float(np.exp(np.mean(np.log(constants)))), 2.5, 7),
        # A constant of a bound; and campaigns are looked at after each 26% more people.
        Check("C, largest over smallest", max(constants) / min(constants), 1, 2.5),
        Check(
            "proven number of users over simulated, smallest", min(row["proven / users"] for row in by_items), 100, 1000
        ),
    ]
    title = f"MaxSense: users until all items are right (w = {rated}, ε = 1)"
    return _drawn(out, "banerjee-exact", title, checks, by_items, by_rated + by_level)


def pairwise(out: Path, size: Size = "full") -> Outcome:
    """Pairwise-Preference where people rated half of the items (Theorem 3.5), over N and over ε; the logarithm is that of exactness."""
    tastes = preset("mirrored")
    items = {"small": (20, 40, 80), "full": (50, 100, 200)}[size]
    by_items, found = series("pairwise", tastes, [Place(n, n // 2) for n in items], size)
    levels = {"small": (0.5, 2.0), "full": (0.5, 1.0, 2.0)}[size]
    by_level, of_level = series("pairwise", tastes, [Place(items[1], items[1] // 2, e) for e in levels], size)
    checks = [
        exponent("exponent of N ln N", [n * math.log(n) for n in items], found, 0.7, 1.3),
        exponent("exponent of tanh(ε/2)", [strength(e) for e in levels], of_level, -2.6, -1.6),
    ]
    title = "Pairwise-Preference: users until all items are right (w = N/2, ε = 1)"
    return _drawn(out, "banerjee-exact-pairwise", title, checks, by_items, by_level)


def several(out: Path, size: Size = "full") -> Outcome:
    """Multi-MaxSense with the best number of questions (Theorem 5.3), over ε from 4 on, and over N and w at ε = 8."""
    tastes = preset("popular")
    items, rated = {"small": ((40, 80), 20), "full": ((50, 100, 200), 40)}[size]
    levels = {"small": (4.0, 12.0), "full": (4.0, 6.0, 8.0, 12.0)}[size]

    def place(n: int, w: int, epsilon: float) -> Place:
        return Place(n, w, epsilon, best_questions(parse_epsilon(epsilon), n, w, best_theta()))

    by_level, of_level = series("multi-maxsense", tastes, [place(items[1], rated, e) for e in levels], size)
    by_items, of_items = series("multi-maxsense", tastes, [place(n, rated, 8.0) for n in items], size)
    fewer = (rated // 2, rated)
    by_rated, of_rated = series("multi-maxsense", tastes, [place(items[1], w, 8.0) for w in fewer], size)
    least, most = {"small": (-1.8, -0.4), "full": (-1.5, -0.7)}[size]  # a few seeds, two levels
    worth = [row["questions"] * strength(row["epsilon"] / row["questions"]) ** 2 for row in by_level]
    checks = [
        exponent("exponent of ε (the paper: -1)", levels, of_level, least, most),
        exponent("exponent of Q tanh²(ε/2Q)", worth, of_level, least, most),
        exponent("exponent of N² ln N", [n**2 * math.log(n) for n in items], of_items, 0.8, 1.3),
        exponent("exponent of w", fewer, of_rated, -1.9, -0.6),
    ]
    title = f"Multi-MaxSense: users until all of {items[1]} items are right (w = {rated})"
    return _drawn(out, "banerjee-exact-several", title, checks, by_level, by_items + by_rated, "epsilon")


def _drawn(
    out: Path, name: str, title: str, checks: list[Check], shown: Rows, others: Rows, x: str = "items"
) -> Outcome:
    picture: Any = line_chart(shown, x, "users", "series", title)
    return Outcome(title, checks, shown + others).write(out, name, picture)

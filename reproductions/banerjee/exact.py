"""Theorem 5.1 is about exact recovery: from which constant on does MaxSense get every item right?"""

from __future__ import annotations

import math
from pathlib import Path

from evenhand.guarantee import parse_epsilon
from evenhand.recommender.bounds import sufficient_users
from evenhand.recommender.planning import users_needed
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import preset
from evenhand.recommender.tuning import Setting, strength
from reproductions.banerjee.common import geometric, line_chart
from reproductions.outcomes import Check, Outcome, Rows, Size

GRIDS = {"small": ((30, 60), 10, range(5)), "full": ((50, 100, 200, 400), 20, range(16))}
STEP = 2**0.25


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Grow campaigns until all items are right, over N, and divide by N² ln N / (ε̂² δ² w)."""
    items, rated, seeds = GRIDS[size]
    epsilon, tastes = 1.0, preset("popular")
    separation = math.exp(-sum(tastes.like[0]) / 2) * (tastes.like[0][0] - tastes.like[0][1])
    rows: Rows = []
    for n in items:
        setting = Setting("maxsense", n, rated, parse_epsilon(epsilon))
        near = users_needed(setting, tastes, 0.5 / n)
        assert near is not None
        stops = [round(near * STEP**step) for step in range(-8, 8)]
        needs = []
        for seed in seeds:
            wrong = [point.wrong for point in study(tastes, n, rated, epsilon, stops, ["maxsense"], seed=seed)]
            first = next((stop for stop, share in zip(stops, wrong, strict=True) if share == 0), stops[-1] * STEP)
            needs.append(first / math.sqrt(STEP))  # somewhere between this look and the one before
        need, error = geometric(needs)
        unit = n**2 * math.log(n) / ((2 * strength(epsilon)) ** 2 * separation**2 * rated)
        proven = sufficient_users(n, rated, parse_epsilon(epsilon), tastes, 1.0)
        assert proven is not None
        rows.append(
            {"items": n, "users": need, "relative error": error, "C": need / unit, "proven / users": proven / need}
        )
    constant, _ = geometric([row["C"] for row in rows])
    checks = [
        Check("C, geometric mean over N", constant, 2.5, 7),
        Check("C, largest over smallest", max(row["C"] for row in rows) / min(row["C"] for row in rows), 1, 1.7),
        Check("proven number of users over simulated, smallest", min(row["proven / users"] for row in rows), 100, 1000),
    ]
    title = f"MaxSense: users until all items are right (w = {rated}, ε = 1)"
    shown = [{**row, "series": "simulated"} for row in rows]
    return Outcome(title, checks, rows).write(
        out, "banerjee-exact", line_chart(shown, "items", "users", "series", title)
    )

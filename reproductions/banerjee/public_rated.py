"""Where it is public which items people rated, Pairwise-Preference needs about N log N users, however few they rated."""

from __future__ import annotations

from pathlib import Path

from evenhand.guarantee import parse_epsilon
from evenhand.recommender.planning import users_needed
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import Tastes, preset
from evenhand.recommender.tuning import Setting
from reproductions.banerjee.common import WRONG, crossing, exponent, geometric, line_chart
from reproductions.outcomes import Check, Outcome, Rows, Size

GRIDS = {
    "small": ((30, 60, 120), (3, 10, 30), range(5)),
    "full": ((50, 100, 200, 400), (3, 10, 30, 90), range(8)),
}
EPSILON = 1.0


def campaign_need(tastes: Tastes, items: int, rated: int, stops: list[int], seed: int) -> float:
    """One campaign of people who each rated ``rated`` random items and told which; only their likes are private."""
    points = study(tastes, items, rated, EPSILON, stops, ["pairwise"], public_rated=True, seed=seed)
    return crossing(stops, [point.wrong for point in points])


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Simulate over N with w = 10 and over w at one N; what is rated being private would cost (N/w)⁴ times as many."""
    items, rated, seeds = GRIDS[size]
    tastes, fixed_items = preset("mirrored"), items[-2]
    rows: Rows = []
    runs: dict[str, list[list[float]]] = {"N varies": [], "w varies": []}
    for n, w, series in [*((n, 10, "N varies") for n in items), *((fixed_items, w, "w varies") for w in rated)]:
        near = users_needed(Setting("pairwise", n, w, parse_epsilon(EPSILON), public_rated=True), tastes, WRONG)
        assert near is not None
        stops = [round(near * 2 ** (step / 2)) for step in range(-4, 5)]
        runs[series].append([campaign_need(tastes, n, w, stops, seed) for seed in seeds])
        need, error = geometric(runs[series][-1])
        rows.append(
            {"items": n, "rated": w, "series": series, "users": need, "relative error": error, "forecast": near}
        )
    by_items = [row for row in rows if row["series"] == "N varies"]
    hidden = users_needed(Setting("pairwise", fixed_items, 10, parse_epsilon(EPSILON)), tastes, WRONG)
    ten = next(row for row in by_items if row["items"] == fixed_items)
    off = [row["users"] / row["forecast"] for row in rows]
    checks = [
        Check("simulated over forecast, smallest", min(off), 0.6, 1.5),
        Check("simulated over forecast, largest", max(off), 0.7, 1.8),
        exponent("exponent of N", items, runs["N varies"], 0.7, 1.5),
        exponent("exponent of w", rated, runs["w varies"], -0.3, 0.3),
        Check("private / public rated items, w = 10, forecast", (hidden or 0) / ten["users"], 100, 1e9),
    ]
    title = f"Public rated items: users for {WRONG:.0%} of items wrong (ε = 1)"
    return Outcome(title, checks, rows).write(
        out, "banerjee-public-rated", line_chart(by_items, "items", "users", "series", title)
    )

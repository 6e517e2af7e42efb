"""The two regimes: Pairwise-Preference collapses where people rate little, and MaxSense does not.

The chance that a person rated both of two items is (w/N)². The paper concludes that Pairwise-Preference needs N²/w²
times more users in the scarce regime; but the flips do not fade with the signal, so that it is (N/w)⁴ in truth.
"""

from __future__ import annotations

from pathlib import Path

from evenhand.recommender.tastes import preset
from reproductions.banerjee.common import WRONG, exponent, geometric, line_chart, simulated_needs
from reproductions.outcomes import Check, Outcome, Rows, Size

GRIDS = {"small": (60, (20, 30, 60), range(3)), "full": (120, (30, 40, 60, 80, 120), range(6))}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Simulate both sketches over w at one N, and compare how fast their needs grow as ratings get scarce."""
    items, rated, seeds = GRIDS[size]
    runs = {
        (sketch, w): simulated_needs(sketch, preset("popular"), items, w, 1.0, seeds)
        for sketch in ("maxsense", "pairwise")
        for w in rated
    }
    rows: Rows = [{"rated": w, "sketch": sketch, "users": geometric(run)[0]} for (sketch, w), run in runs.items()]
    needs = {sketch: [row["users"] for row in rows if row["sketch"] == sketch] for sketch in ("maxsense", "pairwise")}
    growth = [pairwise / maxsense for pairwise, maxsense in zip(needs["pairwise"], needs["maxsense"], strict=True)]
    checks = [
        exponent("exponent of w, pairwise", rated, [runs["pairwise", w] for w in rated], -4.6, -3.2),
        exponent("exponent of w, maxsense", rated, [runs["maxsense", w] for w in rated], -2.2, -1.0),
        Check("pairwise / maxsense, scarce over rich", growth[0] / growth[-1], 5, 100),
    ]
    title = f"Users for {WRONG:.0%} of {items} items wrong (ε = 1)"
    return Outcome(title, checks, rows).write(
        out, "banerjee-regimes", line_chart(rows, "rated", "users", "sketch", title)
    )

"""Theorem 3.5: where everyone rates a constant share of the items, Pairwise-Preference needs about N log N users."""

from __future__ import annotations

import math
from pathlib import Path

from evenhand.recommender.tastes import preset
from reproductions.banerjee.common import WRONG, exponent, geometric, line_chart, simulated_needs
from reproductions.outcomes import Outcome, Rows, Size

GRIDS = {"small": ((40, 80, 160), range(4)), "full": ((50, 100, 200, 400, 800), range(8))}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Simulate campaigns with w = N/2 over N, and fit the exponent of users against N log N."""
    items, seeds = GRIDS[size]
    needs = [simulated_needs("pairwise", preset("mirrored"), n, n // 2, 1.0, seeds) for n in items]
    rows: Rows = [
        {
            "items": n,
            "users": geometric(need)[0],
            "N log N": n * math.log(n),
            "series": "Pairwise-Preference, w = N/2",
        }
        for n, need in zip(items, needs, strict=True)
    ]
    # At a fixed share of errors the logarithm is not needed, which makes the exponent a little less than 1.
    checks = [exponent("exponent of N log N", [row["N log N"] for row in rows], needs, 0.65, 1.15)]
    title = f"Rich: users for {WRONG:.0%} of items wrong (ε = 1)"
    return Outcome(title, checks, rows).write(
        out, "banerjee-pairwise-rich", line_chart(rows, "N log N", "users", "series", title)
    )

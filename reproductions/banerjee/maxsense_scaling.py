"""Theorem 5.1: the users that MaxSense needs grow like N²/w at a fixed error."""

from __future__ import annotations

from pathlib import Path

from evenhand.recommender.tastes import preset
from reproductions.banerjee.common import WRONG, exponent, geometric, line_chart, simulated_needs
from reproductions.outcomes import Outcome, Rows, Size

GRIDS = {
    "small": ((60, 120, 240), (5, 10, 20), range(4)),
    "full": ((100, 200, 400, 800), (5, 10, 20, 40), range(8)),
}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Simulate campaigns over N at w = 10 and over w at N = 120 or 400, and fit the two exponents."""
    items, rated, seeds = GRIDS[size]
    wide = {"small": 0.5, "full": 0.3}[size]  # a few seeds
    fixed_items, fixed_rated, tastes = items[-2], 10, preset("popular")
    places = [(n, fixed_rated) for n in items] + [(fixed_items, w) for w in rated]
    needs = {(n, w): simulated_needs("maxsense", tastes, n, w, 1.0, seeds) for n, w in set(places)}
    rows: Rows = [{"items": n, "rated": w, "users": geometric(needs[n, w])[0]} for n, w in places]
    by_items = rows[: len(items)]
    checks = [
        exponent("exponent of N", items, [needs[n, fixed_rated] for n in items], 2 - wide, 2 + wide),
        exponent("exponent of w", rated, [needs[fixed_items, w] for w in rated], -1 - wide, -1 + wide),
    ]
    for row in rows:
        row["N² / w"] = row["items"] ** 2 / row["rated"]
        row["series"] = "N varies" if row in by_items else "w varies"
    title = f"MaxSense: users for {WRONG:.0%} of items wrong (ε = 1)"
    return Outcome(title, checks, rows).write(
        out, "banerjee-maxsense-scaling", line_chart(rows, "N² / w", "users", "series", title)
    )

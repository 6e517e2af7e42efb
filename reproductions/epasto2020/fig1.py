"""Figure 1: squared error against the number of rows, Zipf(1.5) users, ε = 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproductions.epasto2020.methods import METHODS, squared_errors, synthetic
from reproductions.outcomes import Check, Outcome, Rows, Size, lines

SIZES = {"small": (600, 3000), "full": (600, 1200, 1800, 2400, 3000)}
TABLES = {"small": 3, "full": 10}
MOST = 63  # rows per user, as in the paper's own table of drugs: Zipf(1.5) alone has no mean


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Average squared error of predictions, over 10 generated tables each."""
    rows: Rows = []
    for n in SIZES[size]:
        found = [squared_errors(synthetic(n, 1.5, seed, MOST), 1.0, 10) for seed in range(TABLES[size])]
        rows += [
            {"n": n, "error": float(np.mean([one[method] for one in found])), "method": method} for method in METHODS
        ]
    title = "epasto2020 figure 1: squared error, α = 1.5, ε = 1"
    return Outcome(title, checks(rows, "n"), rows).write(
        out, "epasto2020-fig1", lines(rows, "n", "error", "method", title)
    )


def checks(rows: Rows, x: str) -> list[Check]:
    """What the figure shows: our method is best everywhere, by orders of magnitude against all rows."""
    error = {(row["method"], row[x]): float(row["error"]) for row in rows}
    points = sorted({row[x] for row in rows}, key=float)
    limited = max(error["Our method", p] / error["Sample limit h*", p] for p in points)
    everything = min(error["All rows", p] / error["Our method", p] for p in points)
    falls = [error[method, points[0]] / error[method, points[-1]] for method in METHODS]
    return [
        Check("our error against the best row limit's, worst case", limited, 0.0, 1.0),
        Check("error of all rows against ours, least gain", everything, 3.0, 1e9),
        Check("how far the loss falls from 600 to 3000 rows, the method where it falls least", min(falls), 2.0, 1e9),
    ]

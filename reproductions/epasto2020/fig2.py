"""Figure 2: squared error against the inequality of users, n = 3000, ε = 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproductions.epasto2020.fig1 import TABLES
from reproductions.epasto2020.methods import METHODS, squared_errors, synthetic
from reproductions.outcomes import Check, Outcome, Rows, Size, lines

ALPHAS = {"small": (1.5, 2.5), "full": (1.5, 1.75, 2.0, 2.25, 2.5, 3.0)}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Average squared error of predictions, over 10 generated tables each; a low α makes users more unequal."""
    rows: Rows = []
    for alpha in ALPHAS[size]:
        found = [squared_errors(synthetic(3000, alpha, seed), 1.0, 10) for seed in range(TABLES[size])]
        rows += [
            {"alpha": alpha, "error": float(np.mean([one[method] for one in found])), "method": method}
            for method in METHODS
        ]
    error = {(row["method"], row["alpha"]): row["error"] for row in rows}
    low, high = ALPHAS[size][0], ALPHAS[size][-1]
    advantage = [error["Sample limit h*", alpha] / error["Our method", alpha] for alpha in (low, high)]
    limited = max(error["Our method", alpha] / error["Sample limit h*", alpha] for alpha in ALPHAS[size])
    checks = [
        Check("our error against the best row limit's, worst α", limited, 0.0, 1.0),
        Check(f"gain over the row limit at α = {low:g} against α = {high:g}", advantage[0] / advantage[1], 0.7, 1e9),
    ]
    title = "epasto2020 figure 2: squared error, n = 3000, ε = 1"
    return Outcome(title, checks, rows).write(out, "epasto2020-fig2", lines(rows, "alpha", "error", "method", title))

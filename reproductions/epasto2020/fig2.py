"""Figure 2: squared error against the inequality of users, n = 3000, ε = 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproductions.epasto2020.fig1 import RELEASES, TABLES
from reproductions.epasto2020.methods import METHODS, gains, measured_over_expected, on_tables
from reproductions.outcomes import Check, Outcome, Rows, Size, lines, median_interval

ALPHAS = {"small": (1.5, 3.0), "full": (1.5, 1.75, 2.0, 2.25, 2.5, 3.0)}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Median squared error of predictions over generated tables, with an interval for the median; a low α makes users more unequal."""
    rows: Rows = []
    checks: list[Check] = []
    middles: dict[str, list[float]] = {method: [] for method in METHODS if method != "Our method"}
    for alpha in ALPHAS[size]:
        found = on_tables(3000, alpha, 1.0, TABLES[size], RELEASES[size])
        for method in METHODS:
            middle, low, high = median_interval([one[method].error for one in found])
            rows.append({"alpha": alpha, "error": middle, "low": low, "high": high, "method": method})
        for method, others in middles.items():
            middle, low, high = median_interval(gains(found, method))
            others.append(middle)
            rows.append({"alpha": alpha, "gain": middle, "low": low, "high": high, "method": f"{method} over ours"})
        least = float(np.min(gains(found, "Sample limit h*")))
        checks.append(Check(f"α = {alpha:g}: row limit over ours, least of all tables", least, 1.0, 20.0))
        checks += measured_over_expected(found) if alpha == ALPHAS[size][-1] else []
    low, high = ALPHAS[size][0], ALPHAS[size][-1]
    for method, medians in middles.items():
        checks.append(
            Check(f"{method} over ours, α = {low:g} against α = {high:g}", medians[0] / medians[-1], 1.3, 50.0)
        )
    title = "epasto2020 figure 2: median squared error, n = 3000, ε = 1"
    shown = [row for row in rows if "error" in row]
    outcome = Outcome(title, checks, rows)
    return outcome.write(out, "epasto2020-fig2", lines(shown, "alpha", "error", "method", title))

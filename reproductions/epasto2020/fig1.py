"""Figure 1: squared error against the number of rows, Zipf(1.5) users, ε = 1."""

from __future__ import annotations

from pathlib import Path

from reproductions.epasto2020.methods import METHODS, gains, measured_over_expected, on_tables
from reproductions.outcomes import Check, Outcome, Rows, Size, lines, median_interval

SIZES = {"small": (600, 3000), "full": (600, 1200, 1800, 2400, 3000)}
TABLES = {"small": 16, "full": 50}
RELEASES = {"small": 20, "full": 10}
"""The paper repeats everything ten times."""


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Median squared error of predictions over generated tables, with an interval for the median, and the gain over other methods on the same table.

    Averages of a few tables say little: one user may own half of a table, and the errors of tables differ a hundredfold.
    """
    rows: Rows = []
    checks: list[Check] = []
    medians: dict[tuple[str, int], float] = {}
    for n in SIZES[size]:
        found = on_tables(n, 1.5, 1.0, TABLES[size], RELEASES[size])
        for method in METHODS:
            middle, low, high = median_interval([one[method].error for one in found])
            medians[method, n] = middle
            rows.append({"n": n, "error": middle, "low": low, "high": high, "method": method})
        for method, least, most in (("Sample limit h*", 5.0, 16.0), ("All rows", 80.0, 8000.0)):
            middle, low, high = median_interval(gains(found, method))
            rows.append({"n": n, "gain": middle, "low": low, "high": high, "method": f"{method} over ours"})
            checks.append(Check(f"n = {n}: {method} over ours, median of tables", middle, least, most, (low, high)))
        checks += measured_over_expected(found) if n == SIZES[size][-1] else []
    first, last = SIZES[size][0], SIZES[size][-1]
    fall = {method: medians[method, first] / medians[method, last] for method in METHODS}
    checks += [
        Check(f"{method}: median at {first} over that at {last} rows", fall[method], 1.2, 15.0)
        for method in ("Our method", "Sample limit h*")
    ]
    # The paper says that this falls too. The largest user of Zipf(1.5) has about the same part of a table whatever its size.
    checks.append(Check(f"All rows: median at {first} over that at {last} rows", fall["All rows"], 0.2, 2.5))
    title = "epasto2020 figure 1: median squared error, α = 1.5, ε = 1"
    shown = [row for row in rows if "error" in row]
    outcome = Outcome(title, checks, rows)
    return outcome.write(out, "epasto2020-fig1", lines(shown, "n", "error", "method", title))

"""Example 1 and Claim 3: the gap between optimal weights and any row limit is unbounded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evenhand.learning import LabelPrivateRegression
from reproductions.outcomes import Check, Outcome, Size, lines, near

SIZES = {"small": (2, 5), "full": (2, 3, 5, 8, 12)}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Minimum variance with σ = 0 and 2d(B/ε)² = 1, as g grows.

    The optimum is exactly 1/(g² + 1)², below the paper's 1/g⁴; the row limit needs at least 1/(4g³).
    """
    rows, checks = [], []
    for g in SIZES[size]:
        X = np.array([(g, 0)] + [(1, 0)] * g**3 + [(0, 1)] * (g + g**2), dtype=float)
        users = np.repeat(np.arange(2 * g**2 + 2), [1] + [g] * g**2 + [g] + [1] * g**2)
        variance = {
            weighting: LabelPrivateRegression(
                2, label_bounds=(0, 1), noise_sd=0.0, fit_intercept=False, weighting=weighting, target="coefficients"
            ).fit(X, np.zeros(len(X)), users=users).variance_
            for weighting in ("optimal", "row-limit")
        }  # fmt: skip
        rows += [{"g": g, "variance": value, "weights": name} for name, value in variance.items()]
        checks += [
            near(f"g = {g}: optimal variance", variance["optimal"], 1 / (g * g + 1) ** 2, 1e-6),
            Check(f"g = {g}: row limit against 1/(4g³)", variance["row-limit"] * 4 * g**3, 1.0, 1e9),
        ]
    title = "epasto2020 example 1: minimum variance"
    return Outcome(title, checks, rows).write(
        out, "epasto2020-example1", lines(rows, "g", "variance", "weights", title)
    )

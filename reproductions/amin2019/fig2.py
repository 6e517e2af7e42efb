"""Figure 2: how much of the participation lies with users who are not capped, as the cap grows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from reproductions.outcomes import Outcome, Rows, Size, lines, near

ALPHAS = (0.25, 0.5, 1.0, 2.0)
USERS = {"small": 100_000, "full": 1_000_000}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Σ p_j over users with p_j ≤ τ₀, for p_j ∝ j^-(1+α).

    The paper shows "different values of α" over infinitely many users and names neither; here α is 0.25, 0.5, 1 and 2, and the tail
    beyond the listed users is added as an integral.
    """
    rows: Rows = []
    for alpha in ALPHAS:
        shares, tail = participation(alpha, USERS[size])
        mass = np.concatenate([np.cumsum(shares[::-1])[::-1] + tail, [tail]])
        for tau in np.geomspace(1e-4, 1, 81):
            first = int(np.searchsorted(-shares, -tau))  # shares fall: users from here on are not capped
            rows.append({"tau0": float(tau), "mass": float(mass[first]), "alpha": f"α = {alpha:g}"})
    at = {(row["alpha"], round(row["tau0"], 9)): row["mass"] for row in rows}
    p1 = 6 / np.pi**2  # α = 1: p_j = 6/(π²j²), so two users exceed 0.1 and twenty-four exceed 0.001
    capped = sum(p1 / j**2 for j in range(1, 25))
    checks = [
        near("α = 1, mass uncapped at τ₀ = 0.1", at["α = 1", 0.1], 1 - p1 * 1.25, 0.001),
        near("α = 1, mass uncapped at τ₀ = 0.001", at["α = 1", 0.001], 1 - capped, 0.01),
        near("α = 2, mass uncapped at τ₀ = 1", at["α = 2", 1.0], 1.0, 1e-6),
    ]
    title = "amin2019 figure 2: probability mass of users who are not capped"
    return Outcome(title, checks, rows).write(
        out, "amin2019-fig2", lines(rows, "tau0", "mass", "alpha", title, log_y=False)
    )


def participation(alpha: float, users: int) -> tuple[npt.NDArray[np.float64], float]:
    """p_j ∝ j^-(1+α) for the first users, and the mass of all others (midpoint rule)."""
    weights = np.arange(1, users + 1, dtype=np.float64) ** -(1 + alpha)
    beyond = (users + 0.5) ** -alpha / alpha
    total = weights.sum() + beyond
    return weights / total, float(beyond / total)

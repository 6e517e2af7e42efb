"""Corollary 1: where the bound on the excess risk says anything."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from evenhand.planning.excess_risk import ExcessRisk, Participation, amin2018_corollary_1
from reproductions.outcomes import Check, Outcome, Size, lines

DIMENSION, EPSILON, DELTA = 5, 1.0, 0.05
EXAMPLES = np.geomspace(1e4, 1e18, 57)


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """The paper's example: N = n^(1/6) equally active users, with γ = 1/N as it says, and with the γ that gives K(γ) = N.

    With γ = 1/N nobody has p_j > γ + η, so that K(γ) = 0 and the bound is infinite. With γ = 1/N − 2η the excess is O(√(d ln(n/d)/n^(1/3))) + O(d/(n^(1/6) ε)), and the
    first number of examples at which it is below 1, the largest loss, is printed. ``size`` changes nothing: these are formulas.
    """
    rows = []
    says: list[float] = []
    for n in EXAMPLES.tolist():
        _, below = both(n)
        rows.append({"n": n, "bound": below.total, "what": "γ = 1/N − 2η"})
        says += [n] if not below.vacuous else []
    last = both(1e18)[1]
    expected = math.sqrt(DIMENSION * math.log(1e18 / DIMENSION) / 1e6) + DIMENSION / (1e3 * EPSILON)
    checks = [
        Check(
            "bounds with γ = 1/N that are finite", sum(math.isfinite(both(n)[0].total) for n in EXAMPLES.tolist()), 0, 0
        ),
        # With constants 1 the two terms fall below 1 between ten thousand million and a million million examples.
        Check("the first n at which the bound is below 1, log10", math.log10(says[0]), 7.0, 12.0),
        Check("at n = 10¹⁸: bound over √(d ln(n/d)/n^⅓) + d/(n^⅙ ε)", last.total / expected, 0.99, 1.1),
    ]
    title = "amin2018 corollary 1: bound on the excess risk, N = n^(1/6) equal users"
    return Outcome(title, checks, rows).write(out, "amin2018-corollary1", lines(rows, "n", "bound", "what", title))


def both(n: float) -> tuple[ExcessRisk, ExcessRisk]:
    """The corollary with γ = 1/N, and with a γ just below."""
    users = max(round(n ** (1 / 6)), 1)
    eta = math.sqrt(4 * math.log(n / DELTA) / n)
    shares = np.full(users, 1 / users)
    made = [
        amin2018_corollary_1(Participation(shares, gamma), n, EPSILON, DELTA, DIMENSION)
        for gamma in (1 / users, max(1 / users - 2 * eta, 1e-9))
    ]
    return made[0], made[1]

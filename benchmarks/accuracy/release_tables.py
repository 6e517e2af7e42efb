"""Tables for `release_coverage.py`, drawn anew in each run: users, values between 0 and 200, and three groups.

``SEEN`` were looked at while intervals were repaired. ``HELD_OUT`` were written before, but are no longer unseen: a first run was looked at half way, and stars
served to choose `ALIKE` and how a variance divides what it may miss. ``HARD``: a single user with a large part of all rows and other values, which no model can see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Rng = np.random.Generator
Draw = Callable[[Rng], pd.DataFrame]


def _users(counts: Any) -> tuple[Any, Any]:
    """Rows of each user, and the user of each row."""
    size = np.clip(np.ceil(counts), 1, 20_000).astype(int)
    return size, np.repeat(np.arange(len(size)), size)


def _frame(user: Any, values: Any, rng: Rng) -> pd.DataFrame:
    """Rows with groups, of which each user prefers one."""
    favourite = rng.choice(3, int(user.max()) + 1, p=[0.5, 0.3, 0.2])
    group = np.where(rng.random(len(user)) < 0.5, favourite[user], rng.choice(3, len(user), p=[0.5, 0.3, 0.2]))
    return pd.DataFrame({"u": user, "x": np.clip(values, 0, 200), "g": np.array(["a", "b", "c"])[group]})


def _gamma(counts: Any, tilt: float, rng: Rng, base: float = 40, differ: float = 8, shape: float = 4) -> pd.DataFrame:
    """Amounts; a user's mean grows by ``tilt`` with the logarithm of the number of rows."""
    size, user = _users(counts)
    mean = np.maximum(base + tilt * np.log(size) + rng.normal(0, differ, len(size)), 1)
    return _frame(user, rng.gamma(shape, mean[user] / shape), rng)


def _votes(counts: Any, rng: Rng) -> pd.DataFrame:
    """0 or 200: busy users say yes less often."""
    size, user = _users(counts)
    share = 1 / (1 + np.exp(-rng.normal(0.5, 0.8, len(size)) + 0.3 * (np.log(size) - 1)))
    return _frame(user, 200.0 * (rng.random(len(user)) < share[user]), rng)


def _spending(counts: Any, rng: Rng) -> pd.DataFrame:
    """Small amounts with a long tail, far from the upper bound; busy users spend more at a time."""
    size, user = _users(counts)
    own = np.log(3) + 0.15 * np.log(size) + rng.normal(0, 0.5, len(size))
    return _frame(user, rng.lognormal(own[user], 0.8), rng)


def _machines(rng: Rng) -> pd.DataFrame:
    """The busiest 3% are something else, whose values hardly vary."""
    size, user = _users(rng.lognormal(2, 1.0, 8_000))
    machine = size > np.quantile(size, 0.97)
    values = np.where(machine[user], rng.normal(60, 3, len(user)), rng.normal(100, 30, len(user)))
    return _frame(user, values, rng)


def _stars(counts: Any, rng: Rng) -> pd.DataFrame:
    """Five marks, as ratings have; busy users are harsher and vary more."""
    size, user = _users(counts)
    own = 3.6 + rng.normal(0, 0.4, len(size)) - 0.05 * np.log(size)
    spread = 0.8 + 0.04 * np.log(size)
    return _frame(user, 40.0 * np.clip(np.rint(rng.normal(own[user], spread[user])), 1, 5), rng)


def _giant(rng: Rng) -> pd.DataFrame:
    _, user = _users(np.append(rng.geometric(0.08, 5_000), 15_000))
    return _frame(user, np.where(user == 5_000, 150.0, rng.gamma(4, 10, len(user))), rng)


SEEN: dict[str, Draw] = {
    "log-normal 1.2, 6k": lambda rng: _gamma(rng.lognormal(2.6, 1.2, 6_000), -2, rng),
    "uniform to 60, 3k": lambda rng: _gamma(rng.integers(1, 60, 3_000), 0, rng),
    "Pareto 1.8, 12k": lambda rng: _gamma(rng.pareto(1.8, 12_000) + 1, 3, rng),
    "heavy: log-normal 1.8, 10k": lambda rng: _gamma(rng.lognormal(1, 1.8, 10_000), 2, rng),
    "votes, geometric, 2k": lambda rng: _votes(rng.geometric(0.1, 2_000), rng),
    "spending, Pareto 2, 8k": lambda rng: _spending(2 * (rng.pareto(2, 8_000) + 1), rng),
    "machines, 8k": _machines,
    "one row each, 4k": lambda rng: _gamma(np.ones(4_000), 0, rng, shape=2),
}
HELD_OUT: dict[str, Draw] = {
    "stars, Weibull 0.6, 9k": lambda rng: _stars(20 * rng.weibull(0.6, 9_000), rng),
    "waits, gamma-Poisson, 5k": lambda rng: _gamma(1 + rng.poisson(rng.gamma(0.7, 15, 5_000)), -3, rng, 60, 15, 1.5),
    "two crowds, 7k": lambda rng: _gamma(
        np.concatenate([rng.lognormal(1, 0.6, 6_300), rng.lognormal(3.7, 0.5, 700)]), 4, rng, 30, 6
    ),
    "spending, log-normal 1, 2.5k": lambda rng: _spending(rng.lognormal(1.5, 1, 2_500), rng),
}
HARD: dict[str, Draw] = {"a giant among 5k": _giant}
FEW: dict[str, Draw] = {"geometric, 300": lambda rng: _gamma(rng.geometric(0.1, 300), -2, rng)}

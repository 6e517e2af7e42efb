"""Generated tables with users and groups: those that defaults were tuned on, and others that they were not tuned on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks import shapes
from benchmarks.shapes import Rows

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Rows of a table: who, in which of how many groups, with which value between 0 and ``largest``."""

    user: Integers
    group: Integers
    value: Floats
    groups: int
    largest: float


def popular(rng: np.random.Generator, rows: int, groups: int, power: float) -> Integers:
    """A group for each row: group i with probability ∝ (i + 5)^-power."""
    weights = (np.arange(groups) + 5.0) ** -power
    return rng.choice(groups, rows, p=weights / weights.sum()).astype(np.int64)


def _users(rows: Rows) -> Integers:
    return np.repeat(np.arange(len(rows)), rows).astype(np.int64)


def _lognormal(rng: np.random.Generator, users: int, log_median: float, sigma: float) -> Rows:
    return np.minimum(np.ceil(rng.lognormal(log_median, sigma, users)), 5000).astype(np.int64)


def _stars(rng: np.random.Generator, user: Integers, group: Integers, groups: int) -> Table:
    return Table(user, group, np.clip(rng.normal(3.5, 1.0, len(user)), 0.5, 5.0), groups, 5.0)


def rated(seed: int, users: int, log_median: float, sigma: float, groups: int, power: float) -> Table:
    """Log-normal numbers of rows, each in a popular group."""
    rng = np.random.default_rng(seed)
    user = _users(_lognormal(rng, users, log_median, sigma))
    return _stars(rng, user, popular(rng, len(user), groups, power), groups)


def _single(seed: int, groups: int) -> Table:
    rng = np.random.default_rng(seed)
    user = _users(_lognormal(rng, 20_000, 1.2, 1.0))
    return _stars(rng, user, popular(rng, 20_000, groups, 0.6)[user], groups)


def _pareto(seed: int, users: int, alpha: float, groups: int) -> Table:
    rng = np.random.default_rng(seed)
    user = _users(shapes.pareto(users, alpha, rng, largest=20_000))
    return _stars(rng, user, popular(rng, len(user), groups, 0.8), groups)


def _favourites(seed: int, groups: int, each: int) -> Table:
    rng = np.random.default_rng(seed)
    user = _users(_lognormal(rng, 10_000, 2.0, 1.2))
    own = rng.integers(0, groups, (10_000, each))
    return _stars(rng, user, own[user, rng.integers(0, each, len(user))], groups)


def _uniform(seed: int, groups: int) -> Table:
    rng = np.random.default_rng(seed)
    user = _users(rng.integers(1, 101, 4_000))
    return _stars(rng, user, rng.integers(0, groups, len(user)), groups)


def _home_and_away(seed: int, groups: int) -> Table:
    """One giant group of each user's own, and some rows elsewhere."""
    rng = np.random.default_rng(seed)
    user = _users(_lognormal(rng, 8_000, 3.0, 1.0))
    home = popular(rng, 8_000, groups, 0.4)[user]
    away = popular(rng, len(user), groups, 0.4)
    return _stars(rng, user, np.where(rng.random(len(user)) < 0.7, home, away), groups)


def _rare_tastes(seed: int, groups: int) -> Table:
    """Zipf numbers of rows; the heavier a user, the rarer their groups."""
    rng = np.random.default_rng(seed)
    rows = shapes.zipf(20_000, 2.2, rng, largest=3_000)
    user = _users(rows)
    rank = np.minimum(groups * rng.random(len(user)) ** (4.0 / (1 + np.log(rows[user]))), groups - 1)
    return _stars(rng, user, rank.astype(np.int64), groups)


def _spending(seed: int, users: int, groups: int) -> Table:
    """Log-normal amounts, mostly near 20, with bounds that go to 100,000."""
    rng = np.random.default_rng(seed)
    user = _users(_lognormal(rng, users, 1.0, 1.0))
    value = np.minimum(rng.lognormal(3.0, 1.3, len(user)), 100_000.0)
    return Table(user, popular(rng, len(user), groups, 0.7), value, groups, 100_000.0)


def _giant(seed: int, groups: int) -> Table:
    """5,000 users with three rows, and one with 200,000."""
    rng = np.random.default_rng(seed)
    user = _users(shapes.one_giant(5_000, 3, 200_000))
    return _stars(rng, user, popular(rng, len(user), groups, 0.5), groups)


def _shaped(seed: int, rows: Rows, groups: int, power: float) -> Table:
    rng = np.random.default_rng(seed)
    user = _users(rows)
    return _stars(rng, user, popular(rng, len(user), groups, power), groups)


TUNED: dict[str, Callable[[], Table]] = {
    "films, 3,000": lambda: rated(1, 6_000, 4.0, 1.1, 3_000, 0.8),
    "shops, 40": lambda: rated(2, 20_000, 1.2, 1.0, 40, 0.6),
    "books, 20,000": lambda: rated(3, 40_000, 0.8, 1.7, 20_000, 0.7),
    "one group per user, 300": lambda: _single(4, 300),
    "Pareto 1.3, 200": lambda: _pareto(5, 30_000, 1.3, 200),
    "3 favourites, 500": lambda: _favourites(6, 500, 3),
    "genres, 12": lambda: rated(7, 6_000, 4.0, 1.1, 12, 0.5),
    "two groups": lambda: rated(8, 5_000, 2.0, 1.0, 2, 0.0),
    "course, 100": lambda: rated(9, 3_000, 3.0, 0.5, 100, 0.3),
    "films, 27,000": lambda: rated(10, 2_500, 5.0, 1.0, 27_000, 0.6),
    "uniform to 100 rows, 150": lambda: _uniform(21, 150),
    "uniform to 100 rows, 5": lambda: _uniform(22, 5),
    "one giant user, 250": lambda: _giant(27, 250),
    "300 people, 20": lambda: rated(28, 300, 2.5, 1.0, 20, 0.5),
    "300 people, 200": lambda: rated(29, 300, 2.5, 1.0, 200, 0.5),
    "spending of 400 people, 25": lambda: _spending(34, 400, 25),
    "geometric, 1,500": lambda: _shaped(
        32, np.random.default_rng(33).geometric(0.03, 5_000).astype(np.int64), 1_500, 1.0
    ),
    "home and away, 400": lambda: _home_and_away(23, 400),
    "heavy users, rare groups, 1,000": lambda: _rare_tastes(24, 1_000),
    "spending, 120": lambda: _spending(25, 10_000, 120),
    "spending, 8": lambda: _spending(26, 10_000, 8),
    "purchases, 60": lambda: _shaped(30, shapes.shop(), 60, 0.9),
    "course ratings, 700": lambda: _shaped(31, shapes.course(), 700, 0.5),
    "800 people, 50": lambda: rated(37, 800, 2.0, 1.2, 50, 0.7),
    "800 people, 2,000": lambda: rated(38, 800, 3.0, 1.0, 2_000, 0.9),
}
"""In view while the choices of the library were made: results on these led to changes, or decided between options."""


OTHERS: dict[str, Callable[[], Table]] = {
    "50 rows each, 30": lambda: _shaped(35, shapes.equal(3_000, 50), 30, 0.4),
    "2 or 200 rows, 300": lambda: _shaped(36, np.append(shapes.equal(9_000, 2), shapes.equal(1_000, 200)), 300, 0.6),
    "Zipf 2.5, 2,500": lambda: _shaped(39, shapes.zipf(30_000, 2.5, np.random.default_rng(40), 10_000), 2_500, 0.9),
    "exponential, 6": lambda: _shaped(
        41, np.ceil(np.random.default_rng(42).exponential(20, 5_000)).astype(np.int64), 6, 0.3
    ),
    "Pareto 1.8, 20": lambda: _pareto(51, 8_000, 1.8, 20),
    "log-normal 1.5, 900": lambda: rated(52, 15_000, 1.5, 1.5, 900, 0.5),
    "2 favourites, 80": lambda: _favourites(53, 80, 2),
    "up to 7 rows, 52": lambda: _shaped(54, np.random.default_rng(55).integers(1, 8, 12_000), 52, 0.2),
    "spending of 3,000 people, 350": lambda: _spending(56, 3_000, 350),
    "1,500 people, 10": lambda: rated(57, 1_500, 2.3, 0.8, 10, 0.4),
    "1,500 people, 6,000": lambda: rated(58, 1_500, 3.5, 1.3, 6_000, 0.8),
}
"""Nothing in the library was set by looking at these."""

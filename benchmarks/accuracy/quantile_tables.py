"""Tables for quantiles: columns as they occur, rows per user as they occur."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.shapes import lognormal, pareto
from evenhand.statistics.weighted_rows import FULL, capacity_of

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """A kind of column.

    Args:
        values: from standard normal variables.
        bounds: that are public.
        scale: the distance from its 0.1- to its 0.9-quantile, about: the unit of errors.
        whole: whether it holds integers.
    """

    values: Callable[[Array], Array]
    bounds: tuple[float, float]
    scale: float
    whole: bool = False


def _cents(z: Array) -> Array:
    return np.rint(100 * np.exp(3 + 1.2 * z)) / 100


_PRICES = np.array([4.99, 9.99, 14.99, 19.99, 24.99, 29.99, 49.99, 99.99])

COLUMNS = {
    "amounts": Column(_cents, (0, 5000), 89.0),
    "prices": Column(lambda z: _PRICES[np.clip(np.rint(2.5 + 1.6 * z), 0, 7).astype(np.int64)], (0, 500), 25.0),
    "round amounts": Column(lambda z: np.maximum(np.rint(np.exp(3 + 0.8 * z) / 2.5) * 2.5, 0.5), (0, 1000), 48.0),
    "integers": Column(lambda z: np.floor(np.exp(1.5 + 0.9 * z)), (0, 200), 13.0, True),
    "half zeros": Column(lambda z: np.where(z < -0.1, 0, _cents(z)), (0, 5000), 93.0),
    "uniform": Column(lambda z: 100 / (1 + np.exp(-1.702 * z)), (0, 100), 80.0),
    "normal": Column(lambda z: 50 + 10 * z, (0, 100), 25.6),
    "two humps": Column(lambda z: np.where(z > 0.2, 70 + 5 * z, 20 + 5 * z), (0, 100), 62.0),
    "seconds": Column(lambda z: np.floor(1.66e9 + 5e6 * z), (1.6e9, 1.7e9), 12.8e6),
}

USERS: dict[str, Callable[[int, np.random.Generator], Integers]] = {
    "one row": lambda users, rng: np.ones(users, dtype=np.int64),
    "log-normal": lambda users, rng: lognormal(users, 5, 1.2, rng),
    "log-normal, differ": lambda users, rng: lognormal(users, 5, 1.2, rng),
    "Pareto, differ": lambda users, rng: pareto(users, 1.5, rng, least=1, largest=5000),
}


@dataclass
class Table:
    """Rows: their user's number of rows, and their value."""

    rows: Integers
    sizes: Array
    values: Array

    def weights(self, h: float) -> Integers:
        """Of each row, as in a release."""
        return np.minimum(np.floor(capacity_of(Fraction(h)) / self.sizes), FULL).astype(np.int64)

    def errors(self, found: Array, quantiles: Sequence[float]) -> tuple[Array, Array]:
        """How far numbers are from the quantiles, in values and in ranks."""
        ordered, q, truth = np.sort(self.values), np.array(quantiles), self.truth(quantiles)
        low, high = (np.searchsorted(ordered, found, side=side) / len(ordered) for side in ("left", "right"))
        return np.abs(found - truth), np.maximum(0, np.maximum(low - q, q - high))

    def truth(self, quantiles: Sequence[float]) -> Array:
        """The quantiles."""
        return np.quantile(self.values, quantiles, method="inverted_cdf")


def draw(column: str, users: str, number: int, rng: np.random.Generator) -> Table:
    """A table of so many users; where they differ, two fifths of what is behind a value is the user's, and nine hundredths of that their activity."""
    rows = USERS[users](number, rng)
    user = np.repeat(np.arange(number), rows)
    z = rng.standard_normal(len(user))
    if "differ" in users:
        activity = np.log(rows) - np.log(rows).mean()
        own = 0.3 * activity / max(float(activity.std()), 1e-9) + 0.95 * rng.standard_normal(number)
        z = np.sqrt(0.4) * own[user] + np.sqrt(0.6) * z
    low, high = COLUMNS[column].bounds
    return Table(rows, rows[user].astype(np.float64), np.clip(COLUMNS[column].values(z), low, high))

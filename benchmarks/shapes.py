"""Generated contribution shapes: how many rows each user has in tables like the published ones.

No third-party data is bundled. Shapes with published quantiles are interpolated log-linearly between them, with one exponent
fitted so that the number of rows is right; they are the same on every run. The others draw from a distribution
with the caller's generator: they feed tests, benchmarks and reproductions, never a release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

MOVIELENS_TOP = (9254, 7515, 5646, 5520, 5491, 5447, 5356, 5330, 5169, 4988)


def movielens_20m() -> Rows:
    """MovieLens-20M: 138,493 users, 20,000,263 rows, quartiles 35/68/155, 255 users above 2000, exact top ten."""
    users = 138_493
    knots = [
        (0, 20),
        (0.25, 35),
        (0.5, 68),
        (0.75, 155),
        (0.95, 500),
        (0.99, 880),
        (1 - 255 / users, 2000.5),
        (1 - 10 / users, 4980),
    ]
    return from_quantiles(knots, users, 20_000_263, MOVIELENS_TOP)


def book_crossing() -> Rows:
    """Book-Crossing-like: 105,283 users, median 1, mean 10.9, 95% at 29, the largest 13,602."""
    users = 105_283
    knots = [
        (0, 1),
        (0.55, 1),
        (0.75, 4),
        (0.9, 13),
        (0.95, 29),
        (0.99, 150),
        (1 - 100 / users, 900),
        (1 - 8 / users, 3500),
        (1, 7500),
    ]
    return from_quantiles(knots, users, 1_149_780, (13_602,))


def shop() -> Rows:
    """A shop's purchases: 23,570 users, median 1, mean 3.0, the largest 217."""
    knots = [(0, 1), (0.5, 1), (0.75, 3), (0.9, 6), (0.95, 10), (0.99, 24), (0.999, 70), (1, 200)]
    return from_quantiles(knots, 23_570, 69_659, (217,))


def course() -> Rows:
    """Course ratings: 2,972 users, median 22, the largest 92."""
    knots = [(0, 1), (0.25, 12), (0.5, 22), (0.75, 33), (0.95, 56), (1, 90)]
    return from_quantiles(knots, 2_972, None, (92,))


def geometric(levels: int = 6) -> Rows:
    """rameshwar2024's geometric counts: 2^(levels−i) users with 2^i rows, i = 0..levels."""
    return np.repeat(2 ** np.arange(levels + 1), 2 ** np.arange(levels, -1, -1)).astype(np.int64)


def extreme(users: int = 100, largest: int = 10) -> Rows:
    """rameshwar2024's extreme counts: all users with one row, and one with many."""
    return np.concatenate([np.ones(users, dtype=np.int64), [largest]])


def zipf(users: int, exponent: float, rng: np.random.Generator, largest: int = 10**7) -> Rows:
    """Rows per user with P(s) ∝ s^-exponent."""
    return np.minimum(rng.zipf(exponent, users), largest).astype(np.int64)


def pareto(users: int, alpha: float, rng: np.random.Generator, least: float = 1.0, largest: int = 10**7) -> Rows:
    """Rows per user with P(s > t) = (least/t)^alpha, rounded down."""
    return np.clip(np.floor(least * (1 - rng.random(users)) ** (-1 / alpha)), 1, largest).astype(np.int64)


def lognormal(users: int, median: float, sigma: float, rng: np.random.Generator) -> Rows:
    """Rows per user with a log-normal law, rounded, at least one."""
    return np.maximum(np.rint(median * np.exp(sigma * rng.standard_normal(users))), 1).astype(np.int64)


def equal(users: int, rows: int) -> Rows:
    """Every user with the same number of rows."""
    return np.full(users, rows, dtype=np.int64)


def one_giant(users: int, rows: int, giant: int) -> Rows:
    """Users with the same number of rows, and one with very many."""
    return np.append(equal(users, rows), giant).astype(np.int64)


def user_means(
    rows: Rows,
    rng: np.random.Generator,
    centre: float = 0.65,
    spread: float = 0.12,
    tilt: float = 0.2,
    noise: float = 0.25,
) -> npt.NDArray[np.float64]:
    """Mean of each user's values in [0, 1]: users differ, and busy users differ in one direction.

    Args:
        rows: rows per user.
        rng: source of chance.
        centre: where user means lie.
        spread: standard deviation between users.
        tilt: correlation of a user's mean with the logarithm of their rows: the reason why a bound biases a mean.
        noise: standard deviation of one user's rows.
    """
    activity = np.log(rows)
    activity = (activity - activity.mean()) / max(float(activity.std()), 1e-12)
    own = centre + spread * (tilt * activity + np.sqrt(1 - tilt**2) * rng.standard_normal(len(rows)))
    blurred = np.clip(own, 0.02, 0.98) + noise / np.sqrt(rows) * rng.standard_normal(len(rows))
    means: npt.NDArray[np.float64] = np.clip(blurred, 0.0, 1.0)
    return means


def from_quantiles(
    knots: Sequence[tuple[float, float]], users: int, total: int | None, top: Sequence[int] = ()
) -> Rows:
    """Counts whose quantiles pass through ``knots``, whose largest are ``top`` and whose sum is ``total``."""
    q, v = (np.array(column, dtype=np.float64) for column in zip(*knots, strict=True))
    places = (np.arange(users - len(top)) + 0.5) / users
    part = np.searchsorted(q, places, side="right") - 1
    part = np.clip(part, 0, len(q) - 2)
    inside = np.clip((places - q[part]) / (q[part + 1] - q[part]), 0.0, 1.0)

    def counts(bend: float) -> Rows:
        body = v[part] * (v[part + 1] / v[part]) ** (inside**bend)
        return np.concatenate([np.floor(body + 0.5), np.array(top, dtype=np.float64)]).astype(np.int64)

    if total is None:
        return counts(1.0)
    return _meet(counts, total)


def _meet(counts: Callable[[float], Rows], total: int) -> Rows:
    """Bisect the bend until the sum fits, then spread the rest over the users in the middle, one row each."""
    low, high = 0.2, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if int(counts(middle).sum()) > total else (low, middle)
    rows = counts(high)
    missing = total - int(rows.sum())
    start = len(rows) * 6 // 10
    rows[start : start + missing] += 1
    return rows

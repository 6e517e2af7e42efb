"""Public priors for the number of rows of each user: Pareto, Zipf, log-normal.

A prior is a deterministic list of typical sizes: the quantiles (i − ½)/users of the law for Pareto and log-normal, the law itself
for Zipf, scaled so that the rows add up, each user having at least one. Ranks are grouped below the thousand largest,
so that a million users cost no more than a thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.population.support import Array, Support

_SINGLE_RANKS = 1000
_GROUPS = 1000


def pareto(alpha: float, users: int, rows: float) -> Support:
    """Sizes with P(s > t) = (least/t)^alpha."""
    if not alpha > 1:
        raise UsageError(
            f"alpha={alpha:g} has no mean: with α ≤ 1 a few users hold all rows and no number of rows per user is typical. "
            "Expected alpha > 1, such as 1.5; or use Profile.zipf, which fixes every user's share."
        )
    return _scaled(lambda place: place ** (-1 / alpha), users, rows)


def zipf(exponent: float, users: int, rows: float) -> Support:
    """The j-th largest user has rows in proportion to j^-exponent."""
    if not exponent > 0:
        raise UsageError(f"exponent={exponent:g} is out of range; expected a number above 0, such as 1.2.")
    return _scaled(lambda place: (place * users + 0.5) ** -exponent, users, rows)


def lognormal(sigma: float, users: int, rows: float) -> Support:
    """Sizes whose logarithm is normal with standard deviation sigma."""
    if not 0 <= sigma <= 6:
        raise UsageError(f"sigma={sigma:g} is out of range; expected a number between 0 and 6, such as 1.0.")
    upper = np.vectorize(lambda place: -NormalDist().inv_cdf(place), otypes=[np.float64])
    return _scaled(lambda place: np.exp(sigma * upper(place)), users, rows)


def _scaled(law: Callable[[Array], Array], users: int, rows: float) -> Support:
    """Typical sizes by place from the top, place in (0, 1), scaled so that they add up to ``rows`` and none is below 1."""
    if users != int(users) or users < 1:
        raise UsageError(f"users={users} is not a number of users; expected a whole number, at least 1.")
    if not np.isfinite(rows) or rows < users:
        raise UsageError(f"rows={rows:g} is too small for users={users}; expected at least one row per user.")
    first, last = _groups(int(users))
    members = (last - first).astype(np.float64)
    shape = law((first + last) / (2 * users))
    low, high = 0.0, float(rows / (members @ shape)) * 2
    for _ in range(100):
        middle = (low + high) / 2
        too_many = members @ np.maximum(shape * middle, 1.0) > rows
        low, high = (low, middle) if too_many else (middle, high)
    sizes = np.maximum(shape * low, 1.0)
    order = np.argsort(sizes, kind="stable")
    return Support(sizes[order], members[order])


def _groups(users: int) -> tuple[Array, Array]:
    """Ranks from the top in groups [first, last): one by one at first, then growing geometrically."""
    single = min(users, _SINGLE_RANKS)
    cuts = np.arange(single + 1, dtype=np.float64)
    if users > single:
        cuts = np.concatenate([cuts, np.unique(np.rint(np.geomspace(single, users, _GROUPS)))[1:]])
    return cuts[:-1], cuts[1:]

"""Tables by group, generated: who is in which group with how many rows, where groups lie, and how far users differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

SHAPES: dict[str, tuple[str, str, str, float, float]] = {
    "one group each": ("one", "few", "differ", 0.05, 1.0),
    "one group each, popular ones": ("popular", "few", "differ", 0.05, 1.0),
    "all groups": ("all", "few", "differ", 0.05, 1.0),
    "all groups, one row each": ("all", "one", "differ", 0.05, 1.0),
    "all groups, same centre": ("all", "few", "same", 0.05, 1.0),
    "all groups, centres 10 and 90, spread 2": ("all", "few", "apart", 0.02, 1.0),
    "all groups, heavy users differ": ("all", "heavy", "differ", 0.05, 1.0),
    "all groups, rows 1 to 100 by group": ("all", "by group", "differ", 0.05, 1.0),
    "all groups, bounds 9 times too wide": ("all", "few", "apart", 0.05, 9.0),
    "Zipf-many groups": ("many", "few", "differ", 0.05, 1.0),
    "Zipf-many groups, heavy users differ": ("many", "heavy", "differ", 0.05, 1.0),
}
"""Membership, rows of a pair, centres, spread of users, and how many times too wide the bounds are."""


@dataclass(frozen=True)
class Grouped:
    """Pairs of user and group, with rows and sums of values in [0, 1]."""

    user: Places
    group: Places
    rows: Array
    sums: Array
    users: int
    groups: int

    def by_group(self, values: Array) -> Array:
        """Sums over pairs."""
        return np.bincount(self.group, weights=values, minlength=self.groups).astype(np.float64)

    @property
    def rows_by_group(self) -> Array:
        """How many rows each group has."""
        return self.by_group(self.rows)

    @property
    def truth(self) -> Array:
        """The exact means."""
        return self.by_group(self.sums) / np.maximum(self.rows_by_group, 1)

    @property
    def groups_per_user(self) -> Array:
        """How many groups each user is in."""
        return np.bincount(self.user, minlength=self.users).astype(np.float64)

    @property
    def rows_per_user(self) -> Array:
        """How many rows each user has."""
        return np.bincount(self.user, weights=self.rows, minlength=self.users).astype(np.float64)


def draw(shape: str, groups: int, seed: int, users: int = 10_000) -> Grouped:
    """One table of a shape."""
    member, rows_of, centres_of, spread, wide = SHAPES[shape]
    rng = np.random.default_rng(seed)
    user, group = _members(member, users, groups, rng)
    activity = rng.standard_normal(users)
    pairs, busy = len(user), activity[user]
    rows: Array = np.ones(pairs)
    if rows_of == "few":
        rows = rows + rng.poisson(2 * np.exp(0.8 * busy - 0.3)).astype(np.float64)
    elif rows_of != "one":
        usual = 10 ** (2 * group / max(groups - 1, 1)) if rows_of == "by group" else np.full(pairs, 5.0)
        steep = 0.7 if rows_of == "by group" else 1.3
        rows = np.maximum(1.0, np.rint(usual * np.exp(steep * busy + 0.3 * rng.standard_normal(pairs)))).astype(
            np.float64
        )
    same, apart = np.full(groups, rng.uniform(0.4, 0.6)), np.where(np.arange(groups) % 2, 0.9, 0.1)
    differ = np.clip(0.5 + 0.1 * rng.standard_normal(groups), 0.1, 0.9)
    centre = {"same": same, "apart": apart, "differ": differ}[centres_of]
    tilt = (0.4 if rows_of == "heavy" else 0.2) * rng.choice([-1, 1])
    own = spread * (tilt * activity + math.sqrt(1 - tilt**2) * rng.standard_normal(users))
    means = centre[group] + own[user] + spread / 2 * rng.standard_normal(pairs)
    means = np.clip(means + spread / np.sqrt(rows) * rng.standard_normal(pairs), 0, 1) / wide
    return Grouped(user, group, rows, rows * means, users, groups)


def _members(member: str, users: int, groups: int, rng: np.random.Generator) -> tuple[Places, Places]:
    everybody = np.arange(users)
    if member == "all":
        return np.repeat(everybody, groups), np.tile(np.arange(groups), users)
    if member == "one":
        return everybody, rng.integers(0, groups, users)
    popularity = 1 / np.arange(1, groups + 1) ** (1.0 if member == "popular" else 0.8)
    popularity /= popularity.sum()
    if member == "popular":
        return everybody, rng.choice(groups, users, p=popularity)
    wanted = np.minimum(rng.zipf(1.7, users) + rng.poisson(1.5, users), groups)
    drawn, places = [], []
    for first in range(0, users, 1000):  # Gumbel: a sample without replacement, by popularity
        some = wanted[first : first + 1000]
        order = np.argsort(-(np.log(popularity) + rng.gumbel(size=(len(some), groups))), axis=1)
        chosen, rank = np.nonzero(np.arange(groups)[None, :] < some[:, None])
        drawn.append(chosen + first)
        places.append(order[chosen, rank])
    return np.concatenate(drawn), np.concatenate(places)

"""The tables of the comparison: users with very unequal numbers of rows, groups of very unequal size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import shapes
from benchmarks.shapes import from_quantiles, user_means

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Rows of users.

    Args:
        user: from 0 on.
        value: a number for each row, inside the public ``bounds``.
        keys: for each grouping column, the group of each row.
        groups: for each grouping column, how many groups are public.
    """

    user: Integers
    value: Floats
    bounds: tuple[float, float]
    keys: Mapping[str, Integers]
    groups: Mapping[str, int]

    def write(self, path: Path) -> Path:
        """As Parquet with the columns user, value and the keys."""
        order = np.random.default_rng(1).permutation(len(self.user))
        columns = {"user": self.user, "value": self.value, **self.keys}
        pq.write_table(pa.table({name: column[order] for name, column in columns.items()}), path)
        return path


def movielens(users: int = 6_040) -> Table:
    """Like MovieLens 1M: 6,040 users, a million ratings, nobody rates a film twice; 3,700 films in 300 series and 12 genres."""
    rng, films = np.random.default_rng(21), 3_700
    knots = [(0.0, 20.0), (0.25, 44.0), (0.5, 96.0), (0.75, 208.0), (0.95, 556.0), (0.99, 900.0), (1.0, 1900.0)]
    rows = from_quantiles(knots, users, 1_000_209 if users == 6_040 else None, (2314,))
    appeal = -1.1 * np.log(np.arange(films) + 30.0)
    film = np.concatenate([np.argsort(-(appeal + rng.gumbel(size=films)))[:n] for n in rows])
    user = np.repeat(np.arange(users), rows)
    own = rng.normal(3.6, 0.4, users) - 0.1 * np.log(rows / 96)
    quality = rng.normal(0, 0.4, films)
    value = np.clip(np.round(own[user] + quality[film] + rng.normal(0, 0.9, len(user))), 1, 5)
    series, genre = (film * 7919) % 300, np.minimum((film * 104_729) % 61 // 3, 11)
    keys = {"film": film, "series": series, "genre": genre}
    return Table(user, value, (1.0, 5.0), keys, {"film": films, "series": 300, "genre": 12})


def log_normal(users: int, mu: float, sd: float, items: int, exponent: float, seed: int) -> Table:
    """Rows per user by a log-normal law, items by a power law, as in the outside check of groups; values are amounts."""
    rng = np.random.default_rng(seed)
    rows = np.minimum(np.ceil(rng.lognormal(mu, sd, users)), items // 2).astype(np.int64)
    user = np.repeat(np.arange(users), rows)
    law = (np.arange(items) + 5.0) ** -exponent
    item = rng.choice(items, len(user), p=law / law.sum())
    price = np.exp(rng.normal(2.5, 0.6, items))
    value = np.minimum(np.round(price[item] * rng.gamma(2, 0.5, len(user)), 2), 200.0)
    return Table(user, value, (0.0, 200.0), {"item": item.astype(np.int64)}, {"item": items})


def visits(users: int, exponent: float, places: int, popularity: float, seed: int) -> Table:
    """Rows per user by a Pareto law, places by a power law: most users have one or two rows, some have hundreds."""
    rng = np.random.default_rng(seed)
    rows = shapes.pareto(users, exponent, rng)
    user = np.repeat(np.arange(users), rows)
    law = (np.arange(places) + 2.0) ** -popularity
    place = rng.choice(places, len(user), p=law / law.sum())
    return Table(user, np.ones(len(user)), (0.0, 1.0), {"item": place.astype(np.int64)}, {"item": places})


def stars(rows: Integers, seed: int) -> Table:
    """Ratings from 0 to 5 without groups, for given rows per user; busy users differ in one direction."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(len(rows)), rows)
    own = 5 * user_means(rows, rng, noise=0.0)
    value = np.clip(np.round(2 * (own[user] + rng.normal(0, 1, len(user)))) / 2, 0, 5)
    return Table(user, value, (0.0, 5.0), {}, {})


def views() -> Table:
    """The table of ``evenhand demo``: stars by genre."""
    import tempfile

    from evenhand.apps.demo import make_views

    with tempfile.TemporaryDirectory() as folder:
        make_views(Path(folder) / "views.parquet", seed=2026)
        table = pq.read_table(Path(folder) / "views.parquet")
    genre = np.unique(table["genre"].to_numpy(zero_copy_only=False), return_inverse=True)[1].astype(np.int64)
    keys, stars = {"genre": genre}, table["stars"].to_numpy()
    return Table(table["viewer"].to_numpy().astype(np.int64), stars, (0.5, 5.0), keys, {"genre": 4})


TABLES: dict[str, Callable[[], Table]] = {
    "movielens": movielens,
    "films": lambda: log_normal(6_000, 4, 1.1, 3_000, 0.8, 31),
    "shops": lambda: log_normal(20_000, 1.2, 1.0, 40, 0.6, 32),
    "books": lambda: log_normal(40_000, 0.8, 1.7, 20_000, 0.7, 33),
    "single": lambda: log_normal(30_000, -5, 0.1, 4_000, 1.0, 34),
    "stays": lambda: log_normal(15_000, 2.7, 0.6, 5_000, 0.7, 38),
    "visits": lambda: visits(40_000, 1.3, 8_000, 0.9, 39),
    "purchases": lambda: stars(shapes.shop(), 36),
    "course": lambda: stars(shapes.course(), 37),
    "demo": views,
    "tiny": lambda: log_normal(300, 1.0, 0.8, 6, 0.5, 35),
}


@lru_cache(maxsize=2)
def table(name: str) -> Table:
    """A table by its name."""
    return TABLES[name]()

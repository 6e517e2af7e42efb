"""Reading a real table of ratings, for simulation only: what follows from it is not private."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, UsageError


@dataclass(frozen=True)
class RatingsTable:
    """Who thinks what of the most rated items.

    Args:
        items: their names, most rated first.
        opinions: people x items: 1 for a like, -1 for a dislike, 0 where not rated.
    """

    items: tuple[str, ...] = field(repr=False)
    opinions: NDArray[np.int8] = field(repr=False)


def read_table(
    path: str | PathLike[str],
    user: str = "userId",
    item: str = "movieId",
    rating: str = "rating",
    like_from: float = 4.0,
    most_items: int = 200,
) -> RatingsTable:
    """Read a CSV or Parquet file with a row per rating.

    Edge cases:
        Of several ratings of one item by one person, the last counts. People without a rating of the kept items
        are left out.

    Args:
        like_from: a rating of at least this is a like, any other a dislike.
        most_items: how many of the most rated items to keep.
    """
    import duckdb

    if most_items < 2:
        raise UsageError(f"most_items={most_items} is out of range: expected at least 2.")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in (user, item, rating))
    try:
        connection = duckdb.connect()
        rows = connection.execute(f"SELECT {names} FROM '{str(path).replace(chr(39), chr(39) * 2)}'").fetchnumpy()
        people, things, values = (np.ma.filled(rows[name], None) for name in (user, item, rating))
        likes = np.where(values.astype(np.float64) >= like_from, 1, -1).astype(np.int8)
    except (duckdb.Error, ValueError, TypeError, KeyError):
        raise DataError(
            f"{path} can't be read: expected a CSV or Parquet file with the columns {user}, {item} and {rating}, "
            "the last of numbers."
        ) from None
    kinds, thing = np.unique(things.astype(str), return_inverse=True)
    kept = np.argsort(-np.bincount(thing), kind="stable")[:most_items]
    if len(kept) < 2:
        raise DataError(f"{path} rates fewer than two items: there is nothing to cluster.")
    place = np.full(len(kinds), -1)
    place[kept] = np.arange(len(kept))
    known = place[thing] >= 0
    _, person = np.unique(people[known].astype(str), return_inverse=True)
    opinions = np.zeros((person.max() + 1, len(kept)), np.int8)
    opinions[person, place[thing[known]]] = likes[known]
    return RatingsTable(tuple(kinds[kept].tolist()), opinions)

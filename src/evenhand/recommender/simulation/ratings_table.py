"""A table of ratings from a file: MovieLens in each of its layouts, or any CSV or Parquet file with three columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike

import numpy as np

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.at_server.sketches import Opinions

_WITHOUT_NAMES = {"::": "::", "\t": r"\t"}
"""What separates the fields in layouts whose first line is a rating: ml-1m and ml-10m, ml-100k."""


@dataclass(frozen=True)
class RatingsTable:
    """Who thinks what of the most rated items.

    Args:
        items: their names, most rated first.
    """

    items: tuple[str, ...] = field(repr=False)
    opinions: Opinions = field(repr=False)


def read_table(
    path: str | PathLike[str],
    user: str = "userId",
    item: str = "movieId",
    rating: str = "rating",
    like_from: float = 4.0,
    most_items: int = 200,
) -> RatingsTable:
    """Read a file with a row per rating: ``ratings.csv`` or Parquet, ``ratings.dat`` (``::``) or ``u.data`` (tabs).

    Edge cases:
        Of several ratings of one item by one person, the last counts. People without a rating of the kept items
        are left out, and so are rows without a person, an item or a finite rating.

    Args:
        like_from: a rating of at least this is a like, any other a dislike.
        most_items: how many of the most rated items to keep.
    """
    import duckdb

    if most_items < 2:
        raise UsageError(f"most_items={most_items} is out of range: expected at least 2.")
    asked = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in (user, item, rating)]
    # Only what is kept leaves the engine, as small numbers.
    rows = (
        f"SELECT CAST({asked[0]} AS VARCHAR) AS person, CAST({asked[1]} AS VARCHAR) AS item, "
        f"CAST({asked[2]} AS DOUBLE) AS rating, row_number() OVER () AS place FROM {{source}}"
    )
    catalogue = (
        "CREATE TEMP TABLE catalogue AS SELECT item, row_number() OVER (ORDER BY count(*) DESC, item) - 1 AS number "
        f"FROM sound GROUP BY item ORDER BY number LIMIT {most_items}"
    )
    opinions = (
        "SELECT dense_rank() OVER (ORDER BY person) - 1 AS person, number AS item, liked FROM "
        f"(SELECT person, number, arg_max(rating >= {like_from!r}, place) AS liked "
        "FROM sound JOIN catalogue USING (item) GROUP BY person, number)"
    )
    try:
        with duckdb.connect() as engine:
            engine.execute(f"CREATE TEMP VIEW rows AS {rows.format(source=_source(path))}")
            engine.execute(
                "CREATE TEMP VIEW sound AS SELECT * FROM rows "
                "WHERE person IS NOT NULL AND item IS NOT NULL AND isfinite(rating)"
            )
            engine.execute(catalogue)
            names = [name for (name,) in engine.execute("SELECT item FROM catalogue ORDER BY number").fetchall()]
            found = engine.execute(opinions).fetchnumpy()
    except (duckdb.Error, OSError, UnicodeDecodeError):
        raise DataError(
            f"{path} can't be read: expected a CSV or Parquet file with the columns {user}, {item} and {rating}, the "
            "last of numbers, or a MovieLens file such as u.data or ratings.dat."
        ) from None
    if len(names) < 2:
        raise DataError(f"{path} rates fewer than two items: there is nothing to cluster.")
    person = np.asarray(found["person"])
    table = np.zeros((person.max() + 1, len(names)), np.int8)
    table[person, found["item"]] = np.where(found["liked"], 1, -1)
    return RatingsTable(tuple(names), table)


def _source(path: str | PathLike[str]) -> str:
    """What DuckDB reads: the file by its name, unless its first line shows a layout without names of columns."""
    quoted = "'" + str(path).replace("'", "''") + "'"
    with open(path, "rb") as file:
        first = file.readline(200)
    for separator, spelt in _WITHOUT_NAMES.items():
        fields = first.decode("latin-1").strip().split(separator)
        if len(fields) == 4 and all(field.replace(".", "", 1).isdigit() for field in fields):
            names = "{'userId': 'VARCHAR', 'movieId': 'VARCHAR', 'rating': 'DOUBLE', 'timestamp': 'VARCHAR'}"
            return f"read_csv({quoted}, header = false, delim = '{spelt}', columns = {names})"
    return quoted

"""Reading one person's ratings from their own file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike

from evenhand.guarantee import DataError

_YES = {"1", "true", "yes", "like", "liked", "+"}
_NO = {"0", "false", "no", "dislike", "disliked", "-"}


@dataclass(frozen=True)
class Ratings:
    """For each rated item's number, whether it was liked; and how many lines could not be used.

    Args:
        liked: by item number.
        unknown: lines about items that are not in the catalogue; they are left out.
        repeated: lines about an item rated before; the last one counts.
    """

    liked: dict[int, bool] = field(repr=False)
    unknown: int = 0
    repeated: int = 0


def read_ratings(path: str | PathLike[str], items: Iterable[str], like_from: float = 4.0) -> Ratings:
    """Read a CSV file with a column ``item`` and either ``liked`` (yes/no) or ``rating`` (a number).

    Edge cases:
        Unknown and repeated items are never a reason to decline, since declining must not depend on ratings.
        A file with a header only is a person without ratings.

    Args:
        items: the catalogue.
        like_from: a ``rating`` of at least this is a like.
    """
    numbers = {item: number for number, item in enumerate(items)}
    liked: dict[int, bool] = {}
    unknown = repeated = 0
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            names = rows.fieldnames or []
            column = next((name for name in ("liked", "rating") if name in names), None)
            if "item" not in names or column is None:
                raise DataError(f"{path} needs the columns item and liked (or rating) in its first line.")
            for row in rows:
                number = numbers.get((row["item"] or "").strip())
                if number is None:
                    unknown += 1
                    continue
                repeated += number in liked
                liked[number] = _read(row[column], column, like_from, f"{path}, line {rows.line_num}")
    except (OSError, UnicodeDecodeError, csv.Error):
        raise DataError(f"{path} can't be read: expected a CSV file with the columns item and liked.") from None
    return Ratings(liked, unknown, repeated)


def _read(given: str | None, column: str, like_from: float, where: str) -> bool:
    word = (given or "").strip().lower()
    if column == "rating":
        try:
            return float(word) >= like_from
        except ValueError:
            raise DataError(f"{where}: the rating is not a number.") from None
    if word not in _YES | _NO:
        raise DataError(f"{where}: liked must be yes or no.")
    return word in _YES

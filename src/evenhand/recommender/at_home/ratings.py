"""One person's ratings, from their own file or program: what can be used is used, and the rest is left out without an error.

A refusal is something that others can notice. So no rating, whatever is written in it, may cause one: there is a rule
for each thing that can be wrong, and none of them is an error.
"""

from __future__ import annotations

import csv
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike

from evenhand.guarantee import DataError, UsageError

_OPINIONS = {
    **dict.fromkeys(("1", "true", "yes", "like", "liked", "+"), True),
    **dict.fromkeys(("0", "false", "no", "dislike", "disliked", "-"), False),
}


@dataclass(frozen=True)
class Ratings:
    """For each rated item's number, whether it was liked; and how many lines could not be used, for its owner only.

    Args:
        liked: by item number.
        unknown: lines about items that are not in the catalogue; they are left out.
        unclear: lines whose opinion can't be read; they are left out.
        repeated: lines about an item rated before; the last one that can be read counts.
    """

    liked: dict[int, bool] = field(repr=False)
    unknown: int = field(default=0, repr=False)
    unclear: int = field(default=0, repr=False)
    repeated: int = field(default=0, repr=False)

    def left_out(self) -> list[str]:
        """What was left out, in words. Show it to the owner, where nothing is sent: it depends on the ratings."""
        reasons = (
            (self.unknown, "items that are not in the catalogue"),
            (self.unclear, "opinions that can't be read"),
            (self.repeated, "items that are rated again further down"),
        )
        return [f"Ratings left out: {count} with {what}." for count, what in reasons if count]


def read_ratings(path: str | PathLike[str], items: Iterable[str], like_from: float = 4.0) -> Ratings:
    """Read a CSV file with a column ``item`` and either ``liked`` (yes/no) or ``rating`` (a number).

    Guarantee:
        Errors are about the file's place and its first line, which names the columns. Whatever the other lines
        hold, there is a result.

    Edge cases:
        Each line is one rating, and none can damage another: a quoted field ends with its line, bytes that are
        not UTF-8 become U+FFFD. Unknown items, opinions that are neither yes nor no, and ratings that are not finite
        numbers are left out; of several ratings of one item the last that can be read counts. A file with a
        first line only is a person without ratings.

    Args:
        items: the catalogue.
        like_from: a ``rating`` of at least this is a like.
    """
    if math.isnan(like_from):
        raise UsageError("like_from is not a number; expected the lowest rating that is a like, such as 4.")
    numbers = {item: number for number, item in enumerate(items)}
    liked: dict[int, bool] = {}
    unknown = unclear = repeated = 0
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            names = _fields(file.readline())
            column = next((name for name in ("liked", "rating") if name in names), None)
            if "item" not in names or column is None:
                raise DataError(f"{path} needs the columns item and liked (or rating) in its first line.")
            places = names.index("item"), names.index(column)
            for line in file:
                fields = _fields(line)
                if not any(fields):
                    continue
                item, opinion = (fields[place] if place < len(fields) else "" for place in places)
                number, likes = numbers.get(item), _opinion(opinion, column, like_from)
                if number is None:
                    unknown += 1
                elif likes is None:
                    unclear += 1
                else:
                    repeated += number in liked
                    liked[number] = likes
    except OSError:
        raise DataError(f"{path} can't be read: expected a CSV file with the columns item and liked.") from None
    return Ratings(liked, unknown, unclear, repeated)


def usable(ratings: Mapping[int, bool], items: int) -> dict[int, bool]:
    """The ratings that are one: a number that the catalogue has, and True or False. The others are left out."""
    found = {}
    for item, likes in ratings.items():
        try:
            number = -1 if isinstance(item, bool) else operator.index(item)
        except TypeError:
            continue
        # By name, so that NumPy's truth values count too without NumPy being needed here.
        if 0 <= number < items and type(likes).__name__ in ("bool", "bool_"):
            found[number] = bool(likes)
    return found


def _fields(line: str) -> list[str]:
    try:
        return [text.strip() for text in next(csv.reader([line]), [])]
    except csv.Error:  # a field longer than the csv module takes
        return []


def _opinion(given: str, column: str, like_from: float) -> bool | None:
    if column == "liked":
        return _OPINIONS.get(given.lower())
    try:
        rating = float(given)
    except ValueError:
        return None
    return rating >= like_from if math.isfinite(rating) else None

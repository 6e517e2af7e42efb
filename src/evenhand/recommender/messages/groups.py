"""Which items belong to which group, such as films to genres: a public file beside a task whose items are the groups.

A catalogue of 20,000 items takes more people than there are; one of forty genres does not. The task is an ordinary one about
the groups' names, so nothing else of a message or of a client changes.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike

from evenhand.guarantee import DataError, UsageError


@dataclass(frozen=True)
class Groups:
    """Items in groups, and how popular each is known to be.

    Args:
        names: of the groups, in the order of the task's items.
        items: the whole catalogue.
        members: for each item, the numbers of its groups.
        popularity: for each item, a public figure such as visits or sales; all 1 where there is none.
    """

    names: tuple[str, ...]
    items: tuple[str, ...] = field(repr=False)
    members: tuple[tuple[int, ...], ...] = field(repr=False)
    popularity: tuple[float, ...] = field(repr=False)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Groups:
        """Read a CSV file with the columns item and group, and popularity if there is one.

        Edge cases:
            An item in several groups has a line for each; its popularity is that of its first line. Groups are numbered as
            they appear. The file is public: what is wrong in it is an error that says where.
        """
        numbers: dict[str, int] = {}
        found: dict[str, tuple[list[int], float]] = {}
        try:
            with open(path, encoding="utf-8-sig", newline="") as file:
                for line, row in enumerate(csv.DictReader(file), 2):
                    item, group = (row["item"] or "").strip(), (row["group"] or "").strip()
                    popularity = float(row.get("popularity") or 1)
                    if not (item and group and math.isfinite(popularity) and popularity >= 0):
                        raise DataError(
                            f"{path}, line {line}: expected an item, its group and, if given, a popularity from 0 on."
                        )
                    mine, _ = found.setdefault(item, ([], popularity))
                    number = numbers.setdefault(group, len(numbers))
                    if number not in mine:
                        mine.append(number)
        except (OSError, UnicodeDecodeError, csv.Error, KeyError, ValueError):
            raise DataError(f"{path} can't be read: expected a CSV file with the columns item and group.") from None
        members = tuple(tuple(mine) for mine, _ in found.values())
        return cls(tuple(numbers), tuple(found), members, tuple(popularity for _, popularity in found.values()))

    def check(self, names: Sequence[str]) -> None:
        """Refuse the groups of another task or model."""
        if tuple(names) != self.names:
            raise UsageError("The groups are not those of this task: use the file that was published with it.")

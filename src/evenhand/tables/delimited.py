"""CSV: how a line becomes fields, on every engine.

A field ends at the next delimiter. A field that begins with a quote and is closed by a quote right before a delimiter or the
end of the line is the text between them, and may hold delimiters; a doubled quote in it is one quote. Any other
quote is an ordinary character. So every line has fields, and they depend on that line alone. An empty field is null.

A line with another number of fields than the header has nulls in all its columns, and is dropped because its user is
null. Where who is there is public (values, labels), a line must count whatever its private fields hold: there the user
and public columns come first in the file, and are read from the left whatever follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.guarantee import Relation

_DELIMITERS = [",", ";", "\t", "|"]


@dataclass(frozen=True)
class Layout:
    """The columns of a CSV and how they are separated, from its header line alone.

    Args:
        fields: the fields of the header line as they stand there.
        delimiter: what separates fields.
    """

    fields: tuple[str, ...]
    delimiter: str

    @classmethod
    def of(cls, header: str) -> Layout:
        """Read a header line. The delimiter is whichever of comma, semicolon, tab and bar it uses most."""
        delimiter = max(_DELIMITERS, key=header.count)
        return cls(tuple(split(header, delimiter)), delimiter)

    def places(self, names: Sequence[str]) -> list[int]:
        """Where columns stand; those that there are not are left out (and refused where the table is made)."""
        return [self.names.index(name) for name in names if name in self.names]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns; one without a name is called by its number."""
        return tuple(field.strip() or f"column{index}" for index, field in enumerate(self.fields))


def split(line: str, delimiter: str) -> list[str]:
    """The fields of a line."""
    if '"' not in line:
        return line.split(delimiter)
    field, quoted = (re.compile(pattern) for pattern in patterns(delimiter, possessive=True))
    found = field.findall(line + delimiter)
    return [text[1:-2].replace('""', '"') if quoted.fullmatch(text) else text[:-1] for text in found]


def leading_columns(layout: Layout, relation: Relation, user: Sequence[str], public: Sequence[str]) -> int | None:
    """How many columns are read whatever follows them in a line; None if the public ones don't come first."""
    if relation is Relation.PRESENCE:
        return 0
    if relation is Relation.LABELS:  # everything but the label is public: see `Table.require_before`
        return len(layout.fields)
    known = {*user, *public}
    return len(known) if set(layout.names[: len(known)]) == known else None


def patterns(delimiter: str, *, possessive: bool = False) -> tuple[str, str]:
    """Of a field with the delimiter that ends it, and of a quoted one.

    After an opening quote there is one way to read what follows, so giving nothing back (possessive) changes no match; Java
    needs it, because it would otherwise use a frame of its stack for each doubled quote. DuckDB's patterns need no stack.
    """
    many = "*+" if possessive else "*"
    quoted = f'"[^"]{many}(?:""[^"]{many}){many}"[{delimiter}]'
    return f"{quoted}|[^{delimiter}]{many}[{delimiter}]", quoted

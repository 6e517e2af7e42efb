"""Python objects as text, one by one: columns that carry no type.

Guessing a type from the objects would let one person's value change the schema that everybody sees. So a column of objects
is read as text, like a column of a CSV, and cast where it is used.

Text is itself, without halves of surrogate pairs; bytes are text; numbers are written out, dates and times in ISO form, truth
values as true and false. Anything else is null.
"""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Iterable
from decimal import Decimal

import numpy as np

from evenhand.guarantee import exact_text
from evenhand.tables.expressions import ArrowColumn
from evenhand.tables.lines import readable

_LONGEST = 2**12  # bits of a whole number that is written out; Python refuses to write much longer ones


def texts(values: Iterable[object]) -> ArrowColumn:
    """Objects as an Arrow array of text."""
    import pyarrow as pa

    return pa.array([text_of(value) for value in values], pa.large_string())


def text_of(value: object) -> str | None:
    """One object as text. Methods are called on the plain types, so that no object brings its own."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.encode(value, "utf-8", "ignore").decode()
    if isinstance(value, bytes):
        return readable(bytes(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if int.bit_length(value) > _LONGEST:
            return "-inf" if int.__lt__(value, 0) else "inf"
        return int.__repr__(value)
    if isinstance(value, float):
        return None if math.isnan(value) else float.__repr__(value)
    if isinstance(value, Decimal):
        return None if Decimal.is_nan(value) else exact_text(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return None if value != value else value.isoformat()  # NaT is a datetime
    if isinstance(value, uuid.UUID):
        return uuid.UUID.__str__(value)
    return None

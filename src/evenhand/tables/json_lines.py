"""JSON: one record per line, and how a line becomes text values for declared columns.

The same function runs beside DuckDB and inside Spark's workers, because JSON parsers differ in what they accept. It is sent to
the workers by value, so it knows nothing but Python and Arrow.

A line that is not one JSON object has nulls in all columns. Text is itself, a number the characters it is written with, true
and false their names; null, lists and objects are null. Of a repeated name the last counts. NaN and Infinity, which
Python writes, are accepted as text. Half of a surrogate pair is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.tables.expressions import ArrowBatch

MOST_NESTING = 64
"""A line nested deeper is no record: parsers would run out of stack, each at its own depth."""

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def decoder() -> json.JSONDecoder:
    """Numbers stay the text that they are. (Made where it is used: it can't be sent to workers.)"""
    return json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


def record(decoder: json.JSONDecoder, line: str) -> dict[str, object]:
    """The object on a line; an empty one if there is none."""
    if line.count("{") + line.count("[") > MOST_NESTING and _nesting(line) > MOST_NESTING:
        return {}
    try:
        found = decoder.decode(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def text_of(value: object) -> str | None:
    """A JSON value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.encode("utf-8", "ignore").decode() if isinstance(value, str) else None


def batches(lines: Iterable[ArrowBatch], names: Sequence[str]) -> Iterator[ArrowBatch]:
    """Arrow batches of lines as Arrow batches of the named columns."""
    import pyarrow as pa

    decode = decoder()
    for batch in lines:
        records = [record(decode, line) for line in batch.column(0).to_pylist()]
        columns = [pa.array([text_of(found.get(name)) for found in records], pa.string()) for name in names]
        yield pa.record_batch(columns, names=list(names))


def read(paths: Sequence[str], names: Sequence[str]) -> Iterator[ArrowBatch]:
    """Files of JSON lines as Arrow batches of the named columns."""
    from evenhand.tables.lines import line_batches

    return batches(line_batches(paths), names)


def _nesting(line: str) -> int:
    deepest = depth = 0
    for character in _STRING.sub("", line):
        if character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth -= 1
    return deepest

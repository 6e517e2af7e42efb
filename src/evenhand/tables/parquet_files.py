"""Parquet files that are not simply rows of one shape: files that differ, and tables of other formats made of Parquet files."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenhand.guarantee import DataError, UsageError


def refuse_other_formats(folder: str) -> None:
    """Refuse a folder of which only a log says which of its Parquet files, and which of their rows, are part of the table."""
    kind = None
    if os.path.isdir(os.path.join(folder, "_delta_log")):
        kind = "Delta"
    elif glob.glob(os.path.join(glob.escape(folder), "metadata", "*.metadata.json")):
        kind = "Iceberg"
    elif os.path.isdir(os.path.join(folder, ".hoodie")):
        kind = "Hudi"
    if kind is not None:
        raise UsageError(
            f"the folder {folder!r} is a table in {kind} format: its Parquet files also hold rows that were deleted or replaced, and its "
            "log says which. DuckDB's package has no reader for it. Export one version to Parquet, or give a Spark DataFrame of one "
            "version."
        )


def require_one_shape(pattern: str, paths: Sequence[str]) -> None:
    """Refuse local files whose columns differ.

    An engine would convert the values of one file to the types of another and fail on a value that does not fit: such an error
    would depend on the rows. Only the schemas are looked at.
    """
    first, *others = [path for path in paths if os.path.isfile(path)] or [""]
    if not others:
        return
    expected = _shape(first)
    for path in others:
        found = _shape(path)
        if found == expected or None in (found, expected):  # a file that can't be read is the engine's to refuse
            continue
        raise DataError(
            f"the files of {pattern!r} have different columns: {Path(path).name!r} {_difference(found or {}, expected or {}, first)}. "
            "Read those with equal columns and types together, or write them anew as one table."
        )


def _shape(path: str) -> dict[str, tuple[Any, ...]] | None:
    """The stored columns with their types; whether a value may be missing does not count."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_metadata(path).schema
    except (OSError, pa.ArrowException):
        return None
    columns = (schema.column(place) for place in range(len(schema)))
    return {one.path: (one.physical_type, str(one.logical_type), one.length) for one in columns}


def _difference(found: dict[str, Any], expected: dict[str, Any], first: str) -> str:
    reference = Path(first).name
    for name in expected:
        if name not in found:
            return f"lacks the column {name!r} of {reference!r}"
        if found[name] != expected[name]:
            return f"stores {name!r} in another type than {reference!r}"
    more = next(name for name in found if name not in expected)
    return f"has a column {more!r}, which {reference!r} lacks"

"""CSV and JSON as Parquet, for the data holder: in Parquet a malformed value can't affect others.

This runs where the private files are, and its messages are about single lines: they are for the data holder only.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from evenhand.guarantee import DataError, UsageError, suggest
from evenhand.tables import delimited, files, json_lines, lines
from evenhand.tables.numbers import INFINITE, LONGEST, NUMBER, SPACE

_ROW_GROUP = 250_000
_SHOWN = 5
_NUMBER, _INFINITE = (re.compile(pattern + r"\Z") for pattern in (NUMBER, INFINITE))
Row = Sequence[str | None]
Place = tuple[str, str, int]
"""A file, and which line or record of it."""


@dataclass
class Conversion:
    """What happened to the files, for the data holder.

    Args:
        columns: the names of the columns and their types.
        rows: how many records were written.
        malformed: where records are that can't be read.
        not_numbers: for each column of numbers, how many values are none, and so became null.
    """

    columns: dict[str, str]
    rows: int = 0
    malformed: list[str] = field(default_factory=list)
    not_numbers: dict[str, int] = field(default_factory=dict)


def to_parquet(
    source: str | Path,
    target: str | Path,
    *,
    columns: Sequence[str] = (),
    numbers: Sequence[str] = (),
    quoted_newlines: bool = False,
    drop_malformed: bool = False,
) -> Conversion:
    """Write the records of CSV or JSON files to a Parquet file that does not exist yet.

    Columns are text, and double precision where ``numbers`` names them: types are declared, never found in the data. A
    record that can't be read is refused, or left out with ``drop_malformed``.
    """
    found, path = files.find(source), Path(target)
    if found.format == "parquet":
        raise UsageError(f"{found.pattern!r} is Parquet already; expected CSV or JSON.")
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise UsageError(f"{str(path)!r} does not end in .parquet; name a Parquet file to write.")
    if found.format == "csv":
        if columns:
            raise UsageError("--columns is for JSON; the header of a CSV names its columns.")
        layout = files.read_layout(found)
        names: Sequence[str] = layout.names
        read = _quoted_records(found, layout) if quoted_newlines else _csv_records(found, layout)
    else:
        if not columns:
            raise UsageError("--columns is missing: a JSON file has no header; name the columns to write, a,b,c.")
        if quoted_newlines:
            raise UsageError("--quoted-newlines is for CSV; leave it out.")
        files.first_lines(found)
        names, read = columns, _json_records(found, columns)
    for name in numbers:
        if name not in names:
            raise DataError(f"there is no column {name!r}; the columns are {list(names)}.{suggest(name, names)}")
    done = Conversion({name: "double" if name in numbers else "string" for name in names})
    done.not_numbers = dict.fromkeys(numbers, 0)
    with _new_file(path) as file:
        try:
            _write(file, done, _good(read, done))
            if done.malformed and not drop_malformed:
                shown = ", ".join(done.malformed[:_SHOWN]) + (", ..." if len(done.malformed) > _SHOWN else "")
                raise DataError(
                    f"{len(done.malformed):,} records of {found.pattern!r} can't be read: {shown}. Mend them, or leave "
                    "them out with --drop-malformed; nothing was written."
                )
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return done


def _new_file(path: Path) -> BinaryIO:
    """A file for its owner alone, which must not exist yet."""
    try:
        return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
    except FileExistsError:
        raise UsageError(
            f"{str(path)!r} exists already, and is not overwritten; remove it or give another name."
        ) from None
    except OSError as error:
        raise UsageError(f"{str(path)!r} can't be written: {error.strerror}; give a writable path.") from None


def _good(records: Iterator[tuple[Place, Row | None]], done: Conversion) -> Iterator[Row]:
    """The records that could be read; the others are noted."""
    for place, row in records:
        if row is None:
            done.malformed.append("{} {} {}".format(*place))
        else:
            done.rows += 1
            yield row


def _write(file: BinaryIO, done: Conversion, rows: Iterator[Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(name, pa.float64() if kind == "double" else pa.string()) for name, kind in done.columns.items()]
    )
    with pq.ParquetWriter(file, schema) as writer:
        while chunk := list(islice(rows, _ROW_GROUP)):
            columns = [
                pa.array(_numbers(name, values, done) if kind == "double" else values, schema.field(name).type)
                for (name, kind), values in zip(done.columns.items(), zip(*chunk, strict=True), strict=True)
            ]
            writer.write_table(pa.table(columns, schema=schema))


def _numbers(name: str, texts: Iterable[str | None], done: Conversion) -> list[float | None]:
    numbers = [as_number(text) for text in texts]
    done.not_numbers[name] += sum(
        number is None and text is not None for number, text in zip(numbers, texts, strict=True)
    )
    return numbers


def as_number(text: str | None) -> float | None:
    """Text as a number, by the rule of ``numbers.py``."""
    plain = (text or "").strip(SPACE)
    if len(plain) > LONGEST:
        return None
    plain = plain.lower()
    if _INFINITE.search(plain):
        return -math.inf if plain.startswith("-") else math.inf
    return float(plain) if _NUMBER.search(plain) else None


def _csv_records(source: files.FileSource, layout: delimited.Layout) -> Iterator[tuple[Place, Row | None]]:
    for place, line in _lines(source, skip=1):
        fields = delimited.split(line, layout.delimiter)
        yield place, _complete(fields, layout)


def _quoted_records(source: files.FileSource, layout: delimited.Layout) -> Iterator[tuple[Place, Row | None]]:
    """Records whose quoted fields may hold line feeds, by Python's own reader; it refuses quotes that are not balanced."""
    import pyarrow as pa

    csv.field_size_limit(2**31 - 1)
    for path in source.paths:
        with pa.input_stream(path) as packed:
            text = io.TextIOWrapper(io.BufferedReader(packed), "utf-8-sig", errors="ignore", newline="")
            reader = csv.reader(text, delimiter=layout.delimiter, strict=True)
            next(reader)
            try:
                for fields in reader:
                    if fields:
                        yield (path, "line", reader.line_num), _complete(fields, layout)
            except csv.Error:
                raise DataError(f"{path!r} is not a CSV at line {reader.line_num}: a quote is not closed.") from None


def _complete(fields: Sequence[str], layout: delimited.Layout) -> Row | None:
    return [value or None for value in fields] if len(fields) == len(layout.fields) else None


def _json_records(source: files.FileSource, columns: Sequence[str]) -> Iterator[tuple[Place, Row | None]]:
    decoder = json_lines.decoder()
    for path in source.paths:
        if first := lines.first_line(path):
            document = first.lstrip().startswith(b"[")
            found = _document(path, decoder) if document else _each_line(path, decoder)
            for place, record in found:
                row = [json_lines.text_of(record.get(name)) for name in columns] if isinstance(record, dict) else None
                yield place, row


def _document(path: str, decoder: json.JSONDecoder) -> Iterator[tuple[Place, object]]:
    import pyarrow as pa

    with pa.input_stream(path) as file:
        text = lines.readable(file.read())
    try:
        records = decoder.decode(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        raise DataError(f"{path!r} is not one JSON document; nothing was written.") from None
    for place, record in enumerate(records, 1):
        yield (path, "record", place), record


def _each_line(path: str, decoder: json.JSONDecoder) -> Iterator[tuple[Place, object]]:
    for place, line in _numbered(path):
        if line.strip():
            yield place, json_lines.record(decoder, line) or None


def _lines(source: files.FileSource, skip: int) -> Iterator[tuple[Place, str]]:
    """Lines that are not blank, and where they are."""
    for path in source.paths:
        for place, line in islice(_numbered(path), skip, None):
            if line:
                yield place, line


def _numbered(path: str) -> Iterator[tuple[Place, str]]:
    each = (line for block in lines.blocks(path) for line in block.decode().split("\n")[:-1])
    for number, line in enumerate(each, 1):
        yield (path, "line", number), line

"""Files by path or glob: Parquet, CSV, JSON.

CSV and JSON carry no types. Guessing them from the values would let one person's value change the schema
that everybody sees, so every column is read as text and cast where it is used (see ``numbers.py``). The delimiter
of a CSV comes from its header line alone, for the same reason.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.guarantee import DataError, UsageError
from evenhand.tables.engines import duckdb_backend, fresh_name
from evenhand.tables.spark import parquet_rows

_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".dat": "csv",
    ".json": "json", ".ndjson": "json", ".jsonl": "json",
}  # fmt: skip
_COMPRESSIONS = {"duckdb": (".gz", ".zst"), "spark": (".gz", ".bz2")}
"""What each engine unpacks by itself; DuckDB would read the packed bytes of anything else as (malformed) lines."""
_REMOTE = ("s3://", "gs://", "gcs://", "http://", "https://", "hdfs://", "abfss://", "az://")


@dataclass(frozen=True)
class FileSource:
    """Which files, in which format."""

    pattern: str
    paths: tuple[str, ...]
    format: str

    @property
    def snapshot(self) -> str | None:
        """Changes when a file is added, removed or written; None for remote files."""
        if self.pattern.startswith(_REMOTE):
            return None
        facts = [(path, *_identity(path)) for path in self.paths]
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def _identity(path: str) -> tuple[int, ...]:
    """What tells one state of a file from another: the file itself, its size, and when it was last touched."""
    try:
        facts = os.stat(path)
    except OSError:  # gone; the engine will say so
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def find(given: str | Path) -> FileSource:
    """Resolve a path or glob, with a clear error when nothing is there."""
    pattern = os.path.expanduser(str(given))
    format = _format(pattern)
    if pattern.startswith(_REMOTE):
        return FileSource(pattern, (pattern,), format)
    if os.path.isdir(pattern):
        inside = sorted(path for path in glob.glob(os.path.join(pattern, "**", "*.parquet"), recursive=True))
        if not inside:
            raise DataError(
                f"the folder {str(given)!r} holds no .parquet files; give a file, a folder of Parquet or a glob."
            )
        return FileSource(pattern, tuple(inside), "parquet")
    paths = tuple(sorted(glob.glob(pattern, recursive=True))) if glob.has_magic(pattern) else (pattern,)
    if not paths or not all(os.path.exists(path) for path in paths):
        raise DataError(
            f"there is no file {str(given)!r} (looked in {os.getcwd()!r}); "
            "expected a path or glob of Parquet, CSV or JSON files."
        )
    return FileSource(pattern, paths, format)


def on_duckdb(source: FileSource) -> tuple[Any, frozenset[str]]:
    """The files as an Ibis table on DuckDB, and which columns were read as text."""
    _require_unpackable(source, "duckdb")
    backend = duckdb_backend()
    if source.format == "parquet":
        return _readable(source, lambda: backend.read_parquet(list(source.paths), table_name=fresh_name())), frozenset()
    if source.format == "csv":
        options = {
            "auto_detect": False,
            "columns": dict.fromkeys(header(source), "VARCHAR"),
            "header": True,
            "delim": delimiter(source),
            "quote": '"',
            "escape": '"',
            "ignore_errors": True,  # a malformed line is dropped by rule: raising would depend on the data and quote it
        }
        table = _readable(source, lambda: backend.read_csv(list(source.paths), table_name=fresh_name(), **options))
    else:
        options = {"format": "newline_delimited", "ignore_errors": True} if _is_ndjson(source) else {}

        def read_json(**more: Any) -> Any:
            return backend.read_json(list(source.paths), table_name=fresh_name(), **options, **more)

        names = _readable(source, read_json).columns
        table = _readable(source, lambda: read_json(columns=dict.fromkeys(names, "VARCHAR")))
    return table, frozenset(table.columns)


def on_spark(source: FileSource, backend: Any) -> tuple[Any, frozenset[str]]:
    """The files as an Ibis table on Spark, by the same rules."""
    _require_unpackable(source, "spark")
    session = backend._session
    name = fresh_name()
    if source.format == "parquet":
        rows = _readable(source, lambda: parquet_rows(session, source.paths))
    elif source.format == "csv":
        schema = ", ".join("`" + column.replace("`", "``") + "` STRING" for column in header(source))
        rows = _readable(
            source,
            lambda: (
                session.read.schema(schema)
                .option("header", True)
                .option("sep", delimiter(source))
                .option("quote", '"')
                .option("escape", '"')
                .option("multiLine", True)
                .option("mode", "DROPMALFORMED")
                .csv(list(source.paths))
            ),
        )
    else:
        multiline = not _is_ndjson(source)
        rows = _readable(
            source,
            lambda: (
                session.read.option("primitivesAsString", True)
                .option("multiLine", multiline)
                .option("mode", "DROPMALFORMED")
                .json(list(source.paths))
            ),
        )
    rows.createOrReplaceTempView(name)
    table = backend.table(name)
    return table, frozenset() if source.format == "parquet" else frozenset(table.columns)


def header(source: FileSource) -> list[str]:
    """The column names of a CSV, from its first line."""
    import csv

    try:
        names = next(csv.reader([_first_line(source)], delimiter=delimiter(source)), [])
    except csv.Error:
        raise DataError(
            f"the header of {source.pattern!r} can't be read; expected column names in one line that ends with a line feed."
        ) from None
    names = [name.strip().lstrip("\ufeff") or f"column{index}" for index, name in enumerate(names)]
    if not names:
        raise DataError(f"the file {source.pattern!r} is empty; expected a header line with column names.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"the header of {source.pattern!r} names {repeated} more than once; rename the columns.")
    return names


def delimiter(source: FileSource) -> str:
    """Comma, semicolon, tab or bar: whichever the header line uses most."""
    line = _first_line(source)
    return max([",", ";", "\t", "|"], key=line.count)


def _first_line(source: FileSource) -> str:
    import pyarrow as pa

    try:
        with pa.input_stream(source.paths[0]) as file:  # unpacks by the ending of the name
            line: bytes = io.BufferedReader(file).readline()
            return line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    except OSError as error:
        raise DataError(
            f"the file {source.pattern!r} can't be read: {error.strerror or type(error).__name__}."
        ) from None


def _is_ndjson(source: FileSource) -> bool:
    return not _first_line(source).lstrip().startswith("[")


def _format(pattern: str) -> str:
    suffixes = [suffix for suffix in Path(pattern).suffixes if suffix not in (".gz", ".bz2", ".xz", ".zst")]
    suffix = suffixes[-1].lower() if suffixes else ""
    if os.path.isdir(pattern):
        return "parquet"
    if suffix not in _FORMATS:
        raise UsageError(
            f"the format of {pattern!r} is not known from its ending {suffix!r}; expected one of {sorted(_FORMATS)}."
        )
    return _FORMATS[suffix]


def _require_unpackable(source: FileSource, engine: str) -> None:
    """Refuse text that is compressed in a way that the engine would not unpack."""
    suffixes = {Path(path).suffix for path in source.paths} & {".gz", ".bz2", ".xz", ".zst"}
    refused = suffixes.difference(_COMPRESSIONS[engine])
    if refused and source.format != "parquet":
        raise DataError(
            f"{source.pattern!r} is compressed as {', '.join(sorted(refused))}, which {engine} does not unpack; expected "
            f"{' or '.join(_COMPRESSIONS[engine])}. Decompress it first."
        )


def _readable(source: FileSource, read: Callable[[], Any]) -> Any:
    """Run a reader; its own message may quote rows, so it is replaced."""
    try:
        return read()
    except DataError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise DataError(
        f"the file {source.pattern!r} can't be read as {source.format} ({kind}); check that it is complete and really "
        f"holds {source.format}."
    )

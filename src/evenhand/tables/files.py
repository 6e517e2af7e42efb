"""Files by path or glob: Parquet, CSV, JSON.

CSV and JSON carry no types. Guessing them from the values would let one person's value change the schema
that everybody sees, so every column is read as text and cast where it is used (see ``numbers.py``). Names and the
delimiter of a CSV come from its header line alone, names of a JSON file from the caller, for the same reason.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evenhand.guarantee import DataError, Relation, UsageError
from evenhand.tables import delimited, lines, parquet_files
from evenhand.tables.delimited import Layout

T = TypeVar("T")
_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".dat": "csv",
    ".json": "json", ".ndjson": "json", ".jsonl": "json",
}  # fmt: skip
_PACKED = {".gz", ".bz2", ".xz", ".zst"}
_REMOTE = ("s3://", "gs://", "gcs://", "http://", "https://", "hdfs://", "abfss://", "az://")


@dataclass(frozen=True)
class Declared:
    """What the caller says about a file, beside its path.

    Args:
        user: the columns that name a person.
        relation: which neighbouring tables must look alike.
        public: columns that are public under ``Relation.VALUES``.
        columns: the columns of a JSON file.
        quoted_newlines: whether fields of a CSV may hold line feeds.
    """

    user: tuple[str, ...]
    relation: Relation = Relation.PRESENCE
    public: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    quoted_newlines: bool = False


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
        parquet_files.refuse_other_formats(pattern)
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
    for folder in {os.path.dirname(os.path.abspath(path)) for path in paths if format == "parquet"}:
        parquet_files.refuse_other_formats(folder)
        parquet_files.refuse_other_formats(
            os.path.dirname(folder)
        )  # data/ of Iceberg, one level of partitions of Delta
    return FileSource(pattern, paths, format)


def check(source: FileSource, declared: Declared, engine: str, compressions: Sequence[str]) -> None:
    """Refuse what was declared about a file, or a file, before anything but its name is looked at."""
    if declared.quoted_newlines and source.format != "csv":
        raise UsageError(f"quoted_newlines= is for CSV, but {source.pattern!r} is {source.format}; leave it out.")
    if declared.columns is not None and source.format != "json":
        raise UsageError(
            f"columns= is for JSON, which names no columns itself, but {source.pattern!r} is {source.format}; leave it out."
        )
    if source.format == "parquet":
        parquet_files.require_one_shape(source.pattern, source.paths)
        return
    if source.pattern.startswith(_REMOTE):
        raise DataError(
            f"{source.pattern!r} is remote, but CSV and JSON are read from local files; copy it, or use Parquet."
        )
    _require_unpackable(source, engine, compressions)
    if source.format == "json":
        _require_json_lines(source, declared)
        first_lines(source)  # whether the files can be opened and unpacked; what they hold is not looked at


def _require_json_lines(source: FileSource, declared: Declared) -> None:
    """Refuse JSON that can't be read record by record, or whose columns would have to be read off its rows."""
    convert = f"evenhand convert {source.pattern} table.parquet --columns ..."
    if not declared.columns:
        raise UsageError(
            f"columns= is missing: {source.pattern!r} is JSON, and names read off its records would depend on the data; "
            "expected the columns to read, such as columns=['user', 'rating']."
        )
    if declared.relation is not Relation.PRESENCE:
        raise UsageError(
            f"{source.pattern!r} is JSON, and protects={declared.relation.value!r} treats as public who is there: a malformed "
            f"private value would hide its record. Convert the file to Parquet first: {convert}"
        )
    if Path(unpacked(source.pattern)).suffix.lower() == ".json":
        raise UsageError(
            f"{source.pattern!r} may be one document or one record a line, and looking would depend on the data. If each line is "
            f"a record, rename it to end in .jsonl; otherwise convert it to Parquet: {convert}"
        )


def leading(source: FileSource, layout: Layout, declared: Declared) -> int:
    """How many columns of a CSV are read whatever follows them in a line."""
    if not {*declared.user, *declared.public} <= set(layout.names):
        return 0  # refused where the table is made, as for every source
    found = delimited.leading_columns(layout, declared.relation, declared.user, declared.public)
    if found is not None and not (declared.quoted_newlines and found):
        return found
    public = sorted({*declared.user, *declared.public}, key=layout.names.index)
    reason = (
        "a quote in a private column could hide records"
        if declared.quoted_newlines
        else f"a delimiter in a private column would move the columns after it, and {public} don't come first in the file"
    )
    raise UsageError(
        f"{source.pattern!r} is a CSV, and protects={declared.relation.value!r} treats as public who is there: {reason}. "
        f"Convert the file to Parquet first: evenhand convert {source.pattern} table.parquet --numbers ..."
    )


def read_layout(source: FileSource) -> Layout:
    """The columns of a CSV, from the first line of its files, which must agree."""
    headers = set(first_lines(source))
    if len(headers) > 1:
        raise DataError(
            f"the files of {source.pattern!r} have different header lines; read those with equal columns together."
        )
    (header,) = headers
    if header is None or b"\r" in header or b"\0" in header:
        raise DataError(
            f"the header of {source.pattern!r} can't be read; expected column names in UTF-8, in one line that ends with a line feed."
        )
    if not header:
        raise DataError(f"the file {source.pattern!r} is empty; expected a header line with column names.")
    layout = Layout.of(lines.readable(header))
    folded = [name.casefold() for name in layout.names]  # engines take names that differ in case for one
    repeated = sorted({name for name in layout.names if folded.count(name.casefold()) > 1})
    if repeated:
        raise DataError(f"the header of {source.pattern!r} names {repeated} more than once; rename the columns.")
    return layout


def first_lines(source: FileSource) -> list[bytes | None]:
    """The first line of each file; None for one that is too long."""
    try:
        return [lines.first_line(path) for path in source.paths]
    except OSError as error:
        kind = error.strerror or type(error).__name__
    raise DataError(f"the file {source.pattern!r} can't be read: {kind}.")


def is_json(path: str | Path) -> bool:
    """Whether a path or glob is of JSON, told from its ending."""
    return _FORMATS.get(Path(unpacked(str(path))).suffix.lower()) == "json"


def unpacked(path: str) -> str:
    """A path without the ending that says how it is compressed."""
    return str(Path(path).with_suffix("")) if Path(path).suffix in _PACKED else path


def _format(pattern: str) -> str:
    suffix = Path(unpacked(pattern)).suffix.lower()
    if os.path.isdir(pattern):
        return "parquet"
    if suffix not in _FORMATS:
        raise UsageError(
            f"the format of {pattern!r} is not known from its ending {suffix!r}; expected one of {sorted(_FORMATS)}."
        )
    return _FORMATS[suffix]


def _require_unpackable(source: FileSource, engine: str, compressions: Sequence[str]) -> None:
    """Refuse text that is compressed in a way that the engine would not unpack: it would read the packed bytes as malformed lines."""
    suffixes = {Path(path).suffix for path in source.paths} & _PACKED
    refused = suffixes.difference(compressions)
    if refused and source.format != "parquet":
        raise DataError(
            f"{source.pattern!r} is compressed as {', '.join(sorted(refused))}, which {engine} does not unpack; expected "
            f"{' or '.join(compressions)}. Decompress it first."
        )


def attempt(source: FileSource, read: Callable[[], T]) -> T:
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

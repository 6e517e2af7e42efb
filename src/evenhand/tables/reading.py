"""``eh.read``: from anything tabular to a `Table`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from evenhand.guarantee import DataError, Relation, UsageError
from evenhand.tables import files
from evenhand.tables.columns import Column, columns_beside, parse_columns, read_columns
from evenhand.tables.declared_types import Types, parse_types, with_types
from evenhand.tables.engines import DEFAULT, Engine, engine_for_database, engine_for_files, engine_for_object
from evenhand.tables.frames import to_arrow
from evenhand.tables.spelling import names_users
from evenhand.tables.table import Table

_RESERVED = "evenhand_"
"""How the columns that queries add to a table's own begin."""

_LONGEST_NAME = 1000
"""Of a source, for the ledger."""

Facts = dict[str, Any]
"""What is known of a source beside its rows: fields of `Table`."""

Stated: TypeAlias = Mapping[str, Column | Mapping[str, Any]] | Sequence[str] | str | Path | None
"""What ``columns=`` may be."""


def read(
    source: object,
    user: str | Sequence[str],
    *,
    table: str | None = None,
    query: str | None = None,
    protects: str | Relation = Relation.PRESENCE,
    public: Sequence[str] = (),
    population: str | None = None,
    engine: str | None = None,
    columns: Stated = None,
    quoted_newlines: bool = False,
    types: Types = None,
) -> Table:
    """Open a table in which each row belongs to a user.

    Nothing is read beyond the schema until a release runs. Names and types come from the schema, a CSV's header line or
    ``columns``, never from rows.

    Args:
        source: a path or glob (Parquet, CSV, JSON), a pandas or polars frame, an Arrow table, a DuckDB relation,
            an Ibis table (DuckDB, Spark, Postgres, SQLite), or a Spark DataFrame; with ``table``, a DuckDB file or connection, or ``postgresql://...``.
        table: which table, or view, of a database: ``"sales"`` or ``"schema.sales"``.
        query: instead of ``table``, a SELECT over tables of the database that keeps users apart: some columns, rows and joins by the user, or one
            row per user. It is judged like a view and never sent as text; docs/sql.md. ``public`` then names columns of these tables.
        user: the column, or columns, that name a person.
        protects: ``"presence"`` hides whether a user is in the table at all; ``"values"`` hides a user's values but
            treats who is in it and how many rows each user has as public; ``"labels"`` is for learning.
        public: columns that are public under ``"values"``; only they may form groups there.
        population: a name for the people, so that tables with differently named user columns share one ledger.
        engine: ``"duckdb"`` (default), ``"spark"`` or a registered engine that reads files, for paths.
        columns: what is publicly known about columns, ``{"rating": eh.Column(bounds=(0.5, 5), unit="stars")}``, or the TOML file
            that says so (``evenhand describe`` writes one to fill in); questions then need no ``bounds`` and no ``keys``. Left out:
            ``ratings.toml`` beside ``ratings.parquet``, if it is there. Of a JSON file, which has no header: also the names of
            all columns to read, as such a mapping or a list.
        quoted_newlines: whether quoted fields of a CSV may hold line feeds. Otherwise each line is a record, and no line can
            change how another is read. With it, one quote that is never closed can make the rows of other users part of
            one field, and then the guarantee does not hold: use it only if you know that all quotes are balanced.
        types: of columns of CSV and JSON, which are text otherwise: ``{"day": "date", "amount": "float"}`` (``"int"``, ``"bool"``, ``"timestamp"``,
            ``"date %d/%m/%Y"``, ``"text"``), or the path of a public sample with the same columns, whose rows everybody may see. They are never read off
            the table's own rows. What `columns` says about a type wins.

    Edge cases: rows whose user is null are dropped. Users are told apart by how their ids are spelled; ids that the engine may take for equal
    although they are spelled differently (by a collation, citext) are refused. Columns without types (CSV, JSON, Python objects in a frame) are read as
    text and cast when used; text that is not a number counts as null. Bytes that are not UTF-8 are left out of text. What
    happens to malformed lines: docs/files.md. Under ``"values"`` and ``"labels"`` a CSV needs its user and public columns
    first, and JSON is refused: ``evenhand convert`` makes Parquet of them.

    Example:
        >>> ratings = eh.read("ratings.parquet", user="userId")
    """
    relation = Relation.parse(protects)
    users, known = _names(user, "user"), _names(public, "public")
    if not users:
        raise UsageError(
            "no user column was given; expected user='userId', the column that says which person a row belongs to."
        )
    if query is not None:
        if types is not None:
            raise UsageError("types= is for CSV and JSON; a query casts its columns: SELECT CAST(day AS DATE) AS day.")
        if engine_for_database(source) is None or table is not None:
            raise UsageError(
                "query=... is for databases, and stands in the place of table=...: a DuckDB file (ending in .duckdb) or connection, or postgresql://..."
            )

        def one(name: str) -> Table:
            return read(source, users, table=name, protects=relation, population=population, engine=engine)

        engine_for_files(engine)
        return _queried(query, one, known, _stated(columns, None)[0])
    opened, marks, stated = open_source(source, users, relation, known, table, engine, columns, quoted_newlines)
    found = Table(
        opened.rows,
        opened,
        users,
        relation,
        known,
        population,
        facts=stated,
        source=_source_name(source, table),
        **marks,
    )
    for column in users:
        found.require(column, "user column")
    _require_one_spelling(opened, users)
    for column in found.public:
        found.require(column, "public column")
    for column in stated:
        found.require(column, "column with facts")
    private: Sequence[str] = ()
    if isinstance(source, str | Path) and engine_for_database(source) is None:
        private = files.find(source).paths
    return with_types(found, parse_types(types, private), sampled=not isinstance(types, Mapping))


def open_source(
    source: object,
    users: tuple[str, ...],
    relation: Relation,
    public: tuple[str, ...],
    table: str | None,
    engine: str | None,
    columns: Stated,
    quoted_newlines: bool,
) -> tuple[Engine, Facts, dict[str, Column]]:
    """What reads a source, what is known of it as fields of `Table`, and what was stated about its columns."""
    wanted, database = engine_for_files(engine), engine_for_database(source)
    stated, listed = _stated(columns, None if database or not isinstance(source, str | Path) else Path(source))
    declared = files.Declared(users, relation, public, listed, bool(quoted_newlines))
    if database is not None:
        opened, marks = _open_table(source, database, table, wanted, declared)
    elif table is not None:
        raise UsageError(
            f"table={table!r} is for databases: a DuckDB file (ending in .duckdb) or connection, or postgresql://...; leave it out."
        )
    elif isinstance(source, str | Path):
        opened, marks = _open_files(source, wanted, declared)
    else:
        opened, marks = _open_object(source, wanted, declared)
    reserved = [name for name in opened.rows.columns if name.casefold().startswith(_RESERVED)]
    if reserved:
        raise DataError(
            f"the columns {reserved} begin with {_RESERVED!r}, which is kept for columns inside queries; rename them."
        )
    opened.named(called(source, table) if table is not None or isinstance(source, str | Path) else "")
    return opened, {**marks, "places": _places(source, table)}, stated


def called(source: object, table: str | None) -> str:
    """What a source is called among others: the name of a table or of a file, or the type of an object."""
    if table is not None:
        return str(table)
    if isinstance(source, str | Path):
        return Path(source).name.partition(".")[0] or str(source)
    return type(source).__name__


def _places(source: object, table: str | None) -> frozenset[str]:
    """What tells a source from others: two tables of one place hold the same rows. Of objects nothing is known."""
    if not isinstance(source, str | Path):
        return frozenset()
    place = str(source) if "://" in str(source) else os.path.realpath(os.path.expanduser(str(source)))
    return frozenset([f"{place} {table.rpartition('.')[2]}" if table else place])


def _require_one_spelling(engine: Engine, users: Sequence[str]) -> None:
    """Check that ids that are equal are spelled alike: users are told apart by how their ids are spelled."""
    schema, folded = engine.rows.schema(), engine.folded()
    for column in users:
        dtype = schema[column]
        if not names_users(dtype):
            raise DataError(
                f"the user column {column!r} holds {dtype}, whose equal values may be spelled differently; expected ids of a plain type: "
                "whole numbers, text or UUIDs. Cast it to text first, in a view or query of the source."
            )
        if column in folded:
            raise DataError(
                f"the user column {column!r} has a collation, or a type such as citext, that takes ids for equal which are written differently, as 'ann' "
                "and 'Ann' may be; so whether two ids are one person can't be told from them. Expected ids that are equal only where they are "
                'written alike: read a view that writes them one way and compares by bytes, such as SELECT lower(id) COLLATE "C" AS id, ... '
                "(in Spark COLLATE UTF8_BINARY)."
            )


def _queried(query: str, one: Callable[[str], Table], public: tuple[str, ...], stated: Mapping[str, Column]) -> Table:
    """The rows of a query over tables of a database, each of which ``one`` opens as a table of the same people."""
    from evenhand.tables.queries.reading import read_query

    unused = set(public)

    def opened(name: str) -> Table:
        found = one(name)
        unused.difference_update(found.columns)
        return replace(found, public=tuple(column for column in public if column in found.columns))

    view = read_query(query, opened)
    if unused:
        raise DataError(f"public={sorted(unused)}: no table that the query names has such columns.")
    for column in stated:
        view.require(column, "column with facts")
    return replace(view, facts=stated)


def _source_name(source: object, table: str | None) -> str:
    """The source as the ledger names it: a path, a URL without its account, or the type of an object; then the table."""
    if isinstance(source, str | Path):
        scheme, found, rest = str(source).partition("://")
        place = f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}" if found else str(source)
    else:
        place = type(source).__name__
    name = place if table is None else f"{place} {table}"
    return "".join(letter for letter in name if letter.isprintable())[:_LONGEST_NAME]


def _stated(given: Stated, path: Path | None) -> tuple[dict[str, Column], tuple[str, ...] | None]:
    """What is known about the columns of a file, or of something else, and the names of the columns of a JSON file."""
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".toml")):
        stated = read_columns(Path(given).expanduser())
        if stated is None:
            raise DataError(
                f"{str(given)!r} states nothing: expected a table for each column, such as [columns.rating]."
            )
    elif isinstance(given, Mapping):
        stated = parse_columns(given)
    else:
        found = {} if path is None else columns_beside(Path(files.unpacked(str(path))).expanduser())
        return found, None if given is None else _names(given, "columns")
    return stated, tuple(stated) if path is not None and files.is_json(path) else None


def _names(given: str | Sequence[str] | None, role: str) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) and name for name in names):
        raise UsageError(f"{role}={given!r} is not a column name or a list of them.")
    if len(set(names)) < len(names):
        raise UsageError(f"{role}={given!r} names a column twice; name each once.")
    return names


def _open_files(source: str | Path, reader: type[Engine], declared: files.Declared) -> tuple[Engine, Facts]:
    found = files.find(source)
    files.check(found, declared, reader.name, reader.compressions or ())
    engine = reader.open_files(found, declared)
    text = frozenset() if found.format == "parquet" else frozenset(engine.rows.columns)
    return engine, {"text": text, "snapshot": found.snapshot, "positional": found.format == "csv"}


def _open_table(
    source: object, database: type[Engine], table: str | None, wanted: type[Engine], declared: files.Declared
) -> tuple[Engine, Facts]:
    if wanted not in (DEFAULT, database):
        raise UsageError(f"engine={wanted.name!r} runs paths and {wanted.objects}; leave it out for a database.")
    _require_no_file_options(declared)
    engine = database.open_table(source, table)
    engine.check_source()
    return engine, {"snapshot": f"object-{id(engine)}-{os.getpid()}"}


def _require_no_file_options(declared: files.Declared) -> None:
    if declared.columns is not None or declared.quoted_newlines:
        raise UsageError("a list of columns= and quoted_newlines= are for files; leave them out.")


def _open_object(source: object, wanted: type[Engine], declared: files.Declared) -> tuple[Engine, Facts]:
    """Dispatch on what was given, without importing what isn't there."""
    opener = engine_for_object(source)
    if wanted not in (DEFAULT, opener):
        raise UsageError(f"engine={wanted.name!r} runs paths and {wanted.objects}; give a path, or leave engine out.")
    _require_no_file_options(declared)
    snapshot = f"object-{id(source)}-{os.getpid()}"
    if opener is not None:
        engine = opener.open(source)
        engine.check_source()
        return engine, {"snapshot": snapshot}
    frame = to_arrow(source)
    if frame is None:
        raise UsageError(
            f"a source of type {type(source).__name__} can't be read; expected a path or glob, a pandas or polars frame, "
            "an Arrow table, a DuckDB relation, an Ibis table or a Spark DataFrame."
        )
    arrow, text = frame
    return DEFAULT.open_arrow(arrow), {"text": text, "snapshot": snapshot}

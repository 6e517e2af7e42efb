"""Tables that everybody may see: products, holidays, places. Views join them to rows by a column."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from evenhand.guarantee import DataError, UsageError, suggest
from evenhand.tables.expressions import ArrowColumn, ArrowTable
from evenhand.tables.frames import to_arrow


@dataclass(frozen=True, eq=False)
class PublicTable:
    """Public rows, in memory. Made by :func:`evenhand.read_public`.

    Args:
        rows: as an Arrow table, with columns of plain types.
        name: what to call it in messages.
    """

    rows: ArrowTable = field(repr=False)
    name: str = "the public table"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.rows.column_names)

    def require(self, column: str) -> str:
        """Check that a column exists; else say which ones do."""
        if column not in self.columns:
            raise DataError(
                f"there is no column {column!r} in {self.name}; its columns are {list(self.columns)}.{suggest(column, self.columns)}"
            )
        return column

    def largest_group(self, keys: list[str]) -> int:
        """How many rows share one value of these columns, at most; rows with a null among them meet nothing."""
        import pyarrow.compute as pc

        sizes = self.rows.select(keys).drop_null().group_by(keys).aggregate([([], "count_all")])
        return int(pc.max(sizes["count_all"]).as_py() or 0)


def read_public(source: object) -> PublicTable:
    """Open a table that is public, so that tables of people can be joined with it.

    Guarantee: none of its rows is protected. It is read once, here, and kept in memory.

    Edge cases: columns hold numbers, text, booleans, dates or timestamps (in UTC); others have to be left out first.

    Args:
        source: a path to a Parquet or CSV file, a pandas or polars frame, or an Arrow table.

    Example:
        >>> products = eh.read_public("products.parquet")
        >>> sales.join(products, on="product_id")
    """
    if isinstance(source, str | Path):
        return PublicTable(_plain(_file(Path(source))), f"the public table {Path(source).name!r}")
    frame = to_arrow(source)
    if frame is None:
        raise UsageError(
            f"a source of type {type(source).__name__} can't be read as a public table; expected a path to Parquet or CSV, a pandas or polars "
            "frame, or an Arrow table."
        )
    return PublicTable(_plain(frame[0]))


def _file(path: Path) -> ArrowTable:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    readers = {".parquet": pq.read_table, ".csv": pyarrow.csv.read_csv}
    if path.suffix.lower() not in readers:
        raise UsageError(
            f"the public table {path.name!r} is neither Parquet nor CSV; expected a file that ends in .parquet or .csv."
        )
    try:
        return readers[path.suffix.lower()](path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"the public table {str(path)!r} can't be read: {error}.") from None


def _plain(rows: ArrowTable) -> ArrowTable:
    """The rows with columns of the types that every engine has."""
    import pyarrow as pa

    columns = {}
    for column, values in zip(rows.schema, rows.columns, strict=True):
        if column.name.casefold().startswith("evenhand_") or column.name in columns:
            raise DataError(f"the public column {column.name!r} is there twice, or begins with 'evenhand_'; rename it.")
        try:
            columns[column.name] = _plain_column(column.name, values)
        except pa.ArrowException as error:
            raise DataError(f"the public column {column.name!r} can't be used: {error}.") from None
    return pa.table(columns)


def _plain_column(name: str, values: ArrowColumn) -> ArrowColumn:
    import pyarrow as pa

    kind, types = values.type, pa.types
    if types.is_dictionary(kind):
        return _plain_column(name, values.cast(kind.value_type))
    if types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.timestamp("us"), safe=False)
    targets = (
        (types.is_integer, pa.int64()),
        (types.is_floating, pa.float64()),
        (types.is_decimal, pa.float64()),
        (types.is_boolean, pa.bool_()),
        (types.is_date, pa.date32()),
        *((check, pa.string()) for check in (types.is_string, types.is_large_string, types.is_string_view)),
    )
    for check, target in targets:
        if check(kind):
            return values.cast(target)
    raise DataError(
        f"the public column {name!r} holds {kind}; expected numbers, text, booleans, dates or timestamps. Leave it out."
    )

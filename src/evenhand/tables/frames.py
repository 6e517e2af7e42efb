"""Frames in memory as Arrow tables, with types from their schemas alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from evenhand.guarantee import DataError
from evenhand.tables.expressions import ArrowColumn, ArrowTable, ArrowType
from evenhand.tables.objects import texts
from evenhand.tables.times import in_range

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

T = TypeVar("T")
Typed = tuple[ArrowTable, frozenset[str]]
"""A table, and the columns of it that carry no type."""


def to_arrow(source: object) -> Typed | None:
    """A frame as an Arrow table, without copying where layout and types allow, and the columns that carry no type: they are text."""
    found = _converted(lambda: _typed(source))
    return None if found is None else (_converted(lambda: in_range(found[0])), found[1])


def _typed(source: object) -> Typed | None:
    import pyarrow as pa

    root = type(source).__module__.partition(".")[0]
    if isinstance(source, pa.Table):
        return source, frozenset()
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source]), frozenset()
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all(), frozenset()
    if root == "pandas" and hasattr(source, "columns"):
        return _pandas(cast("pd.DataFrame", source))
    if root == "polars" and hasattr(source, "with_columns"):
        return _polars(cast("pl.DataFrame", source.collect() if hasattr(source, "collect") else source))
    return None


def utf8_columns(table: ArrowTable) -> list[str]:
    """The columns of an Arrow table that claim to be text; Arrow does not check that they are."""
    import pyarrow as pa

    def is_text(kind: ArrowType) -> bool:
        if pa.types.is_dictionary(kind):
            return is_text(kind.value_type)
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))

    return [field.name for field in table.schema if is_text(field.type)]


def _pandas(frame: pd.DataFrame) -> Typed:
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise DataError("the frame names a column more than once; rename the columns.")
    series = [frame.iloc[:, place] for place, _ in enumerate(names)]
    kinds = [_kind(column) for column in series]
    typed = frame.loc[:, [kind == "typed" for kind in kinds]]
    columns = dict(zip(map(str, typed.columns), pa.Table.from_pandas(typed, preserve_index=False), strict=True))
    columns |= {name: _text(column) for name, column, kind in zip(names, series, kinds, strict=True) if kind != "typed"}
    untyped = frozenset(name for name, kind in zip(names, kinds, strict=True) if kind == "untyped")
    return pa.table({name: columns[name] for name in names}), untyped


def _kind(column: pd.Series) -> str:
    """Whether a pandas column is typed, holds text as Python objects, or is untyped: from its dtype alone."""
    import pandas as pd

    dtype = column.cat.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
    if isinstance(dtype, pd.StringDtype):
        return "text" if dtype.storage == "python" else "typed"
    # Arrow would look at the objects themselves, unless their array says how to convert it.
    array = column.cat.categories.array if isinstance(column.dtype, pd.CategoricalDtype) else column.array
    plain = isinstance(dtype, pd.api.extensions.ExtensionDtype) and hasattr(array, "__arrow_array__")
    return "untyped" if dtype.kind == "O" and not plain else "typed"


def _text(column: pd.Series) -> ArrowColumn:
    """Objects, or categories that are objects, as text."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy()
        return texts(column.cat.categories).take(pa.array(codes, mask=codes < 0))
    return texts(column)


def _polars(frame: pl.DataFrame) -> Typed:
    import polars as pl
    import pyarrow as pa

    untyped = frozenset(name for name, kind in frame.schema.items() if kind == pl.Object)
    typed = frame.drop(*untyped).to_arrow()
    columns = {
        name: texts(frame.get_column(name).to_list()) if name in untyped else typed[name] for name in frame.columns
    }
    return pa.table(columns), untyped


def _converted(convert: Callable[[], T]) -> T:
    """Run a conversion; its own error may quote values, so it is replaced and not chained."""
    try:
        return convert()
    except DataError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise DataError(
        f"the frame can't be converted to typed columns ({kind}); expected each column to hold one type. Convert mixed "
        "columns first, for example with astype(str)."
    )

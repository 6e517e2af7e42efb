"""How values are computed, where engines differ in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import Parameter, Signature
from typing import ClassVar

from evenhand.tables.expressions import Column, DataType, Integers, Rows
from evenhand.tables.sampling import first_rows
from evenhand.tables.saturation import saturating_sum

BEYOND = 2**63 - 1
"""The place of values above the last edge of a histogram."""


class Dialect:
    """Expressions that not every engine evaluates alike. The defaults are what Ibis' own functions promise.

    None of them may raise because of a value, and all engines must give equal results for equal rows.
    """

    spells_networks: ClassVar[bool] = False
    """Whether network addresses as text carry the length of the network, as Python writes it: only then can public keys name them."""

    bytewise: bool = False
    """Whether all text of the source is equal only where its bytes are: then users are told apart by it as it is."""

    end_of_text: ClassVar[str] = r"\z"
    """The end of a text in a pattern, whatever its last character is."""

    def spelled(self, value: Column) -> Column:
        """The bytes that spell a value as text: equal only where they are the same, and defined for every value."""
        return value.cast("string").cast("binary")

    def text(self, spelling: Column) -> Column:
        """The text whose bytes `spelled` gives, under no collation of a column."""
        return spelling.cast("string")

    def plain(self, text: Column) -> Column:
        """The same text, with which functions and comparisons do the same whatever the collation of its column."""
        return text if self.bytewise else self.text(self.spelled(text))

    def is_number(self, value: Column) -> Column:
        """Whether a double is a number: not true for null and NaN alike, so that a filter drops both."""
        return value.notnull() & ~value.isnan()

    def without_nan(self, decimal: Column) -> Column:
        """Decimals with null for NaN, where an engine's decimals can be NaN."""
        return decimal

    def double(self, decimal: Column) -> Column:
        """The double nearest to a decimal, null for NaN, ±inf beyond doubles.

        Through text, which every engine rounds correctly; a direct cast may differ in the last bit.
        """
        return decimal.cast("string").cast("float64")

    def parsed(self, text: Column) -> Column:
        """The double nearest to a decimal number in plain text, ±inf beyond doubles."""
        return text.cast("float64")

    def split_part(self, text: Column, separator: str, place: int) -> Column:
        """One of the parts of a text between separators, from 1; empty where there are not so many."""
        import ibis

        split = function("split_part", "string", "string", "int32", returns="string")
        return split(text, separator, ibis.literal(place, "int32"))

    def utc(self, moment: Column) -> Column:
        """A timestamp as one without a time zone, in UTC."""
        return moment.cast("timestamp")

    def scaled(self, value: Column, factor: float) -> Column:
        """The product of a finite double and a power of two, as IEEE 754 has it (0 where it underflows)."""
        import ibis

        return value * ibis.literal(factor, "float64")

    def floor(self, value: Column) -> Column:
        """The largest whole number that is not above a finite double, as a double."""
        return value.floor().cast("float64")

    def exact_sum(self, integers: Integers) -> Column:
        """The exact sum of 64-bit integers, 0 of none: in 128 bits, through decimals."""
        return integers.cast("decimal(38, 0)").sum().fill_null(0)

    def bucket(self, keys: Sequence[Column]) -> Column | None:
        """Which of some ten thousands of buckets keys belong to, as an integer: equal keys to one. None where that is not known to be cheap."""
        return None

    def histogram(self, rows: Rows, value: Integers, edges: Sequence[int]) -> Rows:
        """How many of the rows (``users``) have each ``place``: the first of the increasing edges that the value is not above, or `BEYOND`.

        A null is at the first. Places that nobody has may be missing, or have 0 users.
        """
        import ibis

        upwards = list(zip(edges, (*edges[1:], BEYOND), strict=True))
        place = ibis.cases(*((value > edge, after) for edge, after in reversed(upwards)), else_=edges[0])
        placed = rows.select(place=place.cast("int64"))
        return placed.group_by("place").aggregate(users=placed.count())

    def sampled_sums(self, drawn: Rows, users: Sequence[str], names: Sequence[str], limit: int) -> Rows:
        """Per user, the number of the ``limit`` rows with the smallest ``evenhand_draw``, and the sum of each named column over them."""
        kept = first_rows(drawn, users, limit)
        sums = {name: saturating_sum(kept[name]) for name in names}
        return kept.group_by(users).aggregate(rows=kept.count(), **sums)


def recast(value: Column, to: str) -> Column:
    """A cast that is written out even if Ibis takes the value for one of that type already: engines may see it differently."""
    import ibis.expr.datatypes as dt
    import ibis.expr.operations as ops

    return ops.Cast(value.op(), dt.dtype(to)).to_expr()


@lru_cache(maxsize=64)
def function(
    name: str, *takes: DataType | str, returns: DataType | str, aggregate: bool = False
) -> Callable[..., Column]:
    """One of an engine's own functions, by the types that it takes and returns."""
    import ibis
    import ibis.expr.datatypes as dt

    def stub() -> None:
        """Never called: Ibis reads its name and its signature."""

    stub.__name__ = name
    places = [Parameter(f"argument_{index}", Parameter.POSITIONAL_OR_KEYWORD) for index, _ in enumerate(takes)]
    stub.__signature__ = Signature(places)  # type: ignore[attr-defined]
    kind = ibis.udf.agg if aggregate else ibis.udf.scalar
    made: Callable[..., Column] = kind.builtin(signature=(tuple(map(dt.dtype, takes)), dt.dtype(returns)))(stub)
    return made

"""From an aggregate function of SQL to a statistic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, cast

from evenhand.guarantee import UsageError, suggest
from evenhand.statistics import (
    STATISTICS,
    Count,
    Distinct,
    Mean,
    Median,
    Quantiles,
    Statistic,
    Std,
    Sum,
    Users,
    Variance,
)
from evenhand.tables import Bounds
from evenhand.tables.queries.parsing import Parsed, Query, aggregates

OF_A_COLUMN: dict[str, type[Statistic]] = {
    "Sum": Sum,
    "Avg": Mean,
    **dict.fromkeys(("Variance", "VariancePop"), Variance),
    **dict.fromkeys(("Stddev", "StddevPop", "StddevSamp"), Std),
    "Median": Median,
}
_QUANTILES = ("PercentileCont", "PercentileDisc", "Quantile", "ApproxQuantile", "ApproxPercentile")
_EXPECTED = (
    "COUNT(*), COUNT(x), COUNT(DISTINCT x), COUNT_IF(...), SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE_CONT(x, 0.9), or the name of a "
    "statistic such as per_user_mean(x)"
)
Named = Callable[[Parsed, str | None], str]
"""Which column, of the table or made for this query, an expression is; with the name of one that is made."""


@dataclass(frozen=True)
class OneQuantile(Quantiles):
    """One quantile, in a column of the name that the query gives it."""

    single: ClassVar[bool] = True


@dataclass(frozen=True)
class Reader:
    """Reads the aggregates of one query.

    Args:
        query: where they stand.
        column: what names the column of an expression.
        is_user: whether some expressions are the user columns.
        stated: the bounds that were stated about an expression; refuses where rows can't be left out of an aggregate.
    """

    query: Query
    column: Named
    is_user: Callable[[list[Parsed]], bool]
    stated: Callable[[Parsed], Bounds | None]

    def read(self, node: Parsed) -> Statistic | None:
        """The statistic that an expression asks for; None if it is no aggregate."""
        kind = type(node).__name__
        if kind == "Paren":
            return self.read(node.this)
        if kind == "Filter":
            return self._filtered(node)
        if kind == "Count":
            return self._count(node)
        if kind == "CountIf":
            return Sum(self._flag(node.this, f"count_if {self.query.shown(node.this)}"), (0.0, 1.0))
        if kind in OF_A_COLUMN:
            return self._of(OF_A_COLUMN[kind], node, node.this)
        if kind in _QUANTILES:
            asked = node.args.get("quantile") or node.expression
            return self._quantiles(node, node.this, asked)
        if kind == "WithinGroup" and type(node.this).__name__ in _QUANTILES:
            (ordered,) = node.expression.expressions
            if ordered.args.get("desc"):
                raise UsageError(f"{self.query.told(node)}: expected an ascending order; ask for 1 − q instead.")
            return self._quantiles(node, ordered.this, node.this.this)
        if kind == "Anonymous":
            return self._by_name(node)
        if kind in ("Min", "Max"):
            raise UsageError(
                f"{self.query.told(node)}: the smallest and the largest value are one person's. Ask for a quantile: QUANTILE_CONT(x, 0.99)."
            )
        if node.find(*aggregates()):
            raise UsageError(
                f"{self.query.told(node)}: what is computed from released numbers is computed after the release. Expected {_EXPECTED}; "
                "for a quotient, session.ratio(...)."
            )
        return None

    def _filtered(self, node: Parsed) -> Statistic | None:
        """An aggregate of what is null in the rows that FILTER leaves out: aggregates leave nulls out."""
        from sqlglot import exp

        whole, condition = node.this.copy(), node.expression.this
        of = whole.expression.expressions[0].this if type(whole).__name__ == "WithinGroup" else whole.this
        if type(of).__name__ == "Distinct":
            of = of.expressions[0]
        stated = self.stated(of)
        if type(of).__name__ in ("Star", "Literal"):
            return self.read(exp.CountIf(this=condition.copy()))
        if type(whole).__name__ == "Count" and self.is_user([of]):
            raise UsageError(f"{self.query.told(node)}: ask for users by themselves, with the condition in WHERE.")
        of.replace(exp.Case(ifs=[exp.If(this=condition.copy(), true=of.copy())]))
        found: Any = self.read(whole)
        if stated is not None and getattr(found, "bounds", stated) is None:
            found = replace(found, bounds=stated)
        return cast("Statistic | None", found)

    def _count(self, node: Parsed) -> Statistic:
        inner = type(node.this).__name__
        if inner in ("Star", "Literal"):
            return Count()
        if inner != "Distinct":
            from sqlglot import exp

            known = exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null()))
            return Sum(self._flag(known, f"count {self.query.shown(node.this)}"), (0.0, 1.0))
        of = node.this.expressions
        if self.is_user(of):
            return Users()
        if len(of) > 1:
            raise UsageError(f"{self.query.told(node)}: expected one column, or the user columns.")
        return Distinct(self.column(of[0], None))

    def _flag(self, condition: Parsed, name: str) -> str:
        """A column of 1 where a condition is true, else 0."""
        from sqlglot import exp

        flag = exp.If(this=condition.copy(), true=exp.Literal.number(1))
        return self.column(exp.Case(ifs=[flag], default=exp.Literal.number(0)), name)

    def _of(self, kind: Callable[..., Statistic], node: Parsed, of: Parsed) -> Statistic:
        if type(of).__name__ == "Distinct":
            raise UsageError(f"{self.query.told(node)}: DISTINCT is for COUNT; expected {node.key.upper()}(x).")
        return kind(self.column(of, None), bounds=self._bounds(node))

    def _quantiles(self, node: Parsed, of: Parsed, asked: Parsed) -> Statistic:
        each = asked.expressions if type(asked).__name__ == "Array" else [asked]
        if not all(type(one).__name__ == "Literal" and not one.is_string for one in each):
            raise UsageError(
                f"{self.query.told(node)}: expected a column and numbers between 0 and 1, such as QUANTILE_CONT(x, 0.9)."
            )
        kind = OneQuantile if len(each) == 1 else Quantiles
        return kind(self.column(of, None), [float(one.this) for one in each], bounds=self._bounds(node))

    def _by_name(self, node: Parsed) -> Statistic:
        name = str(node.this).lower()
        simple = [known for known, kind in STATISTICS.items() if {"column", "bounds"} <= _parameters(kind)]
        if name not in simple or len(node.expressions) != 1:
            raise UsageError(
                f"{self.query.told(node)}: there is no such function here; expected {_EXPECTED}.{suggest(name, simple)}"
            )
        return self._of(STATISTICS[name], node, node.expressions[0])

    def _bounds(self, node: Parsed) -> Bounds | None:
        starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        found = [
            (first, pair)
            for (first, last), pair in self.query.options.bounds.items()
            if starts and first <= min(starts) <= last
        ]
        return max(found)[1] if found else None


def _parameters(kind: type[Statistic]) -> set[str]:
    return {parameter.name for parameter in fields(kind)}  # type: ignore[arg-type]

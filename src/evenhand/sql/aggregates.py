"""From an aggregate function of SQL to a statistic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

from evenhand.guarantee import UsageError, suggest
from evenhand.statistics import (
    STATISTICS,
    Count,
    Distinct,
    Mean,
    Median,
    Quantiles,
    ShareOfRows,
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
    "COUNT(*), COUNT(x), COUNT(DISTINCT x), COUNT_IF(...), SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE_CONT(x, 0.9), MIN, MAX, or the name of a "
    "statistic such as per_user_mean(x)"
)
NEAR_END = 0.01
"""Of the rows that lie beyond what stands for MIN and MAX."""
MOST_QUANTILES = 20
"""Of APPROX_QUANTILES: parts between them."""
_OTHERS: dict[str, str] = {
    **dict.fromkeys(
        ("Corr", "CovarPop", "CovarSamp", "RegrSlope", "RegrIntercept", "RegrR2"),
        "two columns at once are for models: evenhand learn regression, or compare AVG(y) by groups of x, such as GROUP BY FLOOR(x / 10).",
    ),
    **dict.fromkeys(("LogicalOr", "LogicalAnd"), "one row decides it, so it would show one person. Write COUNT_IF(condition), or AVG(CASE WHEN condition THEN 1 ELSE 0 END)."),
    "Mode": "which value is most frequent: write SELECT x, COUNT(*) ... GROUP BY x ORDER BY 2 DESC LIMIT 1, or session.top('x', 1).",
    **dict.fromkeys(("ArrayAgg", "GroupConcat", "AnyValue", "First", "Last", "ArgMax", "ArgMin", "IgnoreNulls"), "it shows single rows. Write a quantile, or GROUP BY with COUNT(*)."),
}  # fmt: skip
"""Aggregates that are not released, and what to write."""
Named = Callable[[Parsed, str | None], str]
"""Which column, of the table or made for this query, an expression is; with the name of one that is made."""


@dataclass(frozen=True)
class OneQuantile(Quantiles):
    """One quantile, in a column of the name that the query gives it."""

    single: ClassVar[bool] = True


@dataclass(frozen=True)
class NearEnd(OneQuantile):
    """A quantile near one end, in the place of MIN or MAX."""

    @property
    def words(self) -> str:
        (q,) = self.wanted
        end = "smallest" if q < Fraction(1, 2) else "largest"
        return f"{float(q):g}-quantile of {self.column}, in the place of its {end} value, which is one person's"


@dataclass(frozen=True)
class UsersWith(Distinct):
    """The number of users with a row for which a condition is true: each of them has one value, their own id.

    Args:
        condition: as it was written.
    """

    condition: str = ""

    @property
    def words(self) -> str:
        return f"number of users with {self.condition}"


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
        if _is_quantiles(node):
            return self._several_quantiles(node)
        if kind == "Bracket" and _is_quantiles(node.this):
            return self._one_of_quantiles(node)
        if kind in ("Min", "Max"):
            return self._near_end(node)
        if kind == "ApproxDistinct":
            return self._count_distinct(node, [node.this])
        if kind == "Anonymous" and not node.find(*aggregates()):
            return self._by_name(node)
        if kind in _OTHERS:
            raise UsageError(f"{self.query.told(node)} is not released: {_OTHERS[kind]}")
        if isinstance(node, aggregates()):
            raise UsageError(f"{self.query.told(node)} is not released here; expected {_EXPECTED}.")
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
        if (
            type(whole).__name__ == "Count"
            and type(whole.this).__name__ == "Distinct"
            and self.is_user(whole.this.expressions)
        ):
            return self._users_with(whole.this.expressions, condition, node)
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
        return self._count_distinct(node, node.this.expressions)

    def _count_distinct(self, node: Parsed, of: list[Parsed]) -> Statistic:
        if self.is_user(of):
            return Users()
        if len(of) > 1:
            raise UsageError(
                f"{self.query.told(node)}: expected one column, or the user columns; join several into one: COUNT(DISTINCT CONCAT(a, '/', b))."
            )
        found = _only_where(of[0])
        if found is not None and self.is_user([found[1]]):
            return self._users_with([found[1]], found[0], node)
        return Distinct(self.column(of[0], None))

    def _users_with(self, user: list[Parsed], condition: Parsed, node: Parsed) -> Statistic:
        from sqlglot import exp

        if len(user) > 1:
            raise UsageError(
                f"{self.query.told(node)}: users of several columns are asked by themselves, with the condition in WHERE."
            )
        of = exp.Case(ifs=[exp.If(this=condition.copy(), true=user[0].copy())])
        words = self.query.shown(condition)
        return UsersWith(self.column(of, f"users with {words}"), 1, condition=words)

    def _near_end(self, node: Parsed) -> Statistic:
        if node.expressions:
            raise UsageError(f"{self.query.told(node)}: expected {node.key.upper()}(x), of one column.")
        of = node.this.expressions[0] if type(node.this).__name__ == "Distinct" else node.this
        q = NEAR_END if type(node).__name__ == "Min" else 1 - NEAR_END
        return NearEnd(self.column(of, None), q, bounds=self._bounds(node))

    def _several_quantiles(self, node: Parsed) -> Statistic:
        """BigQuery's: n + 1 values, of which the ends are the smallest and the largest."""
        count = self._buckets(node)
        if count > MOST_QUANTILES:
            raise UsageError(
                f"{self.query.told(node)}: {count + 1} quantiles share ε; expected at most {MOST_QUANTILES} parts, or one of them: APPROX_QUANTILES(x, "
                "100)[OFFSET(90)]."
            )
        each = [_near(place / count) for place in range(count + 1)]
        return Quantiles(self.column(node.expressions[0], None), each, bounds=self._bounds(node))

    def _one_of_quantiles(self, node: Parsed) -> Statistic:
        count, (place,) = self._buckets(node.this), node.expressions
        text = str(getattr(place, "this", ""))
        if not text.isdigit() or len(text) > 4 or int(text) > count:
            raise UsageError(
                f"{self.query.told(node)}: expected a place between 0 and {count}, as in APPROX_QUANTILES(x, 100)[OFFSET(90)]."
            )
        q = _near(int(text) / count)
        kind = OneQuantile if 0 < int(text) < count else NearEnd
        return kind(self.column(node.this.expressions[0], None), q, bounds=self._bounds(node))

    def _buckets(self, node: Parsed) -> int:
        text = str(getattr(node.expressions[1], "this", "")) if len(node.expressions) == 2 else ""
        if not text.isdigit() or not 1 <= int(text[:5]) <= 1000:
            raise UsageError(
                f"{self.query.told(node)}: expected a whole number of parts, at most 1,000, as in APPROX_QUANTILES(x, 4)."
            )
        return int(text)

    def _flag(self, condition: Parsed, name: str) -> str:
        """A column of 1 where a condition is true, else 0."""
        from sqlglot import exp

        flag = exp.If(this=condition.copy(), true=exp.Literal.number(1))
        return self.column(exp.Case(ifs=[flag], default=exp.Literal.number(0)), name)

    def _of(self, kind: Callable[..., Statistic], node: Parsed, of: Parsed) -> Statistic:
        if type(of).__name__ == "Distinct":
            raise UsageError(f"{self.query.told(node)}: DISTINCT is for COUNT; expected {node.key.upper()}(x).")
        if kind is Mean:
            condition = _one_or_zero(of)
            if condition is not None:  # the share of rows for which it is true
                words = self.query.shown(condition)
                return ShareOfRows(self._flag(condition, f"share {words}"), (0, 1), condition=words)
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


def _is_quantiles(node: Parsed) -> bool:
    return type(node).__name__ == "Anonymous" and str(node.this).upper() == "APPROX_QUANTILES"


def _near(q: float) -> float:
    """A quantile that may be asked: with three decimals, and inside."""
    return min(max(round(q, 3), NEAR_END), 1 - NEAR_END)


def _only_where(node: Parsed) -> tuple[Parsed, Parsed] | None:
    """The condition and the value of ``CASE WHEN condition THEN value END``; None if it is something else."""
    kind = type(node).__name__
    if kind == "Paren":
        return _only_where(node.this)
    default = node.args.get("default" if kind == "Case" else "false")
    if default is not None and type(default).__name__ != "Null":
        return None
    if kind == "Case" and node.this is None and len(node.args["ifs"]) == 1:
        (branch,) = node.args["ifs"]
        return branch.this, branch.args["true"]
    return (node.this, node.args["true"]) if kind == "If" else None


def _one_or_zero(node: Parsed) -> Parsed | None:
    """The condition of ``CASE WHEN condition THEN 1 ELSE 0 END``; None if it is something else."""
    kind = type(node).__name__
    if kind == "Paren":
        return _one_or_zero(node.this)
    if kind == "Case" and node.this is None and len(node.args["ifs"]) == 1:
        (branch,), default = node.args["ifs"], node.args.get("default")
        condition, true = branch.this, branch.args["true"]
    elif kind == "If":
        condition, true, default = node.this, node.args["true"], node.args.get("false")
    else:
        return None
    return condition if (_number(true), _number(default)) == (1.0, 0.0) else None


def _number(node: Parsed | None) -> float | None:
    if node is None or type(node).__name__ != "Literal" or node.is_string or len(str(node.this)) > 9:
        return None
    return float(node.this)


def _parameters(kind: type[Statistic]) -> set[str]:
    return {parameter.name for parameter in fields(kind)}  # type: ignore[arg-type]

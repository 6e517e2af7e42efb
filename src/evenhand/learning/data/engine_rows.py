"""Rows that are in an engine: the same learning on DuckDB and Spark.

Features are clipped and rounded in the engine, once. For full-batch minimisation rows are limited into a temporary table, and
each step is one aggregate query. For noisy descent, whose clamp needs every user's gradient in every step, the rounded
rows are fetched as 16-bit integers, users as numbers (docs/decisions/README.md, 17).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from evenhand.guarantee import Relation
from evenhand.learning.data.features import STEPS, Encoding, FeatureMap
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.row_sources import FINE_BITS, Coefficients, KeptRows, MemoryRows, RowSource
from evenhand.learning.data.targets import Classes, Targets
from evenhand.learning.data.user_rows import BOX, UNIT, UserRows, box_grid
from evenhand.learning.losses import EXPRESSIONS, MarginLoss
from evenhand.learning.slopes import target_steps
from evenhand.profiles import Buckets, Support, exact_sizes, or_one, users_by_bucket
from evenhand.release import Measurement, Opener
from evenhand.tables import Secret, Table
from evenhand.tables.engines import one_reading
from evenhand.tables.expressions import ArrowTable, Column, Integers, Rows
from evenhand.tables.numbers import is_number, number
from evenhand.tables.sampling import sampled_rows
from evenhand.tables.summaries import exact_sum, known


class EngineRows(RowSource):
    """A table with label and feature columns, on its engine."""

    def __init__(
        self, table: Table, label: str, names: Sequence[str], targets: Targets, encoding: Encoding | None = None
    ) -> None:
        self._table, self._label, self._targets = table, label, targets
        self._target = self._target_column()  # columns of other types are refused here, before the debit
        self._features = (encoding or Encoding(tuple(names))).expressions(table)
        self.relation, self.unit, self.public, self.user = table.relation, table.unit, table.public, table.user
        self.parts = table.reached
        self._copy: Rows | None = None

    @contextmanager
    def reading(self, copied: bool = True) -> Iterator[None]:
        with one_reading(), self._table.engine.kept(self._valid()) if copied else nullcontext() as self._copy:
            try:
                yield
            finally:
                self._copy = None

    def histogram(self, buckets: Buckets) -> Measurement:
        users = self._sizes()
        return users_by_bucket(self._table, users, users.rows, buckets)

    def public_support(self) -> Secret[Support]:
        return exact_sizes(self._table, self._sizes()).map(or_one)

    def sample(self, tau: int) -> Secret[tuple[Floats, Floats]]:
        raw = [f"raw_{index}" for index in range(len(self._features))]
        chosen = sampled_rows(self._table, self._valid(), tau).select("target", *raw)
        return self._table.engine.fetch(chosen).map(lambda rows: _arrays(rows, raw))

    def fetched(self) -> Secret[MemoryRows]:
        raw = [f"raw_{index}" for index in range(len(self._features))]
        rows = self._valid()
        chosen = rows.select("target", *raw, code=user_numbers(self._table, rows))

        def in_memory(frame: ArrowTable) -> MemoryRows:
            codes = np.unique(frame["code"].to_numpy(), return_inverse=True)[1].astype(np.int64)
            return MemoryRows(*_arrays(frame, raw), codes, self.relation, self.unit, self.public)

        return self._table.engine.fetch(chosen).map(in_memory)

    @contextmanager
    def limited(self, features: FeatureMap, tau: int, opener: Opener) -> Iterator[KeptRows]:
        chosen = sampled_rows(self._table, self._prepared(features), tau).select("target", *_columns(features))
        with self._table.engine.kept(chosen) as kept:
            yield _KeptTable(self._table, kept, features, opener)

    def boxed(self, box: FeatureMap, targets: Targets) -> Secret[UserRows]:
        import ibis

        def double(constant: float) -> Column:
            return ibis.literal(float(constant), "float64")

        rows, names = self._numbers(box), _columns(box)
        lowest, least, highest, step = box_grid(box)
        # As few operations as can be: Spark compiles each of them anew for every feature, and that takes longer than to run them.
        steps = {}
        for index, name in enumerate(names):
            inside = ibis.least(ibis.greatest(rows[f"raw_{index}"], double(least[index])), double(highest[index]))
            above = ibis.least((inside - double(lowest[index])) / double(step[index]), double(2 * BOX))
            steps[name] = (above.floor() - BOX).cast("int16")
        small = rows.select(
            *self._table.user_names, "target", **steps
        )  # before users are numbered: an engine holds all rows for that
        chosen = small.select("target", *names, code=user_numbers(self._table, small))
        fetched = self._table.engine.fetch(chosen)
        return fetched.map(lambda frame: _user_rows(frame, names, box, targets))

    def _sizes(self) -> Rows:
        """One row per user: how many rows count."""
        rows = self._valid()
        return rows.group_by(self._table.user_names).aggregate(rows=rows.count())

    def _valid(self) -> Rows:
        """Users, targets and features of the rows that count, by the null rule of the table's relation."""
        if self._copy is not None:
            return self._copy
        table = self._table
        rows = table.expression.select(
            **table.user_keys(table.expression),
            **{f"raw_{index}": feature for index, feature in enumerate(self._features)},
            target=self._target,
        )
        rows = rows.filter(*(known(table, rows[name]) for name in table.user_names))
        raw = [rows[f"raw_{index}"] for index in range(len(self._features))]
        if self.relation is Relation.PRESENCE:
            return rows.filter(is_number(self._table, rows.target), *(is_number(self._table, value) for value in raw))
        target = is_number(self._table, rows.target).fill_null(False).ifelse(rows.target, self._targets.middle)
        return rows.mutate(target=target)

    def _prepared(self, features: FeatureMap) -> Rows:
        """The rows that count, with features clipped to the ball, on the grid."""
        import ibis

        rows = self._scaled(features)
        scaled = [f"scaled_{index}" for index in range(len(features.centre))]
        norm = functools.reduce(operator.add, (rows[name] * rows[name] for name in scaled)).sqrt()
        reach = ibis.literal(STEPS * features.radius, "float64")
        rows = rows.mutate(stretch=reach / ibis.greatest(norm, ibis.literal(features.radius, "float64")))
        steps = [_toward_zero(rows[name] * rows.stretch) for name in scaled]
        return rows.mutate(**dict(zip(_columns(features), steps, strict=True)))

    def _numbers(self, features: FeatureMap) -> Rows:
        """The rows that count, with the middle of its bounds for a feature that is missing."""
        rows = self._valid()
        if self.relation is Relation.PRESENCE:
            return rows
        raw = [(f"raw_{index}", float(centre)) for index, centre in enumerate(features.centre)]
        return rows.mutate(
            **{name: is_number(self._table, rows[name]).fill_null(False).ifelse(rows[name], c) for name, c in raw}
        )

    def _scaled(self, features: FeatureMap) -> Rows:
        """The rows that count, with features from −1 to 1."""
        import ibis

        rows = self._numbers(features)
        edges = zip(features.lowest, features.highest, features.centre, strict=True)
        off = {
            f"off_{index}": rows[f"raw_{index}"].clip(float(low), float(high)) - float(centre)
            for index, (low, high, centre) in enumerate(edges)
        }
        rows = rows.mutate(**off)
        scaled = {
            f"scaled_{index}": (
                (rows[name].abs() >= float(least)).ifelse(rows[name], 0.0) / ibis.literal(float(scale), "float64")
            ).clip(-features.largest, features.largest)
            for index, (name, least, scale) in enumerate(zip(off, features.smallest, features.scale, strict=True))
        }
        return rows.mutate(**scaled)

    def _target_column(self) -> Column:
        import ibis

        table, targets = self._table, self._targets
        if not isinstance(targets, Classes):
            low, high = targets.bounds
            half = targets.width / 2
            return (number(table, self._label).clip(low, high) - targets.offset).clip(-half, half)
        table.require(self._label, "value column")
        kind = table.expression[self._label].type()
        if kind.is_string() and self._label not in table.text:
            targets.require_kind("text", str(kind))
        classes: list[Any]
        if all(isinstance(label, int | float | np.number) for label in targets.labels):
            label, classes = number(table, self._label), [float(value) for value in targets.labels]
        else:
            label, classes = table.expression[self._label].cast("string"), [str(value) for value in targets.labels]
        # From whole numbers: DuckDB takes 1.0 for a decimal of two digits, and casts what is compared with it to that.
        code: Column = ibis.null("int64")
        for value, own in zip(classes, targets.codes, strict=True):
            code = (label == value).fill_null(False).ifelse(int(own), code)
        return code.cast("float64")


class _KeptTable(KeptRows):
    def __init__(self, table: Table, rows: Rows, features: FeatureMap, opener: Opener) -> None:
        self._table, self._rows, self._features, self._open = table, rows, features, opener
        self.rows = int(opener(_fetch(table, rows, [rows.count()]))[0])

    def integer_gradient(self, f: Coefficients, loss: MarginLoss) -> list[int]:
        columns = _values(self._rows, self._features, 1.0)
        margin = functools.reduce(operator.add, (_margin(columns, part / STEPS) for part in f.parts()))
        slope: Column = loss.slope(margin, self._rows.target, EXPRESSIONS) * (2.0**FINE_BITS / loss.steepest)
        whole = EXPRESSIONS.clip((slope + 0.5).floor().cast("float64"), -(2.0**FINE_BITS), 2.0**FINE_BITS)
        return self._open(_sums(self._table, self._rows.mutate(steps=whole.cast("int64")), self._features))

    def hessian(self, f: Coefficients, loss: MarginLoss) -> Floats:
        values = _values(self._rows, self._features, 1 / STEPS)
        curvature = loss.curvature(_margin(values, f.floats), self._rows.target, EXPRESSIONS)
        weighted = self._rows.mutate(curvature=curvature)
        size = self._features.size
        places = np.triu_indices(size)
        products = [(weighted.curvature * (values[j] * values[k])).sum() for j, k in zip(*places, strict=True)]
        upper = np.zeros((size, size))
        upper[places] = self._open(_fetch(self._table, weighted, products))
        return upper + np.triu(upper, 1).T


def user_numbers(table: Table, rows: Rows) -> Column:
    """Users as numbers, so that a user's rows come together and no id leaves the engine."""
    import ibis

    ranks: Column = ibis.dense_rank().over(ibis.window(order_by=[rows[name] for name in table.user_names]))
    return ranks.cast("int64")


def _arrays(rows: ArrowTable, raw: Sequence[str]) -> tuple[Floats, Floats]:
    """Features and targets."""
    columns = [np.asarray(rows[name].to_numpy(), dtype=np.float64) for name in ("target", *raw)]
    return np.column_stack(columns[1:]), columns[0]


def _user_rows(frame: ArrowTable, names: Sequence[str], box: FeatureMap, targets: Targets) -> UserRows:
    """Rows as the engine handed them over, sorted by user: Spark would compute them twice to sort them itself."""
    codes = frame["code"].to_numpy()
    order = np.argsort(codes, kind="stable")
    features = np.full((len(codes), box.size), UNIT, dtype=np.int16)
    for place, name in enumerate(names):
        features[:, place] = frame[name].to_numpy()[order]
    found = target_steps(frame["target"].to_numpy()[order], targets)
    return UserRows(features, found, np.unique(codes, return_counts=True)[1])


def _sums(table: Table, rows: Rows, features: FeatureMap) -> Secret[list[int]]:
    """Exact sums of ``steps`` times each feature, and times the constant if there is one, in 64-bit integers."""
    factors = [*(rows[name] for name in _columns(features)), *([STEPS] if features.intercept else [])]
    found = _fetch(table, rows, [exact_sum(table, rows.steps * factor) for factor in factors])
    return found.map(lambda values: [int(value) for value in values])


def _columns(features: FeatureMap) -> list[str]:
    return [f"x_{index}" for index in range(len(features.centre))]


def _values(rows: Rows, features: FeatureMap, unit: float) -> list[Column]:
    """The features as doubles in units of the ball, the constant last."""
    import ibis

    values = [rows[name].cast("float64") * unit for name in _columns(features)]
    # From a whole number: engines take 1.0 for a decimal, and decimals beside each other stay decimals.
    return [*values, ibis.literal(round(STEPS * unit)).cast("float64")] if features.intercept else values


def _margin(values: Sequence[Column], f: Floats) -> Column:
    return functools.reduce(operator.add, (value * float(c) for value, c in zip(values, f, strict=True)))


def _toward_zero(value: Column) -> Integers:
    """The integer part; the engines' own casts round differently."""
    whole = value.abs().floor()
    return (value < 0).ifelse(-whole, whole).cast("int64")


def _fetch(table: Table, rows: Rows, sums: Sequence[Column]) -> Secret[list[Any]]:
    """One row of aggregates; sums over nothing are 0."""
    fetched = table.engine.fetch(rows.aggregate(**{f"sum_{index}": value for index, value in enumerate(sums)}))
    return fetched.map(lambda frame: [frame[f"sum_{index}"][0].as_py() or 0 for index in range(len(sums))])

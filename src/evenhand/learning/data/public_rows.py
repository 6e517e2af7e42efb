"""A table with public features and private labels, in memory: features before the debit, labels after it.

The weights are made for rows in an order, so labels must come back for the same rows. The second reading brings users
and features along: it must equal the first in all that is public. Rows with the same user and the same features may
trade labels: the labels stay with their user, so what one user can do is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.guarantee import DataError, Relation, UsageError
from evenhand.learning.data.inputs import CallerData, Features, PerRow, user_codes, with_dummies
from evenhand.learning.data.private_values import Floats
from evenhand.release import public
from evenhand.tables import Secret, Table
from evenhand.tables.expressions import Column
from evenhand.tables.numbers import number

_LABEL = "label_value"


class PublicRows:
    """The public part of a table, and a way to its labels."""

    def __init__(self, table: Table, label: PerRow, features: Sequence[str] | None, categories: Sequence[str]) -> None:
        """Read users and features; refuse a table whose features are private."""
        label, names = column_names(table, label, features)
        _require_public(table, names)
        table.require_before(names, label)

        def column(name: str) -> Column:
            return table.expression[name].cast("string") if name in categories else number(table, name)

        users = {f"user_{index}": table.expression[name] for index, name in enumerate(table.user)}
        columns = {f"feature_{index}": column(name) for index, name in enumerate(names)}
        self._table, self._public, self.names = table, (*users, *columns), names
        rows = table.expression.select(**users, **columns, **{_LABEL: number(table, label)})
        self._rows = rows.order_by(list(self._public))
        self._first = public(table.engine.fetch(self._rows.select(*self._public)), table.relation)
        self.given = with_dummies(self._given(names), categories)

    def labels(self) -> Secret[Floats]:
        """The labels of the rows, as doubles, NaN where there is none; for after the debit."""
        again = self._table.engine.fetch(self._rows)
        second = public(again.map(lambda rows: rows.select(list(self._public))), self._table.relation)
        if not second.equals(self._first):
            raise DataError(
                "users or features of the table changed while the weights were being computed. The debit stands; fit again "
                "on a table that does not change."
            )
        return again.map(lambda rows: np.asarray(rows[_LABEL].to_numpy(), dtype=np.float64))

    def _given(self, names: Sequence[str]) -> CallerData:
        import pandas as pd

        frame = self._first
        if not frame.num_rows:
            raise DataError("the table has no rows with a user; expected some: there is nothing to learn from.")
        keys = [name for name in self._public if name.startswith("feature_")]
        features = pd.DataFrame({name: frame[key].to_pandas() for name, key in zip(names, keys, strict=True)})
        gaps = [name for name in names if features[name].isna().any()]
        if gaps:
            raise DataError(
                f"the features {gaps} hold missing values or text in some rows; expected numbers everywhere. Fill the "
                f"gaps, leave the features out, or declare text as categories."
            )
        ids = [frame[name].to_numpy() for name in self._public if name.startswith("user_")]
        users = np.column_stack([user_codes(column, frame.num_rows) for column in ids])
        return CallerData(features, None, users, tuple(names), self._table.unit)


def _require_public(table: Table, names: Sequence[str]) -> None:
    private = [name for name in names if name not in table.public]
    if table.relation is Relation.PRESENCE or (table.relation is Relation.VALUES and private):
        raise UsageError(
            f"the table protects {table.relation.value}, but label-private regression treats the features and "
            f"the rows per user as public. If that is right, read it with protects='labels' (or "
            f"protects='values', public={list(names)}); otherwise use BoundedERM or WeightedERM."
        )


def column_names(table: Table, label: PerRow, features: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    """The label column and the feature columns; by default all that are neither user nor label."""
    if not isinstance(label, str):
        raise UsageError(
            f"y is a {type(label).__name__}; expected, with an eh.read table, the name of the label column."
        )
    table.require(label, "label column")
    others = (name for name in table.columns if name != label and name not in table.user)
    names = tuple(others if features is None else features)
    for name in names:
        table.require(name, "feature column")
    return label, names


def public_columns(X: Features, y: PerRow, users: PerRow, features: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the columns that label-private regression treats as public; arrays have none.

    All columns but label and user; of a table that was read with ``public=``, those and the features.
    """
    named = {name for name in (y, users) if isinstance(name, str)} | set(X.user if isinstance(X, Table) else ())
    others = tuple(name for name in map(str, getattr(X, "columns", ())) if name not in named)
    if not isinstance(X, Table) or (X.relation is Relation.LABELS and not X.public):
        return others
    used = () if X.relation is Relation.VALUES else others if features is None else tuple(features)
    return tuple(dict.fromkeys((*X.public, *used)))

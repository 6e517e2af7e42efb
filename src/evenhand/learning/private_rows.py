"""From what the caller gives to a `Source`, for estimators whose features are private too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.guarantee import Relation, UsageError
from evenhand.learning.categories import Categories, Encoding
from evenhand.learning.inputs import (
    Features,
    Frame,
    PerRow,
    encoding_of,
    label_column,
    private_feature_matrix,
    require_no_population,
    take_apart,
    user_codes,
)
from evenhand.learning.private_values import Floats
from evenhand.learning.public_rows import column_names
from evenhand.learning.sources import MemoryRows, Source
from evenhand.learning.targets import Classes, Targets
from evenhand.tables import Table


def open_rows(
    X: Features,
    y: PerRow,
    users: PerRow,
    *,
    features: Sequence[str] | None,
    targets: Targets,
    protects: str,
    population: str | None = None,
    categories: Categories | None = None,
) -> tuple[Source, Encoding, Any]:
    """The rows, which features their columns become, and the features for scikit-learn's own notes (None for a table).

    Nulls follow the same rule as in statistics: under presence a row with a missing feature, label or user is dropped; under
    values a missing feature counts as 0 and a missing label as the middle, and missing users are refused.
    """
    if isinstance(X, Table):
        require_no_population(population)
        X.engine.require_tested("a fit")
        return _open_table(X, y, features, targets, categories)
    relation = Relation.parse(protects)
    if relation is Relation.LABELS:
        raise UsageError(
            "protects='labels' treats features as public: use LabelPrivateRegression, or protects='values'."
        )
    given = take_apart(X, y, users, features, population)
    encoding = encoding_of(given.X, categories)
    matrix = private_feature_matrix(given.X, encoding)
    labels = targets.targets(label_column(given.y, len(matrix), targets.require_kind))
    codes = user_codes(given.users, len(matrix), drop_null=relation is Relation.PRESENCE)
    if relation is Relation.PRESENCE:
        kept = (codes >= 0) & ~np.isnan(labels) & ~np.isnan(matrix).any(axis=1)
        rows, labels = (matrix, labels) if kept.all() else (matrix[kept], labels[kept])
        codes = user_codes(codes[kept], len(labels))
    else:
        rows, labels = matrix, np.where(np.isnan(labels), targets.middle, labels)
    noted = matrix if given.names is None else with_names(matrix, encoding) if encoding.levels else given.X
    return MemoryRows(rows, labels, codes, relation, given.unit), encoding, noted


def with_names(matrix: Floats, encoding: Encoding) -> Frame:
    """Encoded features as a frame, as scikit-learn keeps and compares names."""
    import pandas as pd

    return pd.DataFrame(matrix, columns=list(encoding.names))


def _open_table(
    table: Table, label: PerRow, features: Sequence[str] | None, targets: Targets, categories: Categories | None
) -> tuple[Source, Encoding, Any]:
    from evenhand.learning.engine import EngineRows

    label, names = column_names(table, label, features)
    table.engine.require_unchanged()
    if table.relation is Relation.LABELS:
        raise UsageError("the table protects labels only: use LabelPrivateRegression, or read it otherwise.")
    if isinstance(targets, Classes):
        kind = table.expression.schema()[label]
        targets.require_kind("numbers" if kind.is_numeric() else "others", str(kind))
    encoding = Encoding.parse(names, categories, named=True)
    return EngineRows(table, label, names, targets, encoding), encoding, None

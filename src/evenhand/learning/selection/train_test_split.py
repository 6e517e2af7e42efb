"""A part of the users trains, the others judge: rows in memory and tables, divided by a coin of each user's own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from evenhand.guarantee import Relation
from evenhand.learning.data.inputs import Features, PerRow, label_column, take_apart, user_codes
from evenhand.learning.data.private_values import Integers
from evenhand.tables import Table

JUDGES = Fraction(1, 5)
"""The part of the users that judges candidates; the others train them."""

GivenRows = tuple[Any, Any, Any]
"""X, y and users, as a fit takes them."""


def without_rows(X: Features, y: PerRow, users: PerRow) -> GivenRows:
    """What a fit costs, a fit of nobody tells; a table is not read before the debit."""
    return (X, y, users) if isinstance(X, Table) else rows_of(np.zeros(0, dtype=np.int64), X, y, users)


def codes_of(X: Features, y: PerRow, users: PerRow, features: Sequence[str] | None, protects: str) -> Integers | None:
    """Of rows in memory, their users as numbers; what can't be fitted is refused here, before the debit."""
    if isinstance(X, Table):
        return None
    given = take_apart(X, y, users, features)
    rows = int(given.X.shape[0]) if hasattr(given.X, "shape") else len(given.X)
    label_column(given.y, rows)
    return user_codes(given.users, rows, drop_null=Relation.parse(protects) is Relation.PRESENCE)


@contextmanager
def train_test_split(
    X: Features, y: PerRow, users: PerRow, features: Sequence[str] | None, codes: Integers | None
) -> Iterator[tuple[GivenRows, GivenRows]]:
    """Those who train, and those who judge; of a table, as copies in its engine."""
    if codes is None:
        assert isinstance(X, Table)
        with _split_table(X, y, features) as (training, judges):
            yield (training, y, users), (judges, y, users)
        return
    judging, known = np.zeros(len(codes), dtype=bool), codes >= 0
    judging[known] = coins(int(codes.max(initial=-1)) + 1)[codes[known]]
    yield rows_of(np.flatnonzero(~judging), X, y, users), rows_of(np.flatnonzero(judging), X, y, users)


@contextmanager
def _split_table(table: Table, label: PerRow, features: Sequence[str] | None) -> Iterator[tuple[Table, Table]]:
    """Users are numbers from here on, which an engine compares in one way only: nobody is in both parts."""
    import ibis

    from evenhand.learning.data.engine_rows import user_numbers
    from evenhand.learning.data.public_rows import column_names
    from evenhand.tables.summaries import known

    label, names = column_names(table, label, features)
    rows = table.expression.mutate(**table.user_keys(table.expression))
    rows = rows.filter(*(known(table, rows[name]) for name in table.user_names))
    columns = dict.fromkeys([*names, label])
    with table.engine.kept(rows.select(*columns, evenhand_number=user_numbers(table, rows))) as copy:
        people = copy.select("evenhand_number").distinct().mutate(evenhand_coin=ibis.random())
        with table.engine.kept(people) as drawn:
            judges = drawn.filter(drawn.evenhand_coin < float(JUDGES)).select("evenhand_number")
            parts = (copy.anti_join(judges, "evenhand_number"), copy.semi_join(judges, "evenhand_number"))
            training, judging = (
                replace(
                    table,
                    expression=part.select(*columns, **dict.fromkeys(table.user_names, part.evenhand_number)),
                )
                for part in parts
            )
            yield training, judging


def coins(users: int) -> NDArray[np.bool_]:
    """For each user, whether they judge: an independent secret coin."""
    draws = np.frombuffer(secrets.token_bytes(8 * users), dtype=np.uint64)
    return np.asarray(draws < np.uint64(int(JUDGES * 2**64)))


def rows_of(places: Integers, X: Features, y: PerRow, users: PerRow) -> GivenRows:
    """Some rows of what the caller gave; names of columns stay names."""
    return tuple(
        given if given is None or isinstance(given, str) else _safe_indexing(given, places) for given in (X, y, users)
    )  # type: ignore[return-value]

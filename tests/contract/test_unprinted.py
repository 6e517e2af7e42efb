"""Ibis expressions are never printed by Evenhand: in a notebook's interactive mode that runs their query, and of a table in memory it shows rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import pytest

import evenhand as eh
from evenhand.tables.views.binding import as_written

FRAME = pd.DataFrame({
    "u": [f"person {user}" for user in range(12)],
    "x": [1000.0 + user for user in range(12)],
    "s": [f"secret of {user}" for user in range(12)],
})  # fmt: skip
SECRET = ("secret", "person", "1003", "┃")  # the last is the frame of a printed table


@pytest.fixture(params=["not interactive", "interactive"])
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    before, ibis.options.interactive = ibis.options.interactive, request.param == "interactive"
    yield
    assert ibis.options.interactive == (request.param == "interactive")
    ibis.options.interactive = before


@pytest.fixture(params=["frame", "table in memory"])
def table(request: pytest.FixtureRequest) -> eh.Table:
    source = FRAME if request.param == "frame" else ibis.memtable(FRAME)
    return eh.read(source, user="u")


ASKS: dict[str, Callable[[Any, Any], object]] = {
    "share": lambda ask, it: ask.share(it.x > 1005, epsilon=1),
    "share of users": lambda ask, it: ask.share(it.x > 1005, of="users", epsilon=1),
    "share of text": lambda ask, it: ask.share(it.s.length() > 3, epsilon=1),
    "share that casts": lambda ask, it: ask.share(it.s.cast("int64") > 3, epsilon=1),
    "shares": lambda ask, it: ask.aggregate(a=eh.share(it.x > 1005), n=eh.count(), epsilon=1),
    "share, deferred": lambda ask, it: ask.share(eh._.x > it.x, epsilon=1),
    "share of numbers": lambda ask, it: ask.share(it.x + 1, epsilon=1),
    "share, repr": lambda ask, it: repr(eh.share(it.x > 1005)),
    "ratio": lambda ask, it: ask.ratio(eh.share(it.x > 1005), eh.users(), epsilon=1),
    "column": lambda ask, it: ask.sum(it.x, bounds=(0, 1), epsilon=1),
    "bounds": lambda ask, it: ask.sum("x", bounds=(it.x, 1), epsilon=1),
    "open bounds": lambda ask, it: ask.sum("x", bounds=(it.x, None), epsilon=1),
    "epsilon": lambda ask, it: ask.count(epsilon=it.x),
    "quantiles": lambda ask, it: ask.quantiles("x", it.x, bounds=(0, 1), epsilon=1),
    "one of the quantiles": lambda ask, it: ask.quantiles("x", [it.x], bounds=(0, 1), epsilon=1),
    "frame for a column": lambda ask, it: ask.sum(FRAME, bounds=(0, 1), epsilon=1),
    "types": lambda ask, it: ask.table.derive(y=eh._.x + eh._.s),
    "types in SQL": lambda ask, it: ask.table.derive(y="s + 1"),
    "cast": lambda ask, it: ask.table.derive(y=eh._.s.cast("nonsense")),
    "logarithm": lambda ask, it: ask.table.derive(y=eh._.x.log("a")),
    "no condition": lambda ask, it: ask.table.where(it.x),
    "over all rows": lambda ask, it: ask.table.derive(y=it.x.median()),
    "select": lambda ask, it: ask.table.select(it.x),
}  # fmt: skip


def test_parts_that_are_shared_do_not_double_the_text() -> None:
    table = eh.read(FRAME, user="u")
    value = table.expression.x
    for _ in range(60):
        value = value + value
    words = as_written(value > 1)
    assert words.startswith("Greater(Add(")
    assert len(words) < 1100
    assert as_written(table.expression.x.isin([1, 2])) == "InValues(x, 1, 2)"


@pytest.mark.parametrize("name", ASKS)
def test_no_row_is_in_a_text(
    name: str, table: eh.Table, mode: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []
    ledger = eh.Ledger(tmp_path / "ledger.db", epsilon=100)
    session = eh.Session(table, ledger)

    class Asked:
        def __init__(self, ask: Any) -> None:
            self.ask, self.table = ask, table

        def __getattr__(self, word: str) -> Any:
            return getattr(self.ask, word)

    for ask in (session.preview, session):
        try:
            found = ASKS[name](Asked(ask), table.expression)
            printed += [str(found), repr(found), repr(getattr(found, "details", ""))]
        except eh.EvenhandError as error:
            printed.append(str(error))
    printed += [repr(event.to_dict()) for event in ledger.events]
    assert printed
    for text in printed:
        assert not any(word in text for word in SECRET), text

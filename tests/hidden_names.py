"""Which hidden group each support belongs to, so that the supports of two tables can be compared by name.

Releases don't know: they see supports by position, and names only of the groups that pass. Here the positions are looked up in
the engine before that, by the numbering that the names which are shown come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import Context, ContextVar
from typing import Any
from unittest import mock

from evenhand.release import Measurement
from evenhand.statistics.keys import PLACE
from evenhand.statistics.supports import Pairs
from evenhand.statistics.top import Largest
from evenhand.tables.expressions import Rows
from evenhand.tables.table import key_names

Names = tuple[tuple[object, ...], ...]

_known: ContextVar[list[tuple[object, Names]] | None] = ContextVar("names of supports", default=None)


def names_of(supports: object) -> Names | None:
    """The names of a measurement of supports, or of scores, in the order of its integers; None if nobody knows."""
    return next((names for one, names in reversed(_known.get() or []) if one is supports), None)


@contextmanager
def hidden_names() -> Iterator[None]:
    """Look up the names behind all supports that are measured meanwhile."""
    honest_supports, honest_scores = Pairs.supports, Largest._scores

    def supports(pairs: Pairs, look: Any, limit: int) -> Measurement:
        measured = honest_supports(pairs, look, limit)

        def noted() -> Any:
            found = measured.integers()
            every = _by_place(pairs.table, pairs.found, pairs.names)
            known.append((named, tuple(every[place] for place in range(len(found.reveal())))))
            return found

        named = Measurement(noted, measured.l1, measured.l2_squared)
        return named

    @contextmanager
    def scores(road: Largest, copy: Any, *given: Any) -> Iterator[Any]:
        with honest_scores(road, copy, *given) as (own, whole, groups):
            if groups is not None:
                every = _by_place(road.request.table, groups, key_names(len(road.by)))
                known.append((own, tuple(every[place] for place in range(len(own.reveal())))))
            yield own, whole, groups

    known: list[tuple[object, Names]] = []
    before = _known.set(known)
    try:
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(Pairs, "supports", supports))
            stack.enter_context(mock.patch.object(Largest, "_scores", scores))
            yield
    finally:
        _known.reset(before)


def _by_place(table: Any, found: Rows, names: Any) -> dict[int, tuple[object, ...]]:
    rows = found.select(PLACE, *(found[name].cast("string").name(name) for name in names))
    fetched = Context().run(table.engine.fetch, rows).reveal()  # in a context of its own, where nothing counts readings
    columns = [fetched[name].to_pylist() for name in (PLACE, *names)]
    return {place: tuple(key) for place, *key in zip(*columns, strict=True)}

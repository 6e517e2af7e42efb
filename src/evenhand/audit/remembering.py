"""An engine that answers a question it has answered before from memory, so that a small table can be asked thousands of times.

Only answers before noise are remembered, and only of queries that draw no random numbers; everything after the engine (the choice of
bounds, keys and noise) runs every time. That such an answer is a function of table and query is not taken for granted: before an
answer is given from memory for the first time, the engine is asked once more, and both answers must be the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from evenhand.guarantee import EvenhandError
from evenhand.release import not_private
from evenhand.tables import Secret
from evenhand.tables.engines import Engine
from evenhand.tables.expressions import ArrowTable, Rows

if TYPE_CHECKING:
    from ibis.expr.operations import Node


class Remembering:
    """Another engine, with a memory.

    Args:
        engine: what answers for the first time, and for the second.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._answers: dict[Node, Secret[ArrowTable]] = {}
        self._tables: dict[Node, Rows] = {}
        self._random: dict[Node, bool] = {}
        self._checked: set[Node] = set()
        self._open = ExitStack()

    def fetch(self, expression: Rows) -> Secret[ArrowTable]:
        """Evaluate, or remember."""
        if self._draws(expression):
            return self._engine.fetch(expression)
        question = expression.op()
        if question not in self._answers:
            self._answers[question] = self._engine.fetch(expression)
        else:
            self._check(expression, self._answers[question])
        return self._answers[question]

    @contextmanager
    def kept(self, expression: Rows, lasting: bool = False) -> Iterator[Rows]:
        """Keep, for as long as this engine lives unless it is random: what is asked about it can then be remembered."""
        if self._draws(expression):
            with self._engine.kept(expression) as table:
                yield table
            return
        question = expression.op()
        if question not in self._tables:
            self._tables[question] = self._open.enter_context(self._engine.kept(expression))
        elif question not in self._checked:
            self._check(expression, self._engine.fetch(self._tables[question]))
        yield self._tables[question]

    def __getattr__(self, name: str) -> object:
        """Everything else is the engine's own."""
        return getattr(self._engine, name)

    def close(self) -> None:
        """Let go of what was kept."""
        self._open.close()

    def _check(self, expression: Rows, answer: Secret[ArrowTable]) -> None:
        """Ask the engine again, once per question."""
        question = expression.op()
        if question in self._checked:
            return
        self._checked.add(question)
        if _rows(self._engine.fetch(expression)) != _rows(answer):
            raise EvenhandError(
                "the engine answers the same query about the same table in two ways, so an audit that remembers its answers "
                "would not be about what is shipped. Find out what the answer depends on."
            )

    def _draws(self, expression: Rows) -> bool:
        import ibis.expr.operations as ops

        question = expression.op()
        if question not in self._random:
            self._random[question] = bool(question.find(ops.RandomScalar))
        return self._random[question]


def _rows(answer: Secret[ArrowTable]) -> list[str]:
    """An answer as rows without their order, which means nothing."""
    return sorted(map(repr, not_private(answer).to_pylist()))

"""The workers of a keeper: short questions, long ones, and models, each with its schedule and with connections of its own.

Which worker takes a question, and how long it may, is told from public facts before it is paid for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from evenhand.guarantee import DataError
from evenhand.profiles import Profile
from evenhand.service import questions
from evenhand.service.begun import MARKED, MARKING
from evenhand.service.jobs import Lane
from evenhand.service.pricing import drafts
from evenhand.service.schedule import Schedule
from evenhand.service.slots import Slots
from evenhand.session import Drafts
from evenhand.statistics import Draft
from evenhand.tables import Table
from evenhand.tables.engines.copied import CopiedEngine, beside
from evenhand.tables.summaries import per_user

log = logging.getLogger("evenhand.keeper")

SHORT = 0.5
"""Seconds: questions with a slot up to this have a worker of their own, so that they wait for none that is longer."""


@dataclass(frozen=True)
class Planned:
    """A question, ready to be paid for: what draws it, and the worker and slot that public facts give it."""

    draft: Draft
    lane: Lane
    slot: float


class Workers:
    """Who works out what.

    Args:
        tables: by name.
        rows: how many each is declared to hold at most.
        deadline: seconds from a question to its answer.
        model_deadline: the same for models.
        slowness: of the machine.
        part_rows: what the parts of each are declared to hold at most, which questions in SQL may join.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        rows: Mapping[str, int],
        deadline: float,
        model_deadline: float,
        slowness: float,
        part_rows: Mapping[str, int] | None = None,
    ) -> None:
        self._slots, self._holding = Slots(rows, slowness, part_rows=part_rows or {}), ExitStack()
        self.short, self.long = (Lane(name, Schedule(deadline)) for name in ("short questions", "long questions"))
        self.models = Lane("models", Schedule(model_deadline))
        # Each worker has connections of its own where it can, so that no statement waits for one of another worker.
        self.tables = {lane.name: beside(tables) for lane in (self.long, self.models)} | {self.short.name: dict(tables)}
        self._nothing = {
            name: replace(table, expression=table.expression.limit(0)) for name, table in beside(tables).items()
        }

    def planned(
        self, name: str, profile: Profile | None, question: Mapping[str, Any], query: Mapping[str, Any] | None = None
    ) -> Planned:
        """What a question is before it is paid for, from public facts alone.

        ``query`` is what the ledger will note of it, where that is known: a large question is drafted once, and not if there is no room.
        """
        if question.get("ask") == "fit":
            draft = questions.ask(self._drafts(name, profile, self.models), question)
            return Planned(draft, self.models, self._slots.of_fit(name, draft.query, question))
        if query is not None:
            self.long.schedule.require_room(self._slot(name, query))
        else:
            draft = questions.ask(self._drafts(name, profile, self.short), question)
            slot = self._slot(name, draft.query, held=self._slots.reads_held(name, draft.query))
            if slot <= SHORT:
                return Planned(draft, self.short, slot)
            query = draft.query
        slot = self._slot(name, query)
        lane = self.short if slot <= SHORT else self.long
        return Planned(questions.ask(self._drafts(name, profile, lane), question), lane, slot)

    def _slot(self, name: str, query: Mapping[str, Any], *, held: bool = False) -> float:
        slot = self._slots.of(name, query, held=held)
        return slot + (MARKING if slot > MARKED else 0.0)

    def warm(self) -> None:
        """Read how many rows each user has, for tables whose engines keep that, and hold it: no count of a table reads its rows again."""
        for name, table in self.tables[self.short.name].items():
            if not isinstance(table.engine, CopiedEngine):
                continue
            try:
                self._holding.enter_context(table.engine.kept(per_user(table, ()), lasting=True))
            except DataError as error:
                log.error("table can't be read", extra={"table": name, "error": type(error).__name__})
            else:
                self._slots.held.add(name)
                log.info("table is read", extra={"table": name})

    def about_nothing(self, name: str, profile: Profile | None, question: Mapping[str, Any]) -> Draft:
        """A question about the empty table, on a connection that no worker uses."""
        return questions.ask(drafts(self._nothing[name], profile), question)

    def close(self) -> None:
        """Let what waits be worked out, for ten seconds; models for one."""
        now = time.monotonic()
        for lane in (self.short, self.long, self.models):
            lane.end()
        for lane, patience in ((self.short, 10.0), (self.long, 10.0), (self.models, 1.0)):
            lane.close(now + patience)
        self._holding.close()

    def _drafts(self, name: str, profile: Profile | None, lane: Lane) -> Drafts:
        return drafts(self.tables[lane.name][name], profile)

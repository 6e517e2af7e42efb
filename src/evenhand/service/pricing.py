"""What questions would cost, worked out where it can do no harm: in processes of their own, with an end to time and memory.

A preview is free, so anybody with a token can ask for any number of them, of any size. It needs public facts only, so it is made from the
shapes of tables by a process that has no row, no ledger and no connection; one that takes too long is ended, and its question is refused.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from queue import Empty, LifoQueue
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import EvenhandError, Guarantee, UsageError
from evenhand.ledger import Cost
from evenhand.profiles import EVERY_ROW, Profile, Shelf
from evenhand.service.shapes import Shape
from evenhand.session import Drafts
from evenhand.statistics import STATISTICS, Draft
from evenhand.statistics.draft import NOTHING
from evenhand.statistics.keys import at_most_keys
from evenhand.tables import Table

if TYPE_CHECKING:
    from evenhand.ledger import Ledger

SECONDS = 5
"""Of computing that one price may take."""
MEGABYTES = 1024
"""Of memory that it may take beside what the process needs anyway."""
PATIENCE = 30.0
"""Seconds for an answer of a process, on a machine that does other things too."""
STARTING = 120.0
"""Seconds for its start."""
KEPT = 32 * 2**20
"""Bytes of prices that are kept, so that a question that is paid for was priced once."""
MOST_GROUPS = 100_000
"""That one question may name."""
SMALL = 500
"""Characters of a question about a statistic, whose draft costs no more than its commit; others are priced before they are drafted for an
answer."""

_TOO_MUCH = (
    f"this question takes more than {SECONDS} seconds or {MEGABYTES} MB to be worked out, before any row is read. Ask for fewer groups, statistics or "
    "settings at a time. Nothing was read or spent."
)


@dataclass(frozen=True)
class Price:
    """A preview as the server keeps it: data and words, for a ledger that holds enough and for one that does not.

    Args:
        cost: what the ledger is asked for; None for a public fact.
        guarantee: of the answer.
        query: as the ledger notes it.
        shown: by whether it is affordable.
    """

    cost: Cost
    guarantee: Guarantee
    query: Mapping[str, Any]
    shown: Mapping[bool, dict[str, Any]]

    @classmethod
    def of(cls, draft: Draft) -> Price:
        """The price of a draft."""
        preview = draft.preview(None)
        both = {affordable: replace(preview, affordable=affordable) for affordable in (True, False)}
        return cls(
            draft.cost or NOTHING,
            draft.guarantee,
            dict(draft.query),
            {one: {**each.to_dict(), "text": str(each)} for one, each in both.items()},
        )

    def told(self, ledger: Ledger) -> dict[str, Any]:
        """The preview for a ledger as it is now."""
        return self.shown[ledger.can_afford(self.cost, self.guarantee)]


def drafts(table: Table, profile: Profile | None) -> Drafts:
    """Questions about a table by somebody who has bought this profile of it."""
    shelf = Shelf()
    if profile is not None:
        shelf.put(table, EVERY_ROW, profile)
    return Drafts(table, shelf)


class Prices:
    """Works prices out, and keeps them.

    Args:
        tables: by name.
        workers: processes; 0 for working them out right here, where nobody is a stranger.
    """

    def __init__(self, tables: Mapping[str, Table], workers: int = 0) -> None:
        self._tables = tables
        shapes = {name: Shape.of(table) for name, table in tables.items()}
        self._shapes = {name: shape for name, shape in shapes.items() if shape is not None}
        self.workers = workers
        self._free: LifoQueue[_Worker] = LifoQueue()
        for _ in range(workers):
            self._free.put(_Worker(self._shapes))
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def price(self, name: str, text: str, question: Mapping[str, Any], profile: Profile | None) -> Price:
        """What a question about a table would cost; ``text`` is the question as it is stored."""
        key = f"{profile and profile.event} {text}"
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        if kept is None:
            kept = self._worked_out(name, question, profile)
            self._keep(key, kept)
        found = pickle.loads(kept)
        if isinstance(found, EvenhandError):
            raise found
        price: Price = found
        return price

    def are_work(self, text: str, question: Mapping[str, Any]) -> bool:
        """Whether a question is to be priced before it is drafted for an answer, in the process that holds the table."""
        return bool(self.workers) and not _small(text, question)

    def close(self) -> None:
        """End the processes."""
        while True:
            try:
                self._free.get_nowait().end()
            except Empty:
                return

    def _worked_out(self, name: str, question: Mapping[str, Any], profile: Profile | None) -> bytes:
        if not self.workers or name not in self._shapes:
            return priced(self._tables[name], question, profile)
        worker = self._free.get()
        try:
            return worker.price(pickle.dumps((name, dict(question), profile)))
        finally:
            self._free.put(worker)

    def _keep(self, key: str, kept: bytes) -> None:
        size = 2 * len(key) + len(kept)
        with self._lock:
            if size > KEPT // 16 or key in self._kept:
                return
            self._kept[key] = kept
            self._bytes += size
            while self._bytes > KEPT:
                dropped, value = self._kept.popitem(last=False)
                self._bytes -= 2 * len(dropped) + len(value)


def _small(text: str, question: Mapping[str, Any]) -> bool:
    """Whether its draft is not larger than the question: there is no product in it, nor anything to parse."""
    return len(text) <= SMALL and question.get("ask") in STATISTICS and not isinstance(question.get("keys"), Mapping)


def priced(table: Table, question: Mapping[str, Any], profile: Profile | None) -> bytes:
    """The price of a question, or what is wrong with it."""
    from evenhand.service import questions

    try:
        with at_most_keys(MOST_GROUPS):
            found: Price | EvenhandError = Price.of(questions.ask(drafts(table, profile), question))
    except EvenhandError as error:
        found = error
    return pickle.dumps(found)


class _Worker:
    """One process, started when it is first needed and again after it was ended."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = pickle.dumps(dict(shapes))
        self._process: subprocess.Popen[bytes] | None = None

    def price(self, asked: bytes) -> bytes:
        """What `priced` says; a process that gives no answer is ended."""
        process = self._process or self._started()
        found = _exchanged(process, asked, PATIENCE)
        if found is None:
            self.end()
            return pickle.dumps(UsageError(_TOO_MUCH))
        return found

    def end(self) -> None:
        """End the process at once."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        code = "from evenhand.service.pricing_worker import main; main()"
        # What a library prints there is nobody's: it may quote the question.
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}, start_new_session=True,
        )  # fmt: skip
        self._process = process
        if _exchanged(process, self._shapes, STARTING) is None:
            self.end()
            raise UsageError(
                "the process that works prices out did not start; nothing was read or spent. Tell the keeper."
            )
        return process


def _exchanged(process: subprocess.Popen[bytes], sent: bytes, patience: float) -> bytes | None:
    """What a process answers; None if it ends, or takes too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(len(sent).to_bytes(8, "big") + sent)
        process.stdin.flush()
        with DefaultSelector() as selector:
            selector.register(process.stdout, EVENT_READ)
            if not selector.select(patience):
                return None
        size = process.stdout.read(8)
        found = process.stdout.read(int.from_bytes(size, "big")) if len(size) == 8 else b""
    except OSError:
        return None
    return found or None

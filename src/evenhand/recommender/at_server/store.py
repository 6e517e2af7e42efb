"""Where reports wait to be folded: a SQLite file for one machine, a Postgres database for several.

A row is a serial, its tag and the answer, and nothing else: no time, no address, no number of arrival.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.guarantee import DataError, UsageError
from evenhand.ledger.failures import Kept
from evenhand.ledger.store import Store
from evenhand.recommender.at_server.reports import RECORD, Batch, fits
from evenhand.recommender.at_server.tokens import Issuer
from evenhand.recommender.messages import RECORD_SIZE, Task
from evenhand.recommender.messages.exchange import RECORD_MAGIC

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_AT_ONCE = 1 << 16  # reports read in one transaction: a writer waits no longer than that takes
_SQLITE_MAGIC = b"SQLite format 3\0"
_REPORTS = Kept("store of reports", DataError, undone="", lost="", restored="")


class ReportStatus(IntEnum):
    """What became of a report, as a status of ``docs/recommender/http.md``."""

    STORED = 204
    MALFORMED = 400
    FORGED = 403
    REDEEMED = 409
    """The token was used before, with another answer."""
    CLOSED = 410


class ReportStore:
    """One task's reports, at most one for each token: the first that came.

    Guarantee:
        When `take` returns, every report that it calls stored is on disk, and stays the one that counts.

    Edge cases:
        Threads and processes may share a store, and machines one on Postgres. A process that is killed leaves a batch stored as a
        whole or not at all.

    Args:
        location: the path of a SQLite file, or ``postgresql://...``.
        task: whose reports.
        create: make the store if there is none.
    """

    def __init__(self, location: str | os.PathLike[str], task: Task, *, create: bool = True) -> None:
        self._task = task
        self._table = f"evenhand_report_{task.short_id.hex()}"
        self._store = Store(location, _REPORTS)
        if create:
            self._store.run(self._create, write=True, create=True)
        elif not self._store.run(self._exists):
            raise DataError(f"{self._store.name} has no reports about this task: name its own store.")
        self.open(task)

    def take(self, records: Sequence[bytes], issuer: Issuer, *, closed: bool = False) -> list[ReportStatus]:
        """Store some reports, and say what became of each.

        Args:
            records: as they came.
            issuer: recognises the task's tokens.
            closed: store nothing new; a report that is there already is still called stored, as its sender may not know.
        """
        whole = (record if len(record) == RECORD_SIZE else bytes(RECORD_SIZE) for record in records)
        found = np.frombuffer(b"".join(whole), RECORD)
        task = self._task
        sound = (found["magic"] == RECORD_MAGIC) & (found["task"] == np.void(task.short_id))
        sound &= fits(task, found["serial"], found["answer"])
        outcomes = np.full(len(found), ReportStatus.MALFORMED)
        places = np.flatnonzero(sound)
        genuine = issuer.tags(found["serial"][places].astype(np.uint32)) == found["tag"][places]
        outcomes[places[~genuine]] = ReportStatus.FORGED
        places = places[genuine]
        if len(places):
            serials, answers = found["serial"][places].tolist(), found["answer"][places].tolist()
            tags = found["tag"][places].view(np.int64).tolist()
            first: dict[int, dict[str, int]] = {}
            for serial, tag, answer in zip(serials, tags, answers, strict=True):
                first.setdefault(serial, {"serial": serial, "tag": tag, "answer": answer})
            stored = self._store.run(lambda connection: self._insert(connection, first, closed), write=True)
            for place, serial, answer in zip(places, serials, answers, strict=True):
                known = stored.get(serial)
                outcomes[place] = (
                    ReportStatus.CLOSED
                    if known is None
                    else ReportStatus.STORED
                    if known == answer
                    else ReportStatus.REDEEMED
                )
        return [ReportStatus(outcome) for outcome in outcomes.tolist()]

    def batches(self) -> Iterator[Batch]:
        """All reports by serial, in short transactions, so that a server can go on storing meanwhile.

        Reports are never changed or removed, so those that come meanwhile are read or not, whole.
        """
        from sqlalchemy import text

        query = text(
            f"SELECT serial, tag, answer FROM {self._table} WHERE serial > :last ORDER BY serial LIMIT {_AT_ONCE}"
        )

        def after(last: int) -> Sequence[Row[Any]]:
            return self._store.run(lambda connection: connection.execute(query, {"last": last}).all())

        last = -1
        while rows := after(last):
            # np.array(rows) takes ten times as long
            numbers = np.fromiter(chain.from_iterable(rows), np.int64, 3 * len(rows))
            serials, tags, answers = numbers.reshape(-1, 3).T
            yield Batch(serials.astype(np.uint32), answers.astype(np.uint32), tags.astype(np.uint64))
            last = int(serials[-1])

    def count(self) -> int:
        """How many reports there are."""
        query = f"SELECT count(*) FROM {self._table}"
        return self._store.run(lambda connection: int(connection.exec_driver_sql(query).scalar_one()))

    def open(self, task: Task) -> None:
        """Keep the task's beacon; two beacons would mix answers to different questions."""
        from sqlalchemy import text

        if task.id != self._task.id:
            raise UsageError("The task is another one: a store of its own is needed.")
        named = {"id": task.id.hex(), "beacon": (task.beacon or b"").hex()}

        def keep(connection: Connection) -> str:
            keep_first = "UPDATE evenhand_campaign SET beacon = :beacon WHERE id = :id AND beacon = ''"
            connection.execute(text(keep_first), named)
            kept = connection.execute(text("SELECT beacon FROM evenhand_campaign WHERE id = :id"), {"id": named["id"]})
            return str(kept.scalar_one())

        if self._store.run(keep, write=True) != named["beacon"]:
            raise UsageError(
                f"{self._store.name} has reports about this task with another beacon: a task is opened once. Use the task file of "
                "that opening."
            )

    def _exists(self, connection: Connection) -> bool:
        from sqlalchemy import inspect

        return inspect(connection).has_table(self._table)

    def _create(self, connection: Connection) -> None:
        from sqlalchemy import text

        by_serial = " WITHOUT ROWID" if connection.dialect.name == "sqlite" else ""
        statements = (
            "CREATE TABLE IF NOT EXISTS evenhand_campaign (id TEXT PRIMARY KEY, beacon TEXT NOT NULL)",
            f"CREATE TABLE IF NOT EXISTS {self._table} "
            f"(serial BIGINT PRIMARY KEY, tag BIGINT NOT NULL, answer BIGINT NOT NULL){by_serial}",
        )
        for statement in statements:
            connection.exec_driver_sql(statement)
        new = "INSERT INTO evenhand_campaign (id, beacon) VALUES (:id, '') ON CONFLICT (id) DO NOTHING"
        connection.execute(text(new), {"id": self._task.id.hex()})

    def _insert(self, connection: Connection, first: dict[int, dict[str, int]], closed: bool) -> dict[int, int]:
        """The answers that are stored for these serials, after storing those that are new."""
        from sqlalchemy import bindparam, text

        if not closed:
            new = f"INSERT INTO {self._table} (serial, tag, answer) VALUES (:serial, :tag, :answer) ON CONFLICT (serial) DO NOTHING"
            # In order, so that two processes on Postgres wait for each other in one direction only.
            connection.execute(text(new), [first[serial] for serial in sorted(first)])
        query = text(f"SELECT serial, answer FROM {self._table} WHERE serial IN :serials")
        rows = connection.execute(query.bindparams(bindparam("serials", list(first), expanding=True)))
        return {row.serial: row.answer for row in rows}


def is_store(location: str) -> bool:
    """Whether this names a store, rather than a file of reports."""
    if "://" in location:
        return True
    try:
        with open(location, "rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError:
        return False

"""Durable, exclusive transactions on a ledger's database: a SQLite file or a Postgres server.

Why the settings are what they are (docs/ledger.md tells more):

- SQLite runs with a rollback journal, not WAL: the file alone is then the whole ledger whenever nobody is
  writing, it works wherever file locks do, and SQLite before 3.51.3 can corrupt a WAL with several writers.
- SQLite connections are opened for each transaction, so that a file that was deleted or replaced is noticed,
  and nothing is shared across threads or forks (`forks` does the rest).
- Postgres takes a row lock, which serialises debits without serialisation failures.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import quote

from evenhand.guarantee import UsageError
from evenhand.ledger import failures, forks, pending

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

Result = TypeVar("Result")

PATIENCE = 60.0
"""Seconds to wait for other writers before giving up."""


class Store:
    """Where a ledger lives, or what else is kept as durably, and how to run one transaction there.

    Edge cases: safe in threads and after a fork; a process killed at any moment leaves either the whole
    transaction or nothing. A pickle holds no password: whoever unpickles it needs ``PGPASSWORD`` or ``~/.pgpass``.
    """

    def __init__(self, location: str | os.PathLike[str], kept: failures.Kept = failures.LEDGER) -> None:
        place = os.fspath(location)
        self.kept = kept
        self._shared: tuple[int, Engine] | None = None  # with the process that made it
        self._secrets: Callable[[], dict[str, str]] = dict
        self._holds_all_text = False
        if "://" in place:
            url = _postgres_url(place, kept)
            shown = url.difference_update_query(_SECRET_OPTIONS).set(drivername="postgresql")
            self.name = shown.render_as_string(hide_password=True)
            self._url: URL | None = _without_secrets(url)
            self._secrets = _hidden(url)
        else:
            self._url = None
            self.path = _file_path(place, kept)
            self.name = str(self.path)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_secrets": dict, "_shared": None}

    @property
    def is_new(self) -> bool:
        """Whether there certainly is no ledger yet: the file is missing or empty."""
        if self._url is not None:
            return False
        return not self.path.exists() or self.path.stat().st_size == 0

    def run(
        self,
        work: Callable[[Connection], Result],
        *,
        write: bool = False,
        create: bool = False,
        collects: bool = False,
    ) -> Result:
        """Run ``work`` in one transaction; with ``write`` no other writer runs at the same time.

        ``collects`` says that all it writes goes through `pending`, and is written at the end.

        When this returns, the transaction is on disk. When it raises, nothing was recorded, except that a
        connection lost during the commit leaves that open; the error says so.
        """
        from sqlalchemy.exc import SQLAlchemyError

        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with self._transaction(write=write, create=create) as connection:
                    return work(connection)
            except UnicodeDecodeError:  # sqlite3 fails to decode SQLite's message about a damaged schema
                raise failures.corrupt(self.name, self.kept) from None
            except (SQLAlchemyError, sqlite3.Error) as error:
                if not failures.is_transient(error) or time.monotonic() > deadline:
                    raise failures.of_database(self.name, error, self.kept) from None
            time.sleep(random.uniform(0.001, 0.02))  # jitter, so that colliding writers part

    @contextmanager
    def _transaction(self, *, write: bool, create: bool) -> Iterator[Connection]:
        engine = self._connect(create=True) if create else self._shared_engine()
        guarded = forks.transaction(self.path, PATIENCE, self.kept) if self._url is None else nullcontext()
        with guarded, engine.connect() as connection, connection.begin():
            if self._url is not None:
                connection.exec_driver_sql(_POSTGRES_DURABLE if write else _POSTGRES_SNAPSHOT)
                self._require_utf8(connection)
                if create:
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('evenhand_ledger'))")
            elif write:
                _lock_file(cast(sqlite3.Connection, connection.connection.driver_connection))
            else:
                connection.exec_driver_sql("BEGIN")
            if not write:
                yield connection
                return
            collected = pending.begin(connection)
            yield connection
            collected.flush(connection)

    def _require_utf8(self, connection: Connection) -> None:
        """Refuse a database that can't hold every text: a name in other letters would fail after the debit of somebody else's question."""
        if self._holds_all_text:
            return
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        self._holds_all_text = encoding == "UTF8"
        if not self._holds_all_text:
            raise self.kept.failed(
                self.name,
                f"the encoding of this database is {encoding}; expected UTF8. Make one with: createdb --encoding=UTF8 --template=template0 NAME",
            )

    def _shared_engine(self) -> Engine:
        if self._shared is None or self._shared[0] != os.getpid():
            if self._shared is not None:
                _inherited.append(self._shared[1])
            self._shared = (os.getpid(), self._connect())
        return self._shared[1]

    def _connect(self, *, create: bool = False) -> Engine:
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        if self._url is None:
            return create_engine("sqlite://", creator=lambda: _open_file(self.path, create), poolclass=NullPool)
        try:
            # A dead pooled connection is noticed before it is used, so a restart of the server costs nothing.
            waits = {} if "connect_timeout" in self._url.query else {"connect_timeout": 10}
            given = {"client_encoding": "utf8", **waits, **self._secrets()}  # else a database of bytes answers in bytes
            # Whoever waited for a lock must see what its holder wrote, whatever isolation the server is set to.
            engine = create_engine(self._url, pool_pre_ping=True, isolation_level="READ COMMITTED", connect_args=given)
            from evenhand.ledger import patience

            return patience.limit(engine)
        except ModuleNotFoundError:
            raise UsageError(
                f"{self.kept.what} {self.name}: the Postgres driver psycopg is not installed. "
                "Install it with: pip install 'evenhand[postgres]'"
            ) from None


_inherited: list[Engine] = []
"""Engines made before a fork: kept unused in the child, as closing them would end the parent's sessions."""

_POSTGRES_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', true) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)
_POSTGRES_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"  # totals and events of one moment

_SECRET_OPTIONS = ("password", "sslpassword")
"""Options of a Postgres URL, after the question mark, that nobody should see."""

_SMALLEST_SQLITE = 512
"""Bytes. SQLite takes a shorter file for an empty database and would overwrite it."""


def _open_file(path: Path, create: bool) -> sqlite3.Connection:
    uri = f"file:{quote(str(path))}?mode={'rwc' if create else 'rw'}"
    if forks.locks_unknown(path):
        uri += "&vfs=unix-none"  # no locks of SQLite's own: forks.transaction holds one
    # isolation_level=None: transactions begin where this module says so, not where the driver guesses.
    connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
    # Journal and file are synced before a commit returns; PERSIST saves changes to the directory.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA journal_mode = PERSIST")
    return connection


def _lock_file(connection: sqlite3.Connection) -> None:
    """Begin a transaction with the write lock: nobody spends between our look and our debit.

    SQLite's own waiting sleeps longer and longer, so that a writer who came late starves those who wait. Equal,
    short, random pauses give everyone the same chance.
    """
    deadline = time.monotonic() + PATIENCE
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            if not failures.is_busy(error) or time.monotonic() > deadline:
                raise
        forks.pause(random.uniform(0.0005, 0.004))
    connection.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")


def _file_path(location: str, kept: failures.Kept) -> Path:
    if not location or location == ":memory:":
        raise UsageError(
            f"{kept.what} {location!r}: a {kept.what} must outlive the process; expected the path of a file, such as "
            "'budget.db', or a URL postgresql://..."
        )
    path = Path(location).expanduser().absolute()  # a later change of directory must not change the ledger
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = 0
    except (OSError, ValueError) as error:
        raise failures.of_system(location, error, kept) from None
    if path.is_dir():
        raise kept.failed(str(path), "this is a directory; give a file in it, such as budget.db.")
    if 0 < size < _SMALLEST_SQLITE:
        raise kept.failed(str(path), f"this file is not a {kept.what}; give another path.")
    if not path.parent.is_dir():
        raise kept.failed(str(path), f"the directory {path.parent} does not exist; create it first.")
    return path


def _without_secrets(url: URL) -> URL:
    """The same place. (``url.set`` can't remove a password.)"""
    query = url.difference_update_query(_SECRET_OPTIONS).query
    return url.create(url.drivername, url.username, None, url.host, url.port, url.database, query)


def _hidden(url: URL) -> Callable[[], dict[str, str]]:
    """The passwords of a URL as connection options, where no repr and no pickle finds them."""
    secrets = {name: str(url.query[name]) for name in _SECRET_OPTIONS if name in url.query}
    if url.password is not None:
        secrets["password"] = str(url.password)
    return lambda: dict(secrets)


def _postgres_url(location: str, kept: failures.Kept) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    scheme = location.split("://", 1)[0]
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise UsageError(
            f"{kept.what} URL with scheme {scheme!r}: expected postgresql://user@host/database, or the plain path "
            "of a SQLite file."
        )
    try:
        return make_url(location).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        raise UsageError(f"{kept.what} URL can't be read: expected postgresql://user@host:port/database.") from None

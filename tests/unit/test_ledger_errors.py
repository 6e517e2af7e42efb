"""A ledger that can't be opened or written says so plainly, spends nothing, and shows no password."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from evenhand.guarantee import EvenhandError, Guarantee, LedgerError, Relation, UsageError
from evenhand.ledger import Cost, Ledger

PROMISE = Guarantee(Decimal("0.1"), Decimal(0), Relation.PRESENCE, ("userId",))
NOBODY = 65534


def debit(ledger: Ledger, note: str = "") -> None:
    ledger.debit(Cost.pure("0.1"), {"statistic": "count", "note": note}, PROMISE)


def plain_error(error: BaseException) -> str:
    """The message, after checking that no database stack trace is shown with it."""
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert "sqlalche.me" not in str(error)
    return str(error)


def error_in_child(work: Callable[[], object], before: Callable[[], None]) -> str:
    """Run ``before`` and ``work`` in a forked child; return the LedgerError that it met."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before()
            work()
            told = "no error"
        except LedgerError as error:
            told = plain_error(error)
        except BaseException as error:
            told = f"unexpected {error!r}"
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


def drop_root() -> None:
    if os.geteuid() == 0:
        os.setuid(NOBODY)


@pytest.fixture
def open_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that an ordinary user can reach, even when the tests run as root."""
    import shutil
    import tempfile

    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="this is a directory"):
        Ledger(tmp_path, epsilon=1)


def test_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no/such does not exist; create it first"):
        Ledger(tmp_path / "no/such/b.db", epsilon=1)


def test_a_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LedgerError, match="Not a directory"):
        Ledger(tmp_path / "file" / "b.db", epsilon=1)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(LedgerError, match="can't be opened"):
        Ledger(str(tmp_path) + "/" + name, epsilon=1)


@pytest.mark.parametrize("location", ["", ":memory:"])
def test_a_ledger_must_outlive_the_process(location: str) -> None:
    with pytest.raises(UsageError, match="must outlive the process"):
        Ledger(location, epsilon=1)


@pytest.mark.parametrize("content", [b"user,rating\n1,5\n" * 100, b"x", b"SQLite format 3\0" + b"\xff" * 4096])
@pytest.mark.parametrize("total", [1.0, None])
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content: bytes, total: float | None) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"not a ledger|damaged") as caught:
        Ledger(path, epsilon=total)
    plain_error(caught.value)
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(path, epsilon=1)
    with pytest.raises(UsageError, match="no ledger at"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path / "b.db", epsilon=1)
    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("UPDATE evenhand_ledger SET format = 99")
    with pytest.raises(LedgerError, match="has format 99, this version of Evenhand knows 2: upgrade"):
        Ledger(tmp_path / "b.db")


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    """A process killed while creating one leaves that behind."""
    (tmp_path / "b.db").touch()
    with pytest.raises(UsageError, match="no ledger at"):
        Ledger(tmp_path / "b.db")
    debit(Ledger(tmp_path / "b.db", epsilon=1))


def test_a_damaged_ledger_never_ends_in_a_stack_trace(tmp_path: Path) -> None:
    """Random bytes overwritten, pages lost: opening, reading and debiting raise our own errors or nothing."""
    path = tmp_path / "b.db"
    ledger = Ledger(path, epsilon=5)
    for _ in range(30):
        debit(ledger)
    good, chance, noticed = path.read_bytes(), random.Random(7), 0
    for turn in range(300):
        bad = bytearray(good)
        if turn % 3:
            for _ in range(chance.choice([1, 5, 200])):
                bad[chance.randrange(len(bad))] = chance.randrange(256)
        else:
            del bad[chance.randrange(1, len(bad)) :]
        path.write_bytes(bad)
        try:
            broken = Ledger(path)
            assert len(broken.events) >= 0
            broken.verify()
            debit(broken)
        except EvenhandError as error:
            plain_error(error)
            noticed += 1
    assert noticed > 200


def test_a_read_only_file_can_be_read_but_not_debited(open_path: Path) -> None:
    path = open_path / "b.db"
    debit(Ledger(path, epsilon=1))
    path.chmod(0o444)
    open_path.chmod(0o555)

    def work() -> None:
        ledger = Ledger(path)
        assert ledger.spent.epsilon == Decimal("0.1")
        debit(ledger)

    told = error_in_child(work, drop_root)
    assert "make the file and its directory writable" in told
    assert "Nothing was spent" in told
    assert len(Ledger(path).events) == 1


def test_a_read_only_directory_can_not_hold_a_new_ledger(open_path: Path) -> None:
    open_path.chmod(0o555)
    told = error_in_child(lambda: Ledger(open_path / "b.db", epsilon=1), drop_root)
    assert "it can't be opened" in told
    assert not (open_path / "b.db").exists()


def test_an_unreadable_file(open_path: Path) -> None:
    Ledger(open_path / "b.db", epsilon=1)
    (open_path / "b.db").chmod(0o000)
    assert "it can't be opened" in error_in_child(lambda: Ledger(open_path / "b.db"), drop_root)


def fill(path: Path) -> None:
    ledger = Ledger(path)
    for _ in range(1000):
        debit(ledger, note="x" * 2000)


def test_a_quota_that_is_used_up(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    Ledger(path, epsilon=1000)

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    told = error_in_child(lambda: fill(path), limit)
    assert "check free space, quota" in told or "disk is full" in told
    ledger = Ledger(path)
    ledger.verify()
    assert 10 < len(ledger.events) < 1000
    debit(ledger)  # with space again, it goes on


def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        Ledger(disk / "b.db", epsilon=1000)
        with pytest.raises(LedgerError, match="the disk is full") as caught:
            fill(disk / "b.db")
        assert "Nothing was spent" in plain_error(caught.value)
        ledger = Ledger(disk / "b.db")
        ledger.verify()
        assert len(ledger.events) > 10
        with pytest.raises(OSError, match="No space"):
            (disk / "filler").write_bytes(bytes(300_000))
        with pytest.raises(LedgerError, match="the disk is full"):
            Ledger(disk / "new.db", epsilon=1)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_lock_that_never_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenhand.ledger import store

    monkeypatch.setattr(store, "PATIENCE", 0.2)
    ledger = Ledger(tmp_path / "b.db", epsilon=1)
    other = sqlite3.connect(tmp_path / "b.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="kept it locked"):
        debit(ledger)
    other.execute("ROLLBACK")
    debit(ledger)
    assert len(ledger.events) == 1


@pytest.mark.parametrize("url", ["mysql://u:secret@h/d", "sqlite:///b.db", "http://x", "postgresql://h:port/d"])
def test_a_url_of_something_else(url: str) -> None:
    with pytest.raises(UsageError, match="expected postgresql://") as caught:
        Ledger(url, epsilon=1)
    assert "secret" not in plain_error(caught.value)


def test_an_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(LedgerError, match=r"can't be reached.*Nothing was spent") as caught:
        Ledger("postgresql://analyst:secret@127.0.0.1:9/budget", epsilon=1)
    assert "secret" not in plain_error(caught.value)
    assert "postgresql://analyst:***@127.0.0.1:9/budget:" in str(caught.value)


def test_a_missing_driver_is_named() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from evenhand.ledger import Ledger\n"
        "Ledger('postgresql://h/d', epsilon=1)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'evenhand[postgres]'" in run.stderr.splitlines()[-1]


def test_a_postgres_user_without_rights(postgres_url: str) -> None:
    import psycopg

    Ledger(postgres_url, epsilon=1)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'secret'")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    ledger = Ledger(postgres_url.replace("postgres:@", "reader:secret@"))
    assert "secret" not in repr(ledger)
    assert ledger.remaining.epsilon == 1
    with pytest.raises(LedgerError, match=r"Postgres refused \(permission denied.*Nothing was spent") as caught:
        debit(ledger)
    plain_error(caught.value)


def test_an_analyst_with_the_documented_grants_can_spend_but_not_rewrite(postgres_url: str) -> None:
    import psycopg

    Ledger(postgres_url, epsilon=1)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE analyst LOGIN")
        connection.execute("GRANT SELECT, INSERT ON evenhand_event TO analyst")
        connection.execute("GRANT SELECT, UPDATE ON evenhand_ledger TO analyst")
    try:
        mine = postgres_url.replace("postgres:@", "analyst:@")
        debit(Ledger(mine))
        Ledger(mine, epsilon=1).verify()
        with psycopg.connect(mine) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("ALTER TABLE evenhand_event DISABLE TRIGGER ALL")
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY analyst")
            connection.execute("DROP ROLE analyst")


def test_a_lost_connection_is_replaced(postgres_url: str) -> None:
    import psycopg

    ledger = Ledger(postgres_url, epsilon=1)
    debit(ledger)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    debit(ledger)
    assert len(ledger.events) == 2


def test_a_ledger_without_its_format_is_damaged(tmp_path: Path) -> None:
    Ledger(tmp_path / "b.db", epsilon=1)
    with sqlite3.connect(tmp_path / "b.db") as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET sql = replace(sql, 'format INTEGER NOT NULL', 'format INTEGER')")
    with sqlite3.connect(tmp_path / "b.db") as database:
        database.execute("UPDATE evenhand_ledger SET format = NULL")
    with pytest.raises(EvenhandError, match="damaged"):
        Ledger(tmp_path / "b.db", epsilon=1)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(encoding: str, postgres_url: str) -> None:
    """A key in other letters would fail in the transaction that holds other analysts' debits, too."""
    psycopg = pytest.importorskip("psycopg")
    from sqlalchemy.engine import make_url

    name = f"encoded_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
    other = make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
    with pytest.raises(EvenhandError, match=f"the encoding of this database is {encoding}; expected UTF8"):
        Ledger(other, epsilon=1)
    Ledger(postgres_url, epsilon=1)

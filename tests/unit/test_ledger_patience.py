"""A Postgres server that stops answering ends a request, and a transaction that it broke off can be tried again."""

from __future__ import annotations

import os
import signal
import threading
import time

import psycopg
import pytest

import evenhand as eh
from evenhand.ledger import Budget, patience
from evenhand.ledger.desk import Desk


def backends(url: str) -> list[int]:
    """The server's processes for this database, but that of the question itself."""
    with psycopg.connect(url) as connection:
        own = connection.info.backend_pid
        query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        return [row[0] for row in connection.execute(query) if row[0] != own]


def test_a_frozen_server_ends_the_request(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "ANSWER", 1.0)
    desk = Desk(eh.Ledger(postgres_url, epsilon=1))
    assert desk.spent() == Budget(desk.ledger.spent.epsilon)
    frozen = backends(postgres_url)
    assert frozen
    for one in frozen:
        os.kill(one, signal.SIGSTOP)
    began = time.monotonic()
    try:
        ended: list[BaseException] = []

        def ask() -> None:
            try:
                desk.spent()
            except BaseException as error:
                ended.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(20)
        # Either the pool noticed and opened another connection, which is not frozen, or the request ended with an error.
        assert not thread.is_alive(), "the request waits for a server that does not run"
        assert time.monotonic() - began < 15
        assert all(isinstance(error, eh.EvenhandError) for error in ended)
    finally:
        for one in frozen:
            os.kill(one, signal.SIGCONT)
    assert desk.spent().epsilon == 0


def test_a_statement_that_takes_too_long_is_ended_by_the_server(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "STATEMENT", 0.2)
    desk = Desk(eh.Ledger(postgres_url, epsilon=1))
    with pytest.raises(eh.EvenhandError, match="statement timeout"):
        desk.batches.run(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(30)"))
    assert desk.spent().epsilon == 0

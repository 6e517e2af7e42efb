"""A question that takes the server down is not worked out again: it is answered as one that fails, and those beside it as usual."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand.ledger import Ledger
from evenhand.ledger.desk import Desk
from evenhand.service.accounts import Accounts, Role
from keeper_process import Server

ROWS, USERS = 18_000, 20
FILE = """
deadline = 10
[populations.people]
ledger = "{ledger}"
epsilon = 20
[tables.visits]
source = "visits.parquet"
user = "u"
population = "people"
rows = 500000
[analysts.ann]
epsilon = 10
immediate = true
[analysts.bob]
epsilon = 10
immediate = true
"""
BOUND = {"strategy": "TotalCap", "T": 1000}
SLOW = {  # each row meets all others of its user: half a second, enough to be killed in
    "ask": "sql",
    "text": "WITH a AS (SELECT u, v AS w FROM visits) SELECT COUNT(*) FROM visits JOIN a USING (u) WHERE sqrt(v + w) > 0.5",
    "epsilon": "1",
    "bounding": BOUND,
}
SUM = {"ask": "sum", "column": "v", "bounds": [0, 1], "epsilon": "5", "bounding": BOUND}
"""Its turn is after the slow one: the same worker computes both."""


def call(url: str, token: str, path: str, data: object = None) -> Any:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url + path, body, {"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def asks(*given: Any) -> None:
    """Ask, and be left without an answer when the server dies."""
    with suppress(OSError):
        call(*given)


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not done():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.005)


def answer(url: str, token: str, id: str) -> float:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        shown = call(url, token, f"/v1/questions/{id}")
        if shown.get("answer"):
            return float(shown["answer"]["value"])
        time.sleep(0.1)
    raise AssertionError("there is no answer")


@pytest.mark.parametrize("store", ["SQLite", "Postgres"])
def test_a_question_during_which_the_server_died_is_set_aside(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue("postgres_url") if store == "Postgres" else str(tmp_path / "budget.db")
    numbers = range(ROWS)
    frame = pd.DataFrame({"u": [one % USERS for one in numbers], "v": [float(one % 100) for one in numbers]})
    frame.to_parquet(tmp_path / "visits.parquet")
    (tmp_path / "keeper.toml").write_text(FILE.format(ledger=place))
    accounts = Accounts(tmp_path / "accounts.db")
    ann, bob = (accounts.issue(name, Role.ANALYST) for name in ("ann", "bob"))
    server = Server(tmp_path)
    try:
        desk = Desk(Ledger(place))
        for number, (token, question) in enumerate(((ann, SLOW), (bob, SUM)), start=1):
            given = (server.url, token, "/v1/questions", {"key": "one", "question": question})
            threading.Thread(target=asks, args=given, daemon=True).start()
            wait_until(lambda number=number: len(desk.asked()) == number)  # type: ignore[misc]
        wait_until(lambda: bool(desk.started()))
        server.stop(signal.SIGKILL)
        spent = desk.ledger.spent
        slow, beside = (asked.id for asked in desk.asked())
        assert (desk.started(), spent.epsilon) == ({slow: 1}, Decimal(6))
        server = Server(tmp_path)
        found, other = answer(server.url, ann, slow), answer(server.url, bob, beside)
    finally:
        server.stop(signal.SIGKILL)
    assert abs(found) < USERS * 1000 / 2, "about the empty table"
    assert abs(other - ROWS * 0.99) < 4000, "about the table"
    assert desk.ledger.spent == spent, "nothing was debited twice"
    assert desk.started() == {}, "all are answered"
    lines = [json.loads(line) for line in (tmp_path / "log.txt").read_text().splitlines()]
    aside = [line for line in lines if "set aside" in line["event"]]
    assert [(line["question"], line["times"]) for line in aside] == [(slow, 1)]

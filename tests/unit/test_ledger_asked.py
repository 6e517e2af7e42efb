"""Events say who asked, about which table, and why; all of it is part of their hashes."""

from __future__ import annotations

import csv
import json
import pickle
import sqlite3
import sys
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.apps import cli
from evenhand.guarantee import Guarantee, Relation
from evenhand.ledger import Budget, Cost
from evenhand.ledger.composition import Account
from evenhand.ledger.dividing import largest_epsilon

PROMISE = Guarantee(Decimal(1), Decimal(0), Relation.PRESENCE, ("u",))
FRAME = pd.DataFrame({"u": [1, 2, 3], "v": [1.0, 2.0, 3.0]})


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["evenhand", *arguments])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_events_say_who_asked_about_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ana")
    FRAME.to_parquet(tmp_path / "t.parquet")
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=10, note="first look")
    session = eh.Session(eh.read(tmp_path / "t.parquet", user="u"), ledger)
    session.count(epsilon=1)
    ledger.note = "nightly"
    session.profile(epsilon=1)
    pickle.loads(pickle.dumps(ledger)).debit(Cost.pure(1), {"statistic": "other"}, PROMISE)
    eh.Session(eh.read(FRAME, user="u"), eh.Ledger(tmp_path / "b.db", who="night job")).users(epsilon=1)
    path = str(tmp_path / "t.parquet")
    assert [event.asked.to_dict() for event in ledger.events] == [
        {"who": "ana", "table": path, "note": "first look"},
        {"who": "ana", "table": path, "note": "nightly"},
        {"who": "ana", "note": "nightly"},
        {"who": "night job", "table": "DataFrame"},
    ]
    assert ledger.events[0].query["statistic"] == "count"
    assert "asked" not in ledger.events[0].query
    ledger.verify()


def test_an_edited_note_is_noticed(tmp_path: Path) -> None:
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=1, note="by permission of nobody")
    ledger.debit(Cost.pure(1), {"statistic": "count"}, PROMISE)
    with sqlite3.connect(tmp_path / "b.db") as database:
        database.execute("DROP TRIGGER evenhand_event_update")
        database.execute("UPDATE evenhand_event SET query = replace(query, 'nobody', 'the board')")
    with pytest.raises(eh.LedgerError, match="edited"):
        ledger.verify()


@pytest.mark.parametrize("text", ["two\nlines", "x" * 1001, 5])
def test_notes_are_one_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(eh.UsageError, match="one line"):
        eh.Ledger(tmp_path / "b.db", epsilon=1, note=text)
    assert not (tmp_path / "b.db").exists()


def test_the_name_of_a_source_holds_no_account(postgres_url: str) -> None:
    import ibis

    backend = ibis.connect(postgres_url)
    backend.create_table("people", pa.table({"u": [1], "v": [1.0]}))
    table = eh.read(postgres_url, user="u", table="people")
    assert table.source is not None
    assert table.source.startswith("postgresql://")
    assert table.source.endswith(" people")
    assert "@" not in table.source
    assert "?" not in table.source


def test_ledgers_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("t.csv", index=False)
    assert run(monkeypatch, "ledger", "create", "b.db", "--epsilon", "2", "--delta", "1e-6") == 0
    assert run(monkeypatch, "ledger", "create", "b.db", "--epsilon", "3") == 2
    asked = ("--who", "job 7", "--note", "first [night]", "--ledger", "b.db")
    assert run(monkeypatch, "release", "count", "t.csv", "--user", "u", "--epsilon", "1", *asked) == 0
    capsys.readouterr()
    assert run(monkeypatch, "ledger", "verify", "b.db") == 0
    head = eh.Ledger("b.db").head
    assert capsys.readouterr().out == f"1 events agree with the totals; head {head}\n"
    assert run(monkeypatch, "ledger", "verify", "b.db", "--head", head) == 0
    assert run(monkeypatch, "ledger", "verify", "b.db", "--head", "0" * 64) == 4
    capsys.readouterr()
    assert run(monkeypatch, "ledger", "show", "b.db") == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("job 7", "t.csv", "[night]"))
    assert run(monkeypatch, "ledger", "export", "b.db", "--out", "e.csv") == 0
    assert run(monkeypatch, "ledger", "export", "b.db", "--out", "e.csv") == 2
    assert run(monkeypatch, "ledger", "export", "b.db", "--out", "e.xlsx") == 2
    assert run(monkeypatch, "ledger", "export", "b.db", "--out", "e.jsonl") == 0
    for command, out in (("compliance", "c.html"), ("registry", "r.yaml")):
        assert run(monkeypatch, "ledger", command, "b.db", "--out", out) == 0
        assert run(monkeypatch, "ledger", command, "b.db", "--out", out) == 2  # never overwritten
        assert run(monkeypatch, "ledger", command, "b.db", "--out", "e.txt") == 2
        assert "whoever holds the ledger" in Path(out).read_text() or 'status: "Draft"' in Path(out).read_text()
    with open("e.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["who"], row["table"], row["note"], row["epsilon"]) == ("job 7", "t.csv", "first [night]", "1")
    assert json.loads(Path("e.jsonl").read_text())["asked"]["who"] == "job 7"
    assert run(monkeypatch, "ledger", "verify", "none.db") == 4


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("spent", [(), (Cost.pure("0.3"),), (Cost.pure("0.001"),) * 30])
def test_the_share_of_a_job_that_recurs_fits_and_is_the_largest_that_does(
    delta: str | int, spent: tuple[Cost, ...]
) -> None:
    """Against an account that is really asked so often."""
    started = Account.open(Budget(Decimal(1), Decimal(delta)))
    for cost in spent:
        started = started.after(cost) or pytest.fail("too much was spent before")
    for times in (1, 3, 365):
        each = largest_epsilon(started, times)
        for epsilon, fits in ((each, True), (each + Decimal(1).scaleb(each.adjusted() - 2), False)):
            account: Account | None = started
            for _ in range(times):
                account = account and account.after(Cost.pure(epsilon))
            assert (account is not None) is fits


def test_what_a_year_gains_from_delta(tmp_path: Path) -> None:
    assert eh.Ledger(tmp_path / "pure.db", epsilon=1).each(365) == Decimal("0.00273")
    assert eh.Ledger(tmp_path / "delta.db", epsilon=1, delta="1e-6").each(365) == Decimal("0.0105")
    with pytest.raises(eh.UsageError, match="how many releases"):
        eh.Ledger(tmp_path / "pure.db").each(0)

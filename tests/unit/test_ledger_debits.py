"""What a ledger records and refuses, on SQLite and on Postgres."""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evenhand.guarantee import BudgetExceeded, Guarantee, LedgerError, Purchase, Relation, UsageError
from evenhand.ledger import Budget, Cost, Event, Ledger, mechanism_delta
from evenhand.ledger.events import Record

TENTH = Cost.pure("0.1")


def promise(
    relation: Relation = Relation.PRESENCE, unit: tuple[str, ...] = ("userId",), epsilon: str = "0.1"
) -> Guarantee:
    return Guarantee(Decimal(epsilon), Decimal(0), relation, unit)


def debit(ledger: Ledger, cost: Cost = TENTH, **parts: Any) -> Event:
    return ledger.debit(cost, {"statistic": "count"}, promise(**parts))


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "budget.db")


def test_ten_tenths_fit_and_the_eleventh_is_refused(location: str) -> None:
    ledger = Ledger(location, epsilon=1.0)
    for _ in range(10):
        debit(ledger)
    with pytest.raises(BudgetExceeded, match=r"costs ε = 0\.1.*has ε = 0 left of ε = 1"):
        debit(ledger)
    assert (float(ledger.total.epsilon), float(ledger.spent.epsilon), float(ledger.remaining.epsilon)) == (
        1,
        1,
        0,
    )
    assert len(ledger.events) == 10
    ledger.verify()


def test_an_event_holds_what_was_debited(location: str) -> None:
    ledger = Ledger(location, epsilon=1, delta="1e-6")
    query = {"statistic": "mean", "column": "bewertung ★", "bounds": [0.5, 5], "cap": Decimal("2.50")}
    guarantee = Guarantee(Decimal("0.2"), Decimal("1e-7"), Relation.VALUES, ("user", "day"), ("genre",))
    cost = Cost.zcdp("0.001", epsilon="0.2", delta="1e-7")
    event = ledger.debit(cost, query, guarantee)
    assert Ledger(location).events == (event,)
    assert event.guarantee == guarantee
    assert event.cost == cost
    assert event.query == {**query, "cap": "2.50"}
    assert event.number == 1
    assert event.time.endswith("+00:00")
    assert json.loads(json.dumps(event.to_dict()))["cost"] == {
        "epsilon": "0.2",
        "delta": "1E-7",
        "rho": "0.001",
    }
    with pytest.raises(AttributeError):
        event.number = 2  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(event)) == event


def test_an_event_holds_thresholds_and_earlier_purchases(location: str) -> None:
    ledger = Ledger(location, epsilon=1, delta="1e-6")
    cost = Cost.zcdp("0.001", epsilon="0.2", delta="1e-7", beyond="3e-8")
    bought = Purchase("an id", Decimal("0.05")), Purchase(None, Decimal("0.1"), Decimal("1e-9"))
    event = ledger.debit(cost, {"statistic": "count"}, promise().resting_on(*bought))
    assert Ledger(location).events == (event,)
    assert event.cost == cost
    assert event.guarantee.earlier == bought
    data = json.loads(json.dumps(event.to_dict()))
    assert data["cost"]["beyond"] == "3E-8"
    assert data["guarantee"]["earlier"][0]["event"] == "an id"
    assert data["guarantee"]["together"]["exact"] == {"epsilon": "0.25", "delta": "1E-9"}
    ledger.verify()


def test_an_event_of_format_1_has_nothing_beyond_its_rho() -> None:
    """Format 1 knew no thresholds with a ρ; its events are read as they were written."""
    guarantee = '{"delta": "0", "epsilon": "0.1", "protects": "presence", "public": [], "user": ["u"]}'
    cost = '{"delta": "9E-8", "epsilon": "0.1", "rho": "0.0001"}'
    event = Record(1, "id", "2026-01-01T00:00:00+00:00", guarantee, cost, "{}").read()
    assert event.cost == Cost.zcdp("0.0001", epsilon="0.1", delta="9e-8")
    assert event.guarantee == promise(unit=("u",))


def test_a_refused_debit_leaves_no_trace(location: str) -> None:
    ledger = Ledger(location, epsilon="0.05")
    head = ledger.head
    with pytest.raises(BudgetExceeded):
        debit(ledger)
    with pytest.raises(UsageError, match="query="):
        ledger.debit(Cost.pure("0.01"), {"rows": object()}, promise())
    with pytest.raises(UsageError, match="query="):
        ledger.debit(Cost.pure("0.01"), {"bound": float("nan")}, promise())
    assert ledger.events == ()
    assert ledger.head == head
    assert ledger.unit is None


def test_can_afford_spends_nothing(location: str) -> None:
    ledger = Ledger(location, epsilon="0.15")
    assert ledger.can_afford(TENTH, promise())
    debit(ledger)
    assert not ledger.can_afford(TENTH, promise())
    assert ledger.spent == Budget(Decimal("0.1"))
    with pytest.raises(UsageError, match="protects userId"):
        ledger.can_afford(TENTH, promise(unit=("customer",)))


def test_the_total_of_an_existing_ledger_is_read_and_must_agree(location: str) -> None:
    Ledger(location, epsilon=0.1)
    assert Ledger(location).total == Ledger(location, epsilon="0.10", delta=0).total == Budget(Decimal("0.1"))
    with pytest.raises(UsageError, match=r"total of ε = 0\.1, but ε = 0\.2 was given"):
        Ledger(location, epsilon=0.2)
    with pytest.raises(UsageError, match=r"but ε = 0\.1, δ = 1e-6 was given"):
        Ledger(location, epsilon=0.1, delta=1e-6)


def test_a_new_ledger_needs_a_total(location: str) -> None:
    with pytest.raises(UsageError, match=r"no ledger at .* yet.*epsilon=1\.0"):
        Ledger(location)
    with pytest.raises(UsageError, match="without epsilon"):
        Ledger(location, delta=1e-6)
    assert not Path(location).exists()


def test_another_unit_is_refused(location: str) -> None:
    ledger = Ledger(location, epsilon=1)
    debit(ledger)
    with pytest.raises(UsageError, match=r"protects userId, but this release protects customer.*population"):
        debit(ledger, unit=("customer",))
    assert ledger.unit == ("userId",)
    assert len(ledger.events) == 1


def test_presence_counts_twice_on_a_ledger_of_values(location: str) -> None:
    ledger = Ledger(location, epsilon=1)
    debit(ledger, relation=Relation.VALUES)
    event = debit(ledger, relation=Relation.PRESENCE)
    assert event.cost == Cost.pure("0.2")
    assert event.guarantee.epsilon == Decimal("0.1")
    assert ledger.spent.epsilon == Decimal("0.3")
    with pytest.raises(BudgetExceeded):
        debit(ledger, Cost.pure("0.4"), relation=Relation.PRESENCE)
    ledger.verify()


@pytest.mark.parametrize("relation", [Relation.VALUES, Relation.LABELS])
def test_values_and_labels_imply_nothing_about_presence(tmp_path: Path, relation: Relation) -> None:
    ledger = Ledger(tmp_path / "b.db", epsilon=1)
    debit(ledger)
    with pytest.raises(UsageError, match=f"protects presence, and a release that protects {relation}"):
        debit(ledger, relation=relation)
    assert ledger.relation is Relation.PRESENCE


def test_delta_on_a_pure_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"needs delta=1e-6.*holds pure ε"):
        debit(Ledger(tmp_path / "b.db", epsilon=1), Cost.approximate("0.1", "1e-6"))


def test_totals_survive_the_change_of_rule(location: str) -> None:
    ledger = Ledger(location, epsilon=1, delta="1e-6")
    gaussian = Cost.zcdp("1e-4", epsilon="0.3", delta=mechanism_delta(Decimal("1e-7")))
    for _ in range(12):
        debit(ledger, gaussian)
    assert Ledger(location).spent == ledger.spent
    assert ledger.spent.epsilon < 1
    ledger.verify()


@pytest.mark.parametrize("total", [1e9, "1e-9"])
def test_extreme_totals(tmp_path: Path, total: float | str) -> None:
    ledger = Ledger(tmp_path / "b.db", epsilon=total, delta=1e-12)
    debit(ledger, Cost.pure(ledger.total.epsilon))
    assert ledger.remaining.epsilon == 0


def test_events_can_not_be_changed_by_sql(location: str) -> None:
    ledger = Ledger(location, epsilon=1)
    debit(ledger)
    for statement in ("UPDATE evenhand_event SET cost = ''", "DELETE FROM evenhand_event"):
        with pytest.raises(LedgerError, match="never changed or deleted"):
            ledger._store.run(partial(lambda sql, c: c.exec_driver_sql(sql), statement), write=True)
    ledger.verify()


EDITS: dict[str, list[str]] = {
    "cheaper event": ["UPDATE evenhand_event SET cost = replace(cost, '0.1', '0.01') WHERE number = 2"],
    "deleted event": ["DELETE FROM evenhand_event WHERE number = 2"],
    "lower total spent": ["UPDATE evenhand_ledger SET epsilon = '0'"],
    "raised budget": ["UPDATE evenhand_ledger SET total_epsilon = '100'"],
    "other people": ["UPDATE evenhand_ledger SET unit = '[\"customer\"]'"],
    "other relation": ["UPDATE evenhand_ledger SET relation = 'values'"],
    "last event and totals undone": [
        "DELETE FROM evenhand_event WHERE number = 3",
        "UPDATE evenhand_ledger SET epsilon = '0.2', events = 2",
    ],
}


@pytest.mark.parametrize("edit", EDITS)
def test_verify_notices_edits(tmp_path: Path, edit: str) -> None:
    ledger = Ledger(tmp_path / "b.db", epsilon=1)
    for _ in range(3):
        debit(ledger)
    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("DROP TRIGGER evenhand_event_update")
        connection.execute("DROP TRIGGER evenhand_event_delete")
        for statement in EDITS[edit]:
            connection.execute(statement)
    with pytest.raises(LedgerError, match=r"edited|do not agree"):
        Ledger(tmp_path / "b.db").verify()


def test_a_backup_copied_back_is_noticed_while_the_ledger_is_open(tmp_path: Path) -> None:
    path, backup = tmp_path / "b.db", tmp_path / "old.db"
    ledger = Ledger(path, epsilon=1)
    debit(ledger)
    shutil.copy(path, backup)
    debit(ledger)
    head = ledger.head
    shutil.copy(backup, path)
    with pytest.raises(LedgerError, match="went back in time"):
        debit(ledger)
    for _ in range(3):  # others may go on from the backup: longer, but not the same history
        debit(Ledger(path))
    with pytest.raises(LedgerError, match="went back in time"):
        _ = ledger.remaining
    Ledger(path).verify()
    with pytest.raises(LedgerError, match="noted head is not in its history"):
        Ledger(path).verify(head)


def test_a_head_noted_earlier_is_found_in_a_longer_history(location: str) -> None:
    ledger = Ledger(location, epsilon=1)
    heads = [ledger.head]
    for _ in range(3):
        debit(ledger)
        heads.append(ledger.head)
    for head in heads:
        ledger.verify(head)


def test_a_deleted_ledger_is_not_silently_begun_anew(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "b.db", epsilon=1)
    debit(ledger)
    (tmp_path / "b.db").unlink()
    with pytest.raises(LedgerError, match="can't be opened"):
        debit(ledger)
    assert repr(ledger).endswith("unreadable)")
    Ledger(tmp_path / "b.db", epsilon=1)
    with pytest.raises(LedgerError, match="went back in time"):
        debit(ledger)


def test_a_change_of_directory_does_not_change_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("b.db", epsilon=1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    debit(ledger)
    assert len(Ledger(tmp_path / "b.db").events) == 1


def test_threads_share_one_ledger_object(location: str) -> None:
    ledger = Ledger(location, epsilon=2)

    def work(_: int) -> bool:
        try:
            debit(ledger)
        except BudgetExceeded:
            return False
        return ledger.spent.epsilon <= 2

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(30))) == 20
    ledger.verify()


def test_verify_sees_one_moment_while_others_write(location: str) -> None:
    ledger = Ledger(location, epsilon=1000)
    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(lambda: [debit(ledger) for _ in range(25)]) for _ in range(2)]
        while not all(writer.done() for writer in writers):
            Ledger(location).verify()
    assert all(len(writer.result()) == 25 for writer in writers)


def test_a_ledger_can_be_sent_to_another_process(location: str) -> None:
    ledger = Ledger(location, epsilon=1)
    debit(pickle.loads(pickle.dumps(ledger)))
    assert ledger.spent.epsilon == Decimal("0.1")


def test_repr_shows_the_totals(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "b.db", epsilon=1, delta=1e-6)
    debit(ledger)
    assert repr(ledger) == f"Ledger('{tmp_path / 'b.db'}', total: ε = 1, δ = 1e-6; spent: ε = 0.1)"


def test_the_order_of_events_does_not_depend_on_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime

    from evenhand.ledger import ledger as module

    class Backwards(datetime.datetime):
        hour_back = 0

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Backwards:
            cls.hour_back += 1
            return cls(2030, 1, 1, 12, tzinfo=tz) - datetime.timedelta(hours=cls.hour_back)

    monkeypatch.setattr(module, "datetime", Backwards)
    ledger = Ledger(tmp_path / "b.db", epsilon=1)
    made = [debit(ledger) for _ in range(4)]
    assert [event.id for event in ledger.events] == [event.id for event in made]
    assert [event.time for event in made] == sorted((event.time for event in made), reverse=True)
    ledger.verify()

"""The diary answers once, remembers, and stays within its limits whatever happens."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evenhand.guarantee import BudgetExceeded, DataError, UsageError
from evenhand.recommender.at_home import Diary, check_query
from evenhand.recommender.at_home import diary as diary_module
from evenhand.recommender.messages import Query, Task, Token


def make_task(epoch: str = "1", epsilon: str = "1") -> Task:
    items = tuple(f"item {number}" for number in range(20))
    return Task(items, "projection", Decimal(epsilon), rated=10, tokens=100, pool=100, epoch=epoch, beacon=bytes(32))


def token_for(task: Task, serial: int = 3) -> Token:
    return Token(task.short_id, serial, b"genuine!")


def test_a_retry_sends_the_same_bytes(tmp_path: Path) -> None:
    """Fresh coins would differ within 60 tries, but for a chance of 2^-59."""
    task, ratings = make_task(), dict.fromkeys(range(5), True)
    diary = Diary(tmp_path / "diary.db")
    first = diary.answer(task, token_for(task), ratings).to_bytes()
    again = [diary.answer(task, token_for(task), ratings).to_bytes() for _ in range(30)]
    reopened = [Diary(tmp_path / "diary.db").answer(task, token_for(task), {}).to_bytes() for _ in range(30)]
    assert set(again + reopened) == {first}
    assert diary.spent == 1


def test_forgetful_twin_is_caught(tmp_path: Path) -> None:
    """The test above would notice a diary that draws anew: here is one."""
    task = make_task()
    drawn = {Diary(tmp_path / f"{n}.db").answer(task, token_for(task), {}).to_bytes() for n in range(60)}
    assert len(drawn) == 2


def test_a_second_token_gets_the_first_answer(tmp_path: Path) -> None:
    task = make_task()
    diary = Diary(tmp_path / "diary.db")
    first = diary.answer(task, token_for(task, 3), {0: True})
    assert diary.answer(task, token_for(task, 4), {0: True}) == first
    assert diary.answer(task.opened(b"x" * 32), token_for(task, 3), {0: True}) == first


def test_a_task_above_the_ceiling_is_declined_whatever_the_ratings(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "diary.db", ceiling="0.5")
    for ratings in ({}, dict.fromkeys(range(20), True)):
        with pytest.raises(BudgetExceeded, match="ceiling"):
            diary.answer(make_task(), token_for(make_task()), ratings)
    assert diary.spent == 0


def test_the_lifetime_budget_is_kept_exactly(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "diary.db", lifetime="1")
    for number in range(10):  # ten times 0.1 is 1
        task = make_task(epoch=str(number), epsilon="0.1")
        diary.answer(task, token_for(task), {})
    assert diary.spent == 1
    another = make_task(epoch="more", epsilon="0.000000001")
    with pytest.raises(BudgetExceeded, match="lifetime"):
        diary.answer(another, token_for(another), {})
    answered = make_task(epoch="3", epsilon="0.1")
    diary.answer(answered, token_for(answered), {})  # what was answered can still be sent again


def test_the_cost_is_written_down_before_a_coin_is_tossed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    diary = Diary(tmp_path / "diary.db")
    task = make_task()

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(diary_module, "answer", crash)
        with pytest.raises(KeyboardInterrupt):
            diary.answer(task, token_for(task), {})
    assert diary.spent == 1
    diary.answer(task, token_for(task), {})  # nothing had left, so the answer is drawn now, at no further cost
    assert diary.spent == 1


def _answer(path: Path, results: Any) -> None:
    task = make_task()
    results.put(Diary(path).answer(task, token_for(task), {}).to_bytes())


class PowerCut(sqlite3.Connection):
    """Keeps the journal of each transaction under a second name, as a disk does that has not yet unlinked the first."""

    def execute(self, *given: Any) -> sqlite3.Cursor:
        journal = Path(self.path + "-journal")
        kept = Path(self.path + "-kept")
        if given[0] == "COMMIT" and journal.exists():
            kept.unlink(missing_ok=True)
            os.link(journal, kept)
        return super().execute(*given)

    path: str


@pytest.fixture
def power_cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Cuts the power right after the last commit: what SQLite did to the journal's name did not reach the disk."""
    monkeypatch.setattr(PowerCut, "path", str(tmp_path / "diary.db"), raising=False)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: connect(*given, factory=PowerCut, **more))
    return lambda: (tmp_path / "diary.db-kept").replace(tmp_path / "diary.db-journal")


def answers_around_power_cuts(path: Path, power_cut: Any, times: int) -> set[bytes]:
    task, answers = make_task(), set()
    for _ in range(times):
        answers.add(Diary(path).answer(task, token_for(task), {}).to_bytes())
        power_cut()
    return answers


def test_a_power_cut_after_an_answer_is_not_followed_by_a_fresh_coin(tmp_path: Path, power_cut: Any) -> None:
    """Fresh coins would all agree with probability 2^-39."""
    path = tmp_path / "diary.db"
    assert len(answers_around_power_cuts(path, power_cut, 40)) == 1
    assert Diary(path).spent == 1


def test_a_journal_that_is_deleted_would_be_caught(
    tmp_path: Path, power_cut: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: SQLite's default, under which only the name of the journal goes."""
    monkeypatch.setattr(diary_module, "_JOURNAL", "delete")
    assert len(answers_around_power_cuts(tmp_path / "diary.db", power_cut, 40)) == 2


def test_every_transaction_is_synced(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "diary.db")
    with diary._writing() as database:
        found = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")]
    assert found == [3, "persist"]  # EXTRA


def test_another_journal_is_put_back_or_refused(tmp_path: Path) -> None:
    Diary(tmp_path / "diary.db")
    with sqlite3.connect(tmp_path / "diary.db") as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("SELECT * FROM limits").fetchall()
        with pytest.raises(DataError, match="can't be read or written"):
            Diary(tmp_path / "diary.db")  # a WAL can't be left while it is in use
    other.close()
    assert Diary(tmp_path / "diary.db").spent == 0


def test_a_new_diary_and_the_folders_made_for_it_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new" / "data"))
    opened: dict[int, str] = {}
    synced: list[str] = []
    real_open, real_sync = os.open, os.fsync

    def open_(path: Any, *more: Any) -> int:
        handle = real_open(path, *more)
        opened[handle] = str(path)
        return handle

    def sync(handle: int) -> None:
        synced.append(opened[handle])
        real_sync(handle)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "fsync", sync)
    diary = Diary()
    assert diary.path == tmp_path / "new/data/evenhand/diary.db"
    assert synced == [str(tmp_path / folder) for folder in ("", "new", "new/data", "new/data/evenhand")]
    assert diary.path.parent.stat().st_mode & 0o077 == 0


def test_the_diary_does_not_move_with_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    own, named = Diary(), Diary("named.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Diary().path == own.path
    task = make_task()
    assert named.answer(task, token_for(task), {}) == Diary(tmp_path / "named.db").answer(task, token_for(task), {})
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_without_platformdirs_a_diary_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(UsageError, match=r"pip install 'evenhand\[recommender\]'"):
        Diary()
    assert Diary(tmp_path / "diary.db").spent == 0


def test_places_that_cannot_keep_a_diary_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match="can't be made"):
        Diary()

    def refuse(_: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DataError, match="can't be synced"):
        Diary(tmp_path / "diary.db")


def test_two_processes_draw_one_coin(tmp_path: Path) -> None:
    path = tmp_path / "diary.db"
    Diary(path)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_answer, args=(path, results)) for _ in range(6)]
    for worker in workers:
        worker.start()
    answers = {results.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(answers) == 1
    assert Diary(path).spent == 1


def test_limits_stay_what_they_were(tmp_path: Path) -> None:
    Diary(tmp_path / "diary.db", ceiling="0.5", lifetime="2")
    again = Diary(tmp_path / "diary.db")
    assert (again.ceiling, again.lifetime) == (Decimal("0.5"), Decimal(2))
    with pytest.raises(UsageError, match="begun with lifetime=2"):
        Diary(tmp_path / "diary.db", lifetime="3")


def public_task() -> Task:
    items = tuple(f"item {number}" for number in range(20))
    return Task(items, "pairwise", Decimal(1), rated=10, tokens=100, pool=100, public_rated=True, beacon=bytes(32))


@pytest.mark.parametrize("decided", [None, False])
def test_rated_items_are_private_until_their_owner_says_otherwise(decided: bool | None, tmp_path: Path) -> None:
    task = public_task()
    diary = Diary(tmp_path / "diary.db", public_rated=decided)
    said = set()
    for ratings in ({}, {3: True}, dict.fromkeys(range(20), True)):
        with pytest.raises(UsageError, match="Nothing was answered or spent") as caught:
            diary.answer(task, token_for(task), ratings)
        said.add(str(caught.value))
    assert len(said) == 1
    assert diary.spent == 0


def test_the_decision_about_rated_items_is_made_once_and_kept(tmp_path: Path) -> None:
    task, path = public_task(), tmp_path / "diary.db"
    Diary(path)  # begun without a decision
    with pytest.raises(UsageError, match="lifetime"):
        Diary(path, lifetime=2, public_rated=False)
    assert Diary(path).public_rated is None  # what was refused decided nothing
    assert Diary(path, public_rated=True).answer(task, token_for(task), {}).serial == 3
    assert Diary(path).public_rated is True
    with pytest.raises(UsageError, match="decided once"):
        Diary(path, public_rated=False)
    with pytest.raises(UsageError, match="neither True nor False"):
        Diary(path, public_rated="yes")  # type: ignore[arg-type]


def test_a_diary_of_before_is_taken_up(tmp_path: Path) -> None:
    """Begun by a version that kept no decision and deleted its journals."""
    path = tmp_path / "diary.db"
    with sqlite3.connect(path) as old:
        old.execute("CREATE TABLE limits (ceiling TEXT NOT NULL, lifetime TEXT NOT NULL)")
        old.execute("CREATE TABLE answers (task BLOB PRIMARY KEY, epsilon TEXT NOT NULL, report BLOB)")
        old.execute("INSERT INTO limits VALUES ('1', '2')")
        old.execute("INSERT INTO answers VALUES (x'00', '1.5', x'00')")
    old.close()
    diary = Diary(path)
    assert (diary.spent, diary.lifetime, diary.public_rated) == (Decimal("1.5"), Decimal(2), None)
    with pytest.raises(BudgetExceeded):
        diary.answer(make_task(), token_for(make_task()), {})


@pytest.mark.parametrize("damage", ["UPDATE limits SET lifetime = 'much'", "UPDATE answers SET epsilon = 'NaN'"])
def test_damaged_amounts_are_not_guessed(damage: str, tmp_path: Path) -> None:
    path, task = tmp_path / "diary.db", make_task()
    Diary(path).answer(task, token_for(task), {})
    with sqlite3.connect(path) as hand:
        hand.execute(damage)
    hand.close()
    with pytest.raises(DataError, match="damaged"):
        _ = Diary(path).spent


def test_wrong_tokens_tasks_and_files(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "diary.db")
    task = make_task()
    with pytest.raises(UsageError, match="another task"):
        diary.answer(task, token_for(make_task(epoch="2")), {})
    with pytest.raises(UsageError, match="serial"):
        diary.answer(task, token_for(task, 100), {})
    closed = Task(task.items, "projection", task.epsilon, 10, 100, 100)
    with pytest.raises(UsageError, match="not open"):
        diary.answer(closed, token_for(closed), {})
    with pytest.raises(UsageError, match="must map"):
        diary.answer(task, token_for(task), [True])  # type: ignore[arg-type]
    assert diary.spent == 0
    (tmp_path / "garbage.db").write_bytes(b"garbage" * 1000)
    for path in (tmp_path / "garbage.db", tmp_path / "no such folder" / "diary.db"):
        with pytest.raises(DataError, match="diary"):
            Diary(path)


def test_a_server_that_made_up_the_query_is_found_out() -> None:
    task = make_task()
    with pytest.raises(DataError, match="public seed"):
        check_query(task, Query(task.short_id, 3, bytes(32)))
    with pytest.raises(DataError, match="another task"):
        check_query(task, Query(b"12345678", 3, bytes(32)))
    with pytest.raises(DataError, match="no query is stated"):
        check_query(public_task(), Query(public_task().short_id, 3, bytes(32)))

"""The diary answers once, remembers, and stays within its limits whatever happens."""

from __future__ import annotations

import multiprocessing
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
    assert diary.spent == 0
    (tmp_path / "garbage.db").write_bytes(b"garbage" * 1000)
    for path in (tmp_path / "garbage.db", tmp_path / "no such folder" / "diary.db"):
        with pytest.raises(DataError, match="diary"):
            Diary(path)


def test_a_server_that_made_up_the_query_is_found_out() -> None:
    task = make_task()
    with pytest.raises(DataError, match="public seed"):
        check_query(task, Query(task.short_id, 3, bytes(32)), {})
    with pytest.raises(DataError, match="another task"):
        check_query(task, Query(b"12345678", 3, bytes(32)), {})

"""Prices worked out in processes of their own: the same as here, with an end to time, memory and what is kept."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.ledger import Budget
from evenhand.ledger.desk import Desk, Limits
from evenhand.profiles import Profile
from evenhand.service import pricing, questions
from evenhand.service.granted import Analyst, Offered
from evenhand.service.keeper import Keeper
from evenhand.service.pricing import Price, Prices, drafts
from evenhand.service.questions import normalised
from evenhand.service.shapes import Shape
from evenhand.statistics import asking
from evenhand.statistics.keys import at_most_keys
from evenhand.tables.engines.copied import copied

FACTS: dict[str, Any] = {"v": {"bounds": (0, 6), "unit": "points"}, "g": {"keys": ["a", "b"]}}
ASKED: list[dict[str, Any]] = [
    {"ask": "count", "epsilon": "0.5"},
    {"ask": "count", "by": ["g", "h"], "keys": {"mapping": {"g": ["a", "b"], "h": [1, 2, 3]}}, "epsilon": 1},
    {"ask": "mean", "column": "v", "by": "g", "epsilon": 1},
    {"ask": "mean", "column": "w", "epsilon": 1},
    {"ask": "top", "column": "g", "epsilon": 1, "delta": 1e-6},
    {"ask": "sql", "text": "SELECT g, AVG(v * 2), COUNT(*) FROM table WHERE w > 0 GROUP BY g", "epsilon": 1},
    {"ask": "aggregate", "n": {"statistic": "count"}, "m": {"statistic": "mean", "column": "v"}, "epsilon": 1},
    {"ask": "profile", "epsilon": "0.1"},
    {"ask": "fit", "estimator": "BoundedERM", "label": "y", "features": ["v"], "feature_norm": 1, "epsilon": 1, "rows_per_user": 1},
    {"ask": "count", "epsilon": "no"},
    {"ask": "mean", "column": "nothing", "epsilon": 1},
]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> eh.Table:
    rows = {"u": [1, 2, 3], "v": [1.0, 2, 3], "w": [1.0, 9, 5], "g": ["a", "b", "c"], "h": [1, 2, 3], "y": [0, 1, 1]}
    return copied(eh.read(pd.DataFrame(rows), user="u", columns=FACTS)).where(eh._.w > 0)


@pytest.fixture(scope="module")
def prices(table: eh.Table) -> Iterator[Prices]:
    found = Prices({"t": table}, workers=1)
    yield found
    found.close()


def priced(prices: Prices, question: dict[str, Any], profile: Profile | None = None) -> Price:
    return prices.price("t", normalised({"table": "t", "question": question}), question, profile)


def told(prices: Prices, question: dict[str, Any], profile: Profile | None = None) -> object:
    try:
        return priced(prices, question, profile)
    except eh.EvenhandError as error:
        return type(error), str(error)


def test_a_process_says_what_this_one_says(table: eh.Table, prices: Prices, tmp_path: Path) -> None:
    """From the shape of a table alone, views, facts and bought profiles included."""
    here, bought = Prices({"t": table}), eh.Session(table, eh.Ledger(tmp_path / "b.db", epsilon=1)).profile(epsilon=1)
    for question in ASKED:
        assert told(prices, question) == told(here, question), question
    by_mean = {"ask": "mean", "column": "w", "bounds": [0, 9], "epsilon": 1}
    assert bought.event is not None
    assert told(prices, by_mean, bought) == told(here, by_mean, bought) != told(here, by_mean)


def test_a_shape_has_no_row(table: eh.Table) -> None:
    shape = Shape.of(table)
    assert shape is not None
    opened = shape.opened()
    assert opened.columns == table.columns
    assert opened.expression.count().execute() == 0
    assert (opened.facts, opened.relation, opened.public) == (table.facts, table.relation, table.public)


def test_a_product_is_known_before_it_is_made(table: eh.Table, prices: Prices) -> None:
    """Four lists of 100 keys are 2 kB, and 10⁸ groups; a grid of four lists is as many settings."""
    lists = {name: list(range(100)) for name in ("g", "h", "v", "w")}
    question = {"ask": "count", "by": list(lists), "keys": {"mapping": lists}, "epsilon": 1}
    started = time.process_time()
    with pytest.raises(eh.UsageError, match="100,000,000 keys; at most 100,000 fit"):
        priced(prices, question)
    with pytest.raises(eh.UsageError, match="at most 10,000,000"):
        questions.ask(drafts(table, None), question)
    numbers = ",".join(map(str, range(400)))
    text = f"SELECT h, v, w, COUNT(*) FROM table WHERE h IN ({numbers}) AND v IN ({numbers}) AND w IN ({numbers}) GROUP BY h, v, w"
    with at_most_keys(100_000), pytest.raises(eh.UsageError, match="64,000,000 keys"):
        questions.ask(drafts(table, None), {"ask": "sql", "text": text, "epsilon": 1})
    fit = next(one for one in ASKED if one["ask"] == "fit")
    grid = {"mapping": {name: list(range(1, 200)) for name in ("regularisation", "a", "b", "c", "d")}}
    search = {
        "ask": "fit",
        "estimator": "PrivateSearchCV",
        "label": "y",
        "epsilon": 1,
        "delta": 1e-6,
        "scoring": None,
        "refit": True,
    }
    with pytest.raises(eh.UsageError, match="candidates; expected at most"):
        questions.ask(
            drafts(table, None),
            {**search, "param_grid": grid, "of": {k: v for k, v in fit.items() if k not in ("ask", "label")}},
        )
    assert time.process_time() - started < 5


def test_bounds_of_many_columns_are_drafted_twice(table: eh.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each column: a SELECT of n sums then took n² steps."""
    drawn: list[int] = []
    by_row = asking._by_row

    def counted(*given: Any, **more: Any) -> Any:
        drawn.append(1)
        return by_row(*given, **more)

    monkeypatch.setattr(asking, "_by_row", counted)
    sums = ", ".join(f"SUM(w + {number}) AS s{number}" for number in range(8))
    questions.ask(drafts(table, None), {"ask": "sql", "text": f"SELECT {sums} FROM table", "epsilon": 1})
    assert len(drawn) == 2


def test_what_takes_too_long_is_ended_and_refused(table: eh.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next question finds another process."""
    prices = Prices({"t": table}, workers=1)
    priced(prices, ASKED[0])
    first = prices._free.queue[0]._process
    monkeypatch.setattr(pricing, "PATIENCE", 0.001)
    with pytest.raises(eh.UsageError, match=r"more than 5 seconds or 1024 MB.* Nothing was read or spent"):
        priced(prices, ASKED[2])
    monkeypatch.undo()
    assert first is not None
    assert first.poll() is not None
    assert priced(prices, ASKED[3]).guarantee.epsilon == 1
    prices.close()


@pytest.mark.thorough
def test_time_and_memory_have_an_end(table: eh.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """No question that may be asked takes five seconds any more, so the end comes earlier here."""
    monkeypatch.setattr(pricing, "PATIENCE", 0.2)
    prices = Prices({"t": table}, workers=1)
    some = ", ".join(map(str, range(150)))
    slow = ", ".join(f"SUM(v) FILTER (WHERE h IN ({some}) AND w > {place}) AS n{place}" for place in range(100))
    with pytest.raises(eh.UsageError, match="more than 5 seconds"):
        priced(prices, {"ask": "sql", "text": f"SELECT {slow} FROM table", "epsilon": 1})
    prices.close()


def test_what_is_kept_is_counted_in_bytes(table: eh.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "KEPT", 60_000)
    prices = Prices({"t": table})
    for number in range(1, 40):
        priced(prices, {"ask": "count", "epsilon": number})
        assert prices._bytes <= 60_000
    assert 1 < len(prices._kept) < 39
    keys = {"ask": "count", "by": "h", "keys": list(range(3000)), "epsilon": 1}
    priced(prices, keys)
    assert not any('"keys"' in key for key in prices._kept)  # one that would take the place of all others
    assert prices._bytes == sum(2 * len(key) + len(value) for key, value in prices._kept.items())


def test_large_questions_are_priced_before_they_are_drafted_for_an_answer(table: eh.Table, tmp_path: Path) -> None:
    """In the process that holds the table, only what is small, or was worked out elsewhere within time and memory, is drafted."""
    desk, limits = Desk(eh.Ledger(tmp_path / "b.db", epsilon=9)), Limits(Budget(Decimal(9)))
    keeper = Keeper({"t": Offered(table, desk)}, {"ann": Analyst(limits, immediate=True)}, deadline=60, price_workers=1)
    small, product, parsed = ASKED[0], ASKED[1], ASKED[5]
    long = {"ask": "count", "by": "h", "keys": list(range(500)), "epsilon": 1}
    for number, question in enumerate((small, product, parsed, long)):
        keeper.ask("ann", None, str(number), question)
        keeper.ask("ann", None, str(number), question)
    assert [json.loads(key.partition(" ")[2])["question"] for key in keeper.prices._kept] == [product, parsed, long]
    keeper.prices._kept.clear()
    keeper.ask("ann", None, "1", product)  # it was paid for: whatever its price, it is found
    assert not keeper.prices._kept
    keeper.close()


def test_one_analyst_takes_one_process(table: eh.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many questions somebody asks at once, what works prices out is there for others."""
    limits = Limits(Budget(Decimal(9)))
    desk = Desk(eh.Ledger(tmp_path / "b.db", epsilon=9))
    kept = Keeper({"t": Offered(table, desk)}, {name: Analyst(limits) for name in ("mal", "bob")})
    now, most, lock = [0], [0], threading.Lock()
    price = kept.prices.price

    def slow(*given: Any) -> Price:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return price(*given)

    monkeypatch.setattr(kept.prices, "price", slow)
    monkeypatch.setattr(kept.prices, "are_work", lambda *_: True)

    def ask(number: int) -> None:
        question = {"ask": "count", "epsilon": f"0.0{number + 1}"}
        with suppress(eh.EvenhandError):
            kept.preview("mal", "t", question) if number % 2 else kept.ask("mal", "t", str(number), question)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    kept.close()
    assert most[0] == 1

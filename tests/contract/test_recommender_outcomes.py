"""Nothing that a client does, says or writes depends on ratings, but for the randomised bits.

For random tasks, people's settings and pairs of ratings that have nothing in common, everything that could be noticed is
compared: report or error, its type and text, warnings, prints, exit code, the report's bytes around the answer, what was
spent. The laws of the bits themselves are in ``tests/property/test_recommender_privacy.py``.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evenhand.apps.recommender_cli import app
from evenhand.guarantee import EvenhandError
from evenhand.recommender.at_home import Diary, answering, read_ratings, recommend
from evenhand.recommender.at_home import ratings as ratings_module
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.messages import SKETCHES, PublishedModel, Query, Report, Task, Token
from evenhand.recommender.messages.model import epoch_after

NAMES = ("alien", "brazil", "casablanca", "dune", "élan", "fargo, again", 'the "heat"', " ikiru", "\ufffd", "n/a")


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Tasks of every kind: also closed ones, too expensive ones, and ones that want rated items to be public."""
    items = draw(
        st.lists(st.sampled_from(NAMES) | st.text(min_size=1, max_size=3), min_size=2, max_size=9, unique=True)
    )
    sketch = draw(st.sampled_from(list(SKETCHES)))
    return Task(
        items=tuple(items),
        sketch=sketch,
        epsilon=draw(st.sampled_from([Decimal("0.1"), Decimal(1), Decimal(1), Decimal(2)])),
        rated=draw(st.integers(1, len(items))),
        tokens=8,
        pool=8,
        theta=Decimal("0.5") if SKETCHES[sketch].senses else None,
        public_rated=SKETCHES[sketch].public_rated and draw(st.booleans()),
        beacon=draw(st.sampled_from([None, *(bytes([n]) * 32 for n in range(4))])),
    )


JUNK = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=2)
RATINGS = st.dictionaries(
    st.integers(-2, 10) | JUNK, st.booleans() | JUNK | st.decimals() | st.lists(JUNK), max_size=12
)
OPINIONS = st.sampled_from(["yes", "no", "", "maybe", "5", "3.5", "nan", "1e999", "-", '"', "\udcff", "\0"])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """What follows a file's first line: ratings of items that may be known, and anything at all."""
    parts = []
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.booleans()):
            row = io.StringIO()
            csv.writer(row).writerow([draw(st.sampled_from(NAMES)), draw(OPINIONS)])
            parts.append(row.getvalue().encode("utf-8", "surrogateescape"))
        else:
            parts.append(draw(st.binary(max_size=12)) + draw(st.sampled_from([b"", b"\n", b"\r"])))
    return b"".join(parts)


def masked(record: bytes) -> tuple[int, Report]:
    """All of a report but its answer, and its size."""
    return len(record), dataclasses.replace(Report.from_bytes(record), answer=0)


def noticed(work: Callable[[], Any]) -> tuple[Any, ...]:
    """What someone who sees everything but the bits would notice."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what earlier tests left to the garbage collector
        try:
            result: Any = work()
        except EvenhandError as error:
            result = (type(error), str(error))
    return result, [str(warning.message) for warning in caught]


def at_home(task: Task, ratings: Any, public_rated: bool | None) -> tuple[Any, ...]:
    """A new person is asked, and asked again."""
    with tempfile.TemporaryDirectory() as folder:
        diary = Diary(Path(folder) / "diary.db", public_rated=public_rated)
        token = Token(task.short_id, 3, b"genuine!")

        def asked() -> Any:
            report = diary.answer(task, token, ratings)
            assert report.answer < 1 << task.questions
            return masked(report.to_bytes())

        told = [noticed(asked) for _ in range(2)], diary.spent
    return tuple(str(told).split(folder))


@given(tasks(), RATINGS, RATINGS, st.sampled_from([None, False, True]))
@settings(max_examples=80, deadline=None)
def test_the_client(task: Task, one: Any, other: Any, public_rated: bool | None) -> None:
    assert at_home(task, one, public_rated) == at_home(task, other, public_rated)


def by_command(
    task: Task, rows: bytes, column: str, public_rated: bool | None, query: Query | None, **more: str
) -> tuple[Any, ...]:
    """The same with files, through the commands; ``more`` are the texts of further public files, by option."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("task.bin").write_bytes(task.to_bytes())
            Path("mine.csv").write_bytes(f"item,{column}\n".encode() + rows)
            Diary("diary.db", public_rated=public_rated)
            given = [
                "answer",
                "task.bin",
                "--token",
                str(Token(task.short_id, 3, b"genuine!")),
                "--ratings",
                "mine.csv",
            ]
            for option, text in more.items():
                Path(option).write_text(text)
                given += [f"--{option}", option]
            if query is not None:
                Path("query.json").write_text(query.to_json())
                given += ["--query", "query.json"]
            told = []
            for command in (given, [*given, "--json"]):
                result = CliRunner().invoke(app, [*command, "--diary", "diary.db"])
                assert result.exception is None or isinstance(result.exception, EvenhandError | SystemExit)
                files = sorted(path.name for path in Path().iterdir())
                sent = masked(Path("report.bin").read_bytes()) if "report.bin" in files else None
                told.append((result.exit_code, result.output, repr(result.exception), files, sent))
        finally:
            os.chdir(before)
    return tuple(str(told).split(folder))


def true_query(task: Task) -> Query:
    sketch = sketch_for(task.opened(bytes(32)) if task.beacon is None else task)
    return Query(task.short_id, 3, hashlib.sha256(sketch.encode(sketch.query(3, [0, 1]))).digest())


@given(
    tasks(),
    lines(),
    lines(),
    st.sampled_from(["liked", "rating"]),
    st.sampled_from([None, False, True]),
    st.sampled_from(["none", "true", "false"]),
)
@settings(max_examples=30, deadline=None)
def test_the_commands(
    task: Task, one: bytes, other: bytes, column: str, public_rated: bool | None, stated: str
) -> None:
    query = {"none": None, "true": true_query(task), "false": Query(task.short_id, 3, bytes(32))}[stated]
    assert by_command(task, one, column, public_rated, query) == by_command(task, other, column, public_rated, query)


@given(lines(), lines())
@settings(max_examples=4, deadline=None)
def test_the_commands_about_groups_and_in_second_rounds(one: bytes, other: bytes) -> None:
    first = PublishedModel(bytes(32), NAMES[:4], (0,) * 4, ((1.0,), (-0.5,), (0.3,), (-1.0,)), (), 9, Decimal(1))
    films = "item,group\n" + "".join(
        f"{name},{NAMES[place % 4]}\n" for place, name in enumerate((*NAMES[:5], "x", "y"))
    )
    grouped, second = example_task(), example_task("maxsense", theta=Decimal(1), epoch=epoch_after(first, 1, "1"))
    for task, more in ((grouped, {"groups": films}), (second, {"after": first.to_json()}), (second, {})):
        told = by_command(task, one, "liked", None, None, **more)
        assert told == by_command(task, other, "liked", None, None, **more)
        assert ("report.bin" in str(told)) == bool(more)


def example_task(sketch: str = "projection", **more: Any) -> Task:
    return Task(NAMES[:4], sketch, Decimal(1), rated=2, tokens=8, pool=8, beacon=bytes(32), **more)


@given(RATINGS)
@example({0: True, 10**30: True, -1: False})
@settings(max_examples=80, deadline=None)
def test_recommending_takes_any_ratings(ratings: Any) -> None:
    for embedding in ((), ((1.0,), (0.5,), (-1.0,), (0.0,))):
        model = PublishedModel(bytes(32), NAMES[:4], (0, 0, 1, 1), embedding, (), 9, Decimal(1))
        items = {found.item for found in recommend(model, ratings)}
        assert items == set(NAMES[:4]) - {NAMES[item] for item in ratings_module.usable(ratings, 4)}


# Broken twins: clients as they once were, which the comparisons above must tell apart.


def test_a_client_that_believes_item_numbers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "usable", lambda ratings, items: ratings)
    monkeypatch.setattr(answering, "suppress", lambda *errors: nullcontext())  # which alone would hide the error
    with pytest.raises(IndexError):
        at_home(example_task(), {99: True}, None)


def test_a_client_that_declines_unclear_ratings_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def strict(given: str, column: str, like_from: float) -> bool:
        if given not in ("yes", "no"):
            raise EvenhandError("liked must be yes or no")
        return given == "yes"

    monkeypatch.setattr(ratings_module, "_opinion", strict)
    clear, unclear = (by_command(example_task(), row, "liked", None, None) for row in (b"alien,yes\n", b"alien,\n"))
    assert clear != unclear


def test_a_client_that_compares_queries_of_rated_items_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's word on the query then says which items were rated."""
    task = example_task("pairwise", public_rated=True)

    def comparing(asked: Task, query: Query) -> None:
        sketch, rated = sketch_for(asked), sorted(read_ratings("mine.csv", asked.items).liked)
        if hashlib.sha256(sketch.encode(sketch.query(query.serial, rated))).digest() != query.digest:
            raise EvenhandError("not your query")

    monkeypatch.setattr("evenhand.recommender.at_home.check_query", comparing)
    found = [
        by_command(task, row, "liked", True, true_query(task)) for row in (b"alien,yes\nbrazil,no\n", b"dune,no\n")
    ]
    assert found[0] != found[1]


def test_a_client_that_says_what_it_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def talkative(*given: Any) -> ratings_module.Ratings:
        found = read_ratings(*given)
        print(*found.left_out())
        return found

    monkeypatch.setattr("evenhand.recommender.at_home.read_ratings", talkative)
    known, unknown = (by_command(example_task(), row, "liked", None, None) for row in (b"alien,yes\n", b"zorro,yes\n"))
    assert known != unknown

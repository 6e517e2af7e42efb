"""Messages survive the wire, and what was altered, cut or made up does not."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.messages import PublishedModel, Query, Report, Task, Token
from recommender_examples import MODEL


def make_task(**changes: Any) -> Task:
    fields: dict[str, Any] = {
        "items": ("alien", "brazil", "casablanca", "dune"),
        "sketch": "maxsense",
        "epsilon": Decimal("0.5"),
        "rated": 2,
        "tokens": 10,
        "pool": 10,
        "theta": Decimal("1.25"),
    }
    return Task(**{**fields, **changes})


MESSAGES = [
    make_task(),
    make_task(beacon=bytes(range(32))),
    make_task(sketch="projection", theta=None, epoch="zwölf"),
    Query(b"12345678", 7, bytes(32)),
    Report(b"12345678", 7, b"abcdefgh", 3),
    MODEL,
    dataclasses.replace(MODEL, embedding=(), popularity=()),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_survive_the_wire(message: Any) -> None:
    assert type(message).from_bytes(message.to_bytes()) == message
    assert type(message).from_json(message.to_json()) == message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_cut_or_padded_messages_are_refused(message: Any) -> None:
    whole = message.to_bytes()
    for damaged in (b"", whole[:3], whole[:-1], whole[: len(whole) // 2], whole + b"x"):
        with pytest.raises(DataError):
            type(message).from_bytes(damaged)
    for damaged in ("", "{}", "[1]", message.to_json()[:-2], message.to_json().replace("version", "wersion")):
        with pytest.raises(DataError):
            type(message).from_json(damaged)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_garbage_is_refused_and_never_crashes(data: bytes) -> None:
    for kind in (Task, Query, Report, PublishedModel):
        for read, prefix in ((kind.from_bytes, b""), (kind.from_json, b"")):
            with pytest.raises(DataError):
                read(prefix + data)
    for kind, magic in ((Task, b"EHT1"), (PublishedModel, b"EHM1")):
        with pytest.raises(DataError):
            kind.from_bytes(magic + data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", "5"),
        ("rated", 3),
        ("items", ["alien", "brazil", "casablanca", "elf"]),
        ("epoch", "2"),
        ("theta", "1"),
    ],
)
def test_a_task_altered_after_its_id_was_made_is_refused(field: str, value: object) -> None:
    altered = json.loads(make_task().to_json())
    altered[field] = value
    with pytest.raises(DataError, match="altered"):
        Task.from_json(json.dumps(altered))


def test_the_beacon_does_not_change_the_id() -> None:
    task = make_task()
    assert task.opened(bytes(32)).id == task.id
    assert task.opened(bytes(32)).query_key != task.opened(b"1" * 32).query_key
    with pytest.raises(UsageError, match="not open"):
        _ = task.query_key


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"items": ("one",)}, "1 items"),
        ({"items": ("a", "a", "b")}, "twice"),
        ({"items": ("a", "")}, "text"),
        ({"rated": 5}, "rated=5"),
        ({"rated": 0}, "rated=0"),
        ({"tokens": 0}, "tokens=0"),
        ({"pool": 11}, "pool=11"),
        ({"epsilon": Decimal(0)}, "epsilon"),
        ({"sketch": "maxsens"}, "Did you mean 'maxsense'"),
        ({"theta": None}, "theta"),
        ({"theta": Decimal(3)}, "theta=3"),
        ({"questions": 2}, "questions=2"),
        ({"sketch": "multi-maxsense", "questions": 3}, "disjoint sets"),
        ({"public_rated": True}, "public_rated"),
        ({"beacon": b"short"}, "beacon"),
    ],
)
def test_wrong_tasks_are_explained(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_task(**changes)


def test_set_size_rounds_half_up_and_is_at_least_one() -> None:
    assert make_task(theta=Decimal("1.25")).set_size == 3  # 4 * 1.25 / 2 = 2.5
    assert make_task(theta=Decimal("1.24")).set_size == 2
    assert make_task(theta=Decimal("0.001")).set_size == 1


def test_tokens_as_text() -> None:
    token = Token(b"12345678", 17, b"abcdefgh")
    assert Token.parse(f"  {token}\n") == token
    for damaged in ("", "17", "x-17-y", str(token)[:-1], str(token).replace("17", "-1"), "00-１7-00"):
        with pytest.raises(DataError):
            Token.parse(damaged)


def test_the_guarantee_says_what_is_and_what_is_not_protected() -> None:
    words = make_task().guarantee.words()
    assert "ε = 0.5" in words
    assert "1.65" in words  # e^0.5
    assert "took part" in words
    public = make_task(sketch="pairwise", theta=None, public_rated=True).guarantee
    assert "which items they rated" in public.words()
    assert public.to_dict()["public"] == ["participation", "rated items"]

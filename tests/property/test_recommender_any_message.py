"""Whatever bytes or JSON arrive, on either side, are a sound message or a `MessageError`; and no two tasks share an id."""

from __future__ import annotations

import copy
import dataclasses
import json
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.at_server import Counts
from evenhand.recommender.messages import MessageError, PublishedModel, Query, Report, Task, Token
from recommender_examples import MODEL

TASK = Task(("alien", "brazil", "élan"), "maxsense", Decimal("0.5"), 2, tokens=10, pool=10, theta=Decimal("1.25"))
MESSAGES = [
    TASK.opened(bytes(range(32))),
    Query(b"12345678", 7, bytes(32)),
    Report(b"12345678", 7, b"abcdefgh", 1),
    MODEL,
]
each_kind = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)

TEXTS = st.text(max_size=8) | st.sampled_from(
    ["", "\ud800", "0", "1e999999999", "NaN", "-1", "+1", "1.0", "１", "1_0", "00" * 32]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.sampled_from([-1, 2**31, 2**32, 10**400]) | st.floats() | TEXTS
ANY = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)

ODD = [
    None,
    True,
    -1,
    1.5,
    2**32,
    10**400,
    float("nan"),
    float("inf"),
    "\ud800",
    [None],
    ["\ud800"],
    [[True]],
    {"a": 1},
]


@st.composite
def damaged_json(draw: st.DrawFn, whole: str) -> str:
    """A message with some values replaced, and fields dropped, added or doubled."""
    found = json.loads(whole)
    values = st.sampled_from(ODD).map(copy.deepcopy) | ANY
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(found) or ["none"]))
        kind = draw(st.sampled_from(["replace", "inside", "drop", "add"]))
        if kind == "inside" and isinstance(found.get(name), list) and found[name]:
            found[name][draw(st.integers(0, len(found[name]) - 1))] = draw(values)
        elif kind == "drop":
            found.pop(name, None)
        else:
            found[draw(TEXTS) if kind == "add" else name] = draw(values)
    pairs = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    if draw(st.integers(0, 5)) == 5:
        pairs += pairs[:1]
    return "{" + ", ".join(pairs) + "}"


@st.composite
def damaged_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    """A message with bytes changed, cut out or put in."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        data[place : place + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data)


def check_sound(message: Any) -> None:
    """What was read can be written both ways, and read again."""
    kind = type(message)
    assert kind.from_json(message.to_json()) == message
    again = kind.from_bytes(message.to_bytes())
    assert kind.from_bytes(again.to_bytes()) == again
    if kind is not PublishedModel:  # whose binary numbers have 32 bits
        assert again == message


@each_kind
def test_any_json_is_a_message_or_the_documented_error(message: Any) -> None:
    @given(damaged_json(message.to_json()) | ANY.map(json.dumps))
    @settings(max_examples=150, deadline=None)
    def check(text: str) -> None:
        for given_ in (text, text.encode("utf-8", "surrogatepass")):
            try:
                read = type(message).from_json(given_)
            except MessageError:
                continue
            check_sound(read)

    check()


@each_kind
def test_any_bytes_are_a_message_or_the_documented_error(message: Any) -> None:
    whole = message.to_bytes()

    @given(damaged_bytes(whole) | st.binary(max_size=60) | st.binary(max_size=60).map(lambda data: whole[:4] + data))
    @settings(max_examples=150, deadline=None)
    def check(data: bytes) -> None:
        for read_one in (type(message).from_bytes, type(message).from_json):
            try:
                read = read_one(data)
            except MessageError:
                continue
            check_sound(read)
            if not isinstance(read, PublishedModel):
                assert read.to_bytes() == data  # one spelling

    check()


@each_kind
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 5000,
        '{"evenhand": "task", "version": true}',
        '{"evenhand": NaN}',
        "\ufeff{}",
        b"\xff\xfe{\x00}\x00",
        b"\xed\xa0\x80",
        "",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_json_that_no_parser_agrees_about(message: Any, text: str | bytes) -> None:
    with pytest.raises(MessageError):
        type(message).from_json(text)


@each_kind
def test_every_value_of_the_wrong_kind_in_every_field(message: Any) -> None:
    """Each field of each message by each of these; and each field twice."""
    whole = json.loads(message.to_json())
    for name in whole:
        for value in ODD:
            if name == "public_rated" and value is True:
                continue
            with pytest.raises(MessageError):
                type(message).from_json(json.dumps({**whole, name: value}))
        twice = json.dumps(whole)[:-1] + f", {json.dumps(name)}: {json.dumps(whole[name])}}}"
        with pytest.raises(MessageError):
            type(message).from_json(twice)


@given(st.text(max_size=50) | st.from_regex(r"[0-9a-f]{16}-[0-9]{1,12}-[0-9a-f]{16}", fullmatch=True))
@example("3132333435363738-9999999999-6162636465666768")
@example("3132 333435363738-1-6162636465666768")
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_token_or_the_documented_error(text: str) -> None:
    try:
        token = Token.parse(text)
    except MessageError:
        return
    assert Token.parse(str(token)) == token
    assert Report(token.task, token.serial, token.tag, 0).to_bytes()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Token(b"12345678", -1, bytes(8)),
        lambda: Token(b"1234567", 1, bytes(8)),
        lambda: Query(b"12345678", True, bytes(32)),
        lambda: Report(b"12345678", 1, bytes(8), 1 << 32),
        lambda: Report(b"12345678", 1.0, bytes(8), 1),  # type: ignore[arg-type]
        lambda: dataclasses.replace(TASK, epoch="\ud800"),
        lambda: dataclasses.replace(TASK, epoch=None),  # type: ignore[arg-type]
        lambda: dataclasses.replace(TASK, items=("a", "\udfff")),
        lambda: dataclasses.replace(TASK, theta=Decimal("sNaN")),
        lambda: dataclasses.replace(TASK, theta=Decimal("1." + "1" * 40)),
        lambda: dataclasses.replace(TASK, theta=1),  # type: ignore[arg-type]
        lambda: dataclasses.replace(TASK, public_rated=2),  # type: ignore[arg-type]
        lambda: dataclasses.replace(TASK, beacon="x" * 32),  # type: ignore[arg-type]
        lambda: dataclasses.replace(MODEL, popularity=(1e39, 0.0, 0.0)),
        lambda: dataclasses.replace(MODEL, clusters=(0, 1, 3)),
        lambda: dataclasses.replace(MODEL, reports=-1),
        lambda: Campaign(["a", "b"], rated=1).open("\udcff"),
    ],
)
def test_messages_that_could_not_be_sent_are_not_made(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda data: b'{"evenhand": "report"' + data))
@settings(max_examples=60, deadline=None)
def test_any_file_of_reports_is_folded(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    campaign = Campaign(["a", "b", "c"], rated=1, users=4, secret=bytes(32))
    campaign.open("beacon")
    path = tmp_path_factory.getbasetemp() / "any.bin"
    path.write_bytes(data)
    fold = campaign.fold()
    fold.add_file(path)
    assert fold.counts.accepted == 0


def test_any_state_of_a_fold_is_taken_up_or_refused() -> None:
    campaign = Campaign(["a", "b", "c"], rated=1, users=4, secret=bytes(32))
    campaign.open("beacon")
    fold = campaign.fold()
    fold.add_reports([Report(campaign.task.short_id, 0, campaign.token(0).tag, 1)])
    whole = fold.to_bytes()

    @given(damaged_bytes(whole) | st.binary(max_size=60))
    @settings(max_examples=300, deadline=None)
    def check(data: bytes) -> None:
        again = campaign.fold()
        try:
            again.restore(data)
        except DataError:
            assert again.counts == Counts()
            return
        assert again.counts == fold.counts

    check()


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "items": st.lists(st.text("ab,\0", min_size=1, max_size=3), min_size=3, max_size=4, unique=True).map(tuple),
    "epsilon": st.integers(1, 10**39).map(lambda digits: Decimal(digits).scaleb(-38)),
    "theta": st.integers(10**36, 10**38).map(lambda digits: Decimal(f"0.{digits:039d}")),
    "rated": st.integers(1, 3),
    "tokens": st.integers(10, 2**31 - 1),
    "pool": st.integers(1, 10),
    "epoch": st.text(max_size=3),
}


@given(st.fixed_dictionaries(FIELDS), st.sampled_from(sorted(FIELDS)), st.data())
@settings(max_examples=200, deadline=None)
def test_tasks_that_differ_in_any_field_have_different_ids(
    base: dict[str, Any], name: str, data: st.DataObject
) -> None:
    if base["epsilon"] < Decimal("1e-9"):
        base["epsilon"] += 1
    one = Task(sketch="maxsense", **base)
    with localcontext() as ambient:
        ambient.prec = 5
        assert Task(sketch="maxsense", **base).id == one.id  # whatever the caller's decimals are rounded to
    near = {"epsilon": Decimal("1e-38"), "theta": Decimal("1e-39")}
    value = base[name] + near[name] if name in near else data.draw(FIELDS[name])
    other = Task(sketch="maxsense", **{**base, name: value})
    assert (one.id == other.id) == (base[name] == value)
    assert (one == other) == (base[name] == value)
    assert Task.from_json(other.to_json()).id == Task.from_bytes(other.to_bytes()).id == other.id


@pytest.mark.parametrize("written", ["1.250", "01.25", "125e-2", "+1.25", " 1.25", "1_0", "１.25", "1.25\n", "1."])
@pytest.mark.parametrize("name", ["theta", "epsilon"])
def test_a_number_has_one_spelling(name: str, written: str) -> None:
    """Otherwise two different messages would be one task."""
    whole = json.loads(TASK.to_json())
    with pytest.raises(MessageError, match="plain decimal"):
        Task.from_json(json.dumps({**whole, name: written}))

"""The browser's client and Python's are the same client: same bytes, same refusals, same exact probabilities.

The code under test is ``web/client``, run by Node on cases that Python makes; ``web_client.mjs`` is the other half of this
file. What needs a browser (diary, page) is tested in ``tests/browser``.
"""

from __future__ import annotations

import functools
import json
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from evenhand.guarantee import MessageError
from evenhand.recommender.at_home import answer, recommend, stream
from evenhand.recommender.at_home.coins import flip_threshold
from evenhand.recommender.messages import SKETCHES, PublishedModel, Report, Task, Token
from recommender_examples import MODEL
from recommender_laws import all_ratings, law_of, power_below
from web_cases import drawn_cases, drawn_task

ROOT = Path(__file__).parents[2]
VECTORS: dict[str, Any] = json.loads((ROOT / "docs/recommender/test-vectors.json").read_text())
Ask = Callable[[list[dict[str, Any]]], list[Any]]
REFUSED = "refused"


@pytest.fixture(scope="module")
def ask() -> Ask:
    """What the browser's client makes of each case: a result, or `REFUSED`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node on this machine (Debian: apt-get install nodejs)")

    def run(cases: list[dict[str, Any]]) -> list[Any]:
        given = "".join(json.dumps(case) + "\n" for case in cases)
        command = [node, str(Path(__file__).with_name("web_client.mjs"))]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(said) == len(cases)
        assert [one["crashed"] for one in said if "crashed" in one] == []
        return [one.get("result", REFUSED) for one in said]

    return run


def task_of(vector: Mapping[str, Any]) -> Task:
    fields = dict(vector["task"])
    if isinstance(fields["items"], str):
        fields["items"] = [f"item {number}" for number in range(4200)]
    return Task.from_json(json.dumps(fields))


def test_the_published_vectors(ask: Ask) -> None:
    chacha = VECTORS["chacha20"]
    nonce = [int.from_bytes(bytes.fromhex(chacha["nonce"])[at : at + 4], "little") for at in (0, 4, 8)]
    assert ask([{"do": "block", "nonce": nonce, "key": chacha["key"], "counter": 1}]) == [chacha["block"]]
    thresholds = VECTORS["flip_thresholds"]
    cases = [{"do": "threshold", "epsilon": str(int(Decimal(epsilon) * 10**18))} for epsilon in thresholds]
    assert ask(cases) == list(thresholds.values())

    cases, expected = [], []
    public = VECTORS["public_rated_items"]
    for vector in VECTORS["tasks"]:
        text = task_of(vector).to_json()
        cases.append({"do": "task", "task": text})
        expected.append([vector["task"]["id"], vector["query_key"], vector["binary_sha256"]])
        for query in vector["queries"]:
            more = {"rated": public, "ratings": [], "words": ["0"]}
            cases.append({"do": "answer", "task": text, "serial": query["serial"], **more})
            expected.append([vector["task"]["id"], query["stream"], query["digest"]])
    assert [list(said.values())[:3] for said in ask(cases)] == expected
    sizes = [said["setSize"] for said in ask(cases) if "setSize" in said]
    assert [v["set_size"] or s for v, s in zip(VECTORS["tasks"], sizes, strict=True)] == sizes

    tokens = [token for vector in VECTORS["tasks"] for token in vector["tokens"]]
    assert ask([{"do": "token", "text": f" {token}\n"} for token in tokens]) == tokens
    assert ask([{"do": one["kind"], one["kind"]: one["json"], "text": one["json"]} for one in VECTORS["refused"]]) == [
        REFUSED for _ in VECTORS["refused"]
    ]


def test_ten_thousand_generated_answers_are_the_same_bytes(ask: Ask) -> None:
    cases, expected = zip(*drawn_cases(10_000), strict=True)
    said = ask(list(cases))
    different = [n for n, (ours, theirs) in enumerate(zip(said, expected, strict=True)) if {**ours, **theirs} != ours]
    assert different == []
    answers = [int.from_bytes(bytes.fromhex(one["report"])[24:], "little") for one in expected]
    assert len(set(answers)) > 50  # not all alike


def test_thresholds_are_the_same_for_any_epsilon(ask: Ask) -> None:
    draw = random.Random(18)
    epsilons = [draw.randint(1, 10 ** draw.randint(1, 22)) for _ in range(1500)]
    epsilons += [int(Decimal(text) * 10**18) for text in ("44.361419555836", "44.3614195558365", "45", "44.999")]
    said = ask([{"do": "threshold", "epsilon": str(epsilon)} for epsilon in epsilons])
    assert said == [str(flip_threshold(Decimal(epsilon).scaleb(-18))) for epsilon in epsilons]


# -- Exact probabilities, as in tests/property/test_recommender_privacy.py

ITEMS = 4
INPUTS = list(all_ratings(ITEMS))


def small_task(sketch: str, epsilon: str = "1", public_rated: bool = False) -> Task:
    kind = SKETCHES[sketch]
    return Task(
        items=tuple(f"item {number}" for number in range(ITEMS)),
        sketch=sketch,
        epsilon=Decimal(epsilon),
        rated=2,
        tokens=8,
        pool=8,
        theta=Decimal(1) if kind.senses else None,
        questions=2 if kind.several else 1,
        public_rated=public_rated,
        beacon=bytes(32),
    )


def laws_in_the_browser(ask: Ask, task: Task, serials: range, twin: str = "") -> Iterator[list[dict[int, Fraction]]]:
    """For each serial the exact law of the answer under each input."""
    inputs = [list(ratings.items()) for ratings in INPUTS]
    case = {"do": "law", "task": task.to_json(), "inputs": inputs, "twin": twin}
    for laws in ask([{**case, "serial": serial} for serial in serials]):
        yield [
            {
                int(said): sum((Fraction(int(top), int(low)) for low, top in parts.items()), Fraction(0))
                for said, parts in law.items()
            }
            for law in laws
        ]


def worst(laws: list[dict[int, Fraction]]) -> Fraction | None:
    """The largest ratio of any answer's probabilities under any two inputs; None if one of them is 0."""
    assert all(sum(law.values()) == 1 for law in laws)
    largest = Fraction(1)
    for said in set().union(*laws):
        chances = [law.get(said, Fraction(0)) for law in laws]
        if min(chances) == 0:
            return None
        largest = max(largest, max(chances) / min(chances))
    return largest


KINDS = [*((sketch, False) for sketch in SKETCHES), ("pairwise", True)]


@pytest.mark.parametrize(("sketch", "public_rated"), KINDS)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_no_report_tells_two_inputs_apart_by_more_than_epsilon(
    ask: Ask, sketch: str, public_rated: bool, epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "block", functools.lru_cache(stream.block))  # a few queries, thousands of times
    task = small_task(sketch, epsilon, public_rated)
    laws = list(laws_in_the_browser(ask, task, range(task.tokens)))
    bound = power_below(task.epsilon)
    ratios = [worst(one) for one in laws]
    assert all(ratio is not None and ratio <= bound for ratio in ratios)
    assert max(ratio or 0 for ratio in ratios) > bound * Fraction(999, 1000)
    for serial in (0, 5):  # and the laws are those of Python's client
        token = Token(task.short_id, serial, bytes(8))
        for ratings, law in list(zip(INPUTS, laws[serial], strict=True))[::7]:
            assert law == law_of(
                functools.partial(lambda t, x, coins: answer(task, t, x, coins).answer, token, ratings)
            )


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("twin", ["unflipped", "silent", "generous", "short"])
def test_broken_twins_are_caught(ask: Ask, sketch: str, twin: str) -> None:
    task = small_task(sketch)
    ratios = [worst(laws) for laws in laws_in_the_browser(ask, task, range(3), twin)]
    assert any(ratio is None or ratio > power_below(task.epsilon) for ratio in ratios)


def test_words_of_the_secure_source_become_fair_coins(ask: Ask) -> None:
    threshold = (3 << 32) + 7
    words = [(threshold + step) for step in (-1, 0, 1)] + [0, 2**64 - 1]
    cases: list[dict[str, Any]] = [
        {"do": "coins", "words": [w & 0xFFFFFFFF, w >> 32], "threshold": str(threshold)} for w in words
    ]
    assert ask(cases) == [True, False, False, True, False]
    # 2^32 = 3 · 1431655765 + 1: the last word would favour 0, and is drawn again.
    cases = [{"do": "coins", "words": [word, 5], "n": 3} for word in (0, 1, 2, 2**32 - 2, 2**32 - 1)]
    assert ask(cases) == [[0, 1], [1, 1], [2, 1], [2, 1], [2, 2]]


@pytest.mark.parametrize("sketch", SKETCHES)
def test_ratings_that_cannot_be_used_change_no_law(ask: Ask, sketch: str) -> None:
    junk: list[list[Any]] = [
        [0, None],
        [1, "yes"],
        [2, 1],
        [ITEMS, True],
        [-1, True],
        [1e30, False],
        ["3", True],
        [0.5, 1],
    ]
    inputs = [[], [[3, True]], junk, [*junk, [3, True]]]
    case = {"do": "law", "task": small_task(sketch).to_json(), "serial": 0, "inputs": inputs}
    without, liked, with_junk, liked_and_junk = ask([case])[0]
    assert (without, liked) == (with_junk, liked_and_junk)


def test_a_sketch_that_fails_is_answered_for(ask: Ask) -> None:
    """An error could depend on ratings: the missing bit counts as no, and is flipped like any other."""
    assert ask([{"do": "failing", "task": small_task("projection").to_json()}]) == ["01000000"]


# -- Refusals

SPOILED = ["null", "true", "1.0", "-1", "0", "2", "1e2", "-0", "01", '"1"', '"\\ud800"', '"0.50"', "[]", "{}", "NaN", '""',
           "4294967296", "99999999999999999999999", "[[[[]]]]", '"0"', "0.0", "1e400", '"\\u0000"', '"a\tb"', "'a'"]  # fmt: skip


def spoiled_messages(count: int) -> Iterator[tuple[str, str]]:
    """Messages with one thing changed: some are still valid."""
    draw = random.Random(19)
    report = Report(bytes(8), 3, bytes(8), 1).to_json()
    for _ in range(count):
        kind = draw.choice(["task", "task", "report", "model"])
        text = {"task": drawn_task(draw).to_json(), "report": report, "model": MODEL.to_json()}[kind]
        fields = json.loads(text)
        name = draw.choice(list(fields))
        match draw.randrange(5):
            case 0:  # another value for a field
                head = {key: value for key, value in fields.items() if key != name}
                text = json.dumps(head)[:-1] + f', "{name}": {draw.choice(SPOILED)}}}'
            case 1:  # a field left out, or one too many
                fields.pop(name) if draw.random() < 0.5 else fields.update(more=1)
                text = json.dumps(fields)
            case 2:  # a field twice
                text = json.dumps(fields)[:-1] + f', "{name}": {json.dumps(fields[name])}}}'
            case 3:  # a character changed
                at = draw.randrange(len(text))
                text = text[:at] + draw.choice('0"a{},:\\é \n') + text[at + draw.randrange(2) :]
            case 4:  # only written otherwise
                text = (
                    "\n "
                    + json.dumps(fields, indent=1, ensure_ascii=draw.random() < 0.5)
                    + draw.choice(["\t", "\r\n", "\v"])
                )
        yield kind, text


def test_both_clients_refuse_the_same_messages(ask: Ask) -> None:
    readers: dict[str, Callable[[str], Any]] = {
        "task": Task.from_json,
        "report": Report.from_json,
        "model": PublishedModel.from_json,
    }
    messages = list(spoiled_messages(2500))
    said = ask([{"do": kind, "task": text, "text": text} for kind, text in messages])
    refused = 0
    for (kind, text), ours in zip(messages, said, strict=True):
        try:
            readers[kind](text)
        except MessageError:
            refused += 1
            assert ours == REFUSED, text
        else:
            assert ours != REFUSED, text
    assert 500 < refused < len(messages) - 200


def test_bytes_that_are_not_utf8_are_refused(ask: Ask) -> None:
    task = small_task("pairwise")
    text = task.to_json().replace("item 1", "él")
    right = Task(("item 0", "él", "item 2", "item 3"), "pairwise", task.epsilon, 2, 8, 8, beacon=bytes(32))
    text = text.replace(task.id.hex(), right.id.hex())
    wrong = [
        b"\xef\xbb\xbf" + text.encode(),
        text.encode("latin-1"),
        text.encode("utf-16"),
        text.encode()[:-1] + b"\xff}",
        b"",
    ]
    wrong.append(text.encode().replace(b"item 0", b"item \xc0\xb0"))  # an overlong 0
    for data in wrong:
        with pytest.raises(MessageError):
            Task.from_json(data)
    said = ask([{"do": "bytes", "data": data.hex()} for data in (text.encode(), *wrong)])
    assert said == [right.id.hex(), *[REFUSED for _ in wrong]]


def test_recommendations_are_the_same(ask: Ask) -> None:
    draw = random.Random(20)
    for dimensions, popular in ((0, True), (0, False), (3, True), (2, False)):
        size = 30
        model = PublishedModel(
            task=bytes(32),
            items=tuple(f"item {number}" for number in range(size)),
            clusters=tuple(draw.randrange(4) for _ in range(size)),
            embedding=tuple(tuple(draw.gauss(0, 1) for _ in range(dimensions)) for _ in range(size))
            if dimensions
            else (),
            popularity=tuple(draw.uniform(-0.1, 1.1) for _ in range(size)) if popular else (),
            reports=1000,
            epsilon=Decimal(1),
        )
        for rated in (0, 1, 12, size):
            ratings = {item: draw.random() < 0.6 for item in draw.sample(range(size), rated)}
            expected = recommend(model, ratings, 7)
            case = {"do": "recommend", "model": model.to_json(), "ratings": list(ratings.items()), "top": 7}
            (said,) = ask([case])
            assert [one["item"] for one in said] == [one.item for one in expected]
            assert [one["score"] for one in said] == pytest.approx([one.score for one in expected], rel=1e-12)

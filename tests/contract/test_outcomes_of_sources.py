"""What a table is made of does not depend on one user's rows either: lines of CSV and JSON, types of frames, names of columns."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from test_outcomes import QUESTIONS

import evenhand as eh
from visible import Questions, Tape, assert_alike, compare, look
from watch import Ask, watch


def written(folder: Path, name: str, lines: list[bytes]) -> Path:
    """A file of these lines."""
    path = folder / name
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


COUNTS: Questions = {name: QUESTIONS[name] for name in ("count", "users", "mean, given", "count by selected keys")}
LINES = {
    "a quote that opens": b'"3',
    "a quote inside": b'3"x"',
    "a quote that closes too early": b'"3"x',
    "a Latin-1 letter": b"\xe9",
    "a null byte": b"\x00",
    "a carriage return": b"\r",
    "one comma more": b"3,4",
    "no number": b"abc",
    "nothing": b"",
}


@pytest.mark.parametrize("line", LINES)
def test_a_malformed_value_in_a_csv_file_changes_nothing_that_is_free(line: str, tmp_path: Path) -> None:
    """Under values the value is the last column: whatever is in it, users and public columns stay where they are."""
    others = [b"u%d,a,3" % user for user in range(20)]

    def opened(value: bytes, name: str) -> eh.Table:
        path = written(tmp_path, name, [b"u,g,v", *others[:10], b"victim,a," + value, *others[10:]])
        return eh.read(path, user="u", protects="values", public=["g"])

    compare(partial(opened, b"3", "a.csv"), partial(opened, LINES[line], "b.csv"), COUNTS)


@pytest.mark.parametrize("line", LINES)
def test_a_malformed_line_of_a_csv_file_damages_no_other(line: str, tmp_path: Path) -> None:
    others = [b"u%d,a,3" % user for user in range(20)]
    ask: Ask = lambda drafts: drafts.users(epsilon=1)  # noqa: E731
    victim = written(tmp_path, "a.csv", [b"u,g,v", *others[:10], b"victim,a," + LINES[line], *others[10:]])
    (one,) = watch(eh.read(victim, user="u"), ask).steps
    (other,) = watch(eh.read(written(tmp_path, "b.csv", [b"u,g,v", *others]), user="u"), ask).steps
    assert one.change(other)[0] <= 1


RECORDS = {
    "another column": {"u": "victim", "v": 1, "hiv": "positive"},
    "a text": {"u": "victim", "v": "one"},
    "an object": {"u": "victim", "v": {"a": 1}},
    "a list": {"u": "victim", "v": [1]},
    "not a number": {"u": "victim", "v": math.nan},
    "a lone surrogate": {"u": "victim", "v": "\ud800"},
    "a long number": {"u": "victim", "v": 10**400},
    "no record": ["victim", 1],
    "a wide record": {"u": "victim", **{f"k{column}": 1 for column in range(300)}},
}


@pytest.mark.parametrize("record", RECORDS)
def test_types_and_names_of_json_do_not_come_from_rows(record: str, tmp_path: Path) -> None:
    """Read or refused: alike with the record and without it."""
    others = [json.dumps({"u": f"u{user}", "v": 1}).encode() for user in range(20)]

    def opened(lines: list[bytes], name: str) -> eh.Table:
        return eh.read(written(tmp_path, name, lines), user="u")

    last = json.dumps(RECORDS[record]).encode()
    questions = {name: COUNTS[name] for name in ("count", "users", "mean, given")}
    one = look(partial(opened, others, "a.ndjson"), questions, Tape())
    assert_alike(one, look(partial(opened, [*others, last], "a.ndjson"), questions, Tape(played=one.tape)))


FRAMES: dict[str, tuple[Any, Any]] = {
    "decimals": (Decimal("10.00"), Decimal("1234567.125")),
    "dicts": ({"x": 1}, {"diagnosis": 1}),
    "mixed": (1, "one"),
    "integers": (1, 2**70),
    "dates": (datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)),
    "missing": (1.5, None),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_types_of_frames_do_not_come_from_rows(kind: str) -> None:
    usual, odd = FRAMES[kind]

    def opened(*last: Any) -> eh.Table:
        values = [usual] * 20 + list(last)
        users = [f"u{user}" for user in range(len(values))]
        return eh.read(pd.DataFrame({"u": users, "v": pd.Series(values, dtype=object)}), user="u")

    questions = {name: COUNTS[name] for name in ("count", "users", "mean, given")}
    compare(opened, partial(opened, odd), questions)


@pytest.mark.parametrize("group", [0, 5, -1, 2**62])
def test_a_column_that_is_named_like_one_of_ours_changes_nothing(group: int) -> None:
    names = (
        "evenhand_group",
        "evenhand_weight",
        "evenhand_draw",
        "evenhand_user_0",
        "evenhand_key_0",
        "value_0",
        "rows",
        "norm",
    )

    def opened(last: int) -> eh.Table:
        odd = {name: pa.array([0, 0, last], pa.int64()) for name in names}
        return eh.read(pa.table({"u": ["x", "y", "z"], "g": ["a"] * 3, "v": [1.0] * 3, **odd}), user="u")

    questions = {name: QUESTIONS[name] for name in ("count", "sum by", "mean, given", "sum, row limit")}
    compare(partial(opened, 0), partial(opened, group), questions)

"""CSV and JSON, line by line: no line changes what another becomes, on DuckDB and Spark alike."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.tables.lines import MOST_BYTES
from watch import integers

PIECES = [
    b'"', b'""', b",", b",,", b"\r", b"\0", b"x", b"3", b" ", b"\t", b";", b"'", b"\\", b"#", b"\xe9", b"\xff\xfe", b"\xe2\x82",
    b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", "é€\u2028\u0085\ufeff".encode(), b'"a, b"', b'"a""b"', b"NULL", b"\\N",
]  # fmt: skip


def _noise(count: int) -> list[bytes]:
    """Lines of anything but line feeds; another choice in each run would hide nothing, so the choice is fixed."""
    choose = random.Random(11)
    return [b"".join(choose.choices(PIECES, k=choose.randint(0, 9))) for _ in range(count)]


def _rows(table: eh.Table) -> Counter[tuple[str | None, ...]]:
    frame = table.engine.fetch(table.expression).reveal()
    return Counter(zip(*(frame[name].to_pylist() for name in frame.column_names), strict=True))


def _write(path: Path, lines: Sequence[bytes]) -> Path:
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _fields(line: bytes) -> list[str]:
    """The rule of docs/files.md, one character at a time."""
    text = line.removesuffix(b"\r").decode("utf-8", "ignore")
    fields, at = [], 0
    while True:
        quoted = _quoted(text, at)
        if quoted is None:
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            value = text[at:end]
        else:
            value, end = quoted
        fields.append(value)
        if end == len(text):
            return fields
        at = end + 1


def _quoted(text: str, at: int) -> tuple[str, int] | None:
    if text[at : at + 1] != '"':
        return None
    value, at = "", at + 1
    while at < len(text):
        if text[at] != '"':
            value, at = value + text[at], at + 1
        elif text[at + 1 : at + 2] == '"':
            value, at = value + '"', at + 2
        else:
            at += 1
            return (value, at) if at == len(text) or text[at] == "," else None
    return None


def _expected(line: bytes, columns: int, leading: int) -> tuple[str | None, ...]:
    fields = _fields(line)
    complete = len(fields) == columns
    fields += [""] * columns
    return tuple((fields[place] or None) if complete or place < leading else None for place in range(columns))


@pytest.mark.parametrize("relation", ["presence", "values", "labels"])
def test_a_csv_is_read_line_by_line_whatever_a_line_holds(relation: str, engine: str, tmp_path: Path) -> None:
    lines = [line for noise in _noise(800) for line in (noise, b"u1,2,3", b'"a, ""b""",2,"x\ty"\r')]
    path = _write(tmp_path / "t.csv", [b"user,v,note", *lines])
    leading = {"presence": 0, "values": 1, "labels": 3}[relation]
    table = eh.read(path, user="user", protects=relation, engine=engine)
    assert _rows(table) == Counter(_expected(line, 3, leading) for line in lines)


def test_under_values_no_private_byte_moves_a_public_column(engine: str, tmp_path: Path) -> None:
    known = [(b"u%d" % (place % 7), b"g") if place % 3 else (b'"u, ""1"""', b'"h, h"') for place in range(800)]
    lines = [b",".join([user, group, noise]) for (user, group), noise in zip(known, _noise(800), strict=True)]
    path = _write(tmp_path / "t.csv", [b"user,group,v,note", *lines])
    table = eh.read(path, user="user", protects="values", public=["group"], engine=engine)
    rows = Counter(row[:2] for row in _rows(table).elements())
    assert rows == Counter((_fields(user)[0], _fields(group)[0]) for user, group in known)


def test_of_a_long_line_the_beginning_counts(engine: str, tmp_path: Path) -> None:
    room = MOST_BYTES - len(b"b,2,")
    texts = [b"x" * room, b"x" * room + b"\r", b"x" * room + b"y", b"x" * room + b"y\r", b"x" * (3 * MOST_BYTES + 17)]
    texts += [b"x" * (room - 1) + "é".encode() * 9, b"x" * (room - 1) + b"\r"]
    path = _write(tmp_path / "t.csv", [b"u,v,w", b"a,1,x", *(b"b,2," + text for text in texts), b"c,3,z"])
    found = _rows(eh.read(path, user="u", protects="values", engine=engine))
    whole, shorter = "x" * room, "x" * (room - 1)
    assert found == Counter({("a", "1", "x"): 1, ("b", "2", whole): 5, ("b", "2", shorter): 2, ("c", "3", "z"): 1})


def test_the_end_of_a_file(engine: str, tmp_path: Path) -> None:
    for place, end in enumerate([b"", b"\n", b"\n\n", b"\r\n", b"\r"]):
        (tmp_path / f"{place}.csv").write_bytes(b"u,v\na,1\nb,2" + end)
    found = _rows(eh.read(str(tmp_path / "*.csv"), user="u", engine=engine))
    assert found == Counter({("a", "1"): 5, ("b", "2"): 5, (None, None): 1})


def test_several_files_have_a_header_each(engine: str, tmp_path: Path) -> None:
    for place in range(3):
        (tmp_path / f"{place}.csv").write_text(f'"u", v\na{place},1\nu,"u", v\n')
    found = _rows(eh.read(str(tmp_path / "*.csv"), user="u", engine=engine))
    assert found - Counter({(None, None): 3}) == Counter([("a0", "1"), ("a1", "1"), ("a2", "1")])
    (tmp_path / "3.csv").write_text("v,u\n1,a\n")
    with pytest.raises(eh.DataError, match="different header lines"):
        eh.read(str(tmp_path / "*.csv"), user="u", engine=engine)


@pytest.mark.parametrize("header", [b"u,v\ra,1\r", b"u,v,U\n", b"u,\0v\n", b"u," + b"x" * MOST_BYTES])
def test_headers_that_are_none(header: bytes, engine: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(header)
    with pytest.raises(eh.DataError, match="header"):
        eh.read(tmp_path / "t.csv", user="u", engine=engine)


def test_quoted_line_feeds_when_asked_for(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('u,v\n"a\nb",1\nc,"2"\n')
    assert _rows(eh.read(path, user="u", engine=engine, quoted_newlines=True)) == Counter([("a\nb", "1"), ("c", "2")])
    for relation in ("values", "labels"):
        with pytest.raises(eh.UsageError, match="evenhand convert"):
            eh.read(path, user="u", engine=engine, quoted_newlines=True, protects=relation)


@pytest.mark.parametrize(
    ("user", "public"),
    [("v", ()), (["u", "v"], ()), ("u", ["v"]), ("w", ["u"])],
    ids=["last", "two", "public", "apart"],
)
def test_under_values_public_columns_come_first(user: Any, public: Sequence[str], engine: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", [b"u,g,w,v", b"a,b,1,2"])
    with pytest.raises(eh.UsageError, match=r"don't come first .*evenhand convert"):
        eh.read(path, user=user, public=public, protects="values", engine=engine)
    assert eh.read(path, user="g", public=["u"], protects="values", engine=engine).columns == ("u", "g", "w", "v")


# JSON


RECORDS: dict[str, tuple[str | None, str | None]] = {
    '{"u": "a", "v": 1}': ("a", "1"),
    ' {"v":1.50,"x":[{}],"u":7} ': ("7", "1.50"),
    '{"u": "a", "v": 1, "v": 2}': ("a", "2"),
    '{"u": "a"}': ("a", None),
    '{"u": "a", "v": null}': ("a", None),
    '{"u": "a", "v": true}': ("a", "true"),
    '{"u": "a", "v": {"x": 1}}': ("a", None),
    '{"u": "a", "v": [1]}': ("a", None),
    '{"u": "a", "v": NaN}': ("a", "NaN"),
    '{"u": "a", "v": -Infinity}': ("a", "-Infinity"),
    '{"u": "a", "v": 1' + "0" * 5000 + "}": ("a", "1" + "0" * 5000),
    '{"u": "a", "v": 1e400}': ("a", "1e400"),
    '{"u": "a", "v": "x\\ud800y"}': ("a", "xy"),
    '{"u": "\\ud83d\\ude00\\u0000", "v": ""}': ("😀\0", ""),
    '{"u": "a", "v": ' + "[" * 60 + "]" * 60 + "}": ("a", None),
    '{"u": "a", "w": "' + "[" * 600 + '"}': ("a", None),
    '{"u": "a", "v": ' + "[" * 5000 + "]" * 5000 + "}": (None, None),
    '{"u": "a", "v": 1': (None, None),
    '{"u": "a", "v": 1}}': (None, None),
    '{"u": "a", "v": 01}': (None, None),
    '{"u": "a", "v": 1,}': (None, None),
    "{'u': 'a'}": (None, None),
    '{"u": "a\tb"}': (None, None),
    '["a", 1]': (None, None),
    '"a"': (None, None),
    "": (None, None),
    "]": (None, None),
}


def test_json_is_read_line_by_line_by_one_rule(engine: str, tmp_path: Path) -> None:
    noise = [b'{"u": "a", "v": ' + line for line in _noise(200)]
    path = _write(
        tmp_path / "t.jsonl", [*(line.encode() for line in RECORDS), *noise, b'{"u": "\xffz\xe9"}', b'{"u":"b"}\r']
    )
    table = eh.read(path, user="u", columns=["u", "v"], engine=engine)
    expected = Counter([*RECORDS.values(), *[(None, None)] * 200, ("z", None), ("b", None)])
    assert _rows(table) == expected


def test_json_columns_are_declared_never_found(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    tables = []
    for extra in ({}, {"hiv_status": "positive"}, {f"k{place}": 1 for place in range(300)}):
        path.write_text(json.dumps({"u": "a", **extra}) + "\n")
        with pytest.raises(eh.UsageError, match=r"columns= is missing"):
            eh.read(path, user="u", engine=engine)
        tables.append(repr(eh.read(path, user="u", columns=["u", "v"], engine=engine)))
    assert len(set(tables)) == 1


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("t.json", {}, r"one document or one record a line.*\.jsonl.*evenhand convert"),
        ("t.json.gz", {}, r"one document or one record a line"),
        ("t.jsonl", {"protects": "values"}, "evenhand convert"),
        ("t.jsonl", {"protects": "labels"}, "evenhand convert"),
        ("t.jsonl", {"quoted_newlines": True}, "quoted_newlines= is for CSV"),
        ("t.csv", {}, "columns= is for JSON"),
    ],
)
def test_json_that_is_refused(name: str, options: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("u,v\n")
    with pytest.raises(eh.UsageError, match=words):
        eh.read(tmp_path / name, user="u", columns=["u", "v"], **options)


# What a release sees


def test_one_line_moves_a_release_by_one_user(engine: str, tmp_path: Path) -> None:
    """The demonstration: lines that used to swallow those of other users."""
    others = [b"u%d,3,note" % place for place in range(100)]
    bad = [b'victim,3,"my note', b'victim,"3,x', b'victim,3,"a"b', b"victim,3,caf\xe9", b"\xff", b'"']
    path = _write(tmp_path / "t.csv", [b"user,v,note", *others[:50], *bad, *others[50:]])
    ((users,),) = integers(eh.read(path, user="user", engine=engine), lambda ask: ask.users(epsilon=1))
    assert users == 101


TYPES = {
    "i": "int",
    "x": "float",
    "b": "bool",
    "d": "date",
    "e": "date %d/%m/%Y",
    "m": "timestamp",
}
CELLS = [
    "", "7", " -3 ", "1.5", "1e400", "-inf", "nan", "0x1", "true", "No", "T", "2024-02-29", "2023-02-29", "0000-01-01", "29/2/2024", "1/1/2026/1",
    "2026-01-05 10:00", "2026-01-05T23:59:59.25", "2026-01-05 24:00", "é", "12345678901234567890", "-", "/", "//", "1//2026",
]  # fmt: skip


def test_declared_types_are_read_alike(tmp_path: Path, engine: str) -> None:
    """Every cell in every column; the reference is DuckDB's, which `tests/unit/test_declared_types.py` holds to literal values."""
    lines = ["u," + ",".join(TYPES)]
    lines += [
        f"{place}," + ",".join(CELLS[(place + shift) % len(CELLS)] for shift in range(len(TYPES)))
        for place in range(len(CELLS))
    ]
    path = _write(tmp_path / "typed.csv", [line.encode() for line in lines])

    def found(name: str) -> list[tuple[Any, ...]]:
        table = eh.read(path, user="u", engine=name, types=TYPES)
        made = table.derive(
            **{each: f"CAST({each} AS VARCHAR)" for each in "ide"},
            b="CASE WHEN b THEN 'yes' WHEN NOT b THEN 'no' END",
            m="STRFTIME(m, '%F %T')",
        )
        frame = made.engine.fetch(made.expression.order_by("u")).reveal()
        return [tuple(None if cell != cell else cell for cell in row.values()) for row in frame.to_pylist()]

    rows = found(engine)
    assert rows == found("duckdb")
    assert sum(cell is not None for row in rows for cell in row) > len(CELLS)

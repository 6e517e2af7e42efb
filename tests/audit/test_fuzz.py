"""Fuzzing: whatever bytes, arguments or messages come in, the answer is a result or an Evenhand error, and budgets hold.

`HYPOTHESIS_PROFILE=thorough` searches for minutes; docs/trust/checks.md has the figures of the last long run.
"""

from __future__ import annotations

import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.apps import cli
from evenhand.guarantee import Guarantee, Relation
from evenhand.ledger import Cost
from evenhand.profiles import Profile
from evenhand.recommender.messages import PublishedModel, Query, Report, Task
from evenhand.statistics.quantiles import parse_quantiles

PROMISE = Guarantee(Decimal("0.25"), Decimal(0), Relation.PRESENCE, ("u",))


def _parquet() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        pq.write_table(pa.table({"u": ["a", "b", None], "v": [1.0, float("nan"), 3.0]}), path)
        return path.read_bytes()


def _ledger() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.db"
        ledger = eh.Ledger(path, epsilon=1)
        for _ in range(3):
            ledger.debit(Cost.pure("0.25"), {"statistic": "count"}, PROMISE)
        return path.read_bytes()


PARQUET, LEDGER = _parquet(), _ledger()
CSV = b"u,v\na,1\nb,2.5\n"
JSON = b'{"u": "a", "v": 1}\n{"u": "b", "v": null}\n'


@st.composite
def mutated(draw: st.DrawFn, whole: bytes) -> bytes:
    """A file with a few bytes changed, cut out, doubled or put in."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["set", "cut", "double", "insert", "end"]))
        piece = draw(st.binary(min_size=1, max_size=8))
        if kind == "set":
            data[place : place + len(piece)] = piece
        elif kind == "cut":
            del data[place : place + draw(st.integers(1, 64))]
        elif kind == "double":
            data[place:place] = data[place : place + 32]
        elif kind == "insert":
            data[place:place] = piece
        else:
            del data[place:]
    return bytes(data)


@pytest.mark.parametrize(
    ("suffix", "whole"), [("csv", CSV), ("jsonl", JSON), ("parquet", PARQUET)], ids=["csv", "json", "parquet"]
)
def test_files_of_any_bytes_are_read_or_refused(suffix: str, whole: bytes, tmp_path: Path) -> None:
    @given(data=mutated(whole) | st.binary(max_size=200))
    @example(b"\r,v\na,1\n")  # found here once: a carriage return alone in a CSV header
    def check(data: bytes) -> None:
        path = tmp_path / f"t.{suffix}"
        path.write_bytes(data)
        ledger = eh.Ledger(tmp_path / "b.db", epsilon=1_000_000)
        try:
            columns = ["u", "v"] if suffix == "jsonl" else None
            session = eh.Session(eh.read(path, user="u", columns=columns), ledger)
            value = session.sum("v", bounds=(0, 5), epsilon=1, bounding=eh.TotalCap(2)).value
        except eh.EvenhandError:
            return
        assert isinstance(value, float)

    check()


WORDS = st.sampled_from(
    [
        "release", "ledger", "plan", "learn", "audit", "show", "mean", "sum", "count", "users", "quantiles", "histogram", "--user", "u",
        "--value", "v", "--bounds", "0:5", "5:0", "0", "--epsilon", "0.1", "-1", "nan", "1e999", "1e999999999", "total-cap:1e999999999", "--ledger", "b.db", "t.csv", "missing.csv",
        "--by", "--keys", "a,b", "--delta", "1e-6", "--json", "--bounding", "total-cap:2", "smooth-weights:", "row-limit:x", "auto:9",
        "--edges", "0,1,2", "--quantiles", "0.5,2", "--protects", "values", "--preview", "--budget", "--html", "/", "--engine", "duck", "",
    ]
)  # fmt: skip
RELEASE = [
    "release",
    "mean",
    "t.csv",
    "--user",
    "u",
    "--value",
    "v",
    "--bounds",
    "0:5",
    "--epsilon",
    "0.1",
    "--ledger",
    "b.db",
]


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    """A command line: words in any order, or a good one with some words replaced, dropped or put in."""
    if draw(st.booleans()):
        return draw(st.lists(WORDS, max_size=12))
    line = list(RELEASE)
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(line) - 1))
        word = draw(WORDS | st.text(max_size=6))
        if draw(st.booleans()):
            line[place] = word
        else:
            line.insert(place, word)
    return line


def test_command_lines_end_with_a_stated_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything but 0, 2, 3 or 4 would be a defect that reached the user."""
    (tmp_path / "t.csv").write_bytes(CSV)
    monkeypatch.chdir(tmp_path)

    @given(line=arguments().filter(lambda line: "audit" not in line))
    @example(RELEASE)
    def check(line: list[str]) -> None:
        assert exit_code(line) in (0, 2, 3, 4), line

    check()


def exit_code(line: list[str]) -> Any:
    """How the command line ends."""
    with mock.patch.object(sys, "argv", ["evenhand", *line]):
        try:
            cli.main()
        except SystemExit as end:
            return end.code or 0
    return 0


def test_damaged_ledgers_never_allow_more_than_their_total(tmp_path: Path) -> None:
    """Three quarters are spent. A damaged file is refused, or what is left is still at most the rest.

    Someone who may write the file can forge a whole new one; the claim is about damage, and `verify` finds edits.
    """

    @given(data=mutated(LEDGER))
    @example(LEDGER)
    def check(data: bytes) -> None:
        assert not pays_for_half(tmp_path, data)

    check()


def pays_for_half(folder: Path, data: bytes) -> bool:
    """Whether a ledger of these bytes, if it is one, still pays for ε = 0.5."""
    path = folder / "b.db"
    path.write_bytes(data)
    try:
        ledger = eh.Ledger(path)
        ledger.verify()
        ledger.debit(Cost.pure("0.5"), {"statistic": "count"}, PROMISE)
    except eh.EvenhandError:
        return False
    finally:
        for extra in folder.glob("b.db*"):
            extra.unlink()
    return True


def test_an_unspent_ledger_would_be_noticed(tmp_path: Path) -> None:
    """The broken twin of the test above: a ledger that forgot its debits."""
    eh.Ledger(tmp_path / "fresh.db", epsilon=1)
    assert pays_for_half(tmp_path, (tmp_path / "fresh.db").read_bytes())


@pytest.mark.parametrize("absurd", ["1e999999999", "-1e999999999", "1e-999999999", Decimal("1e999999999")])
def test_absurd_exponents_are_refused_at_once(absurd: Any) -> None:
    """Found by atheris: as exact fractions they would have been computed for hours."""
    with pytest.raises(eh.UsageError):
        eh.TotalCap(absurd)
    with pytest.raises(eh.UsageError):
        parse_quantiles(absurd)


@pytest.mark.parametrize("message", [Task, Query, Report, PublishedModel])
@given(data=st.binary(max_size=300))
@example(b"")
def test_wire_messages_of_any_bytes_are_read_or_refused(message: Any, data: bytes) -> None:
    for prefix in (b"", b"EHT1", b"EHQ1", b"EHR1", b"EHM1"):
        try:
            read = message.from_bytes(prefix + data)
        except eh.EvenhandError:
            continue
        assert message.from_bytes(read.to_bytes()) == read


@given(data=st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["basis", "edges", "unit", "noisy_counts", "guarantee", "sizes", "users", "words"]), inner)))  # fmt: skip
def test_profiles_of_any_shape_are_read_or_refused(data: Any) -> None:
    if not isinstance(data, dict):
        data = {"basis": data}
    try:
        Profile.from_dict(data)
    except eh.EvenhandError:
        return

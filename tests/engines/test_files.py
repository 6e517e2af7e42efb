"""The same files on DuckDB and Spark give the same integers, by the rules of the house."""

from __future__ import annotations

import gzip
import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference import BOUNDS, expected, found, from_text

import evenhand as eh
from evenhand.tables.convert import as_number
from evenhand.tables.numbers import NUMBER

ROWS: list[tuple[str | None, float | None]] = [
    ("a", 1.0), ("a", math.nan), ("a", None), ("a", math.inf), ("b", -math.inf), ("b", 1e308), ("b", -0.0),
    ("é", 1 / 3), ("é", 0.1), ("e\u0301", 6.999999999), (" a", 5e-324), ("a,b", 2.5), ('q"q', 3.0), ("line\rbreak", 4.0),
    (None, 5.0), (None, None), ("z", None), ("z", math.nan), ("NULL", 7.0000001), ("nan", -2.5),
]  # fmt: skip


def _parquet(path: Path) -> None:
    pq.write_table(_arrow(ROWS), path)


def _arrow(rows: list[tuple[str | None, float | None]]) -> pa.Table:
    return pa.table(
        {"u": pa.array([u for u, _ in rows], pa.string()), "v": pa.array([v for _, v in rows], pa.float64())}
    )


def _csv_text(delimiter: str = ",", end: str = "\n") -> str:
    def cell(value: str | float | None) -> str:
        text = "" if value is None else value if isinstance(value, str) else repr(value)
        return '"' + text.replace('"', '""') + '"' if any(char in text for char in ',;\t"\n') else text

    return end.join(delimiter.join(map(cell, row)) for row in [("u", "v"), *ROWS]) + end


def _json_text() -> str:
    """JSON has no NaN and no infinity; Python writes them all the same."""
    return "".join(json.dumps({"u": user, "v": value}) + "\n" for user, value in ROWS)


def _parts(folder: Path) -> None:
    folder.mkdir()
    for index in range(3):
        pq.write_table(_arrow(ROWS[index::3]), folder / f"part-{index}.parquet")


WRITERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "parquet": ("t.parquet", _parquet),
    "folder": ("parts", _parts),
    "csv": ("t.csv", lambda path: path.write_text(_csv_text(), newline="")),
    "csv with a byte-order mark": ("t.csv", lambda path: path.write_text("\ufeff" + _csv_text(), newline="")),
    "csv from Windows": ("t.csv", lambda path: path.write_text(_csv_text(";", "\r\n"), newline="")),
    "tsv": ("t.tsv", lambda path: path.write_text(_csv_text("\t"), newline="")),
    "csv.gz": ("t.csv.gz", lambda path: path.write_bytes(gzip.compress(_csv_text().encode()))),
    "ndjson": ("t.jsonl", lambda path: path.write_text(_json_text())),
    "ndjson.gz": ("t.ndjson.gz", lambda path: path.write_bytes(gzip.compress(_json_text().encode()))),
}


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("form", WRITERS)
def test_every_format_follows_the_rules(form: str, relation: str, engine: str, tmp_path: Path) -> None:
    name, write = WRITERS[form]
    write(tmp_path / name)
    columns = ["u", "v"] if "json" in form else None
    if columns and relation == "values":
        pytest.skip("refused: test_text_files.py")
    if engine == "spark" and relation == "values" and form not in ("parquet", "csv"):
        pytest.skip("on Spark the relation is tried with one typed and one text format")
    table = eh.read(tmp_path / name, user="u", protects=relation, engine=engine, columns=columns)
    assert found(table) == expected(ROWS, relation)


def test_a_glob_reads_all_files_and_nothing_else(engine: str, tmp_path: Path) -> None:
    _parts(tmp_path / "parts")
    (tmp_path / "parts" / "README.md").write_text("not data")
    table = eh.read(str(tmp_path / "parts" / "part-[01].parquet"), user="u", engine=engine)
    assert found(table) == expected(ROWS[0::3] + ROWS[1::3], "presence")


TEXTS = [
    "5", " 5 ", "\t5", "5\r", "+5", "-.5", "5.", "5.e0", "1e3", "1E-3", "1e999", "-1e999", "1e-999", "9" * 400, "0." + "3" * 400,
    "inf", "-Infinity", "+INF", "nan", "", "null", "true", "0x10", "1_000", "1,000", "1d", "5f", "--5", "5 5", "١", "½",
    "0" * 1999 + "5", "0" * 2000 + "5", " " * 2000 + "5", "inf" + "x" * 2000,
    "5\u2028", "5\u0085", "5\u00a0", "5\u3000", "\u00005", "5\u0000", "inf\u2028", "1e", "1e1234", ".", "e5", "$5",
]  # fmt: skip


def test_text_is_a_number_by_one_rule(engine: str, tmp_path: Path) -> None:
    """Also where an engine's own cast would raise, or read something else."""
    rows = [(f"user{index}", text) for index, text in enumerate(TEXTS)]
    lines = ["u,v", *(f'{user},"{text}"' for user, text in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", newline="")
    table = eh.read(tmp_path / "t.csv", user="u", protects="values", engine=engine)
    assert found(table) == expected([(user, from_text(text)) for user, text in rows], "values")


def test_the_pattern_of_numbers_looks_at_each_digit_once() -> None:
    """Engines that try all ways to match took minutes for one field: the square of its digits."""
    started = time.monotonic()
    assert not re.search(NUMBER + r"\Z", "1" * 40_000 + "x")
    assert time.monotonic() - started < 1


def test_the_keeper_of_a_file_reads_numbers_by_the_same_rule() -> None:
    assert [as_number(text) for text in TEXTS] == [from_text(text) for text in TEXTS]


HEADER = "u,v,w\n"
MALFORMED: dict[str, tuple[str, list[tuple[str | None, float | None]]]] = {
    "too few": ("a,1,x\nb\nc,3,x\n", [("a", 1), ("c", 3)]),
    "too many": ("a,1,x\nb,2,x,x\nc,3,x\n", [("a", 1), ("c", 3)]),
    "empty user": ('"",1,x\nc,3,x\n', [("c", 3)]),
    "quoted": ('"a, b",1,x\nc,3,"y""z"\n', [("a, b", 1), ("c", 3)]),
    "open quotes": ('"a\nb",1,x\nc,3,"y\n', [('b"', 1), ("c", 3)]),
    "odd": ("#a,1,x\n'c',3,\\\n", [("#a", 1), ("'c'", 3)]),
    "spaces": ("a,1,x\na ,2,x\n", [("a", 1), ("a ", 2)]),
    "blank lines": ("\na,1,x\n\n\nc,3,x", [("a", 1), ("c", 3)]),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_lines_are_dropped_never_reported(name: str, tmp_path: Path) -> None:
    body, kept = MALFORMED[name]
    (tmp_path / "t.csv").write_text(HEADER + body, newline="")
    assert found(eh.read(tmp_path / "t.csv", user="u")) == expected(kept, "presence")


def test_malformed_lines_of_one_file(engine: str, tmp_path: Path) -> None:
    """All of them, one after the other: none takes lines of the next with it."""
    (tmp_path / "t.csv").write_text(HEADER + "".join(body for body, _ in MALFORMED.values()), newline="")
    kept = [row for _, rows in MALFORMED.values() for row in rows]
    assert found(eh.read(tmp_path / "t.csv", user="u", engine=engine)) == expected(kept, "presence")


def test_a_column_of_text_in_a_typed_file_is_refused(engine: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"u": ["a"], "v": ["1"], "n": [1]}), tmp_path / "t.parquet")
    with pytest.raises(eh.DataError, match=r"'v' holds string.*\['n'\]"):
        found(eh.read(tmp_path / "t.parquet", user="u", engine=engine))


@pytest.mark.parametrize("ending", ["csv.bz2", "csv.xz"])
def test_a_compression_that_duckdb_would_misread_is_refused(ending: str, tmp_path: Path) -> None:
    """The packed bytes would be read as malformed lines: the table would silently be empty."""
    (tmp_path / f"t.{ending}").write_bytes(b"packed")
    with pytest.raises(eh.DataError, match="does not unpack"):
        eh.read(tmp_path / f"t.{ending}", user="u")


def test_zstandard_is_unpacked(tmp_path: Path) -> None:
    with pa.CompressedOutputStream(pa.OSFile(str(tmp_path / "t.csv.zst"), "wb"), "zstd") as file:
        file.write(_csv_text().encode())
    assert found(eh.read(tmp_path / "t.csv.zst", user="u")) == expected(ROWS, "presence")


def test_types_are_not_guessed_from_values(tmp_path: Path) -> None:
    """One person's value must not change the schema that everybody sees."""
    for name, value in (("one", "5"), ("other", "five")):
        (tmp_path / f"{name}.csv").write_text(f"u,v\na,1\nb,{value}\n")
    one, other = (eh.read(tmp_path / f"{name}.csv", user="u") for name in ("one", "other"))
    assert repr(one) == repr(other)
    assert one.expression.schema() == other.expression.schema()


def test_nothing_but_the_schema_is_read_before_a_release(tmp_path: Path) -> None:
    _parquet(tmp_path / "t.parquet")
    table = eh.read(tmp_path / "t.parquet", user="u")
    draft = eh.session.Drafts(table).mean("v", bounds=BOUNDS, epsilon=1)
    (tmp_path / "t.parquet").unlink()
    assert draft.statistic == "mean of v"
    with pytest.raises(eh.DataError, match="since it was opened"):
        found(table)

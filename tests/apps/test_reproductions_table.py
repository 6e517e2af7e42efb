"""The table of reproductions: a line for each, from what came out; and the command that writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.apps import reproduce_cli
from evenhand.apps.cli import app

ROOT = Path(__file__).parents[2]


def names_in(table: str) -> list[str]:
    return [line.split("`")[1] for line in table.splitlines() if line.startswith("| ") and "`" in line]


def test_every_reproduction_has_a_line_in_the_table() -> None:
    known = reproduce_cli.registry()
    from reproductions.claims import CLAIMS, HEAD

    page = (ROOT / "reproductions" / "README.md").read_text(encoding="utf-8")
    assert set(CLAIMS) == set(known)
    assert sorted(names_in(page)) == sorted(known)
    assert "| " + " | ".join(HEAD) + " |" in page
    assert "NOT AS EXPECTED" not in page
    for claim in CLAIMS.values():
        assert f"| {claim.item} | " in page
        assert f" | {claim.says} | " in page


def test_a_line_shows_numbers_with_their_intervals_and_what_fails() -> None:
    reproduce_cli.registry()
    from reproductions.claims import table
    from reproductions.outcomes import Check, Outcome

    checks = [
        Check("exponent of N", 2.01, 1.8, 2.2, (1.9, 2.1)),
        Check("exponent of w", 5.0, -1.2, -0.8),
        Check("else", 1, 0, 2),
    ]
    (line,) = table({"banerjee-maxsense-scaling": Outcome("title", checks, [])}, "small").splitlines()[2:]
    assert "| `banerjee-maxsense-scaling` (small) |" in line
    assert "exponent of N: 2.01 (1.9 to 2.1); exponent of w: 5, NOT AS EXPECTED |" in line
    assert "else" not in line


def test_all_writes_the_table_and_prints_time_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {
        name: run
        for name, run in reproduce_cli.registry().items()
        if name in ("amin2018-corollary1", "epasto2020-theorem2")
    }
    monkeypatch.setattr(reproduce_cli, "registry", lambda: some)
    result = CliRunner().invoke(app, ["reproduce", "all", "--small", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert all(one["megabytes"] > 20 and one["seconds"] >= 0 for one in found.values())
    assert names_in((tmp_path / "table.md").read_text(encoding="utf-8")) == sorted(some)


@pytest.mark.thorough
def test_the_whole_table_comes_out_at_reduced_size(tmp_path: Path) -> None:
    """Every line, every check."""
    result = CliRunner().invoke(app, ["reproduce", "all", "--small", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert names_in((tmp_path / "table.md").read_text(encoding="utf-8")) == sorted(reproduce_cli.registry())

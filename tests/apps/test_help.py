"""Help and usage lines name commands that exist: every command's help is walked, and its examples run, or are parsed where they need more than a table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from evenhand.apps import cli

ROOT: Any = typer.main.get_command(cli.app)
PARSED = ("reproduce amin2019-fig1", "reproduce all", "audit", "serve", "--engine spark")
"""Examples that take minutes, or wait for somebody: they are parsed only."""


def commands(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that people type."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from commands(inner, (*path, name))


COMMANDS = dict(commands())
EXAMPLES = sorted(
    {
        line
        for command in COMMANDS.values()
        for text in (command.help, command.epilog)
        for block in re.split(r"\n\s*\n", text or "")
        if (line := " ".join(block.split())).startswith("evenhand ")
    }
)


def parsed(words: list[str]) -> None:
    """Parse a command line without running it."""
    command, context = ROOT, ROOT.make_context("evenhand", words)
    while hasattr(command, "commands"):
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, words, parent=context)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_usage_lines_name_what_can_be_typed(path: tuple[str, ...]) -> None:
    said = CliRunner().invoke(cli.app, [*path, "--help"], prog_name="evenhand")
    assert said.exit_code == 0
    usage = re.sub(r"\s+", " ", said.output).split("[")[0].strip()
    assert usage == " ".join(("Usage: evenhand", *path))


@pytest.mark.parametrize("path", [path for path in COMMANDS if path], ids=" ".join)
def test_what_a_mistake_points_at_exists(path: tuple[str, ...]) -> None:
    said = CliRunner().invoke(cli.app, [*path, "--no-such-option"], prog_name="evenhand")
    assert said.exit_code == 2
    (tried,) = set(re.findall(r"Try 'evenhand ([^']*)'", said.output + said.stderr))
    words = tried.split()
    assert words[-1] in ("-h", "--help")
    assert CliRunner().invoke(cli.app, words, prog_name="evenhand").exit_code == 0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables that examples are about."""
    folder, chance, rows = tmp_path_factory.mktemp("examples"), np.random.default_rng(1), 3000
    ratings = pd.DataFrame(
        {
            "userId": chance.integers(0, 300, rows),
            "movieId": chance.integers(0, 5, rows),
            "genre": np.array(["drama", "comedy"])[chance.integers(0, 2, rows)],
            "rating": chance.integers(1, 11, rows) / 2,
        }
    )
    ratings.to_csv(folder / "ratings.csv", index=False)
    ratings.to_parquet(folder / "ratings.parquet")
    sales = pd.DataFrame(
        {
            "customer": ratings.userId,
            "household": ratings.userId,
            "product_id": ratings.movieId,
            "price": ratings.rating * 10,
            "amount": ratings.rating * 20,
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(chance.integers(0, 90, rows), "D"),
        }
    )
    sales.to_parquet(folder / "sales.parquet")
    products = pd.DataFrame({"product_id": range(5), "department": ["food", "toys", "food", "toys", "books"]})
    products.to_parquet(folder / "products.parquet")
    visits = pd.DataFrame({"visitor": ratings.userId, "clicks": ratings.movieId})
    visits.to_parquet(folder / "visits.parquet")
    with duckdb.connect(str(folder / "shop.duckdb")) as shop:
        shop.register("given", sales)
        shop.execute("CREATE TABLE sales AS SELECT * FROM given")
    (folder / "logs").mkdir()
    (folder / "logs/a.jsonl").write_text('{"user": "a", "minutes": 5}\n')
    (folder / "rows_per_user.txt").write_text("".join(f"{count}\n" for count in chance.integers(1, 30, 200)))
    return folder


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_of_the_help_runs(line: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    words = shlex.split(re.sub(r" > \S+\.json$", "", line))[1:]
    if any(" ".join(words).startswith(each) or each in line for each in PARSED):
        parsed(words)
        return
    for made in ("budget.db", "ratings.toml" if words[0] == "describe" else "", "logs.parquet"):
        (place / made).unlink(missing_ok=True) if made else None
    if words[0] == "convert":
        words[2] = f"made-{words[2]}"
    if words[0] == "sql" and "ratings.toml" in words:
        (place / "ratings.toml").write_text("[columns.rating]\nbounds = [0.5, 5]\n")
    said = CliRunner().invoke(cli.app, words, prog_name="evenhand")
    assert said.exit_code == 0, (said.output, said.exception)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 25

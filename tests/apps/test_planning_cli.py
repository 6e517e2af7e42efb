"""``evenhand plan`` on good and bad command lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.apps.cli import app
from evenhand.guarantee import DataError, EvenhandError, UsageError
from evenhand.profiles import Profile

SHAPE = ["--pareto", "1.5", "--users", "10000", "--rows", "200000"]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=True)
    if isinstance(result.exception, EvenhandError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_plan_shows_words_a_curve_and_a_table(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    text = run("mean", *SHAPE, "--bounds", "0.5:5", "--epsilon", "0.2", "--html", str(page), "--for-error", "0.01")
    assert "best bound" in text
    assert "▲" in text
    assert "SmoothWeights" in text
    assert "For an error of 0.01: ε =" in text
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_count_is_asked_for_its_epsilon_only() -> None:
    text = run("count", *SHAPE, "--epsilon", "0.2", "--for-error", "2000")
    assert "For an error of 2000: ε = " in text
    assert "users at this ε" not in text


def test_json_is_one_object() -> None:
    data = json.loads(run("count", *SHAPE, "--epsilon", "0.2", "--json"))
    assert data["best"]["strategy"] == "TotalCap"
    assert data["basis"] == "a public prior"


def test_counts_and_saved_profiles_are_read(tmp_path: Path) -> None:
    (tmp_path / "counts.txt").write_text("1\n2\n40\n")
    assert "TotalCap" in run("count", "--counts", str(tmp_path / "counts.txt"), "--epsilon", "1")
    Profile.counts([1, 2, 40]).save(tmp_path / "p.json")
    assert "TotalCap" in run("count", "--profile", str(tmp_path / "p.json"), "--epsilon", "1")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["mean", *SHAPE, "--epsilon", "0.2"], UsageError, "needs bounds"),
        (["count", "--epsilon", "0.2"], UsageError, "exactly one way"),
        (["count", *SHAPE, "--zipf", "1.2", "--epsilon", "0.2"], UsageError, "exactly one way"),
        (["count", "--pareto", "1.5", "--epsilon", "0.2"], UsageError, "--users and --rows"),
        (["count", "--pareto", "0.9", "--users", "9", "--rows", "99", "--epsilon", "1"], UsageError, "no mean"),
        (["mean", *SHAPE, "--bounds", "5", "--epsilon", "0.2"], UsageError, "LOW:HIGH"),
        (["count", "--counts", "/no/such/file", "--epsilon", "1"], DataError, "can't be read"),
        (["count", *SHAPE, "--epsilon", "0.2", "--html", "/no/such/folder/x.html"], UsageError, "can't be written"),
    ],
)
def test_bad_command_lines_say_what_to_do(arguments: list[str], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        run(*arguments)


def test_text_instead_of_counts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "counts.txt").write_text("one\ntwo\n")
    with pytest.raises(DataError, match="not a number"):
        run("count", "--counts", str(tmp_path / "counts.txt"), "--epsilon", "1")


def test_a_model_is_forecast_to_beat_a_constant_one_or_not() -> None:
    given = ("erm", *SHAPE, "--delta", "1e-6", "--dimension")
    assert "is forecast to beat a constant one" in run(*given, "20", "--epsilon", "1")
    found = json.loads(run(*given, "2000", "--epsilon", "0.1", "--json"))
    assert found["beats_constant"] == "no"
    assert "too few people for this ε" in found["why"]
    with pytest.raises(UsageError, match="needs the number of features"):
        run("erm", *SHAPE, "--epsilon", "1", "--delta", "1e-6")


def test_rows_per_user_are_planned_for_pure_epsilon(tmp_path: Path) -> None:
    given = ("erm", *SHAPE, "--dimension", "5", "--epsilon", "1")
    assert "rows per user" in run(*given, "--html", str(tmp_path / "plan.html"))
    assert "<svg" in (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert json.loads(run(*given, "--json"))["best"]["tau"] > 1
    with pytest.raises(UsageError, match="--html"):
        run(*given, "--delta", "1e-6", "--html", "x.html")


def test_a_selection_is_planned() -> None:
    shape = ["--lognormal", "1", "--users", "5000", "--rows", "20000", "--epsilon", "1"]
    data = json.loads(run("selection", *shape, "--hypotheses", "151", "--heterogeneity", "0", "--json"))
    assert data["hypotheses"] == 151
    assert data["best"]["bias"] == 0
    assert "A choice among 151 hypotheses" in run("selection", *shape, "--hypotheses", "151")
    apart = json.loads(run("erm", *shape, "--dimension", "3", "--heterogeneity", "0.5", "--json"))
    assert apart["excess"] > json.loads(run("erm", *shape, "--dimension", "3", "--json"))["excess"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["erm", "--dimension", "3", "--bounds", "0:5"], "bounds="),
        (["erm", "--dimension", "3", "--for-error", "0.1"], "--for-error 0.1"),
        (["selection", "--hypotheses", "3", "--dimension", "3"], "dimension="),
        (["selection"], "how many there are"),
        (["count", "--dimension", "3"], "go with erm and selection"),
        (["count", "--heterogeneity", "1"], "heterogeneity="),
        (["count", "--groups", "30", "--heterogeneity", "1"], "--heterogeneity 1"),
        (["selection", "--hypotheses", "3", "--html", "plan.html"], "no page"),
    ],
)
def test_options_that_would_change_nothing_are_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        run(*arguments, *SHAPE, "--epsilon", "1")

"""The command line as a newcomer meets it: good calls work; bad ones end with the right code and a helpful line.

Most calls go through ``main()``, which is what the console script runs; a few through the script itself.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenhand.apps import cli

SCRIPT = Path(sys.executable).with_name("evenhand")
CANARY = "canary-user"


@dataclass(frozen=True)
class Result:
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a few files, as the working directory."""
    genres = ("drama", "comedy", "drama")
    lines = [f"user{index % 37},{genres[index % 3]},{index * 7 % 5 + 1}" for index in range(2000)]
    lines += ["user1,drama,", ",drama,3", "user2,comedy,nan", f"{CANARY},comedy,1e9"]
    (tmp_path / "r.csv").write_text("user,genre,rating\n" + "\n".join(lines) + "\n")
    (tmp_path / "empty.csv").write_text("user,rating\n")
    (tmp_path / "junk.parquet").write_bytes(b"PAR1nonsense")
    (tmp_path / "text.csv").write_text(f"user,rating\n{CANARY},good\nb,bad\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Call ``evenhand`` with these arguments."""
    monkeypatch.delenv("COLUMNS", raising=False)  # xdist says how wide its terminal is

    def call(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["evenhand", *arguments])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        out, err = capfd.readouterr()
        return Result(int(code or 0), out, err)

    return call


RATING = ("r.csv", "--user", "user", "--value", "rating", "--bounds", "1:5")
PAID = ("--epsilon", "1", "--ledger", "b.db")


def test_a_mean_as_json(run: Run) -> None:
    """The names here are what programs rely on."""
    result = run("release", "mean", *RATING, *PAID, "--json")
    assert result.code == 0
    assert result.err == ""
    said = {"statistic", "usable", "why", "value", "interval", "noise_interval", "guarantee", "bounding", "error"}
    said |= {"event", "ledger", "details"}
    assert set(result.json) == said
    assert result.json["statistic"] == "mean of rating"
    assert 1 <= result.json["value"] <= 5
    low, high = result.json["interval"]["bounds"]
    assert low <= result.json["value"] <= high
    assert "noise" in result.json["interval"]["covers"]
    assert set(result.json["guarantee"]) >= {"epsilon", "delta", "exact", "protects", "user", "words"}
    assert result.json["guarantee"]["exact"] == {"epsilon": "1", "delta": "0"}
    assert set(result.json["bounding"]) >= {"strategy", "parameter", "words", "chosen", "epsilon"}
    assert set(result.json["error"]) >= {"noise", "bias", "total", "basis"}
    assert result.json["ledger"]["remaining"] == {"epsilon": 0.0, "delta": 0.0}


@pytest.mark.parametrize(
    "arguments",
    [
        ("top", "r.csv", "--user", "user", "--value", "genre", "--k", "1", "--of", "rows", "--keys", "drama,comedy"),
        ("distinct", "r.csv", "--user", "user", "--value", "rating", "--by", "genre", "--keys", "drama,comedy"),
        ("count", "r.csv", "--user", "user"),
        ("users", "r.csv", "--user", "user"),
        ("sum", *RATING, "--bounding", "total-cap:50"),
        ("sum", *RATING, "--bounding", "smooth-weights:2.5"),
        ("mean", *RATING, "--bounding", "row-limit:10"),
        ("mean", *RATING, "--bounding", "smooth-weights"),
        ("mean", *RATING, "--bounding", "auto:0.5"),
        ("mean", *RATING, "--protects", "values", "--bounding", "centred-interval:30"),
        ("variance", *RATING),
        ("std", *RATING),
        ("per_user_mean", *RATING),
        ("per_user_mean", *RATING, "--of", "total", "--by", "genre", "--keys", "drama,comedy"),
        ("ratio", "r.csv", "--user", "user", "--numerator", "sum:rating:1:5", "--denominator", "users"),
        (
            "ratio",
            "r.csv",
            "--user",
            "user",
            "--numerator",
            "count",
            "--denominator",
            "users",
            "--by",
            "genre",
            "--delta",
            "0.01",
            "--other",
            "rest",
        ),
        ("median", *RATING),
        ("quantiles", *RATING, "--quantiles", "0.5,0.9"),
        ("histogram", "r.csv", "--user", "user", "--value", "rating", "--edges", "1,2,3,4,5"),
        ("mean", "r.csv", "--user", "user", "--value", "rating", "--bounds", "1:"),
        ("ratio", "r.csv", "--user", "user", "--numerator", "sum:rating", "--denominator", "count"),
        ("mean", *RATING, "--by", "genre", "--keys", "drama,comedy,horror"),
        ("count", "r.csv", "--user", "user", "--by", "genre", "--delta", "0.01", "--other", "rest"),
        ("count", "r.csv", "--user", "user,genre"),
        ("mean", "empty.csv", "--user", "user", "--value", "rating", "--bounds", "1:5"),
        ("mean", "text.csv", "--user", "user", "--value", "rating", "--bounds", "-1:5"),
    ],
    ids=" ".join,
)
def test_good_calls(arguments: tuple[str, ...], run: Run, folder: Path) -> None:
    result = run("release", *arguments, *PAID)
    assert (result.code, result.err) == (0, "")
    assert "95% interval" in result.out or "_low" in result.out
    assert "--explain says how it was made" in result.out
    assert (folder / "b.db").exists()


def test_explain_says_how_an_answer_was_made(run: Run) -> None:
    result = run("release", "count", "r.csv", "--user", "user", "--explain", *PAID)
    assert all(words in result.out for words in ("Protects", "bound on a user", "the interval", "left of"))


def test_grouped_json_lists_every_public_key(run: Run) -> None:
    result = run("release", "mean", *RATING, "--by", "genre", "--keys", "drama,horror", *PAID, "--json")
    assert [row["genre"] for row in result.json["value"]] == ["drama", "horror"]
    assert all(math.isfinite(row["mean"]) for row in result.json["value"])


def test_a_page_is_written(run: Run, folder: Path) -> None:
    assert run("release", "mean", *RATING, *PAID, "--html", "page.html").code == 0
    page = (folder / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "mean of rating" in page
    assert "http" not in page.lower().replace("doctype html", ""), "a page that loads something is not self-contained"


def test_a_preview_spends_nothing_and_makes_no_ledger(run: Run, folder: Path) -> None:
    result = run("release", "mean", *RATING, *PAID, "--preview")
    assert result.code == 0
    assert "nothing was read or spent" in result.out
    assert not (folder / "b.db").exists()
    run("release", "count", "r.csv", "--user", "user", *PAID, "--budget", "1.5")
    result = run("release", "mean", *RATING, *PAID, "--preview", "--json")
    assert result.json["affordable"] is False
    assert "value" not in result.json
    assert len(run("ledger", "show", "b.db", "--json").json["events"]) == 1


def test_the_budget_holds(run: Run) -> None:
    assert run("release", "mean", *RATING, *PAID, "--budget", "1.5").code == 0
    refused = run("release", "mean", *RATING, *PAID)
    assert refused.code == 3
    assert refused.out == ""
    assert "budget" in refused.err
    assert "0.5" in refused.err
    assert run("release", "mean", *RATING, "--epsilon", "0.5", "--ledger", "b.db").code == 0
    shown = run("ledger", "show", "b.db", "--json", "--verify").json
    assert shown["remaining"]["epsilon"] == 0
    assert [event["cost"]["epsilon"] for event in shown["events"]] == ["1", "0.5"]


def test_a_new_ledger_holds_just_this_release(run: Run) -> None:
    run("release", "count", "r.csv", "--user", "user", "--epsilon", "0.1", "--ledger", "b.db")
    assert run("release", "count", "r.csv", "--user", "user", "--epsilon", "1e-9", "--ledger", "b.db").code == 3


def test_the_ledger_is_shown(run: Run) -> None:
    run("release", "mean", *RATING, *PAID)
    shown = run("ledger", "show", "b.db")
    assert shown.code == 0
    assert all(word in shown.out for word in ("epsilon", "spent", "remaining", "mean of rating"))
    missing = run("ledger", "show", "nowhere.db")
    assert missing.code == 4
    assert "nowhere.db" in missing.err


def test_the_ledger_shows_public_facts_and_what_a_release_rests_on(run: Run) -> None:
    import evenhand as eh

    free = (
        "release",
        "count",
        "r.csv",
        "--user",
        "user",
        "--epsilon",
        "1",
        "--protects",
        "values",
        "--public",
        "genre",
    )
    assert run(*free, "--ledger", "v.db").code == 0
    assert "(public: genre)" in run("ledger", "show", "v.db").out
    paid = run("release", "users", "r.csv", "--user", "user", "--epsilon", "1", "--ledger", "b.db", "--budget", "9")
    assert paid.code == 0
    assert run(*free, "--ledger", "b.db").code == 2
    session = eh.Session(eh.read("r.csv", user="user"), eh.Ledger("b.db"))
    session.profile(epsilon=1)
    session.count(epsilon=1)
    assert "count (bound from #2)" in run("ledger", "show", "b.db").out
    assert run("ledger", "show", "b.db", "--json").json["events"][2]["guarantee"]["together"]["epsilon"] == 2


BAD: list[tuple[tuple[str, ...], int, tuple[str, ...]]] = [
    (("mean", "r.csv", "--user", "user", "--value", "stars", "--bounds", "1:5"), 4, ("stars", "rating", "genre")),
    (("mean", "r.csv", "--user", "usr", "--value", "rating", "--bounds", "1:5"), 4, ("usr", "Did you mean 'user'")),
    (("mean", "nowhere.csv", "--user", "user", "--value", "rating", "--bounds", "1:5"), 4, ("nowhere.csv",)),
    (("mean", "junk.parquet", "--user", "user", "--value", "rating", "--bounds", "1:5"), 4, ("junk.parquet",)),
    (("mean", "r.xlsx", "--user", "user", "--value", "rating", "--bounds", "1:5"), 2, ("xlsx", "parquet")),
    (("mean", "r.csv", "--user", "", "--value", "rating", "--bounds", "1:5"), 2, ("user column",)),
    (("mean", "r.csv", "--user", "user", "--bounds", "1:5"), 2, ("--value",)),
    *(
        (("mean", "r.csv", "--user", "user", "--value", "rating", "--bounds", bounds), 2, ("bounds",))
        for bounds in ("5:1", "1", "a:b", "1:inf", "nan:5", "1:1", ":inf", "1:2:3")
    ),
    (("meen", *RATING), 2, ("'meen' is not a statistic", "mean")),
    (("mean", *RATING, "--bounding", "magic"), 2, ("magic", "smooth-weights")),
    (("mean", *RATING, "--bounding", "total-cap:abc"), 2, ("TotalCap",)),
    (("mean", *RATING, "--bounding", "auto:abc"), 2, ("bounding",)),
    (("mean", *RATING, "--bounding", "smooth-weights:0"), 2, ("SmoothWeights(0)",)),
    (("mean", *RATING, "--bounding", "centred-interval:5"), 2, ("presence",)),
    (("mean", *RATING, "--protects", "rows"), 2, ("presence", "values")),
    (("mean", *RATING, "--engine", "oracle"), 2, ("oracle", "spark")),
    (("mean", *RATING, "--keys", "drama"), 2, ("--by",)),
    (("mean", *RATING, "--by", "kind", "--keys", "drama"), 4, ("kind", "genre")),
    (("count", "r.csv", "--user", "user", "--by", "genre"), 2, ("delta",)),
    (("mean", *RATING, "--by", "genre", "--keys", "@nowhere.txt"), 2, ("nowhere.txt",)),
    (("quantiles", *RATING, "--quantiles", "half"), 2, ("quantiles",)),
    (("histogram", "r.csv", "--user", "user", "--value", "rating", "--edges", "3,1"), 2, ("edges",)),
    (("mean", *RATING, "--html", "no/such/folder/page.html"), 2, ("html",)),
    (("mean", *RATING, "--delta", "1"), 2, ("delta",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "words"), BAD, ids=lambda part: " ".join(map(str, part)) if isinstance(part, tuple) else None
)
def test_bad_calls(arguments: tuple[str, ...], code: int, words: tuple[str, ...], run: Run, folder: Path) -> None:
    result = run("release", *arguments, *PAID)
    assert result.code == code, result.err
    assert all(word.lower() in result.err.lower() for word in words), result.err
    assert result.out == ""
    assert "Traceback" not in result.err
    assert CANARY not in result.err
    assert result.err.count("\n") <= 2, "an error is a line or two"
    assert not (folder / "b.db").exists(), "a ledger was made for a call that could not work"


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "abc", "1e400", "1e9", "1e-12", ""])
def test_bad_epsilon(epsilon: str, run: Run, folder: Path) -> None:
    result = run("release", "mean", *RATING, f"--epsilon={epsilon}", "--ledger", "b.db")
    assert result.code == 2
    assert "epsilon" in result.err
    assert not (folder / "b.db").exists()


def test_a_refused_call_leaves_an_existing_ledger_alone(run: Run, folder: Path) -> None:
    run("release", "count", "r.csv", "--user", "user", *PAID, "--budget", "3")
    before = run("ledger", "show", "b.db", "--json").json
    for arguments, _, _ in BAD[:4]:
        run("release", *arguments, *PAID)
    assert run("ledger", "show", "b.db", "--json").json == before


@pytest.mark.parametrize("budget", ["2", "0.5"])
def test_another_total_is_an_error(budget: str, run: Run) -> None:
    run("release", "count", "r.csv", "--user", "user", *PAID)
    result = run("release", "count", "r.csv", "--user", "user", *PAID, "--budget", budget)
    assert result.code == 2
    assert "created with a total of" in result.err


def test_a_total_that_is_no_number_names_the_option(run: Run, folder: Path) -> None:
    result = run("release", "count", "r.csv", "--user", "user", *PAID, "--budget", "2,1e-6")
    assert result.code == 2
    assert "--budget='2,1e-6' is not a number" in result.err
    assert not (folder / "b.db").exists()


def test_a_file_that_is_no_ledger(run: Run, folder: Path) -> None:
    (folder / "b.db").write_text("my thesis, chapter one\n" * 200)
    result = run("release", "count", "r.csv", "--user", "user", *PAID)
    assert result.code == 4
    assert "not a ledger" in result.err
    assert (folder / "b.db").read_text().startswith("my thesis")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_ledger_in_a_read_only_folder(run: Run, folder: Path) -> None:
    (folder / "locked").mkdir(mode=0o555)
    result = run("release", "count", "r.csv", "--user", "user", "--epsilon", "1", "--ledger", "locked/b.db")
    assert result.code == 4
    assert "writ" in result.err


def test_a_ledger_in_no_folder(run: Run) -> None:
    result = run("release", "count", "r.csv", "--user", "user", "--epsilon", "1", "--ledger", "no/such/b.db")
    assert result.code == 4
    assert "no/such/b.db" in result.err


def test_a_missing_java_is_said_plainly(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = run("release", "count", "r.csv", "--user", "user", *PAID, "--engine", "spark")
    assert result.code == 4
    assert "Java 17" in result.err
    assert not (folder / "b.db").exists()


def test_an_unforeseen_failure_shows_its_kind_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import evenhand as eh

    def explode(*given: Any, **options: Any) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(eh, "read", explode)
    result = run("release", "count", "r.csv", "--user", "user", *PAID)
    assert result.code == 1
    assert "RuntimeError" in result.err
    assert CANARY not in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("relaese", "mean"), 2, "relaese"),
        (("release", "mean", "r.csv"), 2, "--user"),
        (("release", "mean", *RATING, *PAID, "--lgr", "x"), 2, "--ledger"),
        (("release", "meen", *RATING, *PAID), 2, "Did you mean 'mean'?"),
        (("release", "mean", "nowhere.csv", *RATING[1:], *PAID), 4, "nowhere.csv"),
    ],
)
def test_failures_of_json_are_json(run: Run, arguments: tuple[str, ...], code: int, words: str) -> None:
    result = run(*arguments, "--json")
    error = json.loads(result.out)["error"]
    assert (result.code, error["exit_code"], result.err) == (code, code, "")
    assert words in error["message"]


def test_a_failure_leaves_no_empty_file(run: Run, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert run("release", "mean", "nowhere.csv", *RATING[1:], *PAID, "--html", "out.html").code == 4
    assert sorted(folder.iterdir()) == before


# Through the script itself.


def script(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=120, **options)


def test_the_script_releases_and_refuses(folder: Path) -> None:
    released = script("release", "mean", *RATING, *PAID, "--json", cwd=folder)
    assert released.returncode == 0
    assert json.loads(released.stdout)["statistic"] == "mean of rating"
    assert script("release", "mean", *RATING, *PAID, cwd=folder).returncode == 3


def test_a_missing_option_is_named() -> None:
    result = script("release", "mean", "r.csv", "--user", "user")
    assert result.returncode == 2
    assert "--epsilon" in result.stderr
    assert "Traceback" not in result.stderr


def test_help_has_examples(run: Run) -> None:
    shown = run("--help").out
    assert all(word in shown for word in ("release", "plan", "demo", "ledger"))
    shown = run("release", "--help").out
    assert all(word in shown for word in ("Examples", "--epsilon", "Exit codes", "evenhand release mean"))

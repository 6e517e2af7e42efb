"""The commands: a whole campaign by hand, as in the tutorial, and helpful ends for everything that goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evenhand.apps.recommender_cli import app
from evenhand.guarantee import EvenhandError
from evenhand.recommender.messages import PublishedModel, Task
from evenhand.service.campaign_config import load
from evenhand.service.campaign_http import CampaignServer

ROOT = Path(__file__).parents[2]
FILMS = ["alien", "brazil", "casablanca", "dune", "elf", "fargo"]

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))  # where a person's diary lives

    def call(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)
        if result.exception is not None:
            raise result.exception
        return result.stdout

    return call


@pytest.fixture
def opened(run: Run) -> list[str]:
    """An open task with its tokens, and ratings, in the current folder."""
    Path("films.txt").write_text("\n".join(FILMS) + "\n\n")
    Path("mine.csv").write_text("item,liked\nalien,yes\ndune,no\n")
    run("task", "films.txt", "--rated", 3, "--users", 20, "--epsilon", 1)
    run("task", "task.json", "--open", "--beacon", "lottery")
    return Path("tokens.txt").read_text().split()


def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    """All its blocks, in order, in a shell in which `evenhand` is the command line."""
    text = (ROOT / "docs/recommender/tutorial.md").read_text()
    evenhand = (
        f"evenhand() {{ shift; {sys.executable} -c 'import sys; from evenhand.apps.recommender_cli import app; app()' "
        '"$@"; }'
    )
    script = ["set -e", evenhand]
    for language, block in re.findall(r"```(console|python)\n(.*?)```", text, re.DOTALL):
        if language == "python":
            script.append(f"{sys.executable} - <<'END'\n{block}END")
        else:
            script += [line.removeprefix("$ ") for line in block.splitlines()]
    run = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "2000 reports accepted" in run.stdout
    assert "1 duplicate" in run.stdout
    model = PublishedModel.from_json((tmp_path / "model.json").read_text())
    # The forecast misplaces each film with probability 0.006: three or more of twelve by bad luck, 5e-5.
    clusters = model.clusters
    wrong = sum(clusters[film] != (0 if film < 6 else 1) for film in range(12))
    assert min(wrong, 12 - wrong) <= 2
    assert model.reports == 2000


def test_binary_files_do_as_well(run: Run, opened: list[str]) -> None:
    Path("task.bin").write_bytes(Task.from_json(Path("task.json").read_text()).to_bytes())
    for number, token in enumerate(opened):
        out = f"r{number}.{'json' if number % 2 else 'bin'}"
        run("answer", "task.bin", "--token", token, "--ratings", "mine.csv", "--diary", f"{number}.db", "--out", out)
    counts = json.loads(run("fold", "task.bin", *(p for p in sorted(Path().glob("r*.*"))), "--json"))
    assert counts["accepted"] == 20
    run("publish", "task.bin", "campaign.fold", "--out", "model.bin")
    found = json.loads(run("recommend", "model.bin", "--ratings", "mine.csv", "--json"))
    assert {row["item"] for row in found["recommendations"]} == set(FILMS) - {"alien", "dune"}


def test_totals_of_two_machines_are_published_together(run: Run, opened: list[str]) -> None:
    for number, token in enumerate(opened[:4]):
        run("answer", "task.json", "--token", token, "--ratings", "mine.csv", "--diary", f"{number}.db",
            "--out", f"r{number}.bin")  # fmt: skip
    run("fold", "task.json", "r0.bin", "r1.bin", "--into", "a.fold")
    run("fold", "task.json", "r2.bin", "r3.bin", "--into", "b.fold")
    facts = json.loads(run("publish", "task.json", "a.fold", "b.fold", "--json"))
    assert facts["reports"] == 4
    assert "guesses" in facts["notes"][0]
    assert facts["guarantee"]["epsilon"] == 1


def test_public_rated_sets(run: Run) -> None:
    Path("films.txt").write_text("\n".join(FILMS))
    Path("mine.csv").write_text("item,liked\nalien,yes\ndune,no\n")
    Path("rated.csv").write_text("serial,item\n0,alien\n0,dune\n1,alien\n")
    run("task", "films.txt", "--rated", 3, "--users", 2, "--sketch", "pairwise", "--public-rated")
    run("task", "task.json", "--open")
    token = Path("tokens.txt").read_text().split()[0]
    answer = ("answer", "task.json", "--token", token, "--ratings", "mine.csv")
    with pytest.raises(EvenhandError, match="for you to decide"):
        run(*answer)
    assert json.loads(run("diary", "--json")) | {"diary": ""} == {
        "diary": "", "spent": "0", "lifetime": "4", "ceiling": "1", "public_rated": None
    }  # fmt: skip
    assert "Which items you rated: public." in run("diary", "--public-rated")
    with pytest.raises(EvenhandError, match="decided once"):
        run("diary", "--private-rated")
    run(*answer)
    with pytest.raises(EvenhandError, match="no query is stated"):
        run("task", "task.json", "--query", 0)
    facts = json.loads(run("fold", "task.json", "report.bin", "--rated-sets", "rated.csv", "--json"))
    assert facts["accepted"] == 1
    Path("rated.csv").write_text("serial,item\n7,alien\n")
    with pytest.raises(EvenhandError, match="does not have"):
        run("fold", "task.json", "report.bin", "--rated-sets", "rated.csv")
    for damage in ("²,alien", "0", "-1,alien", "99999999999999999999,alien"):
        Path("rated.csv").write_text(f"serial,item\n{damage}\n")
        with pytest.raises(EvenhandError, match="does not have"):
            run("fold", "task.json", "report.bin", "--rated-sets", "rated.csv")


def test_a_person_has_one_diary_in_whatever_folder_they_are(run: Run, opened: list[str], tmp_path: Path) -> None:
    """Twenty fresh coins would agree with probability 2^-19."""
    given = ("--token", opened[0], "--ratings", tmp_path / "mine.csv", "--out", tmp_path / "report.bin", "--json")
    reports, diaries = set(), set()
    for number in range(20):
        folder = tmp_path / f"folder {number}"
        folder.mkdir()
        os.chdir(folder)
        facts = json.loads(run("answer", tmp_path / "task.json", *given))
        assert facts["spent"] == "1"
        reports.add((tmp_path / "report.bin").read_bytes())
        diaries.add(facts["diary"])
    assert len(reports) == len(diaries) == 1
    assert "holds per diary" in run("answer", tmp_path / "task.json", *given[:-1], "--diary", "other.db")
    assert Path("other.db").exists()


def test_what_was_left_out_is_said_only_where_nothing_is_sent(run: Run, opened: list[str]) -> None:
    run("answer", "task.json", "--token", opened[0], "--ratings", "mine.csv")
    run("fold", "task.json", "report.bin")
    run("publish", "task.json", "campaign.fold")
    Path("mine.csv").write_text("item,liked\nalien,\nunheard of,yes\n")
    assert run("recommend", "model.json", "--ratings", "mine.csv").count("Ratings left out: 1 with") == 2
    assert "left out" not in run("answer", "task.json", "--token", opened[0], "--ratings", "mine.csv")


def test_plan_and_simulate(run: Run) -> None:
    facts = json.loads(run("plan", "--items", 1000, "--rated", 20, "--users", 6000, "--json"))
    assert facts["best"] == "maxsense"
    assert [point["users"] for point in facts["simulated"]] == [6000]
    assert facts["simulated"][0]["wrong"] > 0.4
    words = run("plan", "--items", 1000, "--rated", 20, "--users", 6000, "--no-check", "--page", "plan.html")
    assert "this needs 9.3 million" in words
    drawn = Path("plan.html").read_text()
    assert drawn.count("<polygon") == 3 * 4
    assert "<script" not in drawn
    assert "490,000" in drawn
    assert "9.3 million" in drawn
    looks = json.loads(run("plan", "--items", 20, "--rated", 10, "--epsilon", 3, "--json"))["simulated"]
    assert [point["users"] for point in looks] == sorted(point["users"] for point in looks)
    assert looks[0]["wrong"] >= looks[-1]["wrong"] <= 0.05
    facts = json.loads(run("simulate", "--items", 40, "--rated", 10, "--epsilon", 3, "--users", "500,5000", "--like",
                           "0.9,0.1", "--out", "pictures", "--json"))  # fmt: skip
    assert len(facts["items_wrong"]) == 8
    assert {quality["method"] for quality in facts["quality"]} >= {"maxsense", "popularity (not private)"}
    for file in facts["files"]:
        assert Path(file).stat().st_size > 1000
    assert {Path(file).suffix for file in facts["files"]} == {".png", ".svg", ".html"}


def test_simulating_on_a_real_table_says_that_it_is_not_private(run: Run) -> None:
    rows = [f"{u},{i},{5 if (u + i) % 2 else 1}" for u in range(60) for i in range(12) if (u * i) % 3]
    Path("ratings.csv").write_text("userId,movieId,rating\n" + "\n".join(rows))
    given = ("simulate", "--ratings", "ratings.csv", "--users", "500,2000", "--epsilon", "1,4",
             "--sketch", "maxsense,projection", "--rated", 5)  # fmt: skip
    assert "NOT PRIVATE" in run(*given)
    facts = json.loads(run(*given, "--json", "--out", "pictures"))
    assert facts["not_private"] is True
    assert len(facts["quality"]) == 2 + 2 * 2 * 3
    assert [words.partition(":")[0] for words in facts["verdicts"]] == ["ε = 1", "ε = 1", "ε = 4", "ε = 4"]
    assert facts["judged_people"] == 8  # of the 40 who rated anything
    assert all(Path(file).stat().st_size > 1000 for file in facts["files"])
    assert {facts["seconds"] > 0, facts["peak_memory_mb"] > 0} == {True}


def test_a_campaign_about_groups(run: Run) -> None:
    """People rate films; the campaign is about genres; what is recommended are films."""
    genres = ["horror", "comedy", "drama", "horror", "comedy", "drama"]
    lines = (f"{film},{genre},{6 - place}" for place, (film, genre) in enumerate(zip(FILMS, genres, strict=True)))
    Path("groups.csv").write_text("item,group,popularity\n" + "\n".join(lines) + "\n")
    Path("mine.csv").write_text("item,liked\nalien,yes\nelf,no\n")
    run("task", "groups.csv", "--groups", "--rated", 2, "--users", 3)
    run("task", "task.json", "--open")
    assert Task.from_json(Path("task.json").read_text()).items == ("horror", "comedy", "drama")
    token = Path("tokens.txt").read_text().split()[0]
    answer = ("answer", "task.json", "--token", token, "--ratings", "mine.csv", "--groups", "groups.csv")
    assert "Wrote report.bin" in run(*answer)
    run("fold", "task.json", "report.bin")
    run("publish", "task.json", "campaign.fold")
    facts = json.loads(run("recommend", "model.json", "--ratings", "mine.csv", "--groups", "groups.csv", "--json"))
    assert {row["item"] for row in facts["recommendations"]} == set(FILMS) - {"alien", "elf"}
    Path("campaign.toml").write_text('groups = "groups.csv"\n')
    served = asyncio.run(CampaignServer(load(Path("campaign.toml"))).groups(None))  # type: ignore[arg-type]
    assert served.body == Path("groups.csv").read_bytes()
    Path("groups.csv").write_text("item,group\nalien,western\n")
    with pytest.raises(EvenhandError, match=r"line 1.*not those of this task"):
        load(Path("campaign.toml"))
    with pytest.raises(EvenhandError, match="not those of this task"):
        run(*answer)
    assert "20000 items in 40 groups" in run("plan", "--items", 20_000, "--groups", 40, "--no-check")


def test_a_second_round(run: Run, opened: list[str]) -> None:
    first = PublishedModel(
        bytes(32), tuple(FILMS), (0,) * 6, tuple((float(n - 2.5),) for n in range(6)), (), 9, Decimal(1)
    )
    Path("first.json").write_text(first.to_json())
    names = ("--out", "second.json", "--secret", "second.secret", "--tokens", "second.txt")
    run("task", "films.txt", "--rated", 3, "--users", 5, "--after", "first.json", *names)
    run("task", "second.json", "--open")
    token = Path("second.txt").read_text().split()[0]
    answer = ("answer", "second.json", "--token", token, "--ratings", "mine.csv")
    with pytest.raises(EvenhandError, match="--after"):
        run(*answer)
    assert "Spent 1 of" in run(*answer, "--after", "first.json")
    with pytest.raises(EvenhandError, match="not a second round after this model"):
        run("answer", "task.json", "--token", opened[0], "--ratings", "mine.csv", "--after", "first.json")
    run("fold", "second.json", "report.bin", "--secret", "second.secret")
    run("publish", "second.json", "campaign.fold", "--out", "model.json")
    assert PublishedModel.from_json(Path("model.json").read_text()).dimensions == 1
    with pytest.raises(EvenhandError, match="same catalogue"):
        run("task", "films.txt", "--sketch", "pairwise", "--rated", 3, "--after", "first.json")


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["task", "missing.txt"], "can't be read", 4),
        (["task", "films.txt", "--rated", "9"], "rated=9", 2),
        (["task", "films.txt", "--rated", "3"], "exists already", 2),
        (["task", "films.txt", "--sketch", "maxsens", "--rated", "3"], "Did you mean 'maxsense'", 2),
        (["task", "films.txt", "--pool", "some", "--rated", "3"], "pool='some'", 2),
        (["task", "task.json", "--open"], "open already", 2),
        (["task", "task.json", "--query", "99"], "serial=99", 2),
        (["answer", "mine.csv", "--token", "x", "--ratings", "mine.csv"], "task", 4),
        (["answer", "task.json", "--token", "x", "--ratings", "mine.csv"], "TASK-SERIAL-TAG", 4),
        (["answer", "task.json", "--token", "TOKEN", "--ratings", "missing.csv"], "can't be read", 4),
        (["answer", "task.json", "--token", "TOKEN", "--ratings", "mine.csv", "--ceiling", "0.5"], "ceiling", 3),
        (["answer", "task.json", "--token", "TOKEN", "--ratings", "mine.csv", "--lifetime", "0.5"], "lifetime", 3),
        (["fold", "task.json", "missing.bin"], "can't be read", 4),
        (["fold", "task.json", "films.txt", "--secret", "films.txt"], "secret", 4),
        (["publish", "task.json", "films.txt"], "fold", 4),
        (["recommend", "task.json", "--ratings", "mine.csv"], "not a model", 4),
        (["plan", "--items", "5", "--rated", "6"], "rated=6", 2),
        (["plan", "--tastes", "mirored"], "Did you mean 'mirrored'", 2),
        (["simulate", "--users", "few"], "--users", 2),
        (["simulate", "--epsilon", "1,2"], "'1,2'", 2),
        (["simulate", "--sketch", "maxsens"], "Did you mean 'maxsense'", 2),
        (["simulate", "--like", "a,b"], "--like", 2),
        (["simulate", "--ratings", "missing.csv"], "can't be read", 4),
        (["simulate", "--ratings", "mine.csv", "--columns", "item"], "three names", 2),
    ],
)
def test_what_goes_wrong_is_explained(arguments: list[str], said: str, code: int, run: Run, opened: list[str]) -> None:
    with pytest.raises(EvenhandError, match=re.escape(said)) as caught:
        run(*(opened[0] if argument == "TOKEN" else argument for argument in arguments))
    assert caught.value.exit_code == code
    assert "\n" not in str(caught.value)


def test_garbage_reports_are_counted_and_the_command_goes_on(run: Run, opened: list[str]) -> None:
    Path("garbage.bin").write_bytes(os.urandom(1000))
    facts = json.loads(run("fold", "task.json", "garbage.bin", "--json"))
    assert (facts["accepted"], facts["malformed"]) == (0, 1)
    with pytest.raises(EvenhandError, match="nothing to publish"):
        run("publish", "task.json", "campaign.fold")


def test_an_altered_task_is_not_answered(run: Run, opened: list[str]) -> None:
    altered = json.loads(Path("task.json").read_text())
    altered["epsilon"] = "0.5"
    Path("task.json").write_text(json.dumps(altered))
    with pytest.raises(EvenhandError, match="altered"):
        run("answer", "task.json", "--token", opened[0], "--ratings", "mine.csv")


def test_secrets_are_for_their_owner_only(opened: list[str]) -> None:
    for name in ("server.secret", "tokens.txt"):
        assert Path(name).stat().st_mode & 0o077 == 0

"""A sketch from outside, through ``docs/recommender/new-sketch.md`` alone: it works everywhere, and can't cost privacy."""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from evenhand.apps import cli
from evenhand.apps.audit_sketches import sketches
from evenhand.audit import audit
from evenhand.guarantee import UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.at_home import Diary, answer, check_query, recommend
from evenhand.recommender.at_home.coins import Coins, SecureCoins, flip_threshold
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.messages import SKETCHES, Report, Sketch, Task, Token
from evenhand.recommender.planning import plan
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import preset
from recommender_laws import Answer, all_ratings, power_below, worst_ratio

ROOT = Path(__file__).parents[2]
NAME = "one-item"


def entry(home: str = "OneItem") -> Sketch:
    return Sketch(
        asks="did you like this one item?",
        sees="how much items are liked",
        home=f"one_item_home:{home}",
        server="one_item_server:OneItem",
    )


@pytest.fixture(autouse=True)
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SKETCHES, NAME, entry())


def test_a_campaign(tmp_path: Path) -> None:
    """Everybody likes the first three films of six. False alarms: popularity off by 25 standard deviations, never."""
    films = ["alien", "brazil", "casablanca", "dune", "elf", "fargo"]
    campaign = Campaign(films, NAME, epsilon=4, rated=6, users=1200)
    tokens = list(campaign.tokens())
    task = campaign.open()
    assert Task.from_bytes(task.to_bytes()) == Task.from_json(task.to_json()) == task
    check_query(task, campaign.query(7))
    ratings = {film: film < 3 for film in range(6)}
    first = Diary(tmp_path / "diary.db", ceiling=4).answer(task, tokens[0], ratings)
    fold = campaign.fold()
    fold.add_reports([first, *(answer(task, token, ratings, SecureCoins()) for token in tokens[1:])])
    fold.save(tmp_path / "campaign.fold")
    again = campaign.fold()
    again.load(tmp_path / "campaign.fold")
    model = campaign.publish(again)
    assert model.reports == 1200
    assert model.clusters == (0, 0, 0, 1, 1, 1)
    assert np.abs(np.array(model.popularity) - [1, 1, 1, 0, 0, 0]).max() < 0.25
    assert {found.item for found in recommend(model, {0: True, 3: False}, top=2)} == {"brazil", "casablanca"}


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What `evenhand recommender` prints, started as a script does that lists a sketch first."""
    monkeypatch.setattr(sys, "argv", ["evenhand", "recommender", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    assert ended.value.code in (None, 0), told
    return told.out


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("films.txt").write_text("alien\nbrazil\ncasablanca\n")
    Path("mine.csv").write_text("item,liked\nalien,yes\nbrazil,no\n")

    def run(*words: object) -> str:
        return command(monkeypatch, capsys, *words)

    run("task", "films.txt", "--sketch", NAME, "--rated", 2, "--users", 3)
    run("task", "task.json", "--open", "--beacon", "lottery")
    Path("query.json").write_text(run("task", "task.json", "--query", 1))
    token = Path("tokens.txt").read_text().split()[1]
    run("answer", "task.json", "--token", token, "--ratings", "mine.csv", "--diary", "d.db", "--query", "query.json")
    assert "1 reports accepted" in run("fold", "task.json", "report.bin")
    run("publish", "task.json", "campaign.fold", "--clusters", 1)
    assert "casablanca" in run("recommend", "model.json", "--ratings", "mine.csv")
    planned = json.loads(run("plan", "--items", 40, "--rated", 20, "--users", 1000, "--no-check", "--json"))
    assert planned["sketches"][NAME]["users_needed"] > 0
    simulated = json.loads(run("simulate", "--items", 20, "--rated", 10, "--users", 500, "--sketch", NAME, "--json"))
    assert simulated["items_wrong"][0]["sketch"] == NAME
    rows = "".join(f"{user},{item},{5 if item < 4 else 1}\n" for user in range(50) for item in range(8))
    Path("ratings.csv").write_text("userId,movieId,rating\n" + rows)
    given = ("--ratings", "ratings.csv", "--users", 2000, "--sketch", NAME, "--rated", 5, "--json")
    assert json.loads(run("simulate", *given))["quality"][-1]["method"] == NAME


def test_the_plan_and_the_simulation_agree() -> None:
    """Within four standard deviations of a binomial around the forecast, as for the sketches of the house: 6e-5."""
    found = plan(40, 20, 2, preset("popular"), users=8000)
    (prospect,) = (prospect for prospect in found.prospects if prospect.setting.sketch == NAME)
    assert prospect.needed is not None
    for pool in (None, 400):
        (point,) = study(preset("popular"), 40, 20, 2, [2000], [NAME], pool=pool, seed=1)
        assert 0.01 < point.expected < 0.3
        assert abs(point.wrong - point.expected) < 4 * np.sqrt(point.expected * (1 - point.expected) / 40) + 0.02
    blind = next(one for one in plan(40, 20, 2, preset("mirrored")).prospects if one.setting.sketch == NAME)
    assert blind.needed is None


def test_an_entry_without_a_class_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SKETCHES, NAME, entry("Missing"))
    task = Task(("a", "b"), NAME, Decimal(1), rated=1, tokens=1, pool=1, beacon=bytes(32))
    with pytest.raises(UsageError, match="one_item_home:Missing"):
        answer(task, Token(task.short_id, 0, bytes(8)), {}, SecureCoins())


def test_the_audit() -> None:
    (case,) = (case for case in sketches() if case.title.startswith(NAME))
    finding = audit(case.mechanism, case.neighbours(quick=True))
    assert not finding.refuted, finding
    assert finding.epsilon > 0.5


# Broken plug-ins cost accuracy; a framework that believed them would cost privacy.

INPUTS = list(all_ratings(3))
BROKEN = ("RawRatings", "OneMore", "Fails", "Warns")


def trusting(task: Task, token: Token, ratings: Mapping[int, bool], coins: Coins) -> Report:
    """A framework that takes what a sketch returns for bits: the broken twin."""
    home = sketch_for(task)
    bits = home.bits(home.query(token.serial, []), ratings, coins)
    threshold = flip_threshold(task.question_epsilon)
    released = sum((bit != coins.chance(threshold)) << place for place, bit in enumerate(bits))
    return Report(task.short_id, token.serial, token.tag, released)


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setitem(SKETCHES, NAME, entry(request.param))
    return Task(("a", "b", "c"), NAME, Decimal(1), rated=3, tokens=4, pool=4, beacon=bytes(32))


def worst(task: Task, respond: Answer = answer) -> list[Fraction | None]:
    return [worst_ratio(task, serial, INPUTS, respond) for serial in range(task.tokens)]


def test_broken_sketches_from_outside_stay_private(broken: Task) -> None:
    """Exact, over all inputs: probabilities within e^ε, one bit, no error and no warning."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what earlier tests left to the garbage collector
        ratios = worst(broken)
    assert not seen
    assert all(ratio is not None and ratio <= power_below(broken.epsilon) for ratio in ratios)


def test_a_framework_that_trusts_them_is_caught(broken: Task) -> None:
    """By a ratio beyond e^ε, an error, or a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            ratios = worst(broken, trusting)
        except (KeyError, UserWarning):
            return
    assert any(ratio is None or ratio > power_below(broken.epsilon) for ratio in ratios)


# What a sketch touches: its file at home, its file at the server, the list.


def names_in(code: str) -> set[str]:
    """The sketches that some code names."""
    constants = {node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)}
    return {name for name in SKETCHES if name in constants}


def test_only_the_list_names_a_sketch() -> None:
    source = ROOT / "src/evenhand"
    files = [*(source / "recommender").rglob("*.py"), *(source / "apps").glob("*.py")]
    naming = {path.name for path in files if names_in(path.read_text(encoding="utf-8"))}
    assert naming == {"sketches.py"}
    assert names_in("if sketch == 'maxsense': pass") == {"maxsense"}


def test_the_documentation_says_what_the_list_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(SKETCHES, NAME)
    page = (ROOT / "docs/recommender/README.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in page.splitlines() if line.startswith("| `")]
    told = [[f"`{name}`", sketch.asks, sketch.sees] for name, sketch in SKETCHES.items()]
    assert sorted(rows) == sorted(told)

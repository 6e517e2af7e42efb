"""Previews and plans for groups: they forecast what the release will do, from public facts alone."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.apps.cli import app
from evenhand.bounding import GroupSizes, concentration
from evenhand.planning import GroupPlan
from evenhand.profiles import Support
from evenhand.statistics import Count, Preview, Statistic, Sum, Users
from evenhand.statistics.foresight import GroupForecast, HiddenNames, NoForecast
from evenhand.statistics.support_choice import Purse, Purses, given_way

GROUPS = 40
PURSES = Purses(*[Purse(Decimal("0.5"), Decimal("1e-6"))] * 2)
PRIOR = eh.Profile.lognormal(1.0, users=3000, rows=15000)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    random = np.random.default_rng(3)
    counts = np.ceil(random.lognormal(1.2, 1, 3000)).astype(int)
    sizes = np.arange(1, GROUPS + 1) ** -0.7
    groups = random.choice(GROUPS, counts.sum(), p=sizes / sizes.sum())
    return pd.DataFrame({"user": np.repeat(np.arange(3000), counts), "g": groups, "x": 1.0})


@pytest.fixture
def session(rows: pd.DataFrame, tmp_path: Path) -> eh.Session:
    return eh.Session(eh.read(rows, user="user"), eh.Ledger(tmp_path / "b.db", epsilon=100, delta=1e-3))


def forecast(preview: Preview, name: str = "count") -> GroupForecast:
    found = preview.groups[name]
    assert isinstance(found, GroupForecast)
    return found


@pytest.mark.parametrize("count", [2, 7, 300, 27_000, 5_000_000])
def test_assumed_sizes_have_the_concentration_that_bounds_are_chosen_for(count: int) -> None:
    sizes = GroupSizes.assumed(count)
    assert sizes.count == count
    assert float(sizes.groups @ sizes.parts) == pytest.approx(1)
    assert count * float(sizes.groups @ sizes.parts**2) == pytest.approx(concentration(count), rel=1e-6)
    small, middling, large = (sizes.parts[place] for place in sizes.typical().values())
    assert small <= middling <= large


def test_users_are_where_their_rows_are() -> None:
    sizes = GroupSizes.given([3, 1])
    assert sizes.visited(np.array([1.0, 2.0])) == pytest.approx([1.0, 1 + 2 * 0.75 * 0.25])
    people = Support(np.array([1.0, 2.0]), np.array([100.0, 10.0]))
    assert sizes.users(people) == pytest.approx([75 + 10 * (1 - 1 / 16), 25 + 10 * (1 - 9 / 16)])
    assert sizes.users(people, limit=1)[0] == pytest.approx(75 + 10 * (1 - 1 / 16) / 1.375)


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("statistic", [Count(), Users(), Sum("x", (0, 3))], ids=lambda statistic: statistic.name)
def test_a_preview_forecasts_the_bound_and_the_noise_of_the_release(
    session: eh.Session, statistic: Statistic, delta: float
) -> None:
    bounding, keys = eh.Auto(profile=PRIOR), list(range(GROUPS))
    before = session.preview.ask(statistic, by="g", keys=keys, epsilon=0.5, delta=delta, bounding=bounding)
    after = session.ask(statistic, by="g", keys=keys, epsilon=0.5, delta=delta, bounding=bounding)
    seen = forecast(before, statistic.name)
    assert seen.bound.amount == pytest.approx(float(after.bounding.parameter or 0), rel=0.01)
    assert seen.bound.noise == pytest.approx(after.error.noise, rel=0.01)


def test_what_is_cut_off_is_forecast(rows: pd.DataFrame, session: eh.Session) -> None:
    counts = rows.groupby("user").size().to_numpy()
    session.profile(epsilon=5)
    preview = session.preview.count(by="g", keys=list(range(GROUPS)), epsilon=0.5, bounding=eh.SmoothWeights(10))
    seen = forecast(preview)
    lost = np.maximum(counts - 10, 0).sum()
    assert seen.bound.lost == pytest.approx(lost, rel=0.15)
    assert seen.bound.noise == pytest.approx(math.sqrt(2) * 10 / 0.5, rel=1e-6)
    sizes = sorted(np.bincount(rows["g"]))
    for group, place in zip(seen.typical, (0.1, 0.5, 0.9), strict=True):
        assert group.size == pytest.approx(sizes[int(place * GROUPS)], rel=0.2)
        assert group.cut / group.size == pytest.approx(lost / len(rows), rel=0.2)
    assert "as if all rows were in these groups" in str(preview).replace("\n                   ", " ")


def test_without_a_profile_a_preview_says_what_is_missing(session: eh.Session) -> None:
    preview = session.preview.count(by="g", keys=[1, 2, 3], epsilon=0.5)
    found = preview.groups["count"]
    assert isinstance(found, NoForecast)
    assert "eh.Profile.pareto" in found.missing
    assert "session.profile(epsilon=" in found.missing
    noises = json.loads(json.dumps(preview.to_dict()))["groups"]["count"]["noise_for_bounds"]["Laplace noise, L1 bound"]
    assert noises["10"] == pytest.approx(10 * noises["1"])
    given = session.preview.count(by="g", keys=[1, 2, 3], epsilon=0.5, bounding=eh.SmoothWeights(7)).groups["count"]
    assert given.to_dict()["noise_for_bounds"]["Laplace noise, L1 bound"] == {
        "7": pytest.approx(7 * math.sqrt(2) / 0.5)
    }
    hidden = session.preview.users(by="g", epsilon=0.5, delta=1e-6)
    assert "eh.plan('users', profile, groups=300, hidden=True" in hidden.groups["users"].to_dict()["missing"]


def test_a_preview_reads_nothing_and_spends_nothing(session: eh.Session) -> None:
    session.preview.count(by="g", keys=[1, 2], epsilon=0.5, bounding=eh.Auto(profile=PRIOR))
    assert session.ledger.spent.epsilon == 0


def test_a_shown_group_needs_supporters() -> None:
    one = Support(np.array([1.0]), np.array([9.0]))
    counted = HiddenNames(given_way(1, PURSES), one)
    needed = counted.way.rounds[0].needed
    shown = counted.shown(np.array([needed - 2, needed, needed + 2, 1000.0]))
    assert shown == pytest.approx([math.exp(-1) / 2, 0.5, 1 - math.exp(-1) / 2, 1.0], abs=1e-6)
    weighted = HiddenNames(given_way(64, PURSES), one)
    assert weighted.shown(np.array([weighted.way.rounds[0].needed])) == pytest.approx([0.5])
    assert weighted.weight(np.array([1.0, 64.0, 900.0])) == pytest.approx([2**16, 2**13, 2**13])


def test_the_share_of_keys_that_is_kept_is_forecast(rows: pd.DataFrame) -> None:
    """Against the same selection on a generated table, averaged over its noise exactly."""
    counts = eh.Profile.counts(rows.groupby("user").size().to_numpy())
    made = eh.plan("users", counts, groups=GROUPS, epsilon=0.4, delta=1e-6, hidden=True, groups_per_user=2)
    assert made.best.names is not None
    pairs = rows[["user", "g"]].drop_duplicates()
    groups = pairs.groupby("user")["g"].transform("size").to_numpy(dtype=float)
    weight = np.minimum(1, 2 / groups) * made.best.names.weight(groups)
    supporters = np.bincount(pairs["g"], weights=weight, minlength=GROUPS).astype(np.float64)
    assert made.best.share_shown == pytest.approx(made.best.names.shown(supporters).mean(), abs=0.05)


def test_a_plan_shows_both_kinds_of_noise_and_three_groups() -> None:
    made = eh.plan("count", PRIOR, groups=300, epsilon=1, delta=1e-6)
    assert isinstance(made, GroupPlan)
    assert [line["name"] for line in made.table()] == ["small", "middling", "large"] * 2
    assert made.best.bound.gaussian
    assert made.best.error == min(found.error for found in made.best_of_each())
    assert made.best.share_shown is None
    squares = [(group.error, group.size) for group in made.best.typical]
    assert squares == sorted(squares)
    assert "300 groups" in made.to_html()
    assert json.loads(json.dumps(made.to_dict()))["best"]["typical"][0]["name"] == "small"
    assert len(eh.plan("count", PRIOR, groups=300, epsilon=1).best_of_each()) == 1
    goal = made.best.error / 2
    assert made.at(made.epsilon_for(goal)).best.error == pytest.approx(goal, rel=1e-3)


def test_an_exact_profile_marks_a_plan_by_groups(rows: pd.DataFrame) -> None:
    made = eh.plan("count", eh.Profile.exact(eh.read(rows, user="user")), groups=GROUPS, epsilon=1)
    assert all("NOT PRIVATE" in text for text in (str(made), made.to_html(), json.dumps(made.to_dict())))


@pytest.mark.parametrize(
    ("statistic", "options", "words"),
    [
        ("mean", {"groups": 30, "bounds": (0, 5)}, "can't be planned by groups"),
        ("count", {"groups": 1}, "between 2 and"),
        ("count", {"groups": [3, -1]}, "all above 0"),
        ("count", {"groups": 30, "hidden": True}, "needs delta"),
        ("count", {"groups": 30, "groups_per_user": 3}, "goes with hidden"),
        ("count", {"groups": 30, "protects": "values"}, "protects='presence'"),
        ("count", {"delta": 1e-6}, "groups=300"),
        ("sum", {"groups": 30}, "needs bounds"),
    ],
)
def test_what_can_not_be_planned_is_refused(statistic: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(eh.UsageError, match=words):
        eh.plan(statistic, PRIOR, epsilon=1, **options)  # type: ignore[call-overload]


def test_the_command_line_plans_groups(tmp_path: Path) -> None:
    shape = ["--lognormal", "1", "--users", "3000", "--rows", "15000", "--epsilon", "1", "--delta", "1e-6"]

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["plan", *arguments, *shape])
        assert result.exit_code == 0, result.output
        return result.output

    page = tmp_path / "plan.html"
    text = run("count", "--groups", "300", "--html", str(page), "--for-error", "20")
    assert "middling" in text
    assert "For an error of 20 over all groups: ε =" in text
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    refused = CliRunner().invoke(app, ["plan", "count", "--groups", "30", "--protects", "values", *shape])
    assert "protects='presence'" in str(refused.exception)
    data = json.loads(run("users", "--groups", "900,300,20", "--hidden", "--json"))
    assert data["groups"] == 3
    assert 0 <= data["best"]["share_shown"] <= 1

"""Verdicts: which released numbers can be used, by rules that read released numbers and public facts only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.release import OfDeviation, OfQuantiles, OfSize, OfSpread, Rule, Verdict
from evenhand.release.verdicts import PART, Judged

LARGE, SMALL = 4000, 4


@pytest.fixture
def session(tmp_path: Path) -> eh.Session:
    groups = ["a"] * LARGE + ["b"] * LARGE + ["c"] * SMALL
    rows = pd.DataFrame({"user": range(len(groups)), "g": groups, "x": 2.0, "usable": groups})
    return eh.Session(eh.read(rows, user="user"), eh.Ledger(tmp_path / "b.db", epsilon=1000, delta=1e-3))


def by_group(session: eh.Session, keys: list[str]) -> eh.Release:
    """Noise of scale 10: a large group is at 400 of them, a small one below 12 except with probability e^-11."""
    return session.count(by="g", keys=keys, epsilon=0.1, bounding=eh.SmoothWeights(1))


@pytest.mark.parametrize(
    ("rule", "value", "allowed"),
    [
        (OfSize(), 400.0, 100.0),
        (OfSize(), -400.0, 100.0),
        (OfSize(), 0.0, 0.0),
        (OfSpread(-8, 8), 0.0, 1.0),  # values of both signs: the size of a mean says nothing
        (OfSpread(0.5, 4.5), 4.0, 0.25),
        (OfSpread(0, 1000), 10.0, 2.5),  # bounds that are far too wide
        (OfSpread(0, 1), 0.0002, 1 / 800),  # little beside the bounds
        (OfQuantiles(0, 800), 0.0, 1.0),
        (OfQuantiles(0, 1000, 100.0), 0.0, 25.0),  # beside a larger one
    ],
)
def test_how_far_an_interval_may_reach(rule: Rule, value: float, allowed: float) -> None:
    assert rule.allowed(value) == allowed
    assert Judged(value, value - allowed, value + allowed, rule).usable
    assert Judged(value, value - 2 * allowed, value, rule).usable  # what was cut off lies on one side
    assert not Judged(value, value - allowed, value + allowed * 1.01 + 1e-9, rule).usable
    assert not Judged(value, value - allowed, value, rule, why="the model can't tell").usable


def test_a_group_of_the_size_named_is_just_usable() -> None:
    assert OfSize("rows").needed(90.0, 1.0, None) == f"below about {90 / PART:.0f} rows"
    assert OfSpread(-8, 8).needed(2.0, 0.0, 150.0) == "below about 300 weighted rows"
    assert OfSpread(-8, 8).needed(2.0, 0.0, None) == "wider than ± 1"


def test_small_numbers_are_judged_beside_their_bounds_and_spreads_are_not() -> None:
    mean, spread = Judged(0.0002, 0.0, 0.0014, OfSpread(0, 1)), Judged(0.001, 0.0, 0.0014, OfDeviation())
    assert Verdict({"mean": [mean]}).words == "yes: ± 0.00070, which is little beside its bounds"
    assert Verdict({"std": [spread]}).why.startswith("no differences between values stand out from the noise")


def test_what_nothing_is_known_about_is_not_called_unusable() -> None:
    assert Judged(1.0, 0.0, 100.0, None).usable
    assert Judged(1.0, float("nan"), float("nan"), OfSize()).usable


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s.ratio(eh.sum("x", bounds=(0, 8)), eh.users(), epsilon=1),
        lambda s: s.per_user_mean("x", bounds=(0, 8), epsilon=1),
        lambda s: s.distinct("g", epsilon=1),
        lambda s: s.top("g", k=2, keys=["a", "b", "c"], epsilon=1),
    ],
)
def test_statistics_with_a_road_of_their_own_are_judged_too(
    session: eh.Session, ask: Callable[[eh.Session], eh.Release]
) -> None:
    columns = ask(session).verdict.numbers.values()
    assert all(number.rule is not None for column in columns for number in column)


def test_no_number_is_not_usable() -> None:
    nothing = Judged(float("nan"), 0.0, float("inf"), OfSize())
    assert not nothing.usable
    assert "may be anything" in Verdict({"ratio": [nothing]}, epsilon=0.1).why


def test_most_groups_decide() -> None:
    good, bad = Judged(100, 99, 101, OfSize()), Judged(100, 0, 200, OfSize())
    assert Verdict({"n": [good, good, bad]}, "groups").usable
    assert not Verdict({"n": [good, bad]}, "groups").usable
    one_column = Verdict({"n": [good, good, good], "m": [good, bad, bad]}, "groups")
    assert one_column.usable
    assert "m: 2 of 3 groups are too noisy" in one_column.words
    assert not Verdict({"n": [good, bad, bad], "m": [good, bad, bad]}, "groups").usable
    assert Verdict({"n": [good, good, bad]}, "groups").why == "1 of 3 groups is too noisy to use (below about 400)"
    assert Verdict({"n": [good], "m": [good]}, "groups").why == ""


def test_each_group_carries_its_verdict(session: eh.Session, tmp_path: Path) -> None:
    release = by_group(session, ["a", "b", "c"])
    assert release.usable
    assert release.why.startswith("1 of 3 groups is too noisy to use (below about 120 rows")
    assert release.verdicts()["usable"].tolist() == [True, True, False]
    assert list(release.verdicts().columns) == ["g", "count", "usable"]
    data = json.loads(json.dumps(release.to_dict()))
    assert (data["usable"], data["why"], data["verdicts"]) == (True, release.why, {"count": [True, True, False]})
    assert release.to_html().count('<tr class="unusable">') == 1
    assert str(release).count("too noisy\n") == 1
    assert not str(release).startswith("NOT USABLE")
    release.to_csv(tmp_path / "release.csv")
    assert pd.read_csv(tmp_path / "release.csv")["usable"].tolist() == [True, True, False]


def test_a_release_of_noise_says_so_first(session: eh.Session) -> None:
    release = by_group(session, ["c", "d", "a"])
    assert not release.usable
    assert str(release).startswith("NOT USABLE: 2 of 3 groups are too noisy to use (below about 120 rows)")
    assert release.to_html().index("NOT USABLE") < release.to_html().index("<table")
    alone = session.count(epsilon=1e-5, bounding=eh.TotalCap(1))
    assert not alone.usable
    first = " ".join(str(alone).split("\n")[:2])
    assert "± 299,573 is too noisy to use; too few people for this ε" in first
    assert "would give ±10%" in first


def test_several_statistics_each_have_their_rule(session: eh.Session) -> None:
    release = session.aggregate(
        by="g", keys=["a", "c"], epsilon=1, bounding=eh.SmoothWeights(1), n=eh.count(), m=eh.mean("x", bounds=(0, 8))
    )
    frame = release.verdicts()
    assert list(frame.columns) == ["g", "n", "m", "n_usable", "m_usable", "usable"]
    assert frame["n_usable"].tolist() == frame["m_usable"].tolist() == [True, False]
    assert "n: 1 of 2" in release.why
    assert "weighted rows" in release.why


def test_nothing_selected_is_not_usable(session: eh.Session) -> None:
    release = session.count(by="g", epsilon=0.0001, delta=1e-6, groups_per_user=1000)
    assert len(release.value) == 0
    assert not release.usable
    assert "public keys" in release.why
    assert str(release).startswith("NOT USABLE: no group is shown")
    assert "± 0" not in str(release)
    assert release.to_dict()["usable"] is False


def test_a_key_may_be_called_usable(session: eh.Session) -> None:
    release = session.users(by="usable", keys=["a", "b", "c"], epsilon=0.1, bounding=eh.SmoothWeights(1))
    assert list(release.verdicts().columns) == ["usable", "users", "usable_"]


def test_a_public_fact_is_usable(session: eh.Session) -> None:
    facts = eh.Session(eh.read(pd.DataFrame({"u": [1, 2]}), user="u", protects="values"), session.ledger)
    assert facts.count(epsilon=1).usable


def test_intervals_asked_for_twice_are_not_shared(session: eh.Session) -> None:
    release = by_group(session, ["a", "b"])
    frame = release.interval()
    frame["count"] = 0
    assert (release.interval()["count"] > 0).all()

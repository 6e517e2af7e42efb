"""Profiles: their basis goes with them, and what makes no sense is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.guarantee import DataError, Guarantee, Relation, UsageError
from evenhand.planning import plan
from evenhand.profiles import Basis, Profile, row_buckets

GUARANTEE = Guarantee(Decimal("0.5"), Decimal(0), Relation.PRESENCE, ("userId",))


def bought() -> Profile:
    buckets = row_buckets()
    return Profile.bought(buckets, buckets.histogram(np.repeat([3, 50], [4000, 300])).tolist(), GUARANTEE)


@pytest.mark.parametrize(
    "profile",
    [
        Profile.pareto(1.5, users=10_000, rows=200_000),
        Profile.zipf(1.2, users=10_000, rows=200_000),
        Profile.lognormal(1.0, users=10_000, rows=200_000),
        Profile.lognormal(0.0, users=3, rows=6),
        Profile.pareto(1.01, users=1, rows=1),
        Profile.zipf(3, users=2_000_000, rows=40_000_000),
    ],
)
def test_priors_have_the_users_and_rows_that_were_asked_for(profile: Profile) -> None:
    users, rows = profile.users, profile.rows
    assert users == round(users)
    assert rows == pytest.approx(round(rows), rel=1e-6)
    assert profile.support.sizes.min() >= 1
    assert (np.diff(profile.support.sizes) >= 0).all()
    assert profile.basis is Basis.PRIOR


def test_a_pareto_tail_falls_as_it_should() -> None:
    support = Profile.pareto(2.0, users=100_000, rows=1_000_000).support
    ratio = support.largest(100) / support.largest(400)
    assert ratio == pytest.approx(2.0, rel=0.02)  # (400/100)^(1/α)


@pytest.mark.parametrize(
    ("counts", "words"),
    [([], "empty"), ([3, -1], "negative"), ([1, float("inf")], "infinite"), ([0, 0], "zeros"), (["a"], "numbers")],
)
def test_counts_that_make_no_sense_are_refused(counts: list[Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Profile.counts(counts)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Profile.pareto(1.0, users=10, rows=20), "no mean"),
        (lambda: Profile.pareto(float("nan"), users=10, rows=20), "no mean"),
        (lambda: Profile.pareto(1.5, users=10, rows=5), "at least one row"),
        (lambda: Profile.pareto(1.5, users=0, rows=5), "users=0"),
        (lambda: Profile.zipf(0, users=10, rows=20), "exponent=0"),
        (lambda: Profile.lognormal(-1, users=10, rows=20), "sigma=-1"),
    ],
)
def test_priors_that_do_not_exist_are_refused(make: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()  # type: ignore[operator]


def test_a_bought_profile_survives_a_round_trip_with_its_guarantee(tmp_path: Path) -> None:
    bought().save(tmp_path / "profile.json")
    again = Profile.load(tmp_path / "profile.json")
    assert again.guarantee == GUARANTEE
    assert again.noisy == bought().noisy
    assert again.users == bought().users
    assert "ε = 0.5" in str(again)


def test_an_exact_profile_is_marked_wherever_it_goes(tmp_path: Path) -> None:
    exact = Profile.of_table([1, 50], [1000, 20])
    exact.save(tmp_path / "exact.json")
    again = Profile.load(tmp_path / "exact.json")
    made = plan("count", again, epsilon=1)
    seen = [
        str(exact),
        (tmp_path / "exact.json").read_text(encoding="utf-8"),
        str(made),
        str(made.table()),
        made.explain(),
        made.to_html(),
        json.dumps(made.to_dict()),
        json.dumps(made.plot().to_dict()),
        str(again.scaled(2)),
    ]
    assert all("NOT PRIVATE" in text for text in seen)


@pytest.mark.parametrize("profile", [Profile.counts([1, 2, 40]), bought()])
def test_other_profiles_are_not_marked(profile: Profile) -> None:
    made = plan("count", profile, epsilon=1)
    assert "NOT PRIVATE" not in str(profile) + str(made) + made.to_html() + json.dumps(made.to_dict())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"basis": "bought"}', '{"basis": "x"}', '{"basis": 3}'])
def test_files_that_hold_no_profile_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(DataError, match="profile"):
        Profile.load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can't read"):
        Profile.load(tmp_path / "none.json")


def test_a_profile_for_another_relation_is_refused() -> None:
    with pytest.raises(UsageError, match="protects='presence'"):
        plan("mean", bought(), epsilon=1, bounds=(0, 1), protects="values")


def test_a_plan_from_a_bought_profile_claims_nothing_exact() -> None:
    made = plan("count", bought(), epsilon=1)
    assert made.best.kind == "seen"
    assert "as far as the noisy profile shows" in made.explain()
    assert plan("count", Profile.counts([1, 2, 40]), epsilon=1).best.kind == "exact"


def test_an_empty_table_has_no_profile() -> None:
    with pytest.raises(UsageError, match="no rows"):
        Profile.of_table([], [])

"""Facts about columns are stated once: questions then need no bounds and no keys, and what they ask is what would have been typed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.guarantee import Relation
from evenhand.session import Drafts
from evenhand.statistics import Draft
from evenhand.statistics.stated import counted_values

FACTS = {
    "stars": eh.Column(bounds=(0.5, 5), unit="stars", description="as on the page"),
    "genre": eh.Column(keys=["drama", "comedy"]),
    "minutes": eh.Column(bounds=(0, None), unit="min"),
    "adult": {"keys": [True, False]},
}
FRAME = pd.DataFrame(
    {
        "person": [f"p{index % 50}" for index in range(400)],
        "stars": [index % 10 / 2 + 0.5 for index in range(400)],
        "genre": [("drama", "comedy", "western")[index % 3] for index in range(400)],
        "minutes": [float(index % 90) for index in range(400)],
        "adult": [index % 2 == 0 for index in range(400)],
    }
)
Ask = Callable[[Drafts], Draft]
SAME: dict[str, tuple[Ask, Ask]] = {
    "mean": (lambda d: d.mean("stars", epsilon=1), lambda d: d.mean("stars", bounds=(0.5, 5), epsilon=1)),
    "sum": (lambda d: d.sum("stars", epsilon=1), lambda d: d.sum("stars", bounds=(0.5, 5), epsilon=1)),
    "columns": (
        lambda d: d.mean(["stars", "minutes"], bounds=[None, (0, 90)], epsilon=1),
        lambda d: d.mean(["stars", "minutes"], bounds=[(0.5, 5), (0, 90)], epsilon=1),
    ),
    "one end": (
        lambda d: d.mean("minutes", bounds=(None, 90), epsilon=1),
        lambda d: d.mean("minutes", bounds=(0, 90), epsilon=1),
    ),
    "given wins": (
        lambda d: d.mean("stars", bounds=(1, 3), by="genre", keys=["western"], epsilon=1),
        lambda d: d.mean("stars", bounds=(1, 3), by="genre", keys=["western"], epsilon=1),
    ),
    "median": (lambda d: d.median("stars", epsilon=1), lambda d: d.median("stars", bounds=(0.5, 5), epsilon=1)),
    "by": (
        lambda d: d.count(by="genre", epsilon=1),
        lambda d: d.count(by="genre", keys=["drama", "comedy"], epsilon=1),
    ),
    "by two": (
        lambda d: d.mean("stars", by=["genre", "adult"], epsilon=1),
        lambda d: d.mean(
            "stars", bounds=(0.5, 5), by=["genre", "adult"], epsilon=1,
            keys={"genre": ["drama", "comedy"], "adult": [True, False]},
        ),
    ),
    "top": (
        lambda d: d.top("genre", 1, epsilon=1),
        lambda d: d.top("genre", 1, keys=["drama", "comedy"], epsilon=1),
    ),
    "histogram": (
        lambda d: d.histogram("stars", epsilon=1),
        lambda d: d.histogram("stars", [value / 4 for value in range(2, 21)], epsilon=1),
    ),
    "ratio": (
        lambda d: d.ratio(eh.sum("stars"), eh.users(), epsilon=1),
        lambda d: d.ratio(eh.sum("stars", bounds=(0.5, 5)), eh.users(), epsilon=1),
    ),
    "aggregate": (
        lambda d: d.aggregate(by="genre", epsilon=1, n=eh.count(), average=eh.mean("stars")),
        lambda d: d.aggregate(
            by="genre", keys=["drama", "comedy"], epsilon=1, n=eh.count(), average=eh.mean("stars", bounds=(0.5, 5))
        ),
    ),
}  # fmt: skip


def table(**options: Any) -> eh.Table:
    return eh.read(FRAME, user="person", **options)


def session(tmp_path: Path, **options: Any) -> eh.Session:
    return eh.Session(table(**options), eh.Ledger(tmp_path / "b.db", epsilon=1000, delta=0.01))


@pytest.mark.parametrize("name", SAME)
def test_a_question_without_bounds_is_the_one_that_would_have_been_typed(name: str) -> None:
    short, long = SAME[name]
    stated, typed = short(Drafts(table(columns=FACTS))), long(Drafts(table()))
    assert {key: value for key, value in stated.query.items() if key != "facts"} == typed.query
    assert (stated.cost, stated.guarantee, stated.bounding) == (typed.cost, typed.guarantee, typed.bounding)
    assert ("facts" in stated.query) == (name != "given wins")


def test_what_was_used_is_in_the_release_and_the_ledger(tmp_path: Path) -> None:
    asked = session(tmp_path, columns=FACTS)
    released = asked.mean("stars", by="genre", epsilon=100)
    used = {"stars": {"bounds": [0.5, 5.0]}, "genre": {"keys": 2}}
    assert asked.ledger.events[0].query["facts"] == used
    assert released.details["facts"] == {
        **used,
        "words": "stated with the table: stars from 0.5 to 5, 2 keys of genre",
    }
    assert "stated with the table" in released.explain()
    assert list(released.value["genre"]) == ["drama", "comedy"]


def test_what_values_count_as_is_said_where_they_do_not_count_as_they_are(tmp_path: Path) -> None:
    values = session(tmp_path, protects="values", public=["genre"])
    for release in (
        values.mean("stars", by="genre", epsilon=1),
        values.median("stars", epsilon=1),
        values.ratio(eh.sum("stars", bounds=(0, 5)), eh.count(), epsilon=1),
    ):
        assert "where stars is missing it counts as the middle of the bounds" in " ".join(release.explain().split())
    assert "values" not in values.count(epsilon=1).details
    several = {"a": eh.mean("stars", bounds=(0.5, 5)), "b": eh.median("minutes", bounds=(0, None)), "c": eh.count()}
    assert counted_values(several, Relation.PRESENCE)["values"]["words"] == (
        "stars from 0.5 to 5, minutes at least 0; values beyond count as the nearest end"
    )
    totals = {"a": eh.per_user_mean("stars", bounds=(0, 1_000_000), of="total")}
    assert "users' totals of stars from 0 to 1,000,000" in str(counted_values(totals, Relation.PRESENCE))
    assert not counted_values({"a": eh.mean("stars")}, Relation.PRESENCE)


def test_units_stand_beside_numbers(tmp_path: Path) -> None:
    asked = session(tmp_path, columns=FACTS)
    mean = asked.mean("stars", epsilon=100)
    assert mean.headline().endswith(" stars")
    assert dict(mean.lines())["95% interval"].endswith(" stars")
    assert mean.to_dict()["units"] == {"mean": "stars"}
    assert asked.variance("stars", epsilon=100).headline().endswith(" stars²")
    quantiles = asked.quantiles("stars", [0.25, 0.5], epsilon=100)
    assert quantiles.headline().partition(": ")[2].count(" stars") == 2
    both = asked.sum(["stars", "minutes"], bounds=[None, (0, 90)], epsilon=100).headline()
    assert " stars, " in both
    assert both.endswith(" min")
    assert asked.mean("stars", by="genre", epsilon=100).headline().endswith("2 groups, in stars")
    together = asked.aggregate(epsilon=100, n=eh.count(), average=eh.mean("stars"))
    assert together.headline().endswith(", average in stars")
    assert "units" not in asked.count(epsilon=1).to_dict()


def test_bounds_of_one_value_say_nothing_about_totals() -> None:
    draft = Drafts(table(columns=FACTS)).per_user_mean("stars", of="total", epsilon=1)
    assert draft.query["bounds"] == [None, None]
    assert "facts" not in draft.query


def test_a_given_bound_beyond_a_stated_one_is_refused() -> None:
    with pytest.raises(eh.UsageError, match="give both bounds"):
        Drafts(table(columns=FACTS)).mean("stars", bounds=(7, None), epsilon=1)


def test_describing_reads_no_rows() -> None:
    found = table(columns=FACTS).describe().set_index("column")
    assert found.loc["person", "role"] == "user"
    assert list(found.loc["stars", ["type", "bounds", "unit", "description"]]) == [
        "float64",
        "0.5 to 5",
        "stars",
        "as on the page",
    ]
    assert found.loc["minutes", "bounds"] == "at least 0"
    assert found.loc["genre", "keys"] == "drama, comedy"


TOML = """
[columns.stars]
bounds = [0.5, 5]
unit = "stars"
[columns.genre]
keys = ["drama", "comedy"]
[columns.minutes]
bounds = [0, inf]
"""


def test_facts_in_a_file(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "films.v2.parquet")
    (tmp_path / "other.toml").write_text(TOML)
    named = eh.read(tmp_path / "films.v2.parquet", user="person", columns=tmp_path / "other.toml")
    assert named.facts["stars"].range == (0.5, 5.0)
    assert named.facts["minutes"].range == (0.0, None)
    assert eh.read(tmp_path / "films.v2.parquet", user="person").facts == {}
    (tmp_path / "films.v2.toml").write_text(TOML)
    assert eh.read(tmp_path / "films.v2.parquet", user="person").facts == named.facts
    assert eh.read(tmp_path / "films.v2.parquet", user="person", columns={}).facts == {}
    (tmp_path / "films.v2.toml").write_text("[tool.something]\nelse = 1\n")
    assert eh.read(tmp_path / "films.v2.parquet", user="person").facts == {}


def test_facts_name_the_columns_of_json(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"person": "a", "stars": 3}\n')
    opened = eh.read(tmp_path / "r.jsonl", user="person", columns={"person": {}, "stars": {"bounds": [0.5, 5]}})
    assert opened.columns == ("person", "stars")
    assert opened.facts["stars"].range == (0.5, 5.0)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"starz": eh.Column()}, "Did you mean 'stars'"),
        ({"stars": {"bound": (1, 2)}}, "Did you mean 'bounds'"),
        ({"stars": {"bounds": (5, 1)}}, "column 'stars'"),
        ({"stars": {"bounds": 5}}, "column 'stars'"),
        ({"stars": {"keys": "drama"}}, "expected a list"),
        ({"stars": {"keys": []}}, "is empty"),
        ({"stars": {"unit": 5}}, "expected text"),
        ({"stars": (0.5, 5)}, "expected eh.Column"),
    ],
)
def test_facts_that_are_wrong_are_refused(columns: Any, says: str) -> None:
    with pytest.raises(eh.EvenhandError, match=says):
        table(columns=columns)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[columns", "not TOML"),
        ("x = 1", "states nothing"),
        ("columns = 3", r"\[columns.rating\]"),
        (None, "can't be read"),
    ],
)
def test_files_that_are_wrong_are_refused(text: str | None, says: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "facts.toml").write_text(text)
    with pytest.raises(eh.DataError, match=says):
        table(columns=tmp_path / "facts.toml")

"""Large catalogues by way of public groups: the file, the rule at home, recommendations, and 20,000 items from end to end."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from benchmarks.recommender.grouped import World, alone, by_model, hit_rate, learn, world

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.at_home import opinions_of_groups, recommend_from_groups
from evenhand.recommender.messages import Groups, PublishedModel
from evenhand.recommender.tuning import groups_rated

FILMS = Groups(
    ("horror", "comedy", "drama"),
    ("alien", "brazil", "casablanca", "dune", "elf"),
    ((0,), (1, 2), (2,), (0, 2), (1,)),
    (5.0, 4.0, 3.0, 2.0, 1.0),
)


def model_of(**changes: object) -> PublishedModel:
    fields: dict[str, object] = {
        "task": bytes(32), "items": FILMS.names, "clusters": (0, 1, 1), "embedding": ((1.0,), (-1.0,), (-0.9,)),
        "popularity": (), "reports": 10, "epsilon": Decimal(1),
    }  # fmt: skip
    return PublishedModel(**{**fields, **changes})  # type: ignore[arg-type]


def test_reading_groups(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text(
        "item,group,popularity\nalien,horror,5\nbrazil,comedy,4\nbrazil,drama,9\ncasablanca,drama,3\ndune,horror,2\ndune,drama,\n"
        "elf,comedy,1\nelf,comedy,1\n"
    )
    assert Groups.read(path) == FILMS
    path.write_text("group,item\na,x\nb,y\n")
    assert Groups.read(path) == Groups(("a", "b"), ("x", "y"), ((0,), (1,)), (1.0, 1.0))
    for wrong, said in (
        ("item\nx\n", "columns item and group"),
        ("item,group\nx,\n", "line 2"),
        ("item,group,popularity\nx,a,1\ny,a,-1\n", "line 3"),
        ("item,group,popularity\nx,a,many\n", "can't be read"),
    ):
        path.write_text(wrong)
        with pytest.raises(DataError, match=said):
            Groups.read(path)
    with pytest.raises(DataError, match="can't be read"):
        Groups.read(tmp_path / "missing.csv")


def test_a_group_is_liked_if_more_of_it_is_liked_than_not() -> None:
    assert opinions_of_groups({0: True, 3: False, 1: True}, FILMS) == {0: False, 1: True, 2: False}
    assert opinions_of_groups({0: True, 3: True, 2: False, 1: True}, FILMS) == {0: True, 1: True, 2: True}
    assert opinions_of_groups({}, FILMS) == {}


def test_popularity_times_how_much_the_groups_are_liked() -> None:
    def first(liked: dict[int, bool], top: int = 5) -> list[str]:
        return [one.item for one in recommend_from_groups(model_of(), FILMS, liked, top)]

    assert first({}) == list(FILMS.items)
    assert first({4: True}) == ["brazil", "casablanca", "dune", "alien"]  # the model says that horror is not for them
    assert first({4: False}, top=1) == ["alien"]
    # By hand: comedy (1 + 2·1)/(1 + 2), horror (0 + 2·0)/(0 + 2), drama (0 + 2·0.95)/2.
    (best, *_) = recommend_from_groups(model_of(), FILMS, {4: True})
    assert best.score == pytest.approx(4.0 * (1 + 0.95) / 2)
    rates = model_of(embedding=(), popularity=(0.9, 0.1, 0.1))
    assert [one.item for one in recommend_from_groups(rates, FILMS, {}, 2)] == ["alien", "dune"]
    with pytest.raises(UsageError, match="not those of this task"):
        recommend_from_groups(model_of(items=("a", "b", "c")), FILMS, {})
    with pytest.raises(UsageError, match="top=0"):
        recommend_from_groups(model_of(), FILMS, {}, 0)


@pytest.mark.parametrize("odd", [{7: True}, {-1: True}, {0: None}, {"alien": True}, {True: True}, {1.0: False}, {0: 1}])
def test_ratings_that_are_none_are_left_out(odd: dict[object, object]) -> None:
    """Nothing in the ratings may cause an error: it would be noticed."""
    assert opinions_of_groups({**odd, 4: True}, FILMS) == {1: True}  # type: ignore[dict-item]
    assert recommend_from_groups(model_of(), FILMS, odd) == recommend_from_groups(model_of(), FILMS, {})  # type: ignore[arg-type]


def test_how_many_groups_a_person_has_rated() -> None:
    assert groups_rated(40, 40) == 25
    assert groups_rated(2, 1) == 1
    assert groups_rated(10, 10_000) == 10
    with pytest.raises(UsageError, match="groups=1"):
        groups_rated(1, 5)


def test_twenty_thousand_items() -> None:
    """Seeded: with a campaign about 20 groups, people find more than what is popular. How much more is for the benchmark."""
    found = world("mirrored", 400, seed=3, groups=20)
    learnt, tested = World(found.groups, found.people[100:]), found.people[:100]
    model = learn(learnt, "pairwise", 60_000, seed=1)
    assert not model.notes
    methods = by_model(model, found.groups), alone(found.groups, False)
    campaign, popular = (hit_rate(tested, method, seed=1) for method in methods)
    assert campaign > 1.1 * popular

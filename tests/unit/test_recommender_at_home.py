"""Reading one's own ratings, and recommending from the published model."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.at_home import read_ratings, recommend
from evenhand.recommender.messages import PublishedModel

ITEMS = ("alien", "brazil", "casablanca", "dune", "elf")


def model_of(**changes: object) -> PublishedModel:
    fields: dict[str, object] = {
        "task": bytes(32),
        "items": ITEMS,
        "clusters": (0, 0, 1, 1, 1),
        "embedding": (),
        "popularity": (0.8, 0.7, 0.1, 0.3, 0.2),
        "reports": 10,
        "epsilon": Decimal(1),
    }
    return PublishedModel(**{**fields, **changes})  # type: ignore[arg-type]


def names(model: PublishedModel, liked: dict[int, bool], top: int = 10) -> list[str]:
    return [found.item for found in recommend(model, liked, top)]


def test_without_ratings_the_popular_come_first() -> None:
    assert names(model_of(), {}) == ["alien", "brazil", "dune", "elf", "casablanca"]


def test_ones_own_likes_outweigh_everybodys() -> None:
    assert names(model_of(), {2: True, 0: False, 1: False}) == ["dune", "elf"]
    assert names(model_of(), {2: False, 0: True}, top=1) == ["brazil"]


def test_an_embedding_points_along_the_taste() -> None:
    model = model_of(embedding=((1.0,), (0.9,), (-1.0,), (-0.8,), (0.1,)), popularity=())
    assert names(model, {0: True}) == ["brazil", "elf", "dune", "casablanca"]
    assert names(model, {0: False}) == ["casablanca", "dune", "elf", "brazil"]


def test_edges() -> None:
    assert names(model_of(popularity=()), {}) == list(ITEMS)
    assert names(model_of(), dict.fromkeys(range(5), True)) == []
    for wrong in ({7: True}, {-1: True}):
        with pytest.raises(UsageError, match="not among"):
            recommend(model_of(), wrong)
    with pytest.raises(UsageError, match="top=0"):
        recommend(model_of(), {}, top=0)


def test_reading_ratings(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("item,liked\nalien,yes\nbrazil,NO\nunheard of,yes\nalien,0\n")
    found = read_ratings(path, ITEMS)
    assert (found.liked, found.unknown, found.repeated) == ({0: False, 1: False}, 1, 1)
    path.write_text("rating,item\n4,alien\n3.5,brazil\n")
    assert read_ratings(path, ITEMS).liked == {0: True, 1: False}
    assert read_ratings(path, ITEMS, like_from=3).liked == {0: True, 1: True}
    path.write_text("item,liked\n")
    assert read_ratings(path, ITEMS).liked == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "columns"),
        ("film,liked\n", "columns"),
        ("item,liked\nalien,maybe\n", "line 2"),
        ("item,rating\nalien,x\n", "line 2"),
    ],
)
def test_unreadable_ratings_are_explained(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        read_ratings(path, ITEMS)
    with pytest.raises(DataError, match="can't be read"):
        read_ratings(tmp_path / "missing.csv", ITEMS)

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
    for unusable in ({7: True}, {-1: True}, {0: None}, {"alien": True}):
        assert names(model_of(), unusable) == names(model_of(), {})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="top=0"):
        recommend(model_of(), {}, top=0)


def test_reading_ratings(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("item,liked\nalien,yes\nbrazil,NO\nunheard of,yes\nalien,0\n")
    found = read_ratings(path, ITEMS)
    assert (found.liked, found.unknown, found.unclear, found.repeated) == ({0: False, 1: False}, 1, 0, 1)
    assert [line.split(":")[1].split()[0] for line in found.left_out()] == ["1", "1"]
    path.write_text("rating,item\n4,alien\n3.5,brazil\n")
    assert read_ratings(path, ITEMS).liked == {0: True, 1: False}
    assert read_ratings(path, ITEMS, like_from=3).liked == {0: True, 1: True}
    path.write_text("item,liked\n")
    assert read_ratings(path, ITEMS).liked == {}


@pytest.mark.parametrize(
    "damage",
    [
        *(b"alien,maybe", b"alien,", b"alien", b",,,,", b"alien,\xff\xfe", b"\xff,yes", b"unheard of,yes"),
        *(b'"alien,yes', b'"', b"alien," + b"9" * 200_000, b"al\0ien,yes", b"\xed\xa0\x80,yes"),
    ],
)
def test_a_line_that_cannot_be_used_is_left_out_and_damages_no_other(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(b"item,liked\nbrazil,yes\n" + damage + b"\ndune,no\n")
    found = read_ratings(path, ITEMS)
    assert found.liked == {1: True, 3: False}
    assert repr(found) == "Ratings()"  # what was left out depends on the ratings


@pytest.mark.parametrize("rating", ["", "x", "nan", "inf", "-inf", "1e999", "five"])
def test_ratings_that_are_no_finite_numbers_are_left_out(rating: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"item,rating\nalien,5\nalien,{rating}\nbrazil,{rating}\n")
    found = read_ratings(path, ITEMS)
    assert found.liked == {0: True}  # the last rating that can be read counts
    assert found.unclear == 2


@pytest.mark.parametrize("first_line", ["", "film,liked", "item", "liked,rating", '"item,liked'])
def test_a_file_without_the_columns_is_explained_whatever_follows(first_line: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    said = set()
    for rest in ("", "\nalien,yes\n", "\nbrazil,\n"):
        path.write_text(first_line + rest)
        with pytest.raises(DataError, match="columns") as caught:
            read_ratings(path, ITEMS)
        said.add(str(caught.value))
    assert len(said) == 1
    with pytest.raises(DataError, match="can't be read"):
        read_ratings(tmp_path / "missing.csv", ITEMS)
    with pytest.raises(UsageError, match="like_from"):
        read_ratings(path, ITEMS, like_from=float("nan"))

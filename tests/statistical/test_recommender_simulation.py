"""Simulated people answer as real clients would, and campaigns find what is there.

Each test states its false-alarm rate; generators are seeded, so a failure is a change in the code. Broken twins
show that a test would notice.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.at_home.coins import SecureCoins, flip_threshold
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.at_server import Fold
from evenhand.recommender.at_server.sketches import ServerSketch
from evenhand.recommender.messages import SKETCHES
from evenhand.recommender.simulation import (
    BlockPeople,
    HeldOut,
    People,
    RatingsTable,
    ResampledPeople,
    compare,
    draw_opinions,
    items_wrong,
    read_table,
    study,
    study_ratings,
)
from evenhand.recommender.simulation.quality import factorise
from evenhand.recommender.simulation.study import local_popularity
from evenhand.recommender.tastes import Tastes, preset
from recommender_laws import law_of

TASTES = Tastes(((0.9, 0.3, 0.6), (0.2, 0.7, 0.5)), people=(0.7, 0.3), items=(0.5, 0.25, 0.25))
ITEMS, RATED = 8, 3

Weights = NDArray[np.float64]


def make_sketch(name: str) -> ServerSketch:
    campaign = Campaign(
        (f"item {n}" for n in range(ITEMS)),
        name,
        4,
        RATED,
        users=10**6,
        questions=2 if SKETCHES[name].several else None,
    )
    campaign.open("beacon")
    return Fold(campaign.task).sketch


def shares_by_clients(sketch: ServerSketch, serial: int, rows: NDArray[np.int8], weights: Weights) -> Weights:
    """The share of ones for each question, had people with these opinions computed their true bits at home."""
    home = sketch_for(sketch.task)
    query = home.query(serial, [])
    shares = np.zeros(sketch.task.questions)
    for row, weight in zip(rows, weights, strict=True):
        ratings = {int(item): bool(row[item] > 0) for item in np.flatnonzero(row)}
        for bits, chance in law_of(partial(lambda x, coins: tuple(home.bits(query, x, coins)), ratings)).items():
            shares += weight * float(chance) * np.array(bits)
    return shares


Clients = tuple[NDArray[np.int8], Weights, int]
"""Different opinions, the share of clients who have them, and how many clients there are."""


def counted(opinions: NDArray[np.int8]) -> Clients:
    rows, counts = np.unique(opinions, axis=0, return_counts=True)
    return rows, counts / len(opinions), len(opinions)


@cache
def drawn_clients() -> Clients:
    return counted(draw_opinions(TASTES, ITEMS, RATED, 200_000, seed=1))


def deviations(people: People, sketch: ServerSketch, clients: Clients, sampled: bool) -> float:
    """The largest deviation, in standard deviations, between simulated people and clients over ten queries.

    ``sampled`` says that the clients are a sample themselves, and not all there are.
    """
    rows, weights, size = clients
    draws, worst = 20_000, 0.0
    for serial in range(10):
        found = sketch.truths(np.full(draws, serial), people).mean(axis=0)
        wanted = shares_by_clients(sketch, serial, rows, weights)
        error = np.sqrt(wanted * (1 - wanted) * (1 / draws + sampled / size)) + 1e-12
        worst = max(worst, float((np.abs(found - wanted) / error).max()))
    return worst


@pytest.mark.parametrize("name", SKETCHES)
def test_people_of_the_block_model_answer_like_clients(name: str) -> None:
    """False alarms: at most 20 comparisons at 4.8 standard deviations, 3e-5 together. The broken twin rates one item
    fewer than it should.
    """
    sketch = make_sketch(name)
    clients = drawn_clients()
    assert deviations(BlockPeople(TASTES, ITEMS, RATED, seed=2), sketch, clients, True) < 4.8
    assert deviations(BlockPeople(TASTES, ITEMS, RATED - 1, seed=2), sketch, clients, True) > 4.8


@pytest.mark.parametrize("name", SKETCHES)
def test_resampled_people_answer_like_clients(name: str) -> None:
    """False alarms as above. The broken twin has forgotten half of the table's likes."""
    sketch = make_sketch(name)
    table = draw_opinions(TASTES, ITEMS, RATED, 300, seed=3)
    forgetful = np.where(np.arange(300)[:, None] % 2 == 0, np.minimum(table, 0), table).astype(np.int8)
    assert deviations(ResampledPeople(table, seed=4), sketch, counted(table), False) < 4.8
    assert deviations(ResampledPeople(forgetful, seed=4), sketch, counted(table), False) > 4.8


def test_resampled_people_keep_to_the_cap() -> None:
    people = ResampledPeople(np.ones((1, 20), np.int8), seed=0)
    kept = people.opinions(4000, 5)
    assert set(kept.sum(axis=1).tolist()) == {5}
    assert np.abs(kept.mean(axis=0) - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 4000)


def test_the_secure_coin_flips_as_often_as_it_says() -> None:
    """False alarms: 6e-7 (five standard deviations); twice the ε is caught."""
    coins, tosses = SecureCoins(), 20_000
    found = sum(coins.chance(flip_threshold(Decimal(1))) for _ in range(tosses)) / tosses
    wanted, wrong = (1 / (np.exp(epsilon) + 1) for epsilon in (1, 2))
    error = np.sqrt(wanted * (1 - wanted) / tosses)
    assert abs(found - wanted) < 5 * error
    assert abs(found - wrong) > 5 * error


@pytest.mark.parametrize(
    ("tastes", "sketch", "pool", "users"),
    [
        ("popular", "maxsense", None, 60_000),
        ("popular", "maxsense", "auto", 60_000),
        ("popular", "multi-maxsense", "auto", 15_000),
        ("mirrored", "projection", "auto", 150_000),
        ("mirrored", "pairwise", None, 600_000),
    ],
)
def test_campaigns_do_as_well_as_forecast(tastes: str, sketch: str, pool: str | None, users: int) -> None:
    """Within four standard deviations of a binomial around the forecast: false alarms 6e-5 each."""
    epsilon, items, rated = (4, 100, 20) if sketch == "multi-maxsense" else (2, 100, 20)
    (point,) = study(preset(tastes), items, rated, epsilon, [users], [sketch], pool=pool, seed=1)
    assert point.expected < 0.2, "the test should be about a campaign that works"
    assert abs(point.wrong - point.expected) < 4 * np.sqrt(point.expected * (1 - point.expected) / items) + 0.02


def test_what_maxsense_cannot_see_projection_can() -> None:
    """Guessing gets 50% of 100 items wrong; fewer than 30% by luck has probability 4e-5 at the best naming."""
    found = {
        point.sketch: point.wrong
        for point in study(preset("mirrored"), 100, 20, 2, [200_000], ["maxsense", "projection"])
    }
    assert found["projection"] < 0.1
    assert found["maxsense"] > 0.3


def test_popularity_is_estimated_without_bias() -> None:
    """The mean over 100 items is within five standard errors of the truth."""
    campaign = Campaign((f"item {n}" for n in range(100)), "maxsense", 2, 20, users=400_000)
    campaign.open("beacon")
    fold = Fold(campaign.task)
    people = BlockPeople(preset("popular"), 100, 20)
    people.answer(fold, 0, 400_000)
    popularity = np.array(campaign.publish(fold, 2).popularity)
    for label, truth in ((0, 0.8), (1, 0.2)):
        found = popularity[people.labels == label]
        assert abs(found.mean() - truth) < 5 * found.std() / np.sqrt(len(found)) + 0.01


def test_private_recommendations_beat_popularity_on_mirrored_tastes() -> None:
    """1000 people: a hit rate's standard error is at most 0.016, and the true difference is about 0.08."""
    tastes = preset("mirrored")
    models: dict[str, object] = {}
    study(tastes, 60, 20, 3, [200_000], ["projection"], models=models)  # type: ignore[arg-type]
    training, tests = (draw_opinions(tastes, 60, 20, count, count) for count in (3000, 1000))
    quality = {found.method: found for found in compare(models, training, tests, 2)}  # type: ignore[arg-type]
    popular = quality["popularity (not private)"]
    assert quality["projection"].hit_rate > popular.hit_rate + 0.03
    assert quality["projection"].ndcg > popular.ndcg
    assert quality["factorisation (not private)"].hit_rate > popular.hit_rate


def test_items_wrong_does_not_depend_on_names() -> None:
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert items_wrong([2, 2, 0, 0, 1, 1], labels) == 0
    assert items_wrong([0, 0, 0, 0, 0, 0], labels) == pytest.approx(4 / 6)
    assert items_wrong([0, 1, 2, 3, 4, 5], labels) == pytest.approx(3 / 6)


ROWS = ((1, 7, 5), (1, 8, 5), (2, 7, 4), (2, 9, 2), (3, 7, 1), (3, 8, 4.5), (1, 8, 1))
LAYOUTS = {
    "ratings.csv": "userId,movieId,rating,timestamp\n"
    + "".join(f"{u},{i},{r},9\n" for u, i, r in ROWS)
    + ",7,5,9\n1,9,,9\n",
    "ratings.dat": "".join(f"{u}::{i}::{r}::978300760\n" for u, i, r in ROWS),
    "u.data": "".join(f"{u}\t{i}\t{r}\t881250949\n" for u, i, r in ROWS),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_table_reads_alike_in_every_layout(name: str, tmp_path: Path) -> None:
    """The last of two ratings counts, and rows without a person or a rating do not."""
    path = tmp_path / name
    path.write_text(LAYOUTS[name])
    table = read_table(path, most_items=2)
    assert table.items == ("7", "8")
    assert table.opinions.tolist() == [[1, -1], [1, 0], [-1, 1]]
    with pytest.raises(DataError, match="nobody"):
        read_table(path, user="nobody")
    with pytest.raises(DataError, match="can't be read"):
        read_table(tmp_path / "missing.csv")
    with pytest.raises(UsageError, match="most_items"):
        read_table(path, most_items=1)


def test_the_factorisation_is_the_known_one() -> None:
    """With equal weights the best factorisation is the singular value decomposition with its values lowered by the penalty."""
    likes = np.random.default_rng(0).random((60, 25)) < 0.3
    found = factorise(likes, 25, weight=0, penalty=1.5, rounds=400)
    left, values, right = np.linalg.svd(likes.astype(float), full_matrices=False)
    known = (left * np.maximum(values - 1.5, 0)) @ right
    assert np.abs(found.scores(likes) - known).max() < 1e-3
    assert np.abs(factorise(likes, 25, weight=1, penalty=1.5, rounds=40).scores(likes) - known).max() > 0.05


def test_hits_and_gains_are_exact() -> None:
    """One like is left out of two, so that nine items are candidates of the first person and eleven of the second."""
    tests = np.zeros((2, 12), np.int8)
    tests[0, :4], tests[1, 2:4] = (1, -1, -1, -1), (1, -1)
    people = HeldOut(tests)
    assert people.left_out.tolist() == [0, 2]
    level = people.judge("all alike", np.zeros(12))
    assert level.hits.tolist() == pytest.approx([1, 10 / 11])
    assert level.gains[1] == pytest.approx(sum(1 / np.log2(1 + rank) for rank in range(1, 11)) / 11)
    ordered = people.judge("in order", -np.arange(12.0))
    assert ordered.gains.tolist() == pytest.approx([1, 1 / np.log2(4)])
    assert people.judge("backwards", np.arange(12.0)).hits.tolist() == [1, 1]
    assert ordered.lead_over(ordered) == (0, 0)


def test_nobody_who_is_judged_was_learnt_from() -> None:
    """Everyone likes two items that nobody else has heard of. Only somebody who saw a person's own row could name the
    second: a study that judged the people it learnt from would find nearly all, and ten of 120 by chance.
    """
    table = RatingsTable(tuple(map(str, range(120))), np.repeat(np.eye(60, dtype=np.int8), 2, axis=1))
    found = study_ratings(table, 2, ["8"], [3000], ["projection"])
    assert len(found[0].hits) == 12
    assert all(one.hit_rate <= 5 / 12 for one in found)  # by chance 2e-3 for each, and seeded
    seen = HeldOut(table.opinions).without_privacy(table.opinions, 60)
    assert seen[1].hit_rate > 0.9


def test_local_popularity_answers_as_its_reference_says() -> None:
    """The sums of ones against their expectation: ten comparisons at five standard deviations, 6e-6."""
    table = np.array([[1, 1, 0, -1, 0], [0, 1, 0, 0, 0], [-1, 0, 0, 0, 0]], np.int8)
    drawn, users = np.array([0.5, 1.5, 0, 0, 0]) / 3, 200_000
    first, second = local_popularity(table, "1", [users // 2, users])
    lies = 1 / (np.e + 1)
    for ones, asked in ((first, users // 2), (second, users)):
        share = drawn / 2 + (1 - drawn) * lies
        assert (np.abs(ones - asked * share) < 5 * np.sqrt(asked * share * (1 - share))).all()

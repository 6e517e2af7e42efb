"""Second rounds: bound to the first model, private, and no echo of noise."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.recommender.rounds import SidedPeople

from evenhand.guarantee import UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.at_home import answer, on_one_side
from evenhand.recommender.at_home.coins import Coins, SecureCoins, flip_threshold
from evenhand.recommender.at_home.sketches import sketch_for as at_home
from evenhand.recommender.at_server import Fold
from evenhand.recommender.at_server.sketches import sketch_for as at_server
from evenhand.recommender.messages import PublishedModel, Report, Task, Token
from evenhand.recommender.messages.model import axis_of, epoch_after, is_second_round
from evenhand.recommender.tastes import Tastes, preset
from recommender_laws import all_ratings, worst_ratio

ITEMS = ("alien", "brazil", "casablanca", "dune")


def first_model(items: tuple[str, ...] = ITEMS, axes: tuple[tuple[float, ...], ...] | None = None) -> PublishedModel:
    vectors = axes if axes is not None else ((1.0, 0.1), (-0.7, 1.0), (0.3, 0.1), (-0.6, -0.4))
    return PublishedModel(bytes(32), items, (0,) * len(items), vectors, (), 10, Decimal(1))


def second_task(
    model: PublishedModel, axis: int = 1, sketch: str = "maxsense", rated: int = 2, users: int = 20
) -> Task:
    epoch = epoch_after(model, axis, "1")
    return Campaign(model.items, sketch, 1, rated, users=users, epoch=epoch).open("lottery")


def test_a_second_round_is_bound_to_its_first_model() -> None:
    model = first_model()
    task = second_task(model, axis=2)
    assert is_second_round(task)
    assert not is_second_round(Campaign(ITEMS, rated=2, users=5).task)
    assert axis_of(task, model) == [0.1, 1.0, 0.1, -0.4]
    for read in (PublishedModel.from_json(model.to_json()), PublishedModel.from_bytes(model.to_bytes())):
        assert axis_of(task, read) == pytest.approx([0.1, 1.0, 0.1, -0.4])
    other = first_model(axes=((1.0, 0.1), (-0.7, 1.0), (0.3, 0.1), (-0.6, -0.5)))
    for wrong in (other, first_model(axes=())):
        with pytest.raises(UsageError, match="not a second round after this model"):
            axis_of(task, wrong)
    for axis in (0, 3):
        with pytest.raises(UsageError, match=f"axis={axis}"):
            epoch_after(model, axis, "1")
    with pytest.raises(UsageError, match="use maxsense"):
        on_one_side(second_task(model, sketch="pairwise"), Token(bytes(8), 0, bytes(8)), model, {})


@pytest.mark.parametrize("sketch", ["maxsense", "multi-maxsense"])
def test_the_side_is_found_from_ratings_that_the_question_is_not_about(sketch: str) -> None:
    model = first_model()
    task = second_task(model, sketch=sketch)
    for serial in range(task.tokens):
        token = Token(task.short_id, serial, bytes(8))
        query = np.array(at_home(task).query(serial, [])).ravel().tolist()
        for liked in ({0: True, 1: True, 2: False, 3: False}, {0: False, 3: True}, {1: False, 2: True}, {}):
            lean = sum(
                axis * (1 if liked[i] else -1)
                for i, (axis, _) in enumerate(model.embedding)
                if i in liked and i not in query
            )
            turned = {item: not like for item, like in liked.items()}
            assert on_one_side(task, token, model, liked) == (turned if lean < 0 else liked)
        assert on_one_side(task, token, model, {"alien": True, 9: True, 0: None}) == {}  # type: ignore[dict-item]


def test_reports_of_a_second_round_are_private() -> None:
    """Exactly: over all ratings, no report is likelier by more than the flip allows. A client that shows its side is caught."""
    model = first_model()
    task = second_task(model)

    def respond(task: Task, token: Token, liked: Mapping[int, bool], coins: Coins) -> Report:
        return answer(task, token, on_one_side(task, token, model, liked), coins)

    def shows_its_side(task: Task, token: Token, liked: Mapping[int, bool], coins: Coins) -> Report:
        turned = on_one_side(task, token, model, liked) != dict(liked)
        return Report(
            task.short_id, token.serial, token.tag, respond(task, token, liked, coins).answer ^ turned if turned else 0
        )

    threshold, inputs = flip_threshold(task.question_epsilon), list(all_ratings(len(ITEMS)))
    for serial in range(2):
        worst = worst_ratio(task, serial, inputs, respond)
        assert worst is not None
        assert worst <= Fraction(2**64 - threshold, threshold)
    assert worst_ratio(task, 0, inputs, shows_its_side) is None


def _people_and_sketch(
    tastes: Tastes, axis: np.ndarray, users: int, kind: type[SidedPeople] = SidedPeople
) -> tuple[SidedPeople, Fold]:
    names = tuple(f"item {n}" for n in range(len(axis)))
    task = second_task(first_model(names, tuple((float(v),) for v in axis)), rated=len(axis) // 2, users=users)
    return kind(tastes, len(axis), len(axis) // 2, axis, seed=1), Fold(task)


def test_simulated_people_take_sides_as_at_home() -> None:
    axis = np.random.default_rng(0).normal(size=12).round(3)
    people, fold = _people_and_sketch(preset("mirrored"), axis, 300)
    model = first_model(fold.task.items, tuple((float(v),) for v in axis))
    opinions = people.opinions(300, None)
    people.opinions = lambda count, cap: opinions  # type: ignore[method-assign]
    found = at_server(fold.task).truths(np.arange(300), people)[:, 0]
    for serial in range(300):
        token = Token(fold.task.short_id, serial, bytes(8))
        liked = {int(i): bool(opinions[serial, i] > 0) for i in np.flatnonzero(opinions[serial])}
        turned = on_one_side(fold.task, token, model, liked)
        bits = at_home(fold.task).bits(at_home(fold.task).query(serial, []), turned, SecureCoins())
        assert bits == [found[serial]]


class Credulous(SidedPeople):
    """The broken twin: the item asked about helps to choose the side."""

    def like_any(self, sketch, numbers):  # type: ignore[no-untyped-def]
        x, sets = self.opinions(len(numbers), sketch.task.rated), sketch.sets(numbers)[:, 0]
        side = np.where(x @ self.axis < 0, -1, 1)
        return (x[np.arange(len(numbers))[:, None], sets] == side[:, None]).any(axis=1)[:, None]


def test_noise_of_the_first_round_is_not_confirmed() -> None:
    """With tastes that no axis describes, what is found is not along the axis. Seeded."""
    axis = np.random.default_rng(0).normal(size=30)
    echoes = {}
    for kind in (SidedPeople, Credulous):
        people, fold = _people_and_sketch(Tastes(((0.5, 0.5),)), axis, 20_000, kind)
        people.answer(fold, 0, 20_000)
        reading = fold.sketch.reading(fold.sums(), 2)
        assert reading.popularity is not None
        echoes[kind] = abs(float(np.corrcoef(reading.popularity, axis)[0, 1]))
    assert echoes[SidedPeople] < 0.5 < 0.8 < echoes[Credulous]


def test_the_model_of_a_second_round_has_an_axis_and_no_popularity() -> None:
    task = second_task(first_model(), users=2)
    fold = Fold(task)
    people = SidedPeople(preset("mirrored"), 4, 2, np.ones(4), 0)
    people.answer(fold, 0, 2)
    model = Campaign.resume(task, bytes(32)).publish(fold)
    assert model.dimensions == 1
    assert model.popularity == ()

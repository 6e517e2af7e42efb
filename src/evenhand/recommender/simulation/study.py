"""How many items a campaign gets wrong, as people come in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import Amount
from evenhand.recommender.at_server.campaign import Campaign
from evenhand.recommender.at_server.fold import Fold
from evenhand.recommender.messages import PublishedModel, find_sketch
from evenhand.recommender.planning import forecast
from evenhand.recommender.simulation.block_people import BlockPeople
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import Setting


@dataclass(frozen=True)
class Point:
    """One simulated campaign after some number of people have answered.

    Args:
        wrong: the share of items in the wrong cluster.
        expected: the forecast of it.
    """

    sketch: str
    users: int
    wrong: float
    expected: float


def items_wrong(found: Sequence[int] | NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """The share of items whose cluster is not their class's, under the best naming of the clusters."""
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((max(found) + 1, labels.max() + 1), np.int64)
    np.add.at(table, (np.asarray(found), labels), 1)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(1 - table[rows, columns].sum() / len(labels))


def study(
    tastes: Tastes,
    items: int,
    rated: int,
    epsilon: Amount,
    users: Iterable[int],
    sketches: Sequence[str],
    *,
    pool: int | str | None = "auto",
    theta: Decimal | None = None,
    questions: int | None = None,
    seed: int = 0,
    models: dict[str, PublishedModel] | None = None,
    public_rated: bool = False,
) -> list[Point]:
    """Run a campaign of simulated people for each sketch, and look at it after each number of users.

    Args:
        pool: as for `Campaign`.
        theta: as for `Campaign`, for the sketches that have one.
        questions: as for `Campaign`, for the sketches that may ask several.
        models: if given, receives each sketch's last model.
        public_rated: as for `Campaign`: it is public which items people rated, at random.
    """
    stops = sorted(set(users))
    names = [f"item {number}" for number in range(items)]
    points = []
    for offset, sketch in enumerate(sketches):
        kind = find_sketch(sketch)
        campaign = Campaign(
            names,
            sketch,
            epsilon,
            rated,
            users=stops[-1],
            pool=None if public_rated else pool,
            theta=theta if kind.senses else None,
            questions=questions if kind.several else None,
            public_rated=public_rated,
        )
        task = campaign.open(f"simulation {seed}")
        setting = Setting(sketch, items, rated, task.epsilon, float(task.theta or 1), task.questions, public_rated)
        people = BlockPeople(tastes, items, rated, seed=1000 * seed + offset)
        fold = Fold(task, rated=people.rated_sets(stops[-1]) if public_rated else None)
        for reached, stop in pairwise([0, *stops]):
            people.answer(fold, reached, stop)
            model = campaign.publish(fold, tastes.clusters)
            wrong = items_wrong(model.clusters, people.labels)
            points.append(Point(sketch, stop, wrong, forecast(setting, tastes, stop)))
        if models is not None:
            models[sketch] = model
    return points

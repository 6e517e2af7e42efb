"""Whole campaigns: how many items they get wrong as simulated people come in, and how good recommendations are to people of a real table.

People of the table on whom recommendations are judged are in none of the campaigns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import Amount, DataError, parse_epsilon
from evenhand.recommender.at_server.campaign import Campaign
from evenhand.recommender.at_server.fold import Fold
from evenhand.recommender.at_server.sketches import Opinions
from evenhand.recommender.messages import PublishedModel, find_sketch
from evenhand.recommender.planning import forecast
from evenhand.recommender.simulation.people import BlockPeople, ResampledPeople
from evenhand.recommender.simulation.quality import POPULARITY, HeldOut, Quality, Scores
from evenhand.recommender.simulation.ratings_table import RatingsTable
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


LOCAL_POPULARITY = "popularity (same ε)"
DIMENSIONS = 16
"""Of the factorisation without privacy."""

_MOST_TESTS = 2000
_AT_ONCE = 1 << 18


def study_ratings(
    table: RatingsTable,
    rated: int,
    epsilons: Sequence[str],
    users: Iterable[int],
    sketches: Sequence[str],
    *,
    seed: int = 0,
    tell: Callable[[str], object] = lambda doing: None,
) -> list[Quality]:
    """How good recommendations get as people and ε grow, beside popularity and a factorisation.

    A fifth of the table's people, drawn at random and at most 2,000, are kept for judging: one like each is left out,
    and all items that they have not rated are candidates. The others are learnt from: the methods without privacy
    see their ratings, and campaigns resample them. So no copy of a person who is judged was ever learnt from.

    Args:
        rated: the task's cap on ratings per person; who has more subsamples at home.
        users: after how many people to look.
        tell: is told what is being done.
    """
    order = np.random.default_rng(seed).permutation(len(table.opinions))
    judged = order[: min(_MOST_TESTS, len(order) // 5)]
    learnt = table.opinions[order[len(judged) :]]
    if not len(judged) or not (learnt == 1).any():
        raise DataError("The table has too few people: expected five or more, and likes among them.")
    people = HeldOut(table.opinions[judged], seed)
    stops, cap = sorted(set(users)), min(rated, len(table.items))
    tell("Factorising")
    found = people.without_privacy(learnt, DIMENSIONS, seed)
    for epsilon in epsilons:
        tell(f"Popularity, ε = {epsilon}")
        for stop, scores in zip(stops, local_popularity(learnt, epsilon, stops, seed), strict=True):
            found.append(people.judge(LOCAL_POPULARITY, scores, stop, epsilon))
        for offset, sketch in enumerate(sketches):
            campaign = Campaign(table.items, sketch, epsilon, cap, users=stops[-1], pool="auto")
            fold = Fold(campaign.open(f"simulation {seed}"))
            answering = ResampledPeople(learnt, 1000 * seed + offset)
            for reached, stop in pairwise([0, *stops]):
                tell(f"{sketch}, ε = {epsilon}, {stop:,} people")
                answering.answer(fold, reached, stop)
                found.append(people.judge_model(sketch, campaign.publish(fold), epsilon))
    return found


def local_popularity(table: Opinions, epsilon: str, stops: Sequence[int], seed: int = 0) -> Iterator[Scores]:
    """How often each item is liked, by a frequency oracle with the same ε: what a campaign has to beat.

    Everyone draws one of the items that they like, and reports a bit per item: for the drawn one 1 with probability ½,
    for any other with probability 1/(e^ε + 1). Given who drew what, the bits are independent, so the sums of ones are
    drawn at once: from two binomials per item.

    Reference: Wang, Blocki, Li and Jha, Locally Differentially Private Protocols for Frequency Estimation (2017),
    optimised unary encoding.
    """
    random = np.random.default_rng(seed)
    lies = 1 / (np.exp(float(parse_epsilon(epsilon))) + 1)
    sizes = (table == 1).sum(axis=1)
    starts, liked = np.cumsum(sizes) - sizes, np.nonzero(table == 1)[1]
    ones = np.zeros(table.shape[1])
    for reached, stop in pairwise([0, *stops]):
        for at in range(reached, stop, _AT_ONCE):
            count = min(_AT_ONCE, stop - at)
            who = random.integers(0, len(table), count)
            able = who[sizes[who] > 0]  # without a like there is nothing to draw, and every bit is a lie
            mine = np.bincount(liked[starts[able] + random.integers(0, sizes[able])], minlength=len(ones))
            ones += random.binomial(mine, 0.5) + random.binomial(count - mine, lies)
        yield ones.copy()


def verdicts(found: Sequence[Quality]) -> list[str]:
    """For each ε, from how many people on a sketch is ahead of popularity: by two standard errors of the difference."""
    seeing = next(one for one in found if one.method == POPULARITY)
    told = []
    for epsilon in dict.fromkeys(one.epsilon for one in found if one.epsilon is not None):
        here = [one for one in found if one.epsilon == epsilon]
        private = {one.users: one for one in here if one.method == LOCAL_POPULARITY}
        sketches = [one for one in here if one.method != LOCAL_POPULARITY]
        for name, other in ((POPULARITY, dict.fromkeys(private, seeing)), (LOCAL_POPULARITY, private)):
            told.append(f"ε = {epsilon}: {_ahead(sketches, other)} {name}.")
    return told


def _ahead(sketches: Sequence[Quality], other: Mapping[int | None, Quality]) -> str:
    first: dict[str, int] = {}  # by sketch, the fewest people from which on it is ahead throughout
    for one in sorted(sketches, key=lambda one: one.users or 0):
        lead, error = one.lead_over(other[one.users])
        if lead > 2 * error:
            first.setdefault(one.method, one.users or 0)
        else:
            first.pop(one.method, None)
    if not first:
        return f"with up to {max(one.users or 0 for one in sketches):,} people no sketch is ahead of"
    return f"{', '.join(f'{name} from {users:,} people on' for name, users in first.items())}: ahead of"

"""Campaigns among people resampled from a table of ratings, judged on people of the table who are in none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from evenhand.guarantee import DataError, parse_epsilon
from evenhand.recommender.at_server.campaign import Campaign
from evenhand.recommender.at_server.fold import Fold
from evenhand.recommender.at_server.sketches import Opinions
from evenhand.recommender.simulation.quality import POPULARITY, HeldOut, Quality, Scores
from evenhand.recommender.simulation.ratings_table import RatingsTable
from evenhand.recommender.simulation.resampled_people import ResampledPeople

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

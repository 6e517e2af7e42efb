"""How hidden group names are selected: which mechanism, and how many groups of a user count.

Truncated geometric noise with one group per user is best where nearly everybody is in one group, weighted Gaussian selection where
users are in several. Which is which shows in a noisy histogram of users by number of groups, bought with 1.5%
of ε (5% for numbers of users); whatever it says, the release afterwards has the same (ε, δ).
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from evenhand.guarantee import exact_sum
from evenhand.noise import NormalThreshold, ShownCounts, TruncatedGeometric, Way
from evenhand.profiles import Buckets, Histogram, Support

BUCKETS = Buckets((0, *(2**power for power in range(13))))
"""Users by number of groups: 1, 2, 3–4, 5–8, … 2049–4096, and more."""

LIMITS = (4, 16, 64, 256, 1024, 4096)
"""The numbers of groups per user to choose from, for weighted selection."""

_TWO_ROUNDS = 7_000
"""Two rounds need 4% more support than one, and find more where what the first shows is much of what users are in: where there is
room for many groups at the threshold, and users are in many. From this product on (found by simulation: decision 12)."""

_SECOND_ROUND = 1.1
"""What a second round is worth at least where it is used, in support."""

_NUMBERS = 1.18
"""What Gaussian numbers beside weighted names are worth, in support: where both ways find about as many groups, the numbers of users in
several of them are nearly twice as precise (Pareto 1.3, 40,000 users: 272 groups with RMSE 45 against 294 with 77)."""

_FEW = (1, 2, 4, 8)
_ALL = 0.98
"""The part of all memberships that is probably left if each user counts in so few groups only. What else was cut is in the interval."""

_WHOLE = 1.1
"""What it is worth, in support, that numbers of supporters are the answer: they have a third to a tenth of the noise."""

_LARGEST_ANSWER = 2**12
_LARGEST = 2**16
"""Where more supporters would be needed, their chances are not tabulated: nothing is found by counting there."""


class Purse(NamedTuple):
    """What a way of selecting may spend: (ε, δ), of which a part of μ² is left for numbers."""

    epsilon: Decimal
    delta: Decimal
    numbers: Fraction = Fraction(0)


class Purses(NamedTuple):
    """Of the ways: by number of supporters, by weight, and by a number of supporters that is the answer, where that is asked for."""

    counted: Purse
    weighted: Purse
    answer: Purse | None = None


def chosen_way(groups: Support, purses: Purses, bought: Histogram | None = None) -> Way:
    """The way with the smallest critical share: support that a group needs, divided by the support of all users together.

    Where hardly anybody is in more than a few groups, as far as what was bought tells, numbers of supporters are numbers of users.
    """
    weighted = normal_way(groups, purses.weighted)
    answer = None if purses.answer is None or bought is None else _answer(bought, purses.answer)
    if answer is not None and _share(answer, groups) < _WHOLE * _share(weighted, groups):
        return answer
    counted = TruncatedGeometric.way(1, purses.counted.epsilon, purses.counted.delta)
    worth = (_SECOND_ROUND if len(weighted.rounds) > 1 else 1.0) * (_NUMBERS if weighted.numbers else 1.0)
    better = _share(counted, groups) < _share(weighted, groups) / worth
    return counted if better and needed(counted) <= _LARGEST else weighted


def _answer(bought: Histogram, purse: Purse) -> Way | None:
    """Numbers of supporters, each user in as many groups as nearly all are in."""
    groups = bought.support
    for limit in _FEW:
        left = float(groups.users @ np.minimum(groups.sizes, limit))
        if left >= _ALL * (left + bought.posterior.cut(limit).median):
            return ShownCounts.way(limit, purse.epsilon, purse.delta, _LARGEST_ANSWER)
    return None


def given_way(limit: int, purses: Purses) -> Way:
    """The way for a given number of groups per user, from public facts only: users are taken to be in that many groups."""
    everybody = Support(np.array([float(limit)]), np.array([1.0]))
    weighted = _normal(limit, purses.weighted, 1)
    counted = TruncatedGeometric.way(limit, purses.counted.epsilon, purses.counted.delta)
    better = _share(counted, everybody) < _share(weighted, everybody)
    return counted if better and needed(counted) <= _LARGEST else weighted


def normal_way(groups: Support, purse: Purse) -> Way:
    """Weighted selection in one round or two; the most groups that cost next to nothing, since only users in more are sampled."""
    ways = [_normal(limit, purse, 1) for limit in LIMITS]
    best = min(_share(way, groups) for way in ways)
    once = max((way for way in ways if _share(way, groups) <= 1.03 * best), key=lambda way: way.groups)
    root = float(groups.users @ np.sqrt(np.minimum(groups.sizes, once.groups))) / groups.people
    return once if root**2 / best < _TWO_ROUNDS else _normal(once.groups, purse, 2)


def _normal(groups: int, purse: Purse, rounds: int) -> Way:
    return NormalThreshold.way(groups, purse.epsilon, purse.delta, rounds, purse.numbers)


def doubled(way: Way) -> Way:
    """The same way with twice the ε."""
    epsilon = exact_sum((way.epsilon, way.epsilon))
    if not isinstance(way.rounds[0], NormalThreshold):
        return TruncatedGeometric.way(way.groups, epsilon, way.delta)
    return _normal(way.groups, Purse(epsilon, way.delta, way.numbers), len(way.rounds))


def needed(way: Way, groups: int = 1) -> float:
    """How many users a group needs to be shown with probability ½ if each of them is in so many groups."""
    look, counting = way.rounds[-1], min(groups, way.groups)
    return look.needed / look.weight(counting) * groups / counting


def _share(way: Way, groups: Support) -> float:
    look, counting = way.rounds[-1], np.minimum(np.rint(groups.sizes), way.groups)
    weights = [look.weight(max(1, int(count))) for count in counting]
    return look.needed / float(groups.users @ (weights * counting))

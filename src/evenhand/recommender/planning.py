"""Before asking anyone: how many people a campaign needs, which sketch suits, and what can't be done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, permutations
from typing import Any

import numpy as np

from evenhand.guarantee import Amount, UsageError, parse_epsilon, plain
from evenhand.pages.numbers import in_words
from evenhand.pages.pictures import Range
from evenhand.recommender.at_server.sketches import half_of
from evenhand.recommender.bounds import (
    Bound,
    Question,
    largest,
    necessary_if_adaptive,
    necessary_users,
    proven_bounds,
    sufficient_users,
    telling,
)
from evenhand.recommender.messages import SKETCHES
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import Setting, best_questions, best_theta, pool_size

TARGET = 0.01
"""A campaign is said to work when at most this share of items is expected in the wrong cluster."""

_MOST_USERS = 10**15
_SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
_EPSILONS = ("0.5", "1", "2", "4")
_MORE_THAN_ENOUGH = 1e40  # people, for whom noise is nothing beside any difference


@dataclass(frozen=True)
class Prospect:
    """What one sketch would achieve.

    Args:
        setting: the sketch with its best θ and number of questions.
        needed: users for at most `TARGET` of items wrong; None if no number would do.
        wrong: the expected share of items wrong with the users at hand; None if that is not known.
        alike: pairs of item classes that the sketch can't tell apart, however many people answer.
    """

    setting: Setting
    needed: int | None
    wrong: float | None
    alike: tuple[tuple[int, int], ...] = ()

    def why_not(self, classes: int) -> str:
        """Why no number of people in sight is enough."""
        sketch = self.setting.sketch
        if not self.alike:
            return f"{sketch} would need more than {in_words(_MOST_USERS)} people."
        if len(self.alike) == math.comb(classes, 2):
            return f"{sketch} can't see these tastes at all."
        pairs = ", ".join(f"{first + 1} and {second + 1}" for first, second in self.alike)
        return f"{sketch} can't tell item classes {pairs} apart, however many people answer."


@dataclass(frozen=True)
class CampaignPlan:
    """Prospects of every sketch, with what theory guarantees and forbids. Nothing in it depends on anyone's data.

    Args:
        tastes: the assumed block model.
        users: how many people there are; None if not known.
        prospects: one for each sketch.
        sufficient: users for which Theorem 5.1 or 5.3, corrected, proves MaxSense or Multi-MaxSense to be exact with probability 1 - 1/N, in the
            limit of many items; None where it proves nothing.
        necessary: users without which no method at all expects `TARGET` of items wrong; None if no number would do.
        proven: the bounds whose conditions hold (`proven_bounds`); `telling` are those that say something.
        public_rated: whether it is public which items people rated.
    """

    tastes: Tastes
    users: int | None
    prospects: tuple[Prospect, ...]
    sufficient: int | None
    necessary: int | None
    proven: tuple[Bound, ...]
    public_rated: bool = False

    @property
    def best(self) -> Prospect | None:
        """The sketch that needs the fewest users; None if none would do."""
        able = [prospect for prospect in self.prospects if prospect.needed is not None]
        return min(able, key=lambda prospect: prospect.needed or 0, default=None)

    def words(self) -> str:
        """The plan as sentences that a manager can read."""
        one, best = self.prospects[0].setting, self.best
        assumed = "; ".join(" / ".join(f"{value:g}" for value in row) for row in self.tastes.like)
        size = f"{one.items} items, {one.rated} ratings per person, ε = {plain(one.epsilon)}"
        size += ", and it is public which items people rated: only likes are protected" if self.public_rated else ""
        lines = [f"{size}; assumed like rates by class: {assumed}."]
        if best is None or best.needed is None:
            able = [prospect for prospect in self.prospects if not prospect.alike]
            lines.append(
                f"No sketch would do with {in_words(_MOST_USERS)} people."
                if able
                else "No sketch can tell these classes of items apart, however many people answer."
            )
        else:
            tuned = ""
            if SKETCHES[best.setting.sketch].senses:
                questions = f", {best.setting.questions} questions" if best.setting.questions > 1 else ""
                tuned = f" (θ = {best.setting.theta:g}{questions})"
            lines.append(
                f"Best: {best.setting.sketch}{tuned}, which needs about {in_words(best.needed)} people for "
                f"{TARGET:.0%} of items in the wrong cluster."
            )
            lines += self._verdict(best, best.needed)
            lines += [one.why_not(self.tastes.clusters) for one in self.prospects if one.needed is None]
        lines += self._limits()
        if self.sufficient is not None:
            lines.append(
                f"MaxSense is proven to get all items right with probability 1 - 1/{one.items} from {in_words(self.sufficient)} people on (Theorems 5.1 and 5.3, "
                "corrected), in the limit of many items; simulated campaigns needed less than a hundredth of that."
            )
        return "\n".join(lines)

    def _limits(self) -> list[str]:
        """What is proven: for each question the largest bound, and that for questions that may depend on others' answers."""
        lines = []
        asked: dict[Question, str] = {
            "share wrong": "no method at all expects as few items wrong",
            "share wrong half the time": "no method has as few items wrong half the time",
            "all right half the time": "no method gets all items right half the time",
        }
        for question, words in asked.items():
            best, adaptive = largest(self.proven, question, False), largest(self.proven, question, True)
            if best is not None and best is not adaptive:
                lines.append(
                    f"Below {in_words(best.people)} people {words}, if nobody's question depends on others' answers ({best.theorem}; {', '.join(best.conditions)})."
                )
            if adaptive is not None:
                lines.append(
                    f"Below {in_words(adaptive.people)} people {words}, even if questions depend on others' answers ({adaptive.theorem}; {', '.join(adaptive.conditions)})."
                )
        return lines

    def _verdict(self, best: Prospect, needed: int) -> list[str]:
        if self.users is None or best.wrong is None:
            return []
        if self.users >= needed:
            return [f"You have {in_words(self.users)}: enough; expect {best.wrong:.1%} of items wrong."]
        return [
            f"You have {in_words(self.users)} users; this needs {in_words(needed)}. Expect {best.wrong:.0%} of items "
            f"wrong, where guessing gets {chance(self.tastes):.0%} wrong."
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "users": self.users,
            "best": self.best.setting.sketch if self.best else None,
            "sketches": {
                prospect.setting.sketch: {
                    "users_needed": prospect.needed,
                    "items_wrong": prospect.wrong,
                    "theta": prospect.setting.theta,
                    "questions": prospect.setting.questions,
                }
                for prospect in self.prospects
            },
            "pool": pool_size(self.prospects[0].setting.items, self.prospects[0].setting.rated, self.users or 1),
            "target": TARGET,
            "guessing": chance(self.tastes),
            "sufficient_users": self.sufficient,
            "necessary_users": self.necessary,
            "public_rated": self.public_rated,
            "bounds": [bound.to_dict() | {"says_something": bound in telling(self.proven)} for bound in self.proven],
            "words": self.words(),
        }


def plan(
    items: int, rated: int, epsilon: Amount, tastes: Tastes, users: int | None = None, public_rated: bool = False
) -> CampaignPlan:
    """Compare all sketches for a campaign of this size.

    Args:
        items: the number of items N.
        rated: ratings per person w.
        epsilon: the ε of one report.
        tastes: the block model to assume; it is a guess, and the answer is as good as the guess.
        users: how many people there are, if known.
        public_rated: it is public which items people rated, and only their likes are protected; for sketches that can ask accordingly.

    Example:
        >>> from evenhand.recommender.tastes import preset
        >>> plan(200, 40, 1.0, preset("mirrored")).best.setting.sketch
        'projection'
    """
    exact = parse_epsilon(epsilon)
    least = 2 if public_rated else 1  # a pair is asked about
    ranges = {"items": (items, 2, 65_536), "rated": (rated, least, items), "users": (users or 1, 1, _MOST_USERS)}
    for name, (given, low, most) in ranges.items():
        if not low <= given <= most:
            raise UsageError(f"{name}={given} is out of range: expected {low} to {most}.")
    theta = min(best_theta(float(np.array(tastes.people) @ tastes.like_rates)), Decimal(rated))
    prospects = []
    for name, sketch in SKETCHES.items():
        if public_rated and not sketch.public_rated:
            continue
        questions = best_questions(exact, items, rated, theta) if sketch.several else 1
        setting = Setting(name, items, rated, exact, float(theta), questions, public_rated)
        wrong = None if users is None else forecast(setting, tastes, users)
        alike = indistinguishable(setting, tastes)
        prospects.append(Prospect(setting, users_needed(setting, tastes, TARGET), wrong, alike))
    sufficient = None if public_rated else _sufficient(prospects, tastes)
    if public_rated:
        necessary = necessary_if_adaptive(items, exact, tastes, TARGET)
    else:
        necessary = necessary_users(items, rated, exact, tastes, TARGET)
    proven = proven_bounds(items, rated, exact, tastes, TARGET, public_rated)
    return CampaignPlan(tastes, users, tuple(prospects), sufficient, necessary, proven, public_rated)


def _sufficient(prospects: Sequence[Prospect], tastes: Tastes) -> int | None:
    """The fewest users for which a sensing sketch is proven to be exact."""
    settings = [one.setting for one in prospects if SKETCHES[one.setting.sketch].senses]
    found = [sufficient_users(s.items, s.rated, s.epsilon, tastes, s.theta, s.questions) for s in settings]
    return min((users for users in found if users is not None), default=None)


def limits(
    items: int, rated: int, epsilon: Amount, tastes: Tastes, public_rated: bool = False
) -> dict[str, list[Range]]:
    """For each ε, and catalogues from small to large: the people without whom nothing works, and for whom a sketch would."""
    sizes = sorted({items, *(size for size in _SIZES if size >= max(rated, items / 100))})
    found: dict[str, list[Range]] = {}
    for exact in sorted({parse_epsilon(epsilon), *map(Decimal, _EPSILONS)}):
        plans = [plan(size, rated, exact, tastes, None, public_rated) for size in sizes]
        found[f"ε = {plain(exact)}"] = [
            Range(size, one.necessary, one.best.needed if one.best else None)
            for size, one in zip(sizes, plans, strict=True)
            if one.necessary is not None
        ]
    return found


def indistinguishable(setting: Setting, tastes: Tastes) -> tuple[tuple[int, int], ...]:
    """The pairs of item classes that the sketch reads at the same place, but for rounding."""
    coordinates = half_of(setting.sketch).places(setting, tastes, _MORE_THAN_ENOUGH)
    same = 1e-9 * max(float(np.abs(coordinates).max()), 1e-300)
    return tuple(
        (a, b)
        for a, b in combinations(range(tastes.clusters), 2)
        if float(np.abs(coordinates[a] - coordinates[b]).max()) <= same
    )


def forecast(setting: Setting, tastes: Tastes, users: float) -> float:
    """The expected share of items in the wrong cluster, by a normal approximation.

    The sketch says how many standard deviations the classes of items lie apart; an item is misplaced when noise brings
    it nearer to another class.
    """
    coordinates = half_of(setting.sketch).places(setting, tastes, users)
    distances = np.sqrt(((coordinates[:, None] - coordinates[None]) ** 2).sum(axis=2))
    wrong = 0.0
    for a, b in permutations(range(tastes.clusters), 2):
        wrong += tastes.items[a] * 0.5 * math.erfc(distances[a, b] / 2 / math.sqrt(2))
    return min(wrong, chance(tastes))


def chance(tastes: Tastes) -> float:
    """The share of items that guessing gets wrong: all in the largest cluster."""
    return 1 - max(tastes.items)


def users_needed(setting: Setting, tastes: Tastes, wrong: float) -> int | None:
    """The fewest users with a forecast of at most ``wrong``; None if no number of users would do."""
    if forecast(setting, tastes, _MOST_USERS) > wrong:
        return None
    low, high = 0.0, math.log(_MOST_USERS)
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if forecast(setting, tastes, math.exp(middle)) <= wrong else (middle, high)
    return math.ceil(math.exp(high))

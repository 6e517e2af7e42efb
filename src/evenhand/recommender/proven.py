"""What is proven about how many people a campaign takes, each bound with its question and its conditions; the largest that holds is shown.

A bound is for one question: a share of items wrong, on average or half the time, or all items right. It is adaptive if it holds also where what a person is
asked depends on others' answers. A bound that asks for
fewer people than one with no more conditions says nothing, and is left out.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal

from evenhand.recommender.bounds import (
    exact_half_the_time,
    necessary_if_adaptive,
    necessary_users,
    theorem_3_3,
    theorem_4_3,
    theorem_4_8,
    theorem_4_10,
    theorem_6_1,
    theorem_a_5,
)
from evenhand.recommender.tastes import Tastes

Question = Literal["share wrong", "share wrong half the time", "all right half the time"]


@dataclass(frozen=True)
class Bound:
    """Fewer than so many people are not enough.

    Args:
        theorem: which one, as a person finds it in the paper or in the proofs.
        people: how many.
        question: what fewer people can't do: put at most the target's share of items into a wrong cluster on average, or half the time; or all items right, half the time.
        adaptive: whether it holds also where questions depend on others' answers.
        conditions: what else it needs.
    """

    theorem: str
    people: int
    question: Question
    adaptive: bool
    conditions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The bound as data."""
        return asdict(self)


def proven_bounds(
    items: int, rated: int, epsilon: Decimal, tastes: Tastes, wrong: float, public_rated: bool = False
) -> tuple[Bound, ...]:
    """All bounds whose conditions hold."""
    classes, equal = tastes.clusters, len(set(tastes.items)) == 1
    alone = necessary_if_adaptive(items, epsilon, tastes, wrong)
    found = [Bound("proof, from privacy alone", alone or 0, "share wrong", True, (_SHARES,))]
    if not public_rated:
        needed = necessary_users(items, rated, epsilon, tastes, wrong) or 0
        given = _SHARES, "the assumed tastes", _PRIVATE
        found.append(Bound("proof, sections 1 to 4", needed, "share wrong", False, given))
    if classes > 1 and equal:
        coin = (f"{classes} equally likely classes of items",)
        exact = theorem_a_5(items, epsilon, classes)
        found.append(Bound("Theorem A.5, corrected", exact, "all right half the time", True, coin))
        if wrong < 1 - 1 / classes:
            share = theorem_a_5(items, epsilon, classes, wrong)
            found.append(Bound("Theorem A.5, corrected", share, "share wrong half the time", True, coin))
        if classes == 2:
            found += _of_two_classes(items, rated, epsilon, public_rated, coin)
    return tuple(one for one in found if one.people > 1)


def _of_two_classes(items: int, rated: int, epsilon: Decimal, public_rated: bool, coin: tuple[str, ...]) -> list[Bound]:
    """The paper's theorems; they are about people who all agree, and hold for all tastes, since noisier ratings tell less."""
    question: Question = "all right half the time"
    found = [Bound("Theorem 3.3, corrected", theorem_3_3(items, epsilon), question, True, coin)]
    if public_rated:
        return found
    private = (*coin, _PRIVATE)
    if rated == 1:
        one = (*private, "one rating per person")
        adaptive, bit = theorem_6_1(items, epsilon), theorem_4_3(items)
        found.append(Bound("Theorem 6.1, corrected", adaptive, question, True, one))
        found.append(Bound("Theorem 4.3, corrected", bit, question, False, (*one, "one bit per person")))
    found.append(Bound("Theorem 4.8, corrected", theorem_4_8(items, rated, epsilon), question, False, private))
    if float(epsilon) < math.log(2):
        size, small = theorem_4_10(items, rated, epsilon), (*private, "ε below ln 2")
        found.append(Bound("Theorem 4.10 with its proof's constants", size, question, False, small))
    own = exact_half_the_time(items, rated, epsilon)
    return [*found, Bound("proof, sections 1 to 3", own, question, False, private)]


def telling(bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Those that say something: not fewer people than a bound with no more conditions."""
    return tuple(one for one in bounds if not any(_says_more(other, one) for other in bounds))


def largest(bounds: tuple[Bound, ...], question: Question, adaptive: bool) -> Bound | None:
    """The bound that asks for the most people; for questions that may depend on answers, of those that hold there too."""
    fit = [one for one in bounds if one.question == question and (one.adaptive or not adaptive)]
    return max(fit, key=lambda one: one.people, default=None)


def _says_more(one: Bound, other: Bound) -> bool:
    """Whether one bound is about the same question, under no more conditions, and larger."""
    fewer = set(one.conditions) <= set(other.conditions) and (one.adaptive or not other.adaptive)
    return one.question == other.question and fewer and one.people > other.people


_SHARES = "the assumed shares of classes"
_PRIVATE = "it is private which items a person rated"

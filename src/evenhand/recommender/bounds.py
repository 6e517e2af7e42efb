"""How many people a campaign takes at least, whatever the method, and how many are proven to be enough.

The theorems are those of the paper with their constants, and with its errors put right (``docs/proofs/papers.md``). They are
about items of two equally likely classes, people who each rated ``rated`` items chosen at random and like exactly those of
one class, one ε-private report each, and the whole catalogue right with probability 1/2. `necessary_users` is for any
tastes, and stronger. Information is in nats. `proven_bounds` has each bound with its question and its conditions.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import strength

_LARGE = 300.0  # beyond this ε, bounds that grow with e^ε say nothing, and would overflow


def necessary_users(items: int, rated: int, epsilon: Decimal, tastes: Tastes, wrong: float) -> int | None:
    """Without so many people, no method expects to put at most the share ``wrong`` of items into a wrong class.

    None where ratings do not depend on the class: then no number of people is enough.

    Each report tells at most `report_information`; so many classes, up to their names, are N (H - h(wrong) - wrong ln(L-1)) - ln L!
    nats to learn, H being the entropy of an item's class and h that of a coin.

    Conditions: items' classes are independent, with the given shares; which items a person rated is private and does not
    depend on classes; one report per person, and no question depends on others' answers. Any ε and any number of ratings.

    Reference: ``docs/proofs/recommender-limits.md``; sharpens banerjee, Theorem 4.10.
    """
    if len(tastes.items) > 1 and all(len(set(row)) == 1 for row in tastes.like):
        return None
    return _needed(items, tastes, wrong, report_information(items, rated, epsilon, tastes))


def _needed(items: int, tastes: Tastes, wrong: float, told: float) -> int:
    """How many reports that tell so much at most are needed to put the share ``wrong`` of items into wrong classes."""
    classes = len(tastes.items)
    if classes == 1:
        return 1
    wrong = min(wrong, 1 - 1 / classes)
    entropy = -sum(share * math.log(share) for share in tastes.items)
    unknown = _coin(wrong) + wrong * math.log(classes - 1)
    to_learn = items * (entropy - unknown) - math.lgamma(classes + 1)
    return _people(to_learn, told)


def necessary_if_adaptive(items: int, epsilon: Decimal, tastes: Tastes, wrong: float) -> int | None:
    """`necessary_users` from privacy alone: also if questions depend on others' answers, and if it is public which items people rated.

    By the chain rule reports tell at most ε tanh(ε/2) each, whatever was answered before.
    """
    return _needed(items, tastes, wrong, private_information(epsilon))


def exact_half_the_time(items: int, rated: int, epsilon: Decimal) -> int:
    """`necessary_users` for the question of the paper's theorems: two equally likely classes, all items right with probability 1/2.

    For people who all agree, whose ratings tell the most.
    """
    return _people(_half_the_time(items), report_information(items, rated, epsilon, Tastes(((1.0, 0.0),))))


def report_information(items: int, rated: int, epsilon: Decimal, tastes: Tastes) -> float:
    """The most that one ε-private report tells about the items' classes.

    The least of three: what privacy lets through (`private_information`); φ sinh²(ε/2) r² w/N, where r is the correlation
    of an item's class with its rating and φ = (1 - (1+ε) e^-ε) / (1 - e^-ε)², between 1/2 and 1; and what w ratings tell.
    """
    size = float(epsilon)
    like, shares = np.array(tastes.like), np.array(tastes.items)
    overall = like @ shares
    spread = np.maximum(overall * (1 - overall), 1e-300)
    correlation = float((((like - overall[:, None]) ** 2 @ shares) / spread).max())
    within = np.array([[_coin(rate) for rate in row] for row in tastes.like]) @ shares
    each = float(np.array(tastes.people) @ (np.array([_coin(rate) for rate in overall]) - within))
    scarce = _curvature(size) * math.sinh(min(size, _LARGE) / 2) ** 2 * correlation * rated / items
    return min(private_information(epsilon), scarce, rated * each)


def private_information(epsilon: Decimal) -> float:
    """The most that an ε-private report tells about anything: ε tanh(ε/2).

    Reference: banerjee, Lemma 3.1, which has ε.
    """
    return float(epsilon) * strength(float(epsilon))


def theorem_3_3(items: int, epsilon: Decimal) -> int:
    """The bound from privacy alone, also if questions depend on earlier answers: (N/2 - 1) ln 2 / (ε tanh(ε/2)).

    Corrected: at the paper's N/(ε log2 e) people, Fano's inequality says nothing.
    """
    return _people(_half_the_time(items), private_information(epsilon))


def theorem_4_3(items: int) -> int:
    """One rating per person, and one bit from each without any privacy: a bit tells at most 1/N.

    Corrected: the information is in nats.
    """
    return _people(_half_the_time(items), 1 / items)


def theorem_4_8(items: int, rated: int, epsilon: Decimal) -> int:
    """A report tells at most e^(2ε) (P[k=1]/2 + P[k>1]), k being how many items two people both rated: N²/w².

    Corrected: in nats. The paper asks for w = o(N), which only its rate needs; the inequality holds for all w.
    """
    once, several, _ = _overlaps(items, rated)
    return _people(_half_the_time(items), math.exp(2 * float(epsilon)) * (once / 2 + several))


def theorem_4_10(items: int, rated: int, epsilon: Decimal) -> int:
    """A report tells at most 2 (e^ε - 1)² w/N + e^(2ε) (E[k; k>1] + P[k>1]), k as in `theorem_4_8`: N²/w.

    Conditions: ε < ln 2, else it is an error. The paper's w = o(N^(1/3)) makes the second term negligible; here it is counted.

    Corrected: the paper says "a constant c"; this is its proof's, with equations 15 and 16, in nats.
    """
    size = float(epsilon)
    if size >= math.log(2):
        raise UsageError(
            f"epsilon={epsilon}: Theorem 4.10 is for epsilon below ln 2 = 0.693; necessary_users is for any epsilon."
        )
    _, several, items_of_several = _overlaps(items, rated)
    told = 2 * math.expm1(size) ** 2 * rated / items + math.exp(2 * size) * (items_of_several + several)
    return _people(_half_the_time(items), told)


def theorem_6_1(items: int, epsilon: Decimal) -> int:
    """One rating per person, questions that may depend on all earlier answers: N log N.

    With v = φ (e^ε - 1)²/(4N), φ as in `report_information`, and D nats told so far, a report tells at most
    v (D/b - ln(1 - 2b)/(2b)) for each 0 < b < 1/2; adding up, T reports tell at most -ln(1 - 2b)/2 ((1 + v/b)^T - 1).

    Corrected: the paper's Lemma 6.4 bounds a variance given one outcome by the information averaged over outcomes. The bound
    above is linear in the information given the outcome, so that averaging it is right (``docs/proofs/recommender-limits.md``).
    """
    size = float(epsilon)
    each = _curvature(size) * math.expm1(min(size, _LARGE)) ** 2 / (4 * items)
    to_learn = _half_the_time(items)
    offsets = [(b, -math.log1p(-2 * b) / 2) for b in (step / 200 for step in range(1, 100))]
    most = max(math.log1p(to_learn / offset) / math.log1p(each / b) for b, offset in offsets)
    return max(1, math.ceil(most * (1 - 1e-9)))


def theorem_a_5(items: int, epsilon: Decimal, classes: int = 2, wrong: float = 0.0, failure: float = 0.5) -> int:
    """Some items may be wrong: at most the share ``wrong``, but for a probability of ``failure``; also for adaptive questions.

    Fano's inequality with (1 - failure) (ln M - ln V) - ln 2 nats to learn: M = K^N/K! clusterings, V of them near one.

    Corrected: the paper's Chernoff bound on V fails from nine classes on (K = 10: it wants 2.70 N nats where ln M is
    2.30 N), and it divides V by K!, though all namings of a near clustering may be far but for one. V is computed.
    """
    if not (classes >= 2 and 0 <= wrong < 1 - 1 / classes and 0 < failure < 1):
        raise UsageError(
            f"classes={classes}, wrong={wrong}, failure={failure}: expected two or more classes, a share wrong below that of "
            "guessing, and a probability of failure between 0 and 1."
        )
    moved = np.arange(math.floor(wrong * items) + 1)
    logs = [_log_choose(items, int(d)) + d * math.log(classes - 1) for d in moved]
    near = max(logs) + math.log(sum(math.exp(log - max(logs)) for log in logs))
    clusterings = items * math.log(classes) - math.lgamma(classes + 1)
    return _people((1 - failure) * (clusterings - near) - math.log(2), private_information(epsilon))


def sufficient_users(
    items: int, rated: int, epsilon: Decimal, tastes: Tastes, theta: float, questions: int = 1
) -> int | None:
    """Users for which MaxSense, or with several questions Multi-MaxSense, is exact with probability 1 - 1/N; None where the classes look alike to it.

    300 N² (ln 2 + 2 ln N) / (ε̂² δ² w θ (1 - θ/w)²), ε̂ = 2 tanh(ε/2), δ the least difference between
    classes of like rates weighted by e^(-θ v). Asymptotic in N, and very conservative. With Q questions of ε/Q each, about disjoint sets, ε̂ is
    that of ε/Q, and Q U stands for U: an item is in one of a person's sets at most, so that what people add to its score is
    independent and at most 1 as before (Theorem 5.3, which asks for Q <= w/θ; its rate 1/ε is for Q near the best, from ε = 1 on).

    Reference: banerjee, Theorems 5.1 and 5.3, with 300 for its 75: its Δ lacks a factor of one half.
    """
    weights = np.array(tastes.people) * np.exp(-theta * tastes.like_rates)
    scores = np.sort(weights @ np.array(tastes.like))
    separation = float(np.diff(scores).min()) if len(scores) > 1 else 0.0
    if separation <= 1e-12 or theta >= rated or questions * theta > rated:
        return None
    contrast = 2 * strength(float(epsilon) / questions)
    logs = math.log(2) + 2 * math.log(items)
    below = questions * contrast**2 * separation**2 * rated * theta * (1 - theta / rated) ** 2
    return math.ceil(300 * items**2 * logs / below)


def _half_the_time(items: int) -> float:
    """What Fano's inequality asks of two classes, to be all right with probability 1/2."""
    return (items / 2 - 1) * math.log(2)


def _people(to_learn: float, told: float) -> int:
    """Less a little first: rounding may not make the bound larger than it is."""
    return max(1, math.ceil(to_learn / told * (1 - 1e-9)))


def _curvature(size: float) -> float:
    """φ: for x >= e^-ε, x ln x - x + 1 is at most this times (x - 1)²."""
    if size <= 1e-3:  # the first terms of the series, as the formula cancels
        return 0.5 + size / 6
    return (1 - (1 + size) * math.exp(-size)) / math.expm1(-size) ** 2


def _coin(chance: float) -> float:
    """The entropy of a coin."""
    return -sum(p * math.log(p) for p in (chance, 1 - chance) if p > 0)


def _overlaps(items: int, rated: int) -> tuple[float, float, float]:
    """With k the number of items that two people both rated: P[k=1], P[k>1] and E[k; k>1]."""
    whole = _log_choose(items, rated)
    chances = {
        both: math.exp(_log_choose(rated, both) + _log_choose(items - rated, rated - both) - whole)
        for both in range(max(1, 2 * rated - items), rated + 1)
    }
    several = {both: chance for both, chance in chances.items() if both > 1}
    return chances.get(1, 0.0), sum(several.values()), sum(both * chance for both, chance in several.items())


def _log_choose(whole: int, part: int) -> float:
    return math.lgamma(whole + 1) - math.lgamma(part + 1) - math.lgamma(whole - part + 1)


Question = Literal["share wrong", "share wrong half the time", "all right half the time"]


@dataclass(frozen=True)
class Bound:
    """Fewer than so many people are not enough, for one question: a share of items wrong, on average or half the time, or all items right.

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
    """Those that say something, and are shown: not fewer people than a bound with no more conditions."""
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

"""The selection of hidden group names by its exact law, and broken twins of it.

The audit of a whole release sees too few outputs to test a δ of 10⁻⁶. Here a table is one user among others: t groups, of which
some are shared with others who give each the same support, and some are the user's alone. Which groups of either kind pass does
not matter, only how many: the law of these two numbers is a product of binomial laws, and is compared exactly. Numbers that share one
(ε, δ) with the names are one normal variable more, which the user moves as far as they may, in cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise

from evenhand.audit.mechanism import Claim, KnownLaw, Law, Pair
from evenhand.noise import UNIT, NormalThreshold, Round, ShownCounts, TruncatedGeometric, Way, counted
from evenhand.noise.normal import quantile, upper_tail
from evenhand.noise.shown_counts import chances

Chance = Callable[[Round, int], float]
Weight = Callable[[Round, int], int]


@dataclass(frozen=True)
class Alone:
    """One user in ``shared`` groups of support ``others`` and in ``lonely`` ones of no other support; there or not."""

    shared: int
    lonely: int
    others: int
    present: bool = True


def chance(look: Round, support: int) -> float:
    """P(a group of this support passes), from the formulas."""
    if support <= 0:
        return 0.0
    if isinstance(look, NormalThreshold):
        return upper_tail((look.threshold - support) / look.scale)
    assert isinstance(look, TruncatedGeometric)
    chances = counted.law(look.factor, look.step)
    return float(Fraction(chances[support], 2**counted.BITS)) if support < len(chances) else 1.0


def law(
    rounds: Sequence[Round],
    table: Alone,
    chance: Chance = chance,
    weight: Weight | None = None,
    rho: float = 0.0,
) -> Law:
    """How many shared and how many lonely groups pass in each round; those that have passed are dropped before the next.

    Then, with a ρ, the cell of a number with normal noise.
    """
    if not rounds:
        return _cells(math.sqrt(2 * rho) if table.present else 0.0) if rho else {(): 1.0}
    look, *others = rounds
    groups = table.shared + table.lonely
    own = (weight or type(look).weight)(look, groups) if table.present and groups else 0
    shared = _binomial(table.shared, chance(look, table.others + own))
    lonely = _binomial(table.lonely, chance(look, own))
    result: dict[Hashable, float] = {}
    for a, p in enumerate(shared):
        for b, q in enumerate(lonely):
            rest = replace(table, shared=table.shared - a, lonely=table.lonely - b)
            later: Law = law(others, rest, chance, weight, rho) if p * q else {(): 1.0}
            result |= {((a, b), then): p * q * float(later[then]) for then in later}
    return result


def _binomial(n: int, p: float) -> list[float]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def _cells(mean: float) -> Law:
    """The law of a normal variable of variance 1, in cells."""
    tails = [1.0, *(upper_tail(edge / 3 - mean) for edge in range(-15, 16)), 0.0]
    return {cell: low - high for cell, (low, high) in enumerate(pairwise(tails))}


def pairs(way: Way) -> tuple[Pair, ...]:
    """Users in one, some and as many groups as may count, others' support below, at and above what is needed."""
    look = way.rounds[-1]
    if isinstance(look, NormalThreshold):
        limit, step = look.threshold, look.scale
    elif isinstance(look, ShownCounts):
        limit, step = look.reach + 1, float(look.noise.scale)
    else:
        assert isinstance(look, TruncatedGeometric)
        limit, step = round(look.needed), 1 / math.log(look.factor)
    found = []
    for groups in sorted({1, min(2, way.groups), way.groups}):
        for lonely in sorted({0, groups // 2, groups}):
            for distance in (-8, -5, -3, -1, 0, 2, 5) if lonely < groups else (0,):
                table = Alone(groups - lonely, lonely, max(1, limit + round(distance * step)))
                name = f"{groups} groups, {lonely} of them alone, others {distance} from the threshold"
                found.append(Pair(name, table, replace(table, present=False)))
    return tuple(found)


def _ways() -> Iterator[tuple[str, Way]]:
    for groups, epsilon, delta in ((1, "0.2", "1e-6"), (3, "0.5", "1e-3"), (12, "2", "1e-9")):
        given = groups, Decimal(epsilon), Decimal(delta)
        yield f"truncated geometric, k = {groups}", TruncatedGeometric.way(*given)
        yield f"weighted Gaussian, k = {groups}", NormalThreshold.way(*given, rounds=1)
        yield f"weighted Gaussian, two rounds, k = {groups}", NormalThreshold.way(*given)
        for rounds in (1, 2) if groups < 10 else ():  # the law of many would be large
            beside = NormalThreshold.way(*given, rounds, Fraction(1, 5))
            yield f"weighted Gaussian with numbers, {rounds} rounds, k = {groups}", beside


def shown_law(look: ShownCounts, table: Alone) -> Law:
    """What is shown of the one group that a user supports: its noisy number, or nothing."""
    n = (table.others if table.shared else 0) + table.present
    if not n:
        return {None: 1.0}
    weights = chances(look.factor, look.reach)
    values = {n + x: float(Fraction(w, sum(weights))) for x, w in enumerate(weights, -look.reach)}
    shown: dict[Hashable, float] = {value: p for value, p in values.items() if value > look.reach}
    return shown | {None: 1 - math.fsum(shown.values())}


def _counts() -> Iterator[tuple[Way, ShownCounts]]:
    for epsilon, delta in (("0.2", "1e-6"), ("2", "1e-3")):
        way = ShownCounts.way(1, Decimal(epsilon), Decimal(delta), 2**12)
        assert way is not None
        (look,) = way.rounds
        assert isinstance(look, ShownCounts)
        yield way, look


def honest() -> Iterator[tuple[KnownLaw, tuple[Pair, ...]]]:
    """As they are."""
    for name, way in _ways():
        yield KnownLaw(name, _claim(way), partial(law, way.rounds, rho=float(way.rho))), pairs(way)
    for way, look in _counts():
        yield KnownLaw(f"numbers of supporters, ε = {way.epsilon}", _claim(way), partial(shown_law, look)), pairs(way)


def broken() -> Iterator[tuple[KnownLaw, tuple[Pair, ...]]]:
    """One mistake each."""
    for way, counts in _counts():
        less = partial(shown_law, replace(counts, reach=counts.reach - 1))
        yield KnownLaw(f"numbers of supporters, ε = {way.epsilon}, one less needed", _claim(way), less), pairs(way)
        double = partial(shown_law, replace(counts, factor=counts.factor**2))
        yield KnownLaw(f"numbers of supporters, ε = {way.epsilon}, half the noise", _claim(way), double), pairs(way)
    for name, way in _ways():
        look, claim = way.rounds[0], _claim(way)
        if way.rho:
            again = NormalThreshold.way(way.groups, way.epsilon, way.delta, 1, Fraction(99, 100)).rho
            twice = partial(law, way.rounds, rho=float(again))
            yield KnownLaw(f"{name}, paid for by nobody", claim, twice), pairs(way)
        elif len(way.rounds) > 1:
            once = NormalThreshold.way(way.groups, way.epsilon, way.delta, rounds=1).rounds
            yield KnownLaw(f"{name}, each with all of ε and δ", claim, partial(law, once * 2)), pairs(way)
        elif isinstance(look, TruncatedGeometric):
            yield (
                KnownLaw(f"{name}, truncation forgotten", claim, partial(law, [look], chance=_untruncated)),
                pairs(way),
            )
            one_more = partial(law, [look], chance=lambda look, support: chance(look, support + 1 if support else 0))
            yield KnownLaw(f"{name}, one supporter too many", claim, one_more), pairs(way)
            if way.groups > 1:
                whole = replace(look, step=look.step * way.groups)
                yield KnownLaw(f"{name}, δ for each group", claim, partial(law, [whole])), pairs(way)
        elif isinstance(look, NormalThreshold) and way.groups > 1:
            unweighted = partial(law, [look], weight=lambda look, groups: UNIT)
            yield KnownLaw(f"{name}, without weights", claim, unweighted), pairs(way)
            lower = replace(look, threshold=UNIT + math.ceil(look.scale * quantile(float(way.delta))))
            low = Way(way.epsilon, way.delta, way.groups, (lower,))
            yield KnownLaw(f"{name}, no union bound", claim, partial(law, [lower])), pairs(low)


def _claim(way: Way) -> Claim:
    return Claim(float(way.epsilon), float(way.delta))


def _untruncated(look: Round, support: int) -> float:
    """Laplace noise where it was to be truncated."""
    assert isinstance(look, TruncatedGeometric)
    q, needed = 1 / float(look.factor), math.ceil(look.needed) - support
    if support <= 0:
        return 0.0
    return q**needed / (1 + q) if needed > 0 else 1 - q ** (1 - needed) / (1 + q)

"""The bounds on how many people it takes: by hand, by brute force on small catalogues, and in order."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

from evenhand.guarantee import UsageError
from evenhand.recommender.bounds import (
    necessary_users,
    private_information,
    report_information,
    sufficient_users,
    theorem_3_3,
    theorem_4_3,
    theorem_4_8,
    theorem_4_10,
    theorem_6_1,
    theorem_a_5,
)
from evenhand.recommender.planning import TARGET, plan
from evenhand.recommender.tastes import PRESETS, Tastes, preset

AGREED = Tastes(((1.0, 0.0),))
HALF = Decimal("0.5")
SIZES = [(100, 10), (1000, 4), (10_000, 10)]


def test_the_paper_s_theorems_by_hand() -> None:
    """N = 10,000, w = 10, ε = 0.5: 28,000 people by privacy alone, 3.0 million by Theorem 4.10."""
    nats = 4999 * math.log(2)
    assert theorem_3_3(10_000, HALF) == math.ceil(nats / (0.5 * math.tanh(0.25))) == 28_296
    assert theorem_4_3(10_000) == math.ceil(nats * 10_000)
    apart = math.comb(9990, 10) / math.comb(10_000, 10)
    once = 10 * math.comb(9990, 9) / math.comb(10_000, 10)
    weak = math.e * (once / 2 + 1 - apart - once)
    assert theorem_4_8(10_000, 10, HALF) == pytest.approx(nats / weak, rel=1e-6)
    first = 2 * (math.exp(0.5) - 1) ** 2 * 10 / 10_000
    rest = math.e * (1 + 0.01 - (1 + 200 / 9981) * apart)  # equations 15 and 16
    assert theorem_4_10(10_000, 10, HALF) == pytest.approx(nats / (first + rest), rel=1e-6)
    assert theorem_4_10(10_000, 10, HALF) == pytest.approx(3.0e6, rel=0.02)
    assert theorem_a_5(10_000, HALF) == pytest.approx(theorem_3_3(10_000, HALF), rel=1e-3)


def test_sufficient_users_with_the_corrected_constant() -> None:
    """N=200, w=40, ε=1, like rates .8/.2: the formula by hand, and about 3e7 as in the method page."""
    theta, hat = 1.0, 2 * (math.e - 1) / (math.e + 1)
    separation = math.exp(-0.5) * 0.6
    by_hand = 300 * 200**2 * (math.log(2) + 2 * math.log(200)) / (hat**2 * separation**2 * 40 * (1 - 1 / 40) ** 2)
    found = sufficient_users(200, 40, Decimal(1), preset("popular"), theta)
    assert found == math.ceil(by_hand)
    assert found == pytest.approx(3e7, rel=0.1)
    assert sufficient_users(200, 40, Decimal(1), preset("mirrored"), theta) is None


def _told(channel: NDArray[np.float64], sketch: NDArray[np.float64]) -> float:
    """The information of a sketch about equally likely catalogues, from the law of ratings given the catalogue."""
    given = channel @ sketch
    return float((given * np.log(given / given.mean(axis=0))).sum() / len(given))


def _channel(items: int, rated: int, like: tuple[float, float]) -> tuple[NDArray[np.float64], list[int]]:
    """P(which items are rated, and how | the catalogue), for every catalogue of two classes; and the likes in each."""
    seen = [
        (chosen, marks)
        for chosen in itertools.combinations(range(items), rated)
        for marks in itertools.product((0, 1), repeat=rated)
    ]
    law = [
        [
            math.prod(like[z[i]] if mark else 1 - like[z[i]] for i, mark in zip(chosen, marks, strict=True))
            for chosen, marks in seen
        ]
        for z in itertools.product((0, 1), repeat=items)
    ]
    return np.array(law) / math.comb(items, rated), [sum(marks) for _, marks in seen]


@pytest.mark.parametrize(("items", "rated"), [(3, 1), (3, 2), (4, 2), (4, 3), (3, 3)])
@pytest.mark.parametrize("like", [(0.0, 1.0), (0.2, 0.8), (0.1, 0.5)])
def test_no_private_report_tells_more_than_the_bound(items: int, rated: int, like: tuple[float, float]) -> None:
    """All the mechanisms that matter on small catalogues: any set of ratings favoured by a factor of e^ε.

    The bound is nearly reached (``closest``): one that is smaller by a fifth would be refuted here for w = 1 and w = N.
    """
    random, closest = np.random.default_rng(items * rated), 0.0
    channel, likes = _channel(items, rated, like)
    for epsilon in (0.2, 0.5, 1.0, 2.0, 4.0):
        bound = report_information(items, rated, Decimal(str(epsilon)), Tastes((like,)))
        favoured = [np.array(likes) > cut for cut in range(rated)]
        favoured += [random.random(len(likes)) < share for share in random.random(60)]
        for chosen in favoured:
            ones = np.where(chosen, math.exp(epsilon), 1) / (1 + math.exp(epsilon))
            told = _told(channel, np.stack([ones, 1 - ones], axis=1))
            assert told <= bound
            closest = max(closest, told / bound)
        for letters in (3, 5):
            sketch = np.ones((len(likes), letters))
            sketch[np.arange(len(likes)), random.integers(0, letters, len(likes))] = math.exp(epsilon)
            assert _told(channel, sketch / sketch.sum(axis=1, keepdims=True)) <= bound
    assert closest > (0.8 if rated in (1, items) and like != (0.1, 0.5) else 0.4)


@pytest.mark.parametrize(("items", "rated"), SIZES)
def test_bounds_are_in_order(items: int, rated: int) -> None:
    """The sharper bound asks for more than the paper's, and a method that works for more than any bound."""
    strong = necessary_users(items, rated, HALF, AGREED, 0.0)
    assert strong is not None
    weaker = [theorem_3_3(items, HALF), theorem_4_8(items, rated, HALF), theorem_4_10(items, rated, HALF)]
    assert max(weaker) <= strong
    if rated**3 < items / 8:  # where the paper's second step is worth it
        assert weaker == sorted(weaker)
    for tastes in PRESETS.values():
        for epsilon in ("0.1", "0.5", "1", "3", "8"):
            found = plan(items, rated, epsilon, tastes)
            assert found.necessary is not None
            for prospect in found.prospects:
                assert prospect.needed is None or found.necessary <= prospect.needed
            assert found.sufficient is None or found.necessary <= found.sufficient


def test_bounds_move_the_right_way() -> None:
    for one in (theorem_3_3, theorem_6_1):
        assert one(1000, HALF) < one(2000, HALF)
        assert one(1000, Decimal("0.25")) > one(1000, HALF)
    for two in (theorem_4_8, theorem_4_10):
        assert two(1000, 5, HALF) < two(2000, 5, HALF)
        assert two(1000, 5, HALF) > two(1000, 10, HALF)
        assert two(1000, 5, Decimal("0.25")) > two(1000, 5, HALF)
    assert theorem_4_3(10) < theorem_4_3(20)
    assert theorem_a_5(1000, HALF, wrong=0.1) < theorem_a_5(1000, HALF) < theorem_a_5(1000, HALF, failure=0.1)
    cases = ((5, AGREED, 0.0), (5, AGREED, 0.05), (50, preset("popular"), 0.05), (50, AGREED, 0.05))
    needed = [necessary_users(1000, rated, Decimal(1), tastes, wrong) or 0 for rated, tastes, wrong in cases]
    assert needed == sorted(needed, reverse=True)


def test_a_5_never_asks_for_more_than_there_is_to_learn() -> None:
    """The paper's form does from nine classes on."""
    for classes in (2, 8, 9, 10, 40):
        paper = 1000 * classes * (1 - 1 / classes) ** 2 / 3
        most = 1000 * math.log(classes)
        assert theorem_a_5(1000, HALF, classes, failure=1e-9) * private_information(HALF) <= most + 1
        assert (paper > most) == (classes >= 9)


def test_adaptive_bound_by_its_recursion() -> None:
    """The people of Theorem 6.1 are told less than half the catalogue, whichever b is taken."""
    items, told = 1000, 0.0
    curvature = (1 - 1.5 * math.exp(-0.5)) / (1 - math.exp(-0.5)) ** 2
    each = curvature * math.expm1(0.5) ** 2 / (4 * items)
    for _ in range(theorem_6_1(items, HALF) - 1):
        told += each * min(told / b - math.log(1 - 2 * b) / (2 * b) for b in (0.1, 0.2, 0.3, 0.4, 0.45, 0.495))
    assert told < 499 * math.log(2)
    assert theorem_6_1(10**6, HALF) / theorem_6_1(10**3, HALF) > 1000  # more than linear


def test_conditions_are_asked_for() -> None:
    with pytest.raises(UsageError, match="below ln 2"):
        theorem_4_10(1000, 10, Decimal("0.7"))
    for wrong in ({"classes": 1}, {"wrong": 0.5}, {"failure": 1.0}):
        with pytest.raises(UsageError, match="expected two or more classes"):
            theorem_a_5(1000, HALF, **wrong)
    assert necessary_users(100, 10, HALF, Tastes(((0.3, 0.3), (0.9, 0.9))), 0.01) is None
    assert necessary_users(100, 10, HALF, Tastes(((0.3,),)), 0.01) == 1
    for epsilon in ("0.000001", "0.0009999", "0.0010001", "1000"):
        assert (necessary_users(100, 10, Decimal(epsilon), AGREED, TARGET) or 0) >= 1
        assert theorem_6_1(100, Decimal(epsilon)) >= 1

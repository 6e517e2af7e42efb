"""Every sketch is ε-private: exact probabilities of every report under every pair of inputs, with no tolerance.

The code under test is the client's own, run under all outcomes of its coins. Each check has broken twins that it
must catch.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.recommender.at_home import answer, stream
from evenhand.recommender.at_home.coins import Coins, flip_threshold
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.messages import SKETCHES, Report, Task, Token
from recommender_laws import all_ratings, law_of, power_below, worst_ratio

ITEMS = 4
INPUTS = list(all_ratings(ITEMS))


@pytest.fixture(autouse=True)
def _remember_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same few queries are derived thousands of times."""
    monkeypatch.setattr(stream, "block", functools.lru_cache(stream.block))


def make_task(sketch: str, epsilon: str = "1", rated: int = 2, public_rated: bool = False) -> Task:
    return Task(
        items=tuple(f"item {number}" for number in range(ITEMS)),
        sketch=sketch,
        epsilon=Decimal(epsilon),
        rated=rated,
        tokens=8,
        pool=8,
        theta=Decimal(1) if SKETCHES[sketch].senses else None,
        questions=2 if SKETCHES[sketch].several else 1,
        public_rated=public_rated,
        beacon=bytes(32),
    )


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_no_report_tells_two_inputs_apart_by_more_than_epsilon(sketch: str, epsilon: str) -> None:
    task = make_task(sketch, epsilon)
    bound = power_below(task.epsilon)
    ratios = [worst_ratio(task, serial, INPUTS) for serial in range(task.tokens)]
    assert all(ratio is not None and ratio <= bound for ratio in ratios)
    # The bound is used, not just kept: somewhere the ratio comes close to e^ε.
    assert max(ratio or 0 for ratio in ratios) > bound * Fraction(999, 1000)


@pytest.mark.parametrize("serial", range(4))
def test_public_rated_items_are_not_told_by_the_report(serial: int) -> None:
    """Any two inputs, also with other rated items: what such a task takes to be public, it has from elsewhere."""
    task = make_task("pairwise", public_rated=True)
    ratio = worst_ratio(task, serial, INPUTS)
    assert ratio is not None
    assert ratio <= power_below(task.epsilon)


@pytest.mark.parametrize("sketch", SKETCHES)
def test_ratings_that_cannot_be_used_change_no_law(sketch: str) -> None:
    task = make_task(sketch)
    junk: dict[Any, Any] = {0: None, 1: "yes", 2: 1, ITEMS: True, -1: True, 10**30: False, "item 3": True, None: False}
    token = Token(task.short_id, 0, bytes(8))
    for ratings in ({}, {3: True}, {3: False}):
        with_junk, without = (
            law_of(partial(lambda x, coins: answer(task, token, x, coins).answer, x))
            for x in ({**junk, **ratings}, ratings)
        )
        assert with_junk == without


def unflipped(task: Task, token: Token, ratings: Mapping[int, bool], coins: Coins) -> Report:
    """Broken: sends the true bits."""
    sketch = sketch_for(task)
    bits = sketch.bits(sketch.query(token.serial, sorted(ratings)), ratings, coins)
    return Report(task.short_id, token.serial, token.tag, sum(bit << place for place, bit in enumerate(bits)))


def half_as_private(task: Task, token: Token, ratings: Mapping[int, bool], coins: Coins) -> Report:
    """Broken: flips as if ε were twice as large."""
    twice = dataclasses.replace(task, epsilon=task.epsilon * 2)
    return answer(twice, token, ratings, coins)


def whole_epsilon_each(task: Task, token: Token, ratings: Mapping[int, bool], coins: Coins) -> Report:
    """Broken: spends ε on each of several questions."""
    sketch = sketch_for(task)
    bits = sketch.bits(sketch.query(token.serial, sorted(ratings)), ratings, coins)
    threshold = flip_threshold(task.epsilon)
    kept = sum((bit != coins.chance(threshold)) << place for place, bit in enumerate(bits))
    return Report(task.short_id, token.serial, token.tag, kept)


def silent_without_ratings(task: Task, token: Token, ratings: Mapping[int, bool], coins: Coins) -> Report:
    """Broken: who has no ratings always answers 0."""
    return answer(task, token, ratings, coins) if ratings else Report(task.short_id, token.serial, token.tag, 0)


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("twin", [unflipped, half_as_private, silent_without_ratings])
def test_broken_twins_are_caught(sketch: str, twin: object) -> None:
    task = make_task(sketch)
    ratios = [worst_ratio(task, serial, INPUTS, twin) for serial in range(task.tokens)]  # type: ignore[arg-type]
    assert any(ratio is None or ratio > power_below(task.epsilon) for ratio in ratios)


def test_spending_epsilon_on_every_question_is_caught() -> None:
    task = make_task("multi-maxsense")
    ratios = [worst_ratio(task, serial, INPUTS, whole_epsilon_each) for serial in range(task.tokens)]
    assert any(ratio is None or ratio > power_below(task.epsilon) for ratio in ratios)


@pytest.mark.parametrize("sketch", ["maxsense", "multi-maxsense", "projection"])
def test_who_has_more_than_the_cap_subsamples_uniformly(sketch: str) -> None:
    """A person who likes everything answers like an average over people who like two of the four items."""
    task = make_task(sketch)
    everything = dict.fromkeys(range(ITEMS), True)
    pairs = [{i: True, j: True} for i in range(ITEMS) for j in range(i)]
    for serial in range(task.tokens):
        token = Token(task.short_id, serial, bytes(8))
        whole, *parts = (
            law_of(partial(lambda t, x, coins: answer(task, t, x, coins).answer, token, x))
            for x in (everything, *pairs)
        )
        for report in whole:
            assert whole[report] == sum(part.get(report, 0) for part in parts) / len(parts)


@given(st.decimals("1e-9", "10000", allow_nan=False, places=9))
@settings(max_examples=200, deadline=None)
def test_coin_is_rounded_toward_more_flipping(epsilon: Decimal) -> None:
    threshold = flip_threshold(epsilon)
    flip = Fraction(threshold, 1 << 64)
    assert 0 < flip <= Fraction(1, 2)
    assert (1 - flip) / flip <= power_below(epsilon)
    if threshold > 1:  # and no further than one step: the next smaller multiple of 2^-64 would not do
        less = Fraction(threshold - 1, 1 << 64)
        assert (1 - less) / less > power_below(epsilon)


def test_rounding_the_coin_down_is_caught() -> None:
    epsilon = Decimal(1)
    flip = Fraction(flip_threshold(epsilon) - 1, 1 << 64)
    assert (1 - flip) / flip > power_below(epsilon)

"""What is released under fixed noise is what was kept: values, intervals, verdicts, bounds and debits of some 190 questions.

A change that is meant to alter them writes them anew (``tests/frozen_questions.py`` says how) and says in the changelog what it altered.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from frozen_questions import KEPT, answers

_CLOSE = 2e-5
"""Relative: libraries add up in another order on another machine."""


def alike(one: Any, other: Any) -> bool:
    """Whether two answers are the same, but for the last digits of their numbers."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, bool) or not isinstance(one, int | float):
        return bool(one == other)
    return isinstance(other, int | float) and math.isclose(one, other, rel_tol=_CLOSE, abs_tol=1e-9)


def test_answers_under_fixed_noise_are_what_they_were() -> None:
    kept = {one.pop("question"): one for one in map(json.loads, KEPT.read_text(encoding="utf-8").splitlines())}
    now = {name: json.loads(json.dumps(answer)) for name, answer in answers()}
    assert kept.keys() == now.keys()
    moved = [f"{name}: {kept[name]} -> {now[name]}" for name in kept if not alike(kept[name], now[name])]
    assert not moved, f"{len(moved)} of {len(kept)} answers moved:\n" + "\n".join(moved)


@pytest.mark.parametrize("key", ["value", "interval", "bounding", "paid", "usable"])
def test_a_moved_answer_is_noticed(key: str) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8").splitlines()[0])
    moved = not kept[key] if key == "usable" else [*kept[key][:-1], 1.001 * kept[key][-1] + 1e-6]
    assert alike(kept, dict(kept))
    assert not alike(kept, {**kept, key: moved})

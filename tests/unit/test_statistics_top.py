"""The top k: noise, margins, hidden names, and what a release says."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.bounding import Lost
from evenhand.noise import Laplace, TopK, seam
from evenhand.profiles import Support
from evenhand.release import Noisy
from evenhand.release.intervals import noise_only
from evenhand.session import Drafts
from evenhand.statistics import Top
from evenhand.statistics.top import Limits, best_groups
from watch import watch

DELTA = Decimal("1e-6")


def _table(groups: dict[str, int], per_user: int = 1, **options: Any) -> eh.Table:
    """So many users in each group, the same users in ``per_user`` groups; and a second row for each pair."""
    names = list(groups)
    rows = [(f"{name} {user}", names[(place + step) % len(names)]) for place, name in enumerate(names)
            for user in range(groups[name]) for step in range(per_user) for _ in range(2)]  # fmt: skip
    return eh.read(pa.table({"u": [row[0] for row in rows], "g": [row[1] for row in rows]}), user="u", **options)


CITIES = {"north": 40, "south": 400, "east": 300, "west": 200, "far": 1}


@pytest.mark.parametrize("groups", [None, 1])
def test_the_highest_scores_are_chosen_in_order(groups: int | None) -> None:
    with seam.replaced(seam.silent):
        assert TopK(3, 1, groups, Decimal(1)).choose_top([5, 9, 1, 7]) == [1, 3, 0]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "20"])
@pytest.mark.parametrize("groups", [None, 1, 3])
def test_the_margin_keeps_names_of_one_user_out(epsilon: str, groups: int | None) -> None:
    """The probability that any name of one user alone is shown, from the laws of the noise; and not wastefully small."""
    top = TopK(5, 2, groups, Decimal(epsilon))
    scale, delta = float(top.scale), float(DELTA)

    def leaks(margin: int) -> float:
        if top.at_once:
            q = math.exp(-1 / scale)
            return top.scores * q**margin / (1 + q)
        return (1 + math.exp(float(epsilon))) * top.candidates * top.count * math.exp(-margin / scale) / 2

    margin = top.margin(DELTA)
    assert leaks(margin) <= delta
    assert leaks(margin - 1) > delta * 0.99


def test_hidden_names_stop_at_the_next_score_and_the_margin() -> None:
    top = TopK(3, 1, None, Decimal(1))
    margin = top.margin(DELTA)
    rest = [10] * top.candidates  # the last of them does not take part
    with seam.replaced(seam.silent):
        assert top.choose_top([12 + margin, 12 + margin, *rest[2:], 10], DELTA) == [0, 1]
        assert top.choose_top([11 + margin - 1, *rest[1:], 10], DELTA) == []
        assert top.choose_top([2 + margin, 3], DELTA) == [0]
        assert top.choose_top([], DELTA) == []


@pytest.mark.parametrize(("of", "times"), [("users", 1), ("rows", 2)])
@pytest.mark.parametrize("keys", [None, [*CITIES, "nowhere"]])
def test_the_largest_groups_come_first_with_their_numbers(of: Any, times: int, keys: Any) -> None:
    asked = {"delta": DELTA} if keys is None else {"keys": keys}
    outcome = watch(_table(CITIES), lambda ask: ask.top("g", 2, of=of, epsilon=1, **asked)).outcome
    assert outcome.value.to_dict("list") == {"g": ["south", "east"], of: [400 * times, 300 * times]}
    assert list(outcome.interval.at(0.9).columns) == ["g", of, f"{of}_low", f"{of}_high"]


def test_a_user_in_many_groups_costs_no_more_noise_than_k() -> None:
    """The choice between the two ways: everybody in one group, or in more than are wanted."""
    few = watch(_table(CITIES), lambda ask: ask.top("g", 3, epsilon=1, keys=list(CITIES)))
    many = watch(_table(CITIES, per_user=5), lambda ask: ask.top("g", 3, epsilon=1, keys=list(CITIES)))
    assert (few.outcome.bounding.parameter, few.steps[-1].l1) == (1.0, 1)
    assert (many.outcome.bounding.parameter, many.steps[-1].l1) == (None, 3)
    assert many.outcome.value["users"].tolist() == [941] * 3


def test_few_groups_are_drawn_where_that_forecasts_less_noise() -> None:
    """Everybody in one group: it is no loss. In four of a hundred: a loss, so chosen groups are counted whole. In fifty: none."""
    epsilon, delta = Decimal("0.1"), Decimal("1e-6")
    for hidden in (Decimal(0), delta):
        assert best_groups(Support(np.array([1.0]), np.array([5000.0])), 10, epsilon, hidden) == (1, True)
        groups, counted = best_groups(Support(np.array([4.0]), np.array([5000.0])), 10, epsilon, hidden)
        assert groups is not None
        assert groups <= 4
        assert counted == (groups == 4)
        assert best_groups(Support(np.array([50.0]), np.array([5000.0])), 10, epsilon, hidden) == (None, True)


def test_groups_are_counted_whole_where_the_draw_cuts_users_off() -> None:
    limits = Limits(2, 1, Decimal(0), counted=False)
    with mock.patch("evenhand.statistics.top.chosen_limits", return_value=(limits, Decimal(1))):
        watched = watch(_table(CITIES, per_user=5), lambda ask: ask.top("g", 3, epsilon=1, keys=list(CITIES)))
    choice, counts = watched.steps
    assert (sum(choice.integers), choice.l1) == (2 * 941, 2)
    assert (counts.integers, counts.l1) == ([941] * 3, 3)


def test_numbers_say_what_limits_took() -> None:
    noisy = Noisy([900, 300], Laplace(Fraction(5)))
    plain = Limits(None, 1, Decimal(0)).believed(noisy)
    assert [noise_only(one.interval) for one in plain] == [one.interval for one in plain]
    given = Limits(2, 1, Decimal(0)).believed(noisy)
    assert [one.interval.at(0.95)[1] for one in given] == [math.inf, math.inf]
    lost = Lost(np.ones(1), np.array([500.0]), np.array([1000.0]), np.array([1e3]), np.array([1e3]))
    limits = Limits(None, 4, Decimal("0.1"), lost=lost)
    low, high = limits.believed(noisy)[0].interval.at(0.95)
    assert low < 1350 < high
    assert limits.cuts
    assert limits.believed(noisy)[0].value > 900


def test_names_that_do_not_stand_out_are_not_shown() -> None:
    found = watch(_table({"a": 9, "b": 2}), lambda ask: ask.top("g", 1, epsilon=1, delta=DELTA)).outcome
    assert len(found.value) == 0
    assert list(found.value.columns) == ["g", "users"]
    assert found.details["selection"]["users_needed"] > 9
    assert "no group had enough support" in found.error.basis


def test_under_values_the_largest_are_public() -> None:
    table = _table(CITIES, protects="values", public=["g"])
    for of, most in (("users", 400), ("rows", 800)):
        watched = watch(table, lambda ask, what=of: ask.top("g", 1, of=what, epsilon=1))  # type: ignore[misc]
        assert watched.draft.cost is None
        assert watched.outcome.value.to_dict("list") == {"g": ["south"], of: [most]}
        assert watched.outcome.interval.at(0.9).to_dict("list")[f"{of}_low"] == [most]


def test_what_does_not_fit_is_refused_before_the_debit() -> None:
    ask = Drafts(_table(CITIES))
    for given, complaint in (
        ({"k": 0}, "k=0"),
        ({"k": 6, "keys": list(CITIES)}, "of 5 keys"),
        ({"of": "cars"}, "of='cars'"),
        ({}, "needs delta"),
        ({"bounding": eh.TotalCap(3), "delta": DELTA}, "groups_per_user=1"),
    ):
        with pytest.raises(eh.UsageError, match=complaint):
            ask.top("g", **{"epsilon": 1, **given})  # type: ignore[arg-type]
    with pytest.raises(eh.UsageError, match="groups of its own"):
        ask.ask(Top("g", 3), by="g", epsilon=1)


def test_a_preview_states_the_noise() -> None:
    draft = Drafts(_table(CITIES)).top("g", 3, epsilon=3, groups_per_user=1, keys=list(CITIES))
    assert draft.error.noise == pytest.approx(eh_noise(1.0), rel=0.01)
    assert Drafts(_table(CITIES)).top("g", 3, epsilon=3, keys=list(CITIES)).error.bias == 0.0


def eh_noise(epsilon: float) -> float:
    """The standard deviation of discrete Laplace noise for one count."""
    return 1 / (math.sqrt(2) * math.sinh(epsilon / 2))


def test_rows_of_the_chosen_groups_are_within_their_intervals(tmp_path: Any) -> None:
    """Users have some rows in each of many groups; in their fullest group they have far more than in those that are chosen."""
    source = np.random.default_rng(3)
    user = np.repeat(np.arange(2000), 1 + source.poisson(25, 2000))
    group = np.floor(400 * source.random(len(user)) ** 2.5).astype(np.int64)
    times = source.geometric(0.3, len(user))
    rows = pd.DataFrame({"u": np.repeat(user, times), "g": np.repeat(group, times)})
    session = eh.Session(eh.read(rows, user="u"), eh.Ledger(str(tmp_path / "b.db"), epsilon=10))
    with seam.replaced(seam.silent):
        release = session.top("g", 10, of="rows", keys=list(range(400)), epsilon=1)
    ends, true = release.interval(0.95), rows.g.value_counts()
    held = [low <= true[g] <= high for g, low, high in zip(ends["g"], ends["rows_low"], ends["rows_high"], strict=True)]
    assert sum(held) >= 8, release
    off = [value / true[g] for g, value in zip(release.value["g"], release.value["rows"], strict=True)]
    assert 0.5 < float(np.median(off)) < 1.6

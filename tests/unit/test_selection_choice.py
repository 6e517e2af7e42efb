"""Which mechanism selects hidden group names, and what a release says about it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.noise import NormalThreshold, ShownCounts, TruncatedGeometric, Way
from evenhand.profiles import Histogram, Support, support_of_histogram
from evenhand.statistics.support_choice import BUCKETS, LIMITS, Purse, Purses, chosen_way, doubled, given_way, needed
from evenhand.statistics.support_words import facts, words

HALF = Purse(Decimal("0.5"), Decimal("9e-7"))
PURSES = Purses(HALF, HALF)


def everybody(groups: float, users: float) -> Support:
    return Support(np.array([groups]), np.array([users]))


def kind(way: Way) -> tuple[type, int]:
    return type(way.rounds[0]), len(way.rounds)


def test_the_number_of_groups_decides() -> None:
    assert kind(chosen_way(everybody(1, 30_000), PURSES)) == (TruncatedGeometric, 1)
    assert kind(chosen_way(everybody(6, 300), PURSES)) == (NormalThreshold, 1)
    assert kind(chosen_way(everybody(70, 30_000), PURSES)) == (NormalThreshold, 2)
    assert chosen_way(everybody(1, 30_000), PURSES).groups == 1
    assert chosen_way(everybody(70, 30_000), PURSES).groups in LIMITS


def test_numbers_of_supporters_answer_only_where_nearly_all_are_probably_in_few_groups() -> None:
    """Users in many groups who are too few to stand out, beside 11,000 who do, are not taken for nobody."""
    purses = PURSES._replace(answer=Purse(Decimal("0.95"), Decimal("9e-7")))

    def look(*users: int) -> type:
        bought = Histogram(BUCKETS, [0, *users, *[0] * (BUCKETS.size - 1 - len(users))], 0.0015, "")
        return type(chosen_way(bought.support, purses, bought).rounds[0])

    assert look(30_000) is ShownCounts
    assert look(15_000, 4_000, 2_500, 1_200, 500) is not ShownCounts


def test_given_groups_are_taken_at_their_word() -> None:
    assert kind(given_way(1, PURSES)) == (TruncatedGeometric, 1)
    assert kind(given_way(100, PURSES)) == (NormalThreshold, 1)
    assert given_way(100, PURSES).groups == 100


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-9", "0.01", "700", "1e9"])
@pytest.mark.parametrize("delta", ["1e-55", "1e-6", "0.8"])
@pytest.mark.parametrize("numbers", [Fraction(0), Fraction(1, 5)])
@pytest.mark.parametrize(
    "noisy", [[0] * 15, [-50] * 15, [10**9] * 15, [0, 5, -3, 40, 2, 0, 0, -9, 1, 0, 0, 3, 0, 0, 70]]
)
def test_no_histogram_and_no_budget_makes_the_choice_fail(
    epsilon: str, delta: str, noisy: list[int], numbers: Fraction
) -> None:
    """The debit has happened by then. Whatever the noise says, something is chosen, and says what it is."""
    support = support_of_histogram(BUCKETS, noisy, 100.0)
    purse = Purse(Decimal(epsilon), Decimal(delta))
    way = chosen_way(support, Purses(purse, purse._replace(numbers=numbers)))
    assert way.rounds[0].passing([0, 1, 2]) is not None
    assert facts(way, support)["users_needed"] >= 1
    assert words(way, support, False)


def test_users_in_many_groups_weigh_less() -> None:
    way = given_way(100, PURSES)
    assert needed(way, 100) == pytest.approx(10 * needed(way), rel=1e-3)
    assert needed(way, 200) == pytest.approx(20 * needed(way), rel=1e-3), "beyond the limit they are sampled"
    assert needed(doubled(way)) < 0.6 * needed(way)


def test_an_empty_release_says_what_would_help_and_never_that_it_is_exact(tmp_path: Path) -> None:
    rows = pa.table({"u": [f"user {n}" for n in range(8)], "g": ["a", "b"] * 4})
    session = eh.Session(eh.read(rows, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=1, delta=1e-6))
    release = session.count(by="g", epsilon="0.1", delta=1e-6)
    assert len(release.value) == 0
    assert release.error.noise is None
    assert release.error.parts == {}
    for text in (release.explain(), release.to_html(), str(release.to_dict())):
        flat = " ".join(text.split())
        assert "no group was shown" in flat
        assert "With twice the epsilon about" in flat
        assert "keys=" in flat
        assert "exact answer" not in flat
        assert "± 0" not in flat

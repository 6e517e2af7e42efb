"""Where nothing is cut off, releases are right on average; a bias as large as the noise is caught.

Each test raises a false alarm with probability 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from alarms import centred, happens_at_least

import evenhand as eh
from evenhand.release import Receipt
from evenhand.session import Drafts
from evenhand.tables import Grid
from watch import integers

TRIALS = 120
USERS, ROWS = 500, 10
VALUES = np.linspace(-1, 3, USERS * ROWS)
TABLE = pa.table({"u": np.arange(USERS * ROWS) % USERS, "v": VALUES})

QUESTIONS: dict[str, tuple[Callable[[Drafts], Any], float]] = {
    "count": (lambda ask: ask.count(epsilon=1, bounding=eh.TotalCap(ROWS)), USERS * ROWS),
    "users": (lambda ask: ask.users(epsilon=1), USERS),
    "sum": (lambda ask: ask.sum("v", bounds=(-1, 3), epsilon=1, bounding=eh.TotalCap(30)), float(VALUES.sum())),
    "sum by rows": (
        lambda ask: ask.sum("v", bounds=(-1, 3), epsilon=1, bounding=eh.RowLimit(ROWS)),
        float(VALUES.sum()),
    ),
    "mean": (
        lambda ask: ask.mean("v", bounds=(-1, 3), epsilon=1, bounding=eh.SmoothWeights(ROWS)),
        float(VALUES.mean()),
    ),
}


def _errors(name: str) -> list[float]:
    ask, truth = QUESTIONS[name]
    draft = ask(Drafts(eh.read(TABLE, user="u")))
    return [draft.run(Receipt(Decimal(1), Decimal(0), "test")).value - truth for _ in range(TRIALS)]


@pytest.mark.parametrize("name", QUESTIONS)
def test_releases_are_right_on_average(name: str) -> None:
    errors = _errors(name)
    assert centred(errors)
    biased = [error + float(np.std(errors)) for error in errors]
    assert not centred(biased), "a bias as large as the noise goes unnoticed"


def _drawn(limit: int, strategy: Callable[[int], Any], rows: pa.Table) -> list[float]:
    """The difference of a sum over drawn rows from what a fair draw gives, user by user and draw by draw."""
    table = eh.read(rows, user="u")
    fair = float(pa.compute.sum(rows["v"]).as_py()) * limit / ROWS
    draws = []
    for _ in range(40):
        steps = integers(table, lambda ask: ask.sum("v", bounds=(0, 16), epsilon=1, bounding=strategy(limit)))
        draws.append(Grid.about((0.0, 16.0), origin=0.0).units(steps[0][0]) - fair)
    return draws


@pytest.mark.parametrize("order", ["rising", "falling"])
def test_a_row_limit_has_no_favourites_by_order(order: str) -> None:
    """Each user's rows are 0 … 9 in order: keeping first or last rows would show at once."""
    values = np.tile(np.arange(ROWS, dtype=float), USERS)
    rows = pa.table({"u": np.repeat(np.arange(USERS), ROWS), "v": values if order == "rising" else values[::-1]})
    errors = _drawn(3, eh.RowLimit, rows)
    assert len(set(errors)) > 10, "the draw does not change from query to query"
    assert centred(errors)
    first = float(np.asarray(rows["v"]).reshape(USERS, ROWS)[:, :3].sum()) - float(np.asarray(rows["v"]).sum()) * 0.3
    assert not centred([error + first for error in errors]), "keeping the first rows goes unnoticed"


def test_a_row_limit_keeps_each_row_equally_often() -> None:
    """One user with a single large row among many: it is kept h/s of the time. The twin goes unnoticed once in 10⁷ runs."""
    rows = pa.table({"u": np.zeros(20, dtype=int), "v": np.r_[np.zeros(19), 16.0]})
    table, trials = eh.read(rows, user="u"), 280

    def kept() -> bool:
        steps = integers(table, lambda ask: ask.sum("v", bounds=(0, 16), epsilon=1, bounding=eh.RowLimit(5)))
        return steps[0][0] > 0

    hits = sum(kept() for _ in range(trials))
    assert happens_at_least(hits, trials, 5 / 20)
    assert happens_at_least(trials - hits, trials, 15 / 20)
    assert not happens_at_least(trials - hits, trials, 19 / 20), "keeping one row instead of five goes unnoticed"


@pytest.mark.parametrize("width", [1e3, 1e6, 1e9])
def test_bounds_that_are_far_too_wide_hardly_cost_a_sum(width: float) -> None:
    """Totals lie near 200; whoever declares values up to a billion still gets a cap near there, and the right answer."""
    values = np.random.default_rng(3).gamma(4, 10, 100_000)
    table = eh.read(pa.table({"u": np.arange(100_000) % 20_000, "v": values}), user="u")
    release = Drafts(table).sum("v", bounds=(0, width), epsilon=1).run(Receipt(Decimal(1), Decimal(0), "test"))
    assert 300 < (release.bounding.parameter or 0) < 10_000
    assert abs(release.value - values.sum()) < 20_000 * np.log(1e6)


def test_a_given_cap_keeps_small_values_under_bounds_that_are_far_too_wide() -> None:
    """Without noise: rows of 500 are not lost on the grid of a range up to 10^12."""
    table = eh.read(pa.table({"u": [1, 1, 2], "v": [500.0, 250.0, 5e9]}), user="u")
    steps = integers(table, lambda ask: ask.sum("v", bounds=(0, 1e12), epsilon=1, bounding=eh.TotalCap(2000)))
    assert Grid.about((0.0, 2000.0), origin=0.0).units(steps[0][0]) == 500 + 250 + 2000


def test_a_null_stands_for_the_middle_of_the_declared_bounds_whatever_the_cap() -> None:
    table = eh.read(pa.table({"u": [1], "v": pa.array([None], pa.float64())}), user="u", protects="values")
    steps = integers(table, lambda ask: ask.sum("v", bounds=(0, 100), epsilon=1, bounding=eh.TotalCap(60)))
    assert Grid.about((0.0, 100.0), origin=0.0).units(steps[0][0]) == 50

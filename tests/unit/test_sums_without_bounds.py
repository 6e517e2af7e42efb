"""Sums of values without bounds: users' totals are capped, so nothing is spent on bounds of values."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.noise import seam
from evenhand.release import NothingFound
from evenhand.statistics.level_cells import TOTALS, exact_totals

rng = np.random.default_rng(35)
USER = np.repeat(np.arange(3000), 1 + np.arange(3000) % 7)


def session(tmp_path: Path, values: np.ndarray) -> eh.Session:
    frame = pd.DataFrame({"u": USER[: len(values)], "v": values})
    return eh.Session(eh.read(frame, user="u"), eh.Ledger(str(tmp_path / "b.db"), epsilon=1000))


def test_a_rare_giant_row_is_not_clamped(tmp_path: Path) -> None:
    """One row in three hundred is thousands of times as large as the others: bounds of one value, which weigh rows, would cut them all off."""
    values = np.where(rng.random(len(USER)) < 1 / 300, 5000.0, 2.0)
    with seam.replaced(seam.silent):
        release = session(tmp_path, values).sum("v", epsilon=1)
    assert "bounds" not in release.details
    assert "finding" not in release.details
    low, high = release.interval(0.95)
    assert low <= values.sum() <= high
    assert release.value > 0.3 * values.sum()


def test_all_of_epsilon_is_for_the_sum(tmp_path: Path) -> None:
    """A cap that was given: the noise is that of the cap and all of ε, as where bounds are given."""
    values = rng.gamma(2, 10, len(USER))
    asked = session(tmp_path, values)
    free = asked.sum("v", epsilon=0.5, bounding=eh.TotalCap(200))
    given = asked.sum("v", bounds=(0, 3200), epsilon=0.5, bounding=eh.TotalCap(200))
    assert free.error.noise == pytest.approx(given.error.noise, rel=1e-6)
    assert free.error.noise == pytest.approx(math.sqrt(2) * 200 / 0.5, rel=1e-3)


@pytest.mark.parametrize(
    "values", [-rng.gamma(2, 10, len(USER)), rng.normal(0, 10, len(USER)) + 4, np.arange(len(USER)) % 5]
)
def test_values_of_either_sign(values: np.ndarray, tmp_path: Path) -> None:
    with seam.replaced(seam.silent):
        release = session(tmp_path, values).sum("v", epsilon=2)
    low, high = release.interval(0.95)
    assert low <= values.sum() <= high
    assert release.value == pytest.approx(values.sum(), rel=0.05)


def test_an_end_that_was_given_stays(tmp_path: Path) -> None:
    values = rng.normal(0, 10, len(USER))
    with seam.replaced(seam.silent):
        release = session(tmp_path, values).sum("v", bounds=(0, None), epsilon=2)
    assert release.value == pytest.approx(values.clip(min=0).sum(), rel=0.05)


def test_too_few_people_get_no_number(tmp_path: Path) -> None:
    release = session(tmp_path, np.full(4, 3.0)).sum("v", epsilon=0.1)
    assert math.isnan(release.value)
    assert not release.usable
    assert isinstance(release.rules["sum"], NothingFound)


def test_totals_are_exact_and_in_one_cell_each() -> None:
    values = [1e-12, 0.1, 0.2, 0.3, -1e9, 1e9 + 2.0**-20, np.inf, -np.inf, np.nan, None, 7.0, 1e300]
    users = [1, 2, 2, 2, 3, 3, 4, 5, 6, 6, 7, 8]
    table = eh.read(pd.DataFrame({"u": users, "v": values}), user="u")
    with table.once(["v"]) as copy, exact_totals(copy, "v") as totals:
        found = copy.engine.fetch(totals).reveal().to_pandas().sort_values("total").reset_index(drop=True)
    assert found.total.tolist() == pytest.approx(
        [-2e15, 0.0, 0.6, 2.0**-20, 7.0, 2e15, 2e15][:1] + sorted([0.0, 0.6, 2.0**-20, 7.0, 2e15, 2e15]), abs=1e-8
    )
    for total, cell in zip(found.total, found.cell, strict=True):
        away = sum(abs(total) > end for end in TOTALS)
        assert cell == len(TOTALS) + (away if total >= 0 else -away)


@pytest.mark.parametrize("huge", [np.inf, -np.inf, 1e300])
def test_a_huge_total_beside_tiny_ones_fits_the_grid(tmp_path: Path, huge: float) -> None:
    """The grid is as fine as the tiny ones need, and the huge one is clamped to it before it is an integer."""
    people = np.arange(3000)
    frame = pd.DataFrame({"u": [*people, -1], "x": [*np.full(3000, 1e-6), huge]})
    with seam.replaced(seam.silent):
        released = eh.Session(eh.read(frame, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=9)).sum("x", epsilon=1)
    assert released.value is not None

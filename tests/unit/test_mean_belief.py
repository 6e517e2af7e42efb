"""What bounding did to a mean: the belief, the limits that public counts set, and what a release says about it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.accuracy.mean_coverage import measured
from benchmarks.accuracy.mean_tables import TUNED
from benchmarks.accuracy.means import Table, choose

import evenhand as eh
from evenhand.bounding import CentredInterval, SmoothWeights
from evenhand.guarantee import Relation
from evenhand.profiles import support_of_counts
from evenhand.statistics.believed_means import believed

BOUNDS = (0.0, 200.0)


def frame(users: int = 900, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = np.ceil(rng.lognormal(1.5, 1.2, users)).astype(int)
    means = np.repeat(40 + 4 * np.log(rows) + rng.normal(0, 8, users), rows)
    return pd.DataFrame({"u": np.repeat(np.arange(users), rows), "x": np.clip(rng.normal(means, 15), *BOUNDS)})


@pytest.mark.parametrize("h", [1, 3, 10])
def test_no_values_move_a_weighted_mean_further_than_it_can_have_moved(h: int) -> None:
    rng = np.random.default_rng(h)
    rows = rng.integers(1, 40, 50)
    most = SmoothWeights(h).most_moved(support_of_counts(rows), 1.0)
    weight = np.minimum(rows, h)
    moved = [abs(weight @ v / weight.sum() - rows @ v / rows.sum()) for v in rng.integers(0, 2, (200, 50))]
    worst = (rows / rows.sum() > weight / weight.sum()).astype(int)
    moved.append(abs(weight @ worst / weight.sum() - rows @ worst / rows.sum()))
    assert max(moved) <= most + 1e-12
    assert moved[-1] > most / 2


def test_no_values_move_a_centred_mean_further_than_it_can_have_moved() -> None:
    rows = np.random.default_rng(2).integers(1, 40, 50)
    most = CentredInterval(10).most_moved(support_of_counts(rows), 2.0)
    clipped = np.clip(2.0 * rows, rows - 5.0, rows + 5.0)  # all values at the upper bound
    assert (2.0 * rows - clipped).sum() / rows.sum() == pytest.approx(most)


@pytest.mark.parametrize("protects", ["presence", "values"])
def test_a_mean_is_corrected_and_its_interval_holds_more_than_the_noise(protects: str, tmp_path: Path) -> None:
    table = eh.read(frame(), user="u", protects=protects)
    release = eh.Session(table, eh.Ledger(tmp_path / "l.db", epsilon=20)).mean("x", bounds=BOUNDS, epsilon=10)
    low, high = release.interval(0.95)
    first, last = release.noise_interval(0.95)
    assert high - low > last - first
    assert low <= release.value <= high
    assert "model" in release.covers
    assert release.error.bias is not None
    if "correction" in release.details:
        shown = release.details["correction"]
        assert release.value == pytest.approx(shown["measured"] + shown["amount"])


def test_a_bound_that_was_given_leaves_the_mean_anywhere(tmp_path: Path) -> None:
    session = eh.Session(eh.read(frame(), user="u"), eh.Ledger(tmp_path / "l.db", epsilon=20))
    release = session.mean("x", bounds=BOUNDS, epsilon=5, bounding=eh.SmoothWeights(3))
    assert release.interval() == BOUNDS
    first, last = release.noise_interval()
    assert last - first < 20
    assert release.usable  # the noise is judged; the bound was the analyst's
    capped = session.per_user_mean("x", bounds=(0, 5000), of="total", epsilon=5, bounding=eh.TotalCap(300))
    low, high = capped.interval()
    assert (low, high) == (capped.noise_interval()[0], 5000)


def test_public_counts_limit_what_a_given_bound_did(tmp_path: Path) -> None:
    data = frame()
    session = eh.Session(eh.read(data, user="u", protects="values"), eh.Ledger(tmp_path / "l.db", epsilon=2000))
    release = session.mean("x", bounds=BOUNDS, epsilon=1000, bounding=eh.CentredInterval(4000))
    low, high = release.interval()
    assert low <= data.x.mean() <= high
    assert "whatever the values are" in release.covers
    assert release.noise_interval()[1] - release.noise_interval()[0] < high - low < 200


def test_a_centred_sum_may_be_too_high_as_well_as_too_low(tmp_path: Path) -> None:
    data = frame().assign(x=0.0)  # the interval about the middle lifts every busy user
    session = eh.Session(eh.read(data, user="u", protects="values"), eh.Ledger(tmp_path / "l.db", epsilon=2000))
    release = session.sum("x", bounds=BOUNDS, epsilon=1000, bounding=eh.CentredInterval(4000))
    low, high = release.interval(1 - 1e-8)  # the truth is as far off as it can be
    assert low <= 0 < release.noise_interval()[0] < high
    assert release.error.bias is not None


def test_a_sum_under_values_is_corrected_in_its_own_unit(tmp_path: Path) -> None:
    data = frame()
    session = eh.Session(eh.read(data, user="u", protects="values"), eh.Ledger(tmp_path / "l.db", epsilon=20))
    release = session.sum("x", bounds=BOUNDS, epsilon=10)
    low, high = release.interval()
    assert low <= release.value <= high
    if "correction" in release.details:
        shown = release.details["correction"]
        assert release.value == pytest.approx(shown["measured"] + shown["amount"])


def test_intervals_of_means_hold_the_truth_on_generated_tables() -> None:
    """Seeded, so that it fails for changed code only; the long run is `benchmarks/accuracy/mean_coverage.py`."""
    held: list[bool] = []
    alone: list[bool] = []
    for run in range(12):
        rng = np.random.default_rng(run)
        table = Table(*TUNED["shop / prices" if run % 2 else "Zipf 2.5, 2k users / books"](rng))
        relation = Relation.PRESENCE if run % 3 else Relation.VALUES
        choice, left = choose(table, Decimal("0.5"), relation, rng)
        assert choice.belief is not None
        plain = measured(table, choice, left, relation, rng)
        outcome = believed(plain, choice.belief, (0.0, 1.0), relation.counts_are_public)
        for found, interval in ((held, outcome.interval), (alone, plain.interval)):
            low, high = interval.at(0.95)
            found.append(low <= table.truth <= high)
    assert sum(held) >= 10
    assert sum(alone) < sum(held)

"""The search for quantiles, step by step: cells, scores, what follows from them, intervals, and medians."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.bounding import BusyUsers, Family
from evenhand.guarantee import Relation
from evenhand.noise import seam
from evenhand.release import Measurement, OfQuantiles, Receipt
from evenhand.statistics.busy_ranks import (
    Far,
    Measured,
    Moved,
    by_part,
    corrections,
    in_sentence,
    measured_ranks,
    moved_ranks,
    moves,
    near_and_far,
)
from evenhand.statistics.finding import SHARES, by_cell, find, paid_for, running, score_moves, scores
from evenhand.statistics.prefix_weights import Cells, Prefixes
from evenhand.statistics.rank_intervals import RankInterval
from evenhand.tables import Grid, Secret


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_scores_move_by_no_more_than_is_declared(relation: Relation) -> None:
    """All small tables: one unit of weight more at any point, or moved from any point to any other."""
    for rank in (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(333, 1000)):
        most = 0
        for weights in itertools.product((0, 1, 5), repeat=4):
            mine = scores(weights, rank)
            for other in _neighbours(weights, relation):
                most = max(most, *(abs(a - b) for a, b in zip(mine, scores(other, rank), strict=True)))
        assert most == score_moves(rank, relation)


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_cells_move_by_no_more_than_is_declared(relation: Relation) -> None:
    """All small tables of two groups: one unit of weight more, or moved; the L1 and the squared L2 norm; cells may be empty."""
    l1, l2_squared = moves(1, relation)
    for weights in itertools.product((0, 2), repeat=6):
        for edges in ([[0, 1, 3], [0, 2, 3]], [[0, 0, 2, 3], [0, 3, 3, 3]]):
            mine = by_cell(running(weights), edges, 3)
            assert sum(mine) == sum(weights)
            for other in _neighbours(weights, relation):
                steps = [abs(a - b) for a, b in zip(mine, by_cell(running(other), edges, 3), strict=True)]
                assert sum(steps) <= l1
                assert sum(step**2 for step in steps) <= l2_squared


def _neighbours(weights: tuple[int, ...], relation: Relation) -> list[list[int]]:
    more = [[w + (place == at) for place, w in enumerate(weights)] for at in range(len(weights))]
    if relation is Relation.PRESENCE:
        return more
    return [
        [w - (place == at) for place, w in enumerate(one)] for one in more for at in range(len(weights)) if one[at] > 0
    ]


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_parts_of_both_kinds_of_users_move_by_no_more_than_is_declared(relation: Relation) -> None:
    """All small tables of two groups: one unit of weight of either kind, more or moved; the L1 and the squared L2 norm."""
    l1, l2_squared = moves(1, relation)
    for weights in itertools.product((0, 2), repeat=4):
        for edges in ([0, 1, 2], [0, 0, 1, 2], [0, 2, 2]):
            for kind in ("rows", "cut"):
                cut = list(weights) if kind == "cut" else [0] * 4
                mine = by_part({"rows": weights, "cut": cut}, edges, 2)
                assert sum(mine) == sum(weights)
                for other in _neighbours(weights, relation):
                    theirs = by_part({"rows": other, "cut": other if kind == "cut" else cut}, edges, 2)
                    steps = [abs(a - b) for a, b in zip(mine, theirs, strict=True)]
                    assert sum(steps) <= l1
                    assert sum(step**2 for step in steps) <= l2_squared


def test_weights_near_and_far_move_by_no_more_than_is_declared() -> None:
    """All small tables of two groups: one unit of weight more of a user of either kind, who is in all cells or in the one apart."""
    l1, l2_squared = moves(1, Relation.PRESENCE)
    for weights in itertools.product((0, 2), repeat=4):
        for far in ([0] * 4, list(weights)):
            mine = near_and_far({"rows": weights, "far": far}, 2)
            assert sum(mine) == sum(weights)
            for other in _neighbours(weights, Relation.PRESENCE):
                more = [a - b for a, b in zip(other, weights, strict=True)]
                for theirs in (far, [a + b for a, b in zip(far, more, strict=True)]):
                    cells = near_and_far({"rows": other, "far": theirs}, 2)
                    steps = [abs(a - b) for a, b in zip(mine, cells, strict=True)]
                    assert sum(steps) <= l1
                    assert sum(step**2 for step in steps) <= l2_squared


def test_a_crowd_that_the_profile_does_not_show_is_feared_as_far_as_it_was_measured() -> None:
    """1,000 users with 2 rows each: 200 users with far more would hold most rows; 5 may be there, or the noise is as large as that."""
    busy = BusyUsers.of(Family(np.array([2.0]), np.array([[1e3]]), np.ones(1)), 2.0)
    nobody, few, doubtful, crowd = (
        np.array(busy.given(*far).losses) for far in ((0.0, 1.0), (5.0, 5.0), (100.0, 40.0), (200.0, 20.0))
    )
    assert np.quantile(nobody, 0.9) < 0.1
    assert np.median(few) < 0.1
    assert np.median(doubtful) < 0.5 < np.quantile(doubtful, 0.9)
    assert 0.3 < np.quantile(crowd, 0.05) < np.quantile(crowd, 0.95) < 10


def test_the_weight_of_users_far_above_the_bound_is_told_before_ranks_are() -> None:
    seen: list[tuple[Sequence[int], Far | None]] = []

    def measure(places: Sequence[int], far: Far | None) -> Measured:
        seen.append((places, far))
        return Measured({q: Moved(q, 0.2, 0.2, False) for q in wanted})

    with seam.replaced(seam.silent):
        receipt, wanted = Receipt(Decimal(1000), Decimal(0), "test"), [Fraction(1, 4), Fraction(3, 4)]
        rows, apart = Secret([100] * 16), Secret([90] * 16 + [160])
        found = find(receipt, rows, 16, 1, wanted, 1, Relation.PRESENCE, Decimal(1000), None, measure, apart)
    ((places, far),) = seen
    assert len(places) == 2
    assert far is not None
    assert far[0] == pytest.approx(160)
    interval = RankInterval(Grid.about((0.0, 15.0), 0.0, 4), *found.of(wanted[0])[0])
    assert interval.at(0.95) != interval.noise_only.at(0.95)


def test_the_rank_is_moved_by_what_was_measured_about_busy_users() -> None:
    """1,000 users with one row, 1,000 with a hundred that count as one: a tenth of the rows of the first are below, nine tenths of the others'."""
    busy = BusyUsers.of(Family(np.array([1.0, 100.0]), np.array([[1e3, 1e3]]), np.ones(1)), 1.0)
    cells = {"rows": [1000 * 2**16] * 16, "cut": [900 * 2**16] * 8 + [100 * 2**16] * 8}
    quantiles = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    with seam.replaced(seam.silent):
        receipt = Receipt(Decimal(100), Decimal(0), "test")
        places, users = [4, 8, 12], Secret(cells)
        told = measured_ranks(receipt, users, places, 16, quantiles, busy, 2**16, Relation.PRESENCE, Decimal(100))
    ranks = told.moved
    assert told.cells is not None
    assert told.cells.edges.tolist() == [[0, *places, 16]]
    assert told.cells.weights.tolist() == [[4000 * 2**16] * 4]
    assert [one.rank < q for q, one in ranks.items()] == [True] * 3
    assert sorted(one.rank for one in ranks.values()) == [one.rank for one in ranks.values()]
    assert "was measured" in in_sentence(ranks)
    assert corrections(ranks)["correction"]["ranks"] == {float(q): float(one.rank) for q, one in ranks.items()}
    assert corrections(moved_ranks(busy, quantiles)) == {}
    assert "prior" in in_sentence(moved_ranks(busy, quantiles))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([1000] * 16, [1, 4, 7, 11, 14]), ([100] * 5 + [9000] + [100] * 10, [5, 5, 5, 5, 5])],
    ids=["even", "most rows share a value"],
)
def test_quantiles_of_a_large_table_are_exact(weights: list[int], expected: list[int]) -> None:
    """Without noise: five quantiles from cells, and two of them by themselves from a choice; in one group, and in the second of two."""
    wanted = [Fraction(k, 10) for k in (1, 3, 5, 7, 9)]
    with seam.replaced(seam.silent):
        for groups in (1, 2):
            for some in (wanted, wanted[:1], wanted[3:4]):
                receipt = Receipt(Decimal(1000), Decimal(0), "test")
                rows = Secret([100] * 16 * (groups - 1) + weights)
                found = find(receipt, rows, 16, groups, some, 1, Relation.PRESENCE, Decimal(1000))
                assert [found.of(q)[-1][-1] for q in some] == [expected[wanted.index(q)] for q in some]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("groups", [1, 3])
def test_all_of_epsilon_is_used_and_no_more(count: int, groups: int) -> None:
    receipt, paid = Receipt(Decimal("0.3"), Decimal(0), "test"), Decimal("0.3")
    wanted = [Fraction(k, 4) for k in range(1, count + 1)]
    find(receipt, Secret([5] * 8 * groups), 8, groups, wanted, 1, Relation.PRESENCE, paid)
    with pytest.raises(eh.EvenhandError):
        receipt.numbers(Measurement(lambda: Secret([0]), 1, 1), Decimal("1e-9"))
    assert sum(paid_for(paid, SHARES)) == paid


def test_weights_below_edges_are_least_squares_of_all_measurements() -> None:
    """Against the normal equations, written out; equal edges and empty cells included."""
    rng = np.random.default_rng(2)
    edges = [np.array([[0, 3, 3, 8]]), np.array([[0, 2, 3, 5, 8]])]
    cells = [
        Cells(one, rng.normal(10, 3, (1, one.shape[1] - 1)), variance)
        for one, variance in zip(edges, (2.0, 0.5), strict=True)
    ]
    found = Prefixes.of(cells)
    rows = [
        ((low, high), y, c.variance)
        for c in cells
        for low, high, y in zip(c.edges[0][:-1], c.edges[0][1:], c.weights[0], strict=True)
    ]
    points = [2, 3, 5, 8]
    design = np.array([[(p == high) - float(p == low) for p in points] for (low, high), _, _ in rows])
    weight = np.array([1 / variance for *_, variance in rows])
    covariance = np.linalg.inv(design.T * weight @ design)
    solution = covariance @ (design.T * weight @ np.array([y for _, y, _ in rows]))
    for place, point in enumerate(points):
        where = found.edges[0] == point
        assert found.weights[0][where] == pytest.approx(solution[place])
        assert found.variances[0][where] == pytest.approx(covariance[place, place])
        assert found.with_all[0][where] == pytest.approx(covariance[place, -1])


def test_the_more_of_its_weight_is_known_the_likelier_a_cell_is_what_it_seems() -> None:
    """Cells of 100, 0 and 100: one that may be empty is expected to hold next to nothing, unless the noise is as large as the others."""
    edges, weights = np.array([[0, 4, 8, 12, 16, 256]]), np.array([[100.0, 0.0, 0.0, 100.0, 0.0]])
    clear, noisy = (Prefixes.of([Cells(edges, weights, variance)]).likely[0] for variance in (1.0, 1e4))
    assert clear[1] < 0.01 < 0.05 < noisy[1]
    assert clear.sum() == pytest.approx(1)


def test_a_value_that_most_rows_share_can_be_used_though_its_cell_ends_beyond_it() -> None:
    """Seven tenths of the rows are 0, the others 1: an end that is a few points of the grid above 0 is no doubt."""
    receipt, rows = Receipt(Decimal(1000), Decimal(0), "test"), Secret([7000] + [0] * 4095 + [3000])
    with seam.replaced(seam.silent):
        found = find(receipt, rows, 4097, 1, [Fraction(1, 2)], 1, Relation.PRESENCE, Decimal(1000))
    interval = RankInterval(Grid.about((0.0, 1.0), 0.0, 12), *found.of(Fraction(1, 2))[0])
    assert interval.value == 0
    assert 0.9 / 256 < interval.same <= 1 / 256
    assert OfQuantiles(0.0, 1.0, same=interval.same).allowed(0.0) == interval.same


def test_quantiles_and_their_intervals_are_in_order() -> None:
    wanted = [Fraction(k, 10) for k in (1, 2, 5, 6, 9)]
    receipt, few = Receipt(Decimal(1), Decimal(0), "test"), Secret([1] * 40)
    found = find(receipt, few, 40, 1, wanted, 1, Relation.PRESENCE, Decimal(1))
    intervals = [RankInterval(Grid.about((0.0, 39.0), 0.0, 6), *found.of(q)[0]) for q in wanted]
    for numbers in ([one.value for one in intervals], *zip(*(one.at(0.8) for one in intervals), strict=True)):
        assert list(numbers) == sorted(numbers)
    for one in intervals:
        (low, high), (lower, higher) = one.at(0.5), one.at(0.99)
        assert lower <= low <= one.value <= high <= higher


def _session(tmp_path: Any, users: int = 4000) -> eh.Session:
    rng = np.random.default_rng(1)
    rows = pa.table(
        {"u": np.arange(users), "g": np.arange(users) % 2, "v": rng.normal(50, 10, users) + 20 * (np.arange(users) % 2)}
    )
    return eh.Session(eh.read(rows, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=100))


def test_a_median_is_one_number_with_an_interval_in_values(tmp_path: Any) -> None:
    """4,000 people at ε = 40: a rank error of 1% has a chance below e^-30."""
    session = _session(tmp_path)
    release = session.median("v", bounds=(0, 120), epsilon=40)
    low, high = release.interval(0.95)
    assert low <= release.value <= high
    assert 55 < low < high < 65
    assert "95% interval" in str(release)
    assert release.error.noise is not None
    assert release.to_dict()["value"] == release.value
    assert session.ask(eh.median("v", bounds=(0, 120)), epsilon=40).statistic == "median of v"
    assert session.preview.median("v", bounds=(0, 120), epsilon=40).cost.epsilon == 40


def test_a_quantile_that_is_zero_is_as_usable_as_those_beside_it(tmp_path: Any) -> None:
    """A third of 6,000 people have no visits: 0 with a narrow interval is a good answer, though no interval is small against 0."""
    rows = pa.table({"u": np.arange(6000), "v": np.maximum(np.arange(6000) % 90 - 30, 0)})
    session = eh.Session(eh.read(rows, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=100))
    release = session.quantiles("v", [0.1, 0.5, 0.9], bounds=(0, 100), epsilon=40)
    assert release.value[0] == 0
    assert release.usable
    assert session.quantiles("v", [0.1], bounds=(0, 100), epsilon=40).usable


def test_medians_by_group_are_a_frame(tmp_path: Any) -> None:
    release = _session(tmp_path).median("v", bounds=(0, 120), by="g", keys=[0, 1], epsilon=4)
    assert list(release.value.columns) == ["g", "median"]
    assert list(release.interval(0.9).columns) == ["g", "median", "median_low", "median_high"]
    assert release.value["median"].tolist() == pytest.approx([50, 70], abs=4)


def test_few_people_and_little_epsilon_say_so(tmp_path: Any) -> None:
    """Forty people at ε = 0.01 are lost in the noise of their number, so the interval is the bounds."""
    session = _session(tmp_path, users=40)
    with seam.replaced(seam.silent):
        release = session.quantiles("v", [0.5], bounds=(0, 120), epsilon="0.01", bounding=eh.SmoothWeights(1))
    assert release.interval(0.95) == [(0, 120)]
    assert "nothing is known" in release.covers
    assert not release.usable


@pytest.mark.parametrize("statistic", ["quantiles", "median"])
def test_quantiles_of_integers_are_whole_numbers(statistic: str, tmp_path: Path) -> None:
    people = np.repeat(np.arange(300), 3)
    frame = pa.table({"u": people, "stars": np.arange(900) % 5 + 1})
    session = eh.Session(eh.read(frame, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=9))
    asked = {"quantiles": [0.1, 0.9]} if statistic == "quantiles" else {}
    release = getattr(session, statistic)("stars", bounds=(1, 5), epsilon=0.3, **asked)
    numbers = [*np.ravel(release.value), *np.ravel(release.interval())]
    assert set(numbers) <= {1.0, 2.0, 3.0, 4.0, 5.0}

"""The search for quantiles, step by step: cells, what follows from them, intervals, and medians."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.bounding import BusyUsers, Family, MovedRank
from evenhand.guarantee import Relation
from evenhand.noise import seam
from evenhand.release import Measurement, Receipt
from evenhand.statistics.cell_weights import CellWeights, Scale
from evenhand.statistics.rank_intervals import rank_intervals
from evenhand.statistics.rank_search import Found, Placed, Search, least_share, moves
from evenhand.statistics.ranks import corrections, in_sentence
from evenhand.tables import Grid, Secret

HALF = Fraction(1, 2)
Numbers = Callable[[Placed, list[list[int]], bool, bool], list[int]]


def placed(*kinds: Sequence[int]) -> Placed:
    """Weights at each point of each group: of users who are not cut, of those who are, and of those far above the bound."""
    nobody = [0] * len(kinds[0])
    return Placed.of(np.arange(len(kinds[0])), [np.array([*kinds, nobody, nobody][kind]) for kind in range(3)])


def search(
    weights: Sequence[int], groups: int = 1, epsilon: str = "1000", relation: Relation = Relation.PRESENCE, **more: Any
) -> Search:
    receipt = Receipt(Decimal(epsilon), Decimal(0), "test")
    return Search(receipt, Secret(placed(weights)), len(weights) // groups, 0, groups, 1, relation, **more)


def numbers(given: Placed, edges: list[list[int]], pooled: bool, apart: bool) -> list[int]:
    """As they are released."""
    return given.numbers(np.array(edges), 3, pooled, apart)


def twice(given: Placed, edges: list[list[int]], pooled: bool, apart: bool) -> list[int]:
    """A broken twin: users far above the bound are among the others too."""
    full, cut, far = given.before
    return numbers(Placed(given.places, [full, cut + far, far]), edges, pooled, apart)


def overlapping(given: Placed, edges: list[list[int]], pooled: bool, apart: bool) -> list[int]:
    """A broken twin: cells from the first point on share rows."""
    found = numbers(given, edges, pooled, apart)
    return [*itertools.accumulate(found[:-1]), found[-1]]


def most_moved(measure: Numbers, relation: Relation) -> int:
    """The largest L1 norm of a change, over all small tables of two groups of three points: one unit of weight of any kind more, or moved."""
    most = 0
    edges = ([[0, 1, 3], [0, 2, 3]], [[0, 0, 2, 3], [0, 3, 3, 3]])
    for weights in itertools.product((0, 2), repeat=6):
        for kind, cells, pooled, apart in itertools.product(range(3), edges, (False, True), (False, True)):
            kinds = [list(weights) for _ in range(3)]

            def asked(one: list[int], kinds: list[list[int]] = kinds, kind: int = kind) -> Placed:
                return placed(*(one if place == kind else given for place, given in enumerate(kinds)))

            how = ([cells[0]] * 2 if pooled else cells, pooled, apart)
            mine = measure(asked(list(weights)), *how)
            for other in _neighbours(weights, relation):
                theirs = measure(asked(other), *how)
                most = max(most, sum(abs(a - b) for a, b in zip(mine, theirs, strict=True)))
    return most


def _neighbours(weights: tuple[int, ...], relation: Relation) -> list[list[int]]:
    more = [[w + (place == at) for place, w in enumerate(weights)] for at in range(len(weights))]
    if relation is Relation.PRESENCE:
        return more
    return [
        [w - (place == at) for place, w in enumerate(one)] for one in more for at in range(len(weights)) if one[at] > 0
    ]


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_cells_move_by_no_more_than_is_declared(relation: Relation) -> None:
    """Whatever the edges, for all kinds of users, groups apart or together; exactly, and broken twins are caught."""
    declared, squared = moves(1, relation)
    assert most_moved(numbers, relation) == declared
    assert squared == declared  # one unit of weight in each of so many cells
    assert most_moved(overlapping, relation) > declared
    if relation is Relation.PRESENCE:  # under values they are not told apart
        assert most_moved(twice, relation) > declared


def test_all_weight_is_in_one_of_the_numbers() -> None:
    given, edges = placed([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [1, 0, 0, 0, 0, 1]), [[0, 2, 3]] * 2
    assert numbers(given, edges, pooled=False, apart=False) == [14, 7, 14, 7, 2]
    assert numbers(given, edges, pooled=True, apart=True) == [3 + 9, 3 + 6, 11 + 5, 4 + 1, 2]


def test_points_may_be_anywhere_and_in_any_order() -> None:
    far = Placed.of(np.array([2**40 + 5, 7]), [np.array([3, 4])] * 3)
    assert far.cells(np.array([[0, 8]]), 8)[0].tolist() == [[4]]


def test_weights_are_least_squares_of_all_measurements() -> None:
    """Against the normal equations, written out, where the prior says next to nothing; equal edges and empty cells included."""
    rng = np.random.default_rng(2)
    scale = Scale(np.array([0.0, 8.0]), np.array([0.0, 1.0]))
    weights, rows = CellWeights.beforehand(8, np.array([40.0]), 1e4).divided(np.array([[2, 3, 3, 5]]), scale), []
    for inner, variance in (([3, 3], 2.0), ([2, 3, 5], 0.5)):
        edges, measured = np.array([[0, *inner, 8]]), rng.normal(10, 3, (1, len(inner) + 1))
        weights = weights.given(edges, measured, variance)
        rows += [
            (low, high, y, variance) for (low, high), y in zip(itertools.pairwise(edges[0]), measured[0], strict=True)
        ]
    design = np.array(
        [[low <= cell[0] and cell[1] <= high for cell in ((0, 2), (2, 3), (3, 5), (5, 8))] for low, high, *_ in rows]
    )
    precision = np.array([1 / variance for *_, variance in rows])
    covariance = np.linalg.inv(design.T * precision @ design)
    solution = covariance @ (design.T * precision @ np.array([y for *_, y, _ in rows]))
    merged = weights.merged(np.array([[0, 2, 3, 5, 8]]))
    assert merged.mean[0] == pytest.approx(solution, rel=1e-3)
    assert np.diagonal(merged.covariance[0]) == pytest.approx(np.diagonal(covariance), rel=1e-3)


def test_a_divided_cell_may_have_all_its_weight_on_either_side() -> None:
    """A third of the points: a third of the weight, with the standard deviation of half a lump; and all of it together is what it was."""
    scale = Scale(np.array([0.0, 9.0]), np.array([0.0, 1.0]))
    weights = CellWeights.beforehand(9, np.array([90.0]), 0.0).divided(np.array([[3]]), scale)
    assert weights.mean[0].tolist() == pytest.approx([30, 60])
    assert np.sqrt(weights.covariance[0, 0, 0]) == pytest.approx(90 * np.sqrt(0.5 * 2 / 9))
    assert weights.covariance[0].sum() == pytest.approx(0, abs=1e-6)


def test_where_points_lie_beforehand_is_even_and_by_distance_from_zero() -> None:
    scale = Scale.beforehand(2**20, 0)
    assert scale.of(np.array([0.0, 2.0**20])).tolist() == [0, 1]
    assert scale.of(np.array([2.0**10]))[0] == pytest.approx(0.25, abs=0.01)
    assert scale.places(scale.of(np.array([2.0**15]))) == pytest.approx(2.0**15, rel=0.02)
    mirrored = Scale.beforehand(2**20, 2**19)
    assert mirrored.of(np.array([2.0**19]))[0] == pytest.approx(0.5)


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
@pytest.mark.parametrize(
    ("weights", "expected"),
    [([1000] * 16, [1, 4, 7, 11, 14]), ([100] * 5 + [9000] + [100] * 10, [5, 5, 5, 5, 5])],
    ids=["even", "most rows share a value"],
)
def test_quantiles_of_a_large_table_are_exact(weights: list[int], expected: list[int], relation: Relation) -> None:
    """Without noise: five quantiles together, and two of them by themselves; in one group, and in the second of two."""
    wanted = [Fraction(k, 10) for k in (1, 3, 5, 7, 9)]
    with seam.replaced(seam.silent):
        for groups in (1, 2):
            for some in (wanted, wanted[:1], wanted[3:4]):
                found = search([100] * 16 * (groups - 1) + weights, groups, relation=relation).find(some, Decimal(1000))
                assert [found.points()[q][-1] for q in some] == [expected[wanted.index(q)] for q in some]


def test_a_value_among_a_million_points_is_found_exactly() -> None:
    """Three prices, far from even: bounds that are far too wide cost next to nothing."""
    rows = Placed.of(np.array([1999, 2499, 99_999]), [np.array([4000, 3000, 3000]), *[np.zeros(3, dtype=np.int64)] * 2])
    receipt = Receipt(Decimal(1), Decimal(0), "test")
    found = Search(receipt, Secret(rows), 2**20, 0, 1, 1, Relation.PRESENCE).find([HALF], Decimal(1))
    assert found.points() == {HALF: [2499]}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("groups", [1, 3])
def test_all_of_epsilon_is_used_and_no_more(count: int, groups: int) -> None:
    paid, wanted = Decimal("0.3"), [Fraction(k, 4) for k in range(1, count + 1)]
    asked = search([5] * 8 * groups, groups, "0.3")
    asked.find(wanted, paid)
    with pytest.raises(eh.EvenhandError):
        asked.receipt.numbers(Measurement(lambda: Secret([0]), 1, 1), Decimal("1e-9"))


class Recorded(Receipt):
    """Keeps what each round paid."""

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Any:
        self.__dict__.setdefault("paid", []).append(epsilon)
        return super().numbers(measurement, epsilon, delta)


@pytest.mark.parametrize("groups", [1, 50])
@pytest.mark.parametrize("rows", [0, 10, 10**7])
@pytest.mark.parametrize("measured", [False, True])
def test_no_round_gets_less_than_was_checked_beforehand(groups: int, rows: int, measured: bool) -> None:
    """Whatever is found: the noise of every round has to fit 64 bits, which is checked before anything is paid."""
    family = Family(np.array([1.0, 100.0]), np.array([[rows + 1.0, rows + 1.0]]), np.ones(1))
    busy = BusyUsers.of(family, 1.0) if measured else None
    receipt = Recorded(Decimal(1), Decimal(0), "test")
    cells = Secret(placed([rows] * 64 * groups, [0] * 64 * groups, [0] * 64 * groups))
    Search(receipt, cells, 64, 0, groups, 1, Relation.PRESENCE, busy).find([HALF, Fraction(9, 10)], Decimal(1))
    assert min(receipt.__dict__["paid"]) >= least_share(Decimal(1))
    assert sum(receipt.__dict__["paid"]) <= 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
@pytest.mark.parametrize("weight", [0, 2**16, 2**40])
@pytest.mark.parametrize("epsilon", ["0.0000001", "1", "1000000"])
def test_no_table_raises_or_warns(relation: Relation, weight: int, epsilon: str) -> None:
    """Once rows were read an exception or a warning would say something about them: nobody, empty groups, weights near the end of what doubles hold."""
    for size, groups in itertools.product((1, 2, 64), (1, 3)):
        for weights in ([weight] * size * groups, [0] * size + [weight] * size * (groups - 1)):
            found = search(weights, groups, epsilon, relation).find([HALF], Decimal(epsilon))
            assert all(0 <= point < size for point in found.points()[HALF])


def test_quantiles_and_their_intervals_are_in_order() -> None:
    wanted = [Fraction(k, 10) for k in (1, 2, 5, 6, 9)]
    found = search([1] * 40, epsilon="1").find(wanted, Decimal(1))
    grid = Grid.about((0.0, 39.0), 0.0, 6)
    intervals = [rank_intervals(grid, found, q, exact=True, bounded=True)[0] for q in wanted]
    for values in ([one.value for one in intervals], *zip(*(one.at(0.8) for one in intervals), strict=True)):
        assert list(values) == sorted(values)
    for one in intervals:
        (low, high), (lower, higher) = one.at(0.5), one.at(0.99)
        assert lower <= low <= one.value <= high <= higher


def test_what_is_not_known_about_busy_users_widens_the_interval() -> None:
    found = search([1000] * 64).find([HALF], Decimal(1000))
    doubted = Found(found.weights, {HALF: MovedRank(HALF, 0.2, 0.2)}, found.scale)
    grid = Grid.about((0.0, 63.0), 0.0, 6)
    sure, wide = (rank_intervals(grid, one, HALF, exact=True, bounded=True)[0] for one in (found, doubted))
    assert sure.at(0.95)[1] - sure.at(0.95)[0] <= 4
    assert wide.at(0.95)[1] - wide.at(0.95)[0] >= 20
    assert wide.noise_only.at(0.95) == sure.at(0.95)
    assert wide.spread == sure.spread < 2


def test_a_number_has_no_more_digits_than_its_point_tells() -> None:
    """Cents between bounds far away: one number of two decimals lies nearest to a point, and it is the one that is printed."""
    grid = Grid.about((0.0, 5000.0), 0.0, 20)
    place = grid.steps_above(19.99)
    rows = Placed.of(np.array([place]), [np.array([1000]), *[np.zeros(1, dtype=np.int64)] * 2])
    with seam.replaced(seam.silent):
        receipt = Receipt(Decimal(1000), Decimal(0), "test")
        found = Search(receipt, Secret(rows), grid.width + 1, 0, 1, 1, Relation.PRESENCE).find([HALF], Decimal(1000))
    (one,) = rank_intervals(grid, found, HALF, exact=False, bounded=True)
    assert one.value == 19.99
    assert one.at(0.95)[0] <= 19.99 <= one.at(0.95)[1]


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


def test_users_far_above_the_bound_are_measured_in_every_round() -> None:
    """A fifth of the weight is theirs, and the cells are scaled up as if it lay as the others do."""
    busy = BusyUsers.of(Family(np.array([2.0]), np.array([[1e3]]), np.ones(1)), 2.0)
    cells = Secret(placed([80] * 16, [0] * 16, [20] * 16))
    with seam.replaced(seam.silent):
        receipt = Receipt(Decimal(1000), Decimal(0), "test")
        asked = Search(receipt, cells, 16, 0, 1, 1, Relation.PRESENCE, busy)
        found = asked.find([HALF], Decimal(1000))
    assert {far for far, _ in asked.far} == {320}
    assert found.weights.mean.sum() == pytest.approx(1600, rel=1e-3)


def test_the_rank_is_moved_by_what_was_measured_about_busy_users() -> None:
    """1,000 users with one row, 1,000 with a hundred that count as one: a tenth of the rows of the first are below, nine tenths of the others'."""
    busy = BusyUsers.of(Family(np.array([1.0, 100.0]), np.array([[1e3, 1e3]]), np.ones(1)), 1.0)
    quantiles = [Fraction(1, 4), HALF, Fraction(3, 4)]
    cut, uncut = [225.0] * 2 + [25.0] * 2, [25.0] * 2 + [225.0] * 2
    ranks = busy.moved_ranks(quantiles, np.array([uncut, cut]) * 2, 1.0)
    assert [one.rank < q for q, one in ranks.items()] == [True] * 3
    assert sorted(one.rank for one in ranks.values()) == [one.rank for one in ranks.values()]
    assert "was measured" in in_sentence(ranks)
    assert corrections(ranks)["correction"]["ranks"] == {float(q): float(one.rank) for q, one in ranks.items()}
    assert corrections(busy.unmoved(quantiles)) == {}
    assert "prior" in in_sentence(busy.unmoved(quantiles))


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

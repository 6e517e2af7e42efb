"""The search for quantiles, step by step: its rounds, its scores, the shape it starts from, its intervals, and medians."""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.bounding import BusyUsers, Family
from evenhand.guarantee import Relation
from evenhand.noise import seam
from evenhand.release import Receipt
from evenhand.statistics.busy_ranks import by_part, corrections, in_sentence, measured_ranks, moved_ranks
from evenhand.statistics.ends import moves, settled, wanted_ends, within_node
from evenhand.statistics.finding import Cost, find
from evenhand.statistics.search import SPLIT_BITS, Split, rank_scales, rounds, scores
from evenhand.statistics.shape import COARSE, Tree, moved
from evenhand.tables import Secret

QUARTILES = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]


def test_rounds_find_the_middle_first() -> None:
    plan = rounds(QUARTILES)
    assert [[(target.place, target.rank) for target in targets] for targets in plan] == [
        [(1, Fraction(1, 2))],
        [(0, Fraction(1, 2)), (2, Fraction(1, 2))],
    ]
    for count in (1, 2, 3, 4, 7, 8, 30):
        plan = rounds([Fraction(k + 1, count + 1) for k in range(count)])
        assert len(plan) == count.bit_length()
        assert sorted(target.place for targets in plan for target in targets) == list(range(count))


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_scores_move_by_no_more_than_is_declared(relation: Relation) -> None:
    """All small tables: one unit of weight more at any point, or moved from any point to any other."""
    splits = [None, Split(0, 0), Split(1, 2**SPLIT_BITS // 3), Split(1, 2**SPLIT_BITS), Split(2, 2 ** (SPLIT_BITS - 1))]
    targets = list(itertools.chain.from_iterable(rounds([Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])))
    for target in targets:
        ends = (
            [(None, None)]
            if target.whole
            else [(a, b) for a in splits for b in splits if a is None or b is None or a.point <= b.point]
        )
        for weights in itertools.product((0, 1, 5), repeat=3):
            for lower, upper in ends:
                mine = scores(weights, target.rank, lower, upper)
                for other in _neighbours(weights, relation):
                    moved = [abs(a - b) for a, b in zip(mine, scores(other, target.rank, lower, upper), strict=True)]
                    assert max(moved) <= target.moves(relation)


def _neighbours(weights: tuple[int, ...], relation: Relation) -> list[list[int]]:
    more = [[w + (place == at) for place, w in enumerate(weights)] for at in range(len(weights))]
    if relation is Relation.PRESENCE:
        return more
    return [
        [w - (place == at) for place, w in enumerate(one)] for one in more for at in range(len(weights)) if one[at] > 0
    ]


def _parts(first: float, lower: float, upper: float, weight: int) -> list[int]:
    """Three splits at one point, the later two on either side of the first: what each of the four ranges has there."""
    middle = Split.between(0, first, None, None)
    below, above = Split.between(0, lower, None, middle), Split.between(0, upper, middle, None)
    between = Split.between(0, (lower + first) / 2, below, middle)
    assert between.outer is below
    return [*below.parts(weight), *above.parts(weight)]


@pytest.mark.parametrize(
    "places", [(0.5, 0.25, 0.75), (0.5, 0.5, 0.6), (0.3, 0.299, 0.9), (0.0, 0.0, 1.0), (0.7, 0.1, 0.7)]
)
def test_splits_at_one_point_pass_its_weight_on_once(places: tuple[float, float, float]) -> None:
    """Two independent floors of one weight, ⌊w/2⌋ below and w − ⌊0.6w⌋ above, grow by 2 where w grows by 1."""
    found = [_parts(*places, weight) for weight in range(200)]
    assert [sum(parts) for parts in found] == list(range(200))
    for parts, more in itertools.pairwise(found):
        assert all(a <= b for a, b in zip(parts, more, strict=True))


def test_every_row_is_in_one_node_of_each_level() -> None:
    for points in (4, 16, 100, 2500, 4097):
        tree = Tree(points)
        for point in {0, 1, points // 3, points - 1}:
            weights = [0] * (3 * points)
            weights[points + point] = 7
            counts = tree.counts(weights)
            assert sum(counts[:COARSE]) == sum(counts[COARSE:]) == 7


def test_a_shape_is_even_where_nothing_is_visible_and_follows_what_is() -> None:
    tree = Tree(4097)
    nothing = tree.shape([0] * (COARSE + 256), 1.0)
    assert nothing.shares.max() < 1.1 * nothing.shares.min()
    weights = np.zeros(4097, dtype=int)
    weights[1000:1100] = 10**6
    seen = tree.shape(tree.counts(weights.tolist()), 1.0)
    assert seen.shares[984:1121].sum() > 0.99
    assert seen.node(1050) == (1041, 1056)
    assert [within_node(seen, 1050, 0.5, below, above) for below, above in ((0.4, 0.4), (0.4, 0.0))] == [
        (0, 4096),
        (0, 1056),
    ]
    assert seen.doubt(0) < seen.doubt(2000) < 1e-4


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_ends_of_one_round_share_no_row_and_move_by_no_more_than_is_declared(relation: Relation) -> None:
    """All small tables: what one unit of weight, more or moved, does to the scores of all ends of a round, added up over the ends."""
    for answers in itertools.combinations_with_replacement(range(4), 2):
        plan = wanted_ends(
            [[place] for place in answers], [0.3, 0.7], {above: [[1.0], [1.0]] for above in (False, True)}, [10], 4
        )
        for ends in plan:
            for weights in itertools.product((0, 1, 5), repeat=4):
                mine = [one.scores(weights) for one in ends]
                for other in _neighbours(weights, relation):
                    moved = [
                        max(abs(a - b) for a, b in zip(old, one.scores(other), strict=True))
                        for old, one in zip(mine, ends, strict=True)
                    ]
                    assert sum(moved) <= moves(relation)


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_parts_of_both_kinds_of_users_move_by_no_more_than_is_declared(relation: Relation) -> None:
    """All small tables of two groups: one unit of weight of either kind, more or moved; the L1 and the squared L2 norm."""
    l1, l2_squared = moved(1, 1, relation)
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


def test_the_rank_is_moved_by_what_was_measured_about_busy_users() -> None:
    """1,000 users with one row, 1,000 with a hundred that count as one: a tenth of the rows of the first are below, nine tenths of the others'."""
    busy = BusyUsers.of(Family(np.array([1.0, 100.0]), np.array([[1e3, 1e3]]), np.ones(1)), 1.0)
    cells = {"rows": [1000 * 2**16] * 16, "cut": [900 * 2**16] * 8 + [100 * 2**16] * 8}
    quantiles = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    with seam.replaced(seam.silent):
        receipt = Receipt(Decimal(100), Decimal(0), "test")
        shape = Tree(16).shape(Tree(16).counts(cells["rows"]), 1.0)
        ranks = measured_ranks(receipt, Secret(cells), shape, quantiles, busy, 2**16, Relation.PRESENCE, Decimal(100))
    assert [one.rank < q for q, one in ranks.items()] == [True] * 3
    assert sorted(one.rank for one in ranks.values()) == [one.rank for one in ranks.values()]
    assert "was measured" in in_sentence(ranks)
    assert corrections(ranks)["correction"]["ranks"] == {float(q): float(one.rank) for q, one in ranks.items()}
    assert corrections(moved_ranks(busy, quantiles)) == {}
    assert "prior" in in_sentence(moved_ranks(busy, quantiles))


def test_ends_beyond_the_next_quantile_are_its_own() -> None:
    plan = wanted_ends([[3], [6]], [0.25, 0.75], {False: [[30.0], [10.0]], True: [[30.0], [11.0]]}, [40], 10)
    assert [(end.place, end.above, end.first, end.last, end.rank) for end in itertools.chain(*plan)] == [
        (1, False, 3, 6, 500)
    ]
    assert settled({(1, 0, False): 5, (1, 0, True): 8}, [[3], [6]], 10) == [[(0, 8)], [(5, 8)]]


@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_shares_add_up(relation: Relation) -> None:
    cost = Cost.of(Decimal("0.3"), relation)
    assert cost.shape + cost.weights + cost.search + cost.ends == Decimal("0.3")
    assert bool(cost.weights) is (relation is Relation.PRESENCE)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([1000] * 16, [1, 4, 7, 11, 14]), ([100] * 5 + [9000] + [100] * 10, [5, 5, 5, 5, 5])],
    ids=["even", "most rows share a value"],
)
def test_quantiles_of_a_large_table_are_exact(weights: list[int], expected: list[int]) -> None:
    receipt = Receipt(Decimal(1000), Decimal(0), "test")
    wanted = [Fraction(k, 10) for k in (1, 3, 5, 7, 9)]
    with seam.replaced(seam.silent):
        found = find(receipt, Secret(weights), 16, wanted, 1, Relation.PRESENCE, Decimal(1000))
    assert [found.places[q][0] for q in wanted] == expected
    assert found.weights == [sum(weights)]


def test_what_is_found_late_has_the_larger_rank_error() -> None:
    scales = rank_scales(rounds(QUARTILES), Relation.PRESENCE, 1.0)
    assert scales[1] < scales[0] == scales[2]


def _session(tmp_path: Any, users: int = 4000) -> eh.Session:
    rng = np.random.default_rng(1)
    rows = pa.table(
        {"u": np.arange(users), "g": np.arange(users) % 2, "v": rng.normal(50, 10, users) + 20 * (np.arange(users) % 2)}
    )
    return eh.Session(eh.read(rows, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=100))


def test_a_median_is_one_number_with_an_interval_in_values(tmp_path: Any) -> None:
    """4,000 people at ε = 4: a rank error of 1% has a chance below e^-30."""
    session = _session(tmp_path)
    release = session.median("v", bounds=(0, 120), epsilon=4)
    low, high = release.interval(0.95)
    assert low <= release.value <= high
    assert 55 < low < high < 65
    assert "95% interval" in str(release)
    assert release.error.noise is not None
    assert release.to_dict()["value"] == release.value
    assert session.ask(eh.median("v", bounds=(0, 120)), epsilon=4).statistic == "median of v"
    assert session.preview.median("v", bounds=(0, 120), epsilon=4).cost.epsilon == 4


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

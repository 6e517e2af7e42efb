"""The three parts of objective perturbation, each on neighbouring tables (docs/proofs/objective-perturbation.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.guarantee import Relation
from evenhand.learning import BoundedERM
from evenhand.learning.data import row_sources
from evenhand.learning.data.features import STEPS, FeatureMap, feature_map
from evenhand.learning.data.row_sources import FINE_BITS, FINENESS, Coefficients, MemoryRows
from evenhand.learning.losses import LOSSES, MarginLoss, loss_named
from evenhand.learning.perturbation import bounded_erm, objective_perturbation, shrink_to_constant
from evenhand.learning.perturbation.bounded_erm import release
from evenhand.learning.perturbation.objective_perturbation import Parts, inside
from evenhand.learning.perturbation.shrink_to_constant import paired_squares
from evenhand.noise import seam
from evenhand.noise.linear_term import LinearTerm
from evenhand.tables import Secret

seeds = st.integers(0, 10**6)
RELATIONS = [Relation.PRESENCE, Relation.VALUES]
SHAPES: list[dict[str, Any]] = [{"feature_bounds": (-1, 1)}, {"feature_norm": 1.5}]


@dataclass
class Neighbours:
    """Two tables that differ by all rows of one user, at most τ of which are kept."""

    seed: int
    relation: Relation
    tau: int = 3
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = rng = np.random.default_rng(self.seed)
        users = np.sort(rng.integers(0, 12, size=int(rng.integers(20, 60))))
        # As if the first τ rows of a user were the random ones.
        users = users[np.concatenate([np.arange(k) for k in np.bincount(users) if k]) < self.tau]
        X, y = rng.normal(size=(len(users), 3)), rng.integers(0, 2, len(users)).astype(float)
        victim = users == rng.choice(users)
        wild = np.where(victim[:, None], rng.choice([9.0, -9.0, np.inf, 0.4], size=X.shape), X)
        if self.relation is Relation.PRESENCE:
            self.tables = [(wild, y, users), (X[~victim], y[~victim], users[~victim])]
        else:
            self.tables = [(wild, y, users), (X, np.where(victim, 1 - y, y), users)]

    def kept(self, mapped: FeatureMap) -> list[Any]:
        """The integer rows of both."""
        found = []
        for X, y, users in self.tables:
            rows = MemoryRows(X, 2 * y - 1, np.unique(users, return_inverse=True)[1], self.relation, ("user",))
            with rows.limited(mapped, self.tau, Secret.reveal) as kept:
                found.append(kept)
        return found


def mapping(shape: dict[str, Any]) -> FeatureMap:
    return feature_map(3, shape.get("feature_norm"), shape.get("feature_bounds"), intercept=True)


@given(seed=seeds, loss=st.sampled_from(LOSSES), relation=st.sampled_from(RELATIONS), shape=st.sampled_from(SHAPES))
def test_a_user_moves_each_block_of_the_gradient_as_declared(
    seed: int, loss: str, relation: Relation, shape: dict[str, Any]
) -> None:
    neighbours, mapped = Neighbours(seed, relation), mapping(shape)
    f = Coefficients.zero(4).moved(neighbours.rng.normal(scale=5, size=4))
    one, other = (rows.integer_gradient(f, loss_named(loss, (-1.0, 1.0))) for rows in neighbours.kept(mapped))
    place, bound = 0, relation.moves * neighbours.tau * 2**FINE_BITS * STEPS
    for size, width in mapped.blocks:
        moved = sum((a - b) ** 2 for a, b in zip(one[place : place + size], other[place : place + size], strict=True))
        assert moved <= (width * bound) ** 2
        place += size


def test_the_declared_move_of_a_block_is_reached() -> None:
    """At the edges of the box: a smaller noise would be wrong."""
    mapped = mapping(SHAPES[0])
    rows = MemoryRows(np.full((2, 3), 50.0), np.ones(2), np.array([0, 0]), Relation.PRESENCE, ("user",))
    with rows.limited(mapped, 2, Secret.reveal) as kept:
        gradient = kept.integer_gradient(Coefficients.zero(4), loss_named("huber-svm", None))
    for value, (_, width) in zip(gradient, mapped.blocks, strict=True):
        assert Fraction(999, 1000) * width < Fraction(-value, 2 * 2**FINE_BITS * STEPS) <= width


def determinant(matrix: list[list[Fraction]]) -> Fraction:
    """By elimination, exactly; the matrix is positive definite."""
    rows, result = [list(row) for row in matrix], Fraction(1)
    for k, pivot in enumerate(rows):
        result *= pivot[k]
        for row in rows[k + 1 :]:
            factor = row[k] / pivot[k]
            row[:] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return result


@given(
    seed=seeds,
    relation=st.sampled_from(RELATIONS),
    tau=st.integers(1, 6),
    ridge=st.sampled_from([0.01, 0.5, 7.0, 300.0]),
)
def test_a_user_changes_the_determinant_as_declared(seed: int, relation: Relation, tau: int, ridge: float) -> None:
    """With a curvature of 0 or 1 the Hessian is a matrix of fractions."""
    neighbours, mapped = Neighbours(seed, relation, tau), mapping(SHAPES[1])
    loss = loss_named("squared", (-1.0, 1.0))
    f = neighbours.rng.normal(scale=3, size=4)
    found = []
    for rows in neighbours.kept(mapped):
        bent = rows._X[loss.curvature(rows._X @ f / STEPS, rows._targets) > 0].astype(int).astype(object)
        total = bent.T @ bent if len(bent) else np.zeros((4, 4), dtype=object)
        plain = [[Fraction(int(total[j, k]), STEPS**2) for k in range(4)] for j in range(4)]
        found.append(
            determinant([[v + Fraction(ridge) * (j == k) for k, v in enumerate(r)] for j, r in enumerate(plain)])
        )
    rank = min(tau, 4)
    allowed = (1 + Fraction(2 * tau, rank) / Fraction(ridge)) ** rank
    assert 1 / allowed <= found[0] / found[1] <= allowed
    declared = Parts.of(Decimal(1), tau, ridge, mapped.norm**2, 4).curvature
    assert float(declared) >= np.log(float(allowed)) * (1 - 1e-14)


@dataclass
class Given:
    """A sampler that gives a chosen linear term, adds nothing else, and remembers what it was given."""

    term: Sequence[int]
    seen: list[tuple[list[int], Fraction]] = field(default_factory=list)

    def __call__(self, name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        if name == "blockwise":
            return list(self.term)
        self.seen.append((list(values), scale))
        return list(values)


@given(
    seed=seeds,
    loss=st.sampled_from(LOSSES),
    relation=st.sampled_from(RELATIONS),
    shape=st.sampled_from(SHAPES),
    faded=st.booleans(),
    pulled=st.sampled_from([0.0, 0.3, 1e4]),
)
def test_neighbours_with_the_same_exact_minimiser_are_as_close_as_declared(
    seed: int, loss: str, relation: Relation, shape: dict[str, Any], faded: bool, pulled: float
) -> None:
    """b = −Φ(f) + Λp on each table, for one f: the computed minimisers differ by what was rounded, not by what the user does."""
    neighbours, mapped, kind = Neighbours(seed, relation), mapping(shape), loss_named(loss, (-1.0, 1.0))
    toward = neighbours.rng.normal(size=4) * pulled  # the linear term has a limit, so f is not far from there
    f = Coefficients.zero(4).moved(toward + neighbours.rng.normal(size=4) * neighbours.rng.choice([0.01, 0.1, 1.0]))
    options: dict[str, Any] = {"label_bounds": (-1, 1)} if loss == "squared" else {}
    ridge = float(neighbours.rng.choice([20.0, 400.0]))
    model = BoundedERM(
        1.0, loss=loss, rows_per_user=neighbours.tau, regularisation=ridge, method="objective",
        protects=relation.value, **shape, **options
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            row_sources, "random_ranks", lambda users, counts: np.concatenate([np.arange(k) for k in counts if k])
        )
        patch.setattr(objective_perturbation, "MOST_ROWS", 20 if faded else 2**27)
        patch.setattr(objective_perturbation, "FARTHEST", neighbours.rng.choice([0.05, 32.0]))  # cut, or not
        patch.setattr(
            bounded_erm, "release", lambda problem, scales, receipt, _: release(problem, scales, receipt, toward)
        )
        unit = unit_of(model, mapped, kind, relation)
        back = [round(-Fraction(ridge) * Fraction(float(value)) / unit) for value in toward]
        outputs = [
            fitted(
                model,
                table,
                [b - public for b, public in zip(exact_term(rows, f, ridge, kind, unit), back, strict=True)],
            )
            for table, rows in zip(neighbours.tables, neighbours.kept(mapped), strict=True)
        ]
    (one, scale), (other, same) = outputs
    assert scale == same
    output = Parts.of(Decimal(1), neighbours.tau, ridge, kind.roundest * mapped.norm**2, 4).output
    assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) <= (scale * Fraction(output)) ** 2


def fitted(model: BoundedERM, table: Any, term: Sequence[int]) -> tuple[list[int], Fraction]:
    sampler, (X, y, users) = Given(term), table
    labels = 2 * y - 1 if model.loss == "squared" else y
    with seam.replaced(sampler):
        model.fit(X, labels, users=users)
    (seen,) = sampler.seen
    return seen


def unit_of(model: BoundedERM, mapped: FeatureMap, loss: MarginLoss, relation: Relation) -> Fraction:
    """The lattice of the linear term, by a fit of nobody."""
    terms: list[LinearTerm] = []

    def seen(self: LinearTerm) -> list[int]:
        terms.append(self)
        return [0] * self.size

    with pytest.MonkeyPatch.context() as patch, seam.replaced(seam.silent):
        patch.setattr(LinearTerm, "drawn", seen)
        model.fit(np.zeros((1, 3)), np.ones(1), users=[0])
    (_, steps), (_, width) = terms[0].moves[0], mapped.blocks[0]
    moved = width * relation.moves * int(model.rows_per_user) * Fraction(loss.steepest * (1 + 1e-12))
    unit = Fraction(moved / steps)
    assert unit == Fraction(2) ** round(np.log2(float(unit)))
    return unit


def exact_term(rows: Any, f: Coefficients, ridge: float, loss: MarginLoss, unit: Fraction) -> list[int]:
    """−Φ(f), on the lattice."""
    slope_unit = Fraction(loss.steepest) / STEPS / 2**FINE_BITS
    parts = zip(rows.integer_gradient(f, loss), f.steps, strict=True)
    return [round(-(g * slope_unit + Fraction(ridge) * Fraction(step, 2**FINENESS)) / unit) for g, step in parts]


@given(seed=seeds, users=st.integers(1, 9), shape=st.sampled_from(SHAPES))
def test_a_user_moves_the_sum_over_random_pairs_as_declared(seed: int, users: int, shape: dict[str, Any]) -> None:
    """For each pairing of fewer users there is one of more, or of changed ones, in which one pair is another, or one more (docs/proofs/search.md, Claim 6)."""
    rng, mapped = np.random.default_rng(seed), mapping(shape)
    rows = mapped.integers(rng.choice([-9.0, -0.5, 0.0, 0.7, 9.0, np.nan], size=(users + 1, 3)))
    limit = 4 * mapped.squared_radius
    newcomer = rows[rng.integers(0, users + 1)] * 0 + rows[-1]
    half, odd = users // 2, users % 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shrink_to_constant, "draws", np.arange)  # pairs are those at distance ``half``
        few = paired_squares(rows[:users], limit)
        if odd:  # who was left over is paired with the newcomer
            order = [*range(half), users - 1, *range(half, 2 * half), users]
            more = paired_squares(np.vstack([rows[:users], newcomer])[order], limit)
        else:  # the newcomer takes somebody's place, who is left over
            more = paired_squares(np.vstack([newcomer, rows[1:users], rows[:1]])[: users + 1], limit)
        changed = paired_squares(np.vstack([newcomer, rows[1:users]]), limit)
    assert abs(more - few) <= limit
    assert abs(changed - few) <= limit


def test_far_pairs_reach_the_limit_and_none_more() -> None:
    """With a smaller limit the noise would be too small."""
    mapped = mapping(SHAPES[0])
    limit, rows = 4 * mapped.squared_radius, mapped.integers(np.array([[9.0] * 3, [-9.0] * 3]))
    assert 0.99 * limit < paired_squares(rows, limit) <= limit
    assert paired_squares(rows, limit // 2) == limit // 2


def test_cutting_to_a_ball() -> None:
    rng = np.random.default_rng(3)
    for reach in (Fraction(1, 3), Fraction(10)):
        for steps in ([0, 0], [int(v) << 50 for v in rng.integers(-(2**50), 2**50, 4)], [2**300, -1]):
            cut = inside(steps, reach)
            radius = reach * 2**FINENESS
            assert sum(step * step for step in cut) <= (radius + 4) ** 2
            if sum(step * step for step in steps) <= radius**2:
                assert list(cut) == list(steps)
            else:  # the same direction, at the surface
                assert sum(step * step for step in cut) >= (radius - 4) ** 2

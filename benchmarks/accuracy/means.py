"""Means: the released error as a multiple of the best that any strategy reaches with its best parameter, in hindsight.

The hindsight best knows the kind of table: for smooth weights and the centred interval it has the best bound for free and
all of ε (a row limit with the same bound is never better); for a located mean it has the best cap and pays for the location.
Errors are averaged over several tables with the same counts and fresh user means: on a single table some bound always
happens to make biases of opposite sign cancel, and no method can be held to that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.noise import discrete_laplace
from evenhand.bounding import (
    MEAN_SHARE,
    ROWS_SHARE,
    Choice,
    LocatedMean,
    MeanBelief,
    Sizes,
    Tilt,
    best_mean,
    with_belief,
)
from evenhand.guarantee import Relation, split
from evenhand.profiles import (
    Population,
    Support,
    locate,
    location_request,
    mean_shapes,
    row_buckets,
    support_of_counts,
    support_of_histogram,
    tilt_request,
)
from evenhand.profiles.location import STEPS
from evenhand.tables import Grid

Array = npt.NDArray[np.float64]
GRID = 1 << 20


class Table:
    """Users with ``rows`` rows and mean values in [0, 1]."""

    def __init__(self, rows: npt.NDArray[np.int64], means: Array) -> None:
        self.rows, self.means = rows.astype(np.float64), means
        self.sums = np.floor(rows * means * GRID + 0.5)
        self.truth = float(self.sums.sum() / (rows.sum() * GRID))
        self.histogram = row_buckets().histogram(rows)
        self.support = support_of_counts(rows)


def smooth(table: Table, h: float, epsilon: float, relation: Relation) -> float:
    """Mean squared error of smooth weights with bound h."""
    weight = np.minimum(h, table.rows)
    kept = weight.sum()
    mean = float(weight @ table.means / kept)
    shape = 1.0 if relation is Relation.VALUES else mean**2 + (1 - mean) ** 2
    return (mean - table.truth) ** 2 + 2 * shape * (h / (epsilon * kept)) ** 2


def clipped(
    table: Table, centre: float, caps: tuple[float, float], epsilon: float, rows: float, relation: Relation
) -> float:
    """Mean squared error of a mean clipped around a centre (in parts of the range), given the noisy row count."""
    total = np.clip(table.rows * (table.means - centre), -caps[0], caps[1]).sum()
    moved = max(caps) if relation is Relation.PRESENCE else sum(caps)
    return (centre + total / rows - table.truth) ** 2 + 2 * (moved / (epsilon * rows)) ** 2


def choose(table: Table, epsilon: Decimal, relation: Relation, rng: np.random.Generator) -> tuple[Choice, Decimal]:
    """One run of Evenhand's choice, with fresh noise; also the ε left for the release."""
    left, moved = epsilon, relation.moves
    support: Support = table.support
    sizes = Sizes.exact(support)
    if relation is Relation.PRESENCE:
        part, left = split(epsilon, MEAN_SHARE)
        buckets = row_buckets()
        noisy = table.histogram + discrete_laplace(rng, 1 / float(part), buckets.size)
        support = support_of_histogram(buckets, noisy, 1 / float(part))
        sizes = Sizes.of(Population.behind(buckets, noisy, 1 / float(part)))
    request, location, tilt = location_request(support, left, relation), None, None
    if request is not None:
        asked = table.means[table.rows >= request.rows]
        bins = np.minimum((asked * request.bins).astype(int), request.bins - 1)
        noise = discrete_laplace(rng, moved / float(request.epsilon), request.bins)
        counts = np.bincount(bins, minlength=request.bins) + noise
        location = locate(request, counts, relation)
        left -= request.epsilon
    tilting = None if location is None else tilt_request(support, location, left, relation)
    if tilting is not None:
        distance = np.clip((table.means - tilting.centre) / tilting.reach, -1, 1)
        place = np.searchsorted(tilting.starts, table.rows, side="right") - 1
        exact = np.floor(STEPS * np.bincount(place, weights=distance, minlength=len(tilting.starts))).astype(np.int64)
        noise = discrete_laplace(rng, STEPS * moved / float(tilting.epsilon), len(exact))
        tilt = Tilt.of(tilting, (exact + noise).tolist(), moved)
        left -= tilting.epsilon
    grid = Grid(0.0, 1.0, 0.0, 20)
    choice = best_mean(support, grid, left, relation, location)
    belief = MeanBelief(choice.strategy, sizes, GRID)
    if request is not None and location is not None:
        shapes = mean_shapes(request, counts, location, moved)
        belief = replace(belief, shapes=shapes, centre=location.centre, asked=request.rows, tilt=tilt)
    return with_belief(choice, belief, grid), left


def squared_error(
    table: Table,
    choice: Choice,
    left: Decimal,
    relation: Relation,
    rng: np.random.Generator,
    caps: tuple[float, float] | None = None,
) -> float:
    """Mean squared error of a choice; ``caps`` replaces the chosen caps of a located mean."""
    made = choice.strategy
    if not isinstance(made, LocatedMean):
        return smooth(table, float(made.bound), float(left), relation)
    rows, for_sum = float(table.rows.sum()), left
    if made.rows_cap is not None and made.rows is not None:
        for_rows, for_sum = split(left, ROWS_SHARE)
        kept = np.minimum(table.rows, made.rows_cap).sum()
        noisy = kept + rng.laplace() * made.rows_cap / float(for_rows)
        rows = float(np.clip(noisy, made.rows / 2, made.rows * 2))
    limits = caps or (made.below / GRID, made.above / GRID)
    return clipped(table, made.centre / GRID, limits, float(for_sum), rows, relation)


def measure(tables: Sequence[Table], epsilon: Decimal, relation: Relation, repeats: int, seed: int) -> dict[str, Any]:
    """Root mean squared error of Evenhand and of the strategies in hindsight, over tables with the same counts."""
    rng, eps = np.random.default_rng(seed), float(epsilon)
    runs = [(table, *choose(table, epsilon, relation, rng)) for table in tables for _ in range(repeats)]
    rmse = math.sqrt(
        float(np.mean([squared_error(table, choice, left, relation, rng) for table, choice, left in runs]))
    )
    largest, rows = float(tables[0].rows.max()), float(tables[0].rows.sum())

    def lowest(bounds: Array, error: Callable[[Table, float], float]) -> float:
        return math.sqrt(min(float(np.mean([error(table, bound) for table in tables])) for bound in bounds))

    bounds = np.geomspace(1, largest, 50)
    best = {"SmoothWeights": lowest(bounds, lambda table, h: smooth(table, h, eps, relation))}
    if relation is not Relation.PRESENCE:
        best["CentredInterval"] = lowest(
            bounds / 2, lambda table, cap: clipped(table, 0.5, (cap, cap), eps, rows, relation)
        )
    first = {
        id(table): (choice, left) for table, choice, left in reversed(runs) if isinstance(choice.strategy, LocatedMean)
    }
    if len(first) == len(tables):
        caps = np.geomspace(largest * 1e-3, largest, 40)

        def located(ratio: float) -> float:
            """The best cap below the centre, with ``ratio`` times as much above."""
            return lowest(
                caps,
                lambda table, cap: squared_error(
                    table, *first[id(table)], relation, np.random.default_rng(0), (cap, cap * ratio)
                ),
            )

        best["LocatedMean"] = min(
            located(ratio) for ratio in ((1.0,) if relation is Relation.PRESENCE else (0.3, 1.0, 3.0))
        )
    return {
        "rmse": rmse,
        "hindsight": best,
        "multiple": rmse / min(best.values()),
        "located": sum(isinstance(choice.strategy, LocatedMean) for _, choice, _ in runs) / len(runs),
    }

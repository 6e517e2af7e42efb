"""Means by group against a loop over groups with ε/G each, which is what one would write in an hour with means that have no groups.

A NumPy copy of `statistics/located_groups.py`: the same shares, choices, shrinkage and estimate, with NumPy's noise and without an engine.
The loop runs the choice of a mean without groups (`means.py`) on the rows of each group. Errors are RMSE over groups.

    python -m benchmarks.accuracy.group_means [--short]      # writes results/group-means-DATE.md
"""

from __future__ import annotations

import argparse
import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.accuracy import means
from benchmarks.accuracy.group_shapes import SHAPES, Grouped, draw
from evenhand.bounding import (
    ROWS_SHARE,
    Distances,
    LocatedMean,
    best_groups_bound,
    best_residual_bound,
    best_rows_bound,
    norms_of,
    shrunken_ratios,
    shrunken_steps,
    typical_groups,
    weight_for_average,
)
from evenhand.guarantee import Relation, split
from evenhand.ledger import mechanism_delta
from evenhand.noise import Gaussian, Laplace
from evenhand.profiles import Array, Buckets, Support, row_buckets, support_of_histogram
from evenhand.release import Measurement, Noisy, ResidualMean
from evenhand.statistics.group_means import GroupMeans
from evenhand.statistics.located_groups import _SIZES, GROUPS_SHARE, TOO_ROUGH, Purse, Shares, roughness
from evenhand.statistics.pairs import OCTAVES, ROW

Rng = np.random.Generator
_NONE = Decimal(0)


def _unused(measurement: Measurement, share: Fraction) -> Noisy:
    raise AssertionError("this copy draws its own noise")


@dataclass
class Run:
    """One release: a table, a purse and a source of noise."""

    table: Grouped
    relation: Relation
    rng: Rng
    purse: Purse

    def noise(self, share: float | Fraction, l1: float, l2: float, size: int) -> tuple[Array, float]:
        """Noise, and its standard deviation."""
        deviation = self.purse.deviation(share, l1, l2)
        if self.purse.squared:
            return self.rng.normal(0, deviation, size), deviation
        return self.rng.laplace(0, deviation / math.sqrt(2), size), deviation

    def norms(self, values: Array) -> Array:
        """Of each user over groups."""
        table = self.table
        if self.purse.squared:
            return np.sqrt(np.bincount(table.user, weights=values**2, minlength=table.users))
        return np.bincount(table.user, weights=np.abs(values), minlength=table.users).astype(np.float64)

    def histogram(self, buckets: Buckets, values: Array, share: Fraction, public: bool) -> Support:
        """Users by a value that is at least 1 step, public or noisy."""
        counts = buckets.histogram(np.ceil(values[values > 0]).astype(np.int64)).astype(np.float64)
        if public:
            return support_of_histogram(buckets, counts, 1e-9)
        noise, deviation = self.noise(share, 1, 1, buckets.size)
        return support_of_histogram(buckets, counts + noise, deviation / math.sqrt(2))


def located(table: Grouped, epsilon: Decimal, delta: Decimal, relation: Relation, rng: Rng) -> Array:
    """The released means of one run."""
    groups, public = table.groups, relation.counts_are_public
    buckets = row_buckets(max(2 * groups, 4))
    first, left = (_NONE, epsilon) if public else split(epsilon, GROUPS_SHARE)
    start = Run(table, relation, rng, Purse(first or epsilon, _NONE, _unused))
    found = start.histogram(buckets, table.groups_per_user, Fraction(1), public)
    typical = min(typical_groups(found), groups)
    usable = mechanism_delta(delta)
    gaussian = bool(usable) and GroupMeans.gaussian_wins(left, usable, typical)
    run = Run(table, relation, rng, Purse(left, usable if gaussian else _NONE, _unused))
    if not (public or gaussian) and roughness(run.purse, groups, typical, found.rows) > TOO_ROUGH:
        return weighted(table, float(left), rng)
    return _steps(run, found, typical, Shares.of(run.purse, groups, typical, found.people, found.rows, public))


def _steps(run: Run, found: Support, typical: float, shares: Shares) -> Array:
    table, purse, groups = run.table, run.purse, run.table.groups
    public, moves = run.relation.counts_are_public, run.relation.moves
    spread = math.sqrt(typical) if purse.squared else 1.0
    # Rough means.
    reach = (1, 1.0) if public else (2, math.sqrt(2))
    bound = best_groups_bound(found, purse.deviation(shares.rough, *reach), groups, purse.squared)
    norm = math.sqrt(bound) if purse.squared else bound
    own = np.sqrt(table.groups_per_user) if purse.squared else table.groups_per_user
    weight = np.minimum(1, norm / np.maximum(own, 1e-9))[table.user]
    part = table.sums / table.rows
    above, weights = table.by_group(weight * part), table.by_group(weight)
    noise, deviation = run.noise(shares.rough, reach[0] * norm, reach[1] * norm, 3 * groups)
    if public:
        centres = shrunken_ratios(above + noise[:groups], weights, deviation, 0.0)
        scales = table.by_group(np.ones(len(table.rows))) / np.maximum(table.rows_by_group, 1)
        scales = np.where(table.rows_by_group > 0, scales, 1.0)
    else:
        octave = table.by_group(weight * np.minimum(np.floor(np.log2(table.rows)) / OCTAVES, 1))
        lower = weights - above + noise[groups : 2 * groups]
        above = above + noise[:groups]
        weights = above + lower
        middle = min(max(float(above.sum()) / max(float(weights.sum()), 1.0), 0.0), 1.0)
        centres = shrunken_ratios(above, weights, deviation * math.hypot(middle, 1 - middle), deviation)
        scales = 2.0 ** (-OCTAVES * shrunken_ratios(octave + noise[2 * groups :], weights, deviation, deviation))
    # Rows.
    size = table.rows * scales[table.group]
    sizes = run.norms(size)
    steps = run.histogram(_SIZES, sizes * ROW, shares.rows_profile, public)
    support = Support(steps.sizes / ROW, steps.users, None if steps.lowest is None else steps.lowest / ROW)
    rows, blur = table.rows_by_group * scales, 0.0
    if not public:
        most = best_rows_bound(support, purse.deviation(shares.rows, 1, 1), groups, spread)
        noise, blur = run.noise(shares.rows, most, most, groups)
        rows = table.by_group(size * np.minimum(1, most / np.maximum(sizes, 1e-12))[table.user]) + noise
    # Distances, twice.
    sums, noises, tried = [], [], []
    for turn in (0, 1):
        residual = (table.sums - table.rows * centres[table.group]) * scales[table.group]
        norms = run.norms(residual)
        scale = purse.deviation(shares.distances[turn], moves, math.sqrt(moves)) / math.sqrt(2)
        wanted = Distances.of(support, scale)
        asked = sizes >= max(wanted.rows, 1e-9)
        places = np.searchsorted(wanted.edges, norms[asked] / sizes[asked], side="left")
        extra, _ = run.noise(shares.distances[turn], moves, math.sqrt(moves), wanted.size)
        seen = wanted.seen(np.bincount(places, minlength=wanted.size) + extra)
        share = shares.sums[turn]
        cap = 1.0
        if seen is not None:
            forecast = norms_of(support, seen)
            cap = best_residual_bound(forecast, purse.deviation(share, moves, moves), groups, spread)
        noise, deviation = run.noise(share, moves * cap, moves * cap, groups)
        sums.append(table.by_group(residual * np.minimum(1, cap / np.maximum(norms, 1e-12))[table.user]) + noise)
        noises.append(deviation)
        tried.append(centres)
        centres = np.clip(centres + shrunken_steps(sums[-1], rows, deviation, blur), 0.0, 1.0)
    kind = Gaussian if purse.squared else Laplace
    scaled = [
        kind(Fraction(one * 2**30 / (1 if purse.squared else math.sqrt(2)))) for one in (*noises, max(blur, 1e-9))
    ]
    third = None if public else scaled[2]
    unit = (2.0**-30,) * 3
    return np.array(
        [
            ResidualMean(a, b, d - c, n, unit, (scaled[0], scaled[1], third), (-d, 1 - d), d, 1.0).value
            for a, b, c, d, n in zip(*sums, *tried, rows, strict=True)
        ]
    )


def weighted(table: Grouped, epsilon: float, rng: Rng) -> Array:
    """Rows weighted by user and released as a pair: the rule for few people, and for all means by group before."""
    buckets, first, left = row_buckets(), 0.35 * epsilon, 0.65 * epsilon
    counts = buckets.histogram(table.rows_per_user.astype(np.int64))
    support = support_of_histogram(buckets, counts + rng.laplace(0, 1 / first, buckets.size), 1 / first)
    bound = float(weight_for_average(support, left / table.groups))
    weight = np.minimum(1, bound / np.maximum(table.rows_per_user, 1))[table.user]
    above, all_rows = table.by_group(weight * table.sums), table.by_group(weight * table.rows)
    above, below = (one + rng.laplace(0, bound / left, table.groups) for one in (above, all_rows - above))
    total = above + below
    return np.clip(np.where(total > 0, above / np.where(total > 0, total, 1), 0.5), 0, 1)


def loop(table: Grouped, epsilon: Decimal, relation: Relation, rng: Rng) -> Array:
    """A mean without groups for each group, with ε/G."""
    share, released = epsilon / table.groups, np.full(table.groups, 0.5)
    order = np.argsort(table.group, kind="stable")
    starts = np.searchsorted(table.group[order], np.arange(table.groups + 1))
    for group in np.flatnonzero(table.rows_by_group):
        own = order[starts[group] : starts[group + 1]]
        released[group] = _ungrouped(table.rows[own], table.sums[own], share, relation, rng)
    return released


def _ungrouped(rows: Array, sums: Array, epsilon: Decimal, relation: Relation, rng: Rng) -> float:
    alone = means.Table(rows.astype(np.int64), sums / rows)
    choice, left = means.choose(alone, epsilon, relation, rng)
    made = choice.strategy
    if not isinstance(made, LocatedMean):
        bound = float(made.bound)
        weight = np.minimum(bound, rows)
        above = float(weight @ alone.means) + rng.laplace(0, bound / float(left))
        if relation.counts_are_public:
            return float(np.clip(above / weight.sum(), 0, 1))
        below = float(weight @ (1 - alone.means)) + rng.laplace(0, bound / float(left))
        return float(np.clip(above / (above + below), 0, 1)) if above + below > 0 else 0.5
    total, for_sum = float(rows.sum()), left
    if made.rows_cap is not None and made.rows is not None:
        for_rows, for_sum = split(left, ROWS_SHARE)
        noisy = np.minimum(rows, made.rows_cap).sum() + rng.laplace(0, made.rows_cap / float(for_rows))
        total = float(np.clip(noisy, made.rows / 2, made.rows * 2))
    low, high, centre = (one / means.GRID for one in (made.below, made.above, made.centre))
    moved = low + high if relation.counts_are_public else max(low, high)
    residual = np.clip(sums - rows * centre, -low, high).sum() + rng.laplace(0, moved / float(for_sum))
    return float(np.clip(centre + residual / total, 0, 1))


def ratio(
    shape: str, groups: int, epsilon: float, delta: float, relation: Relation, tables: int, runs: int
) -> tuple[float, float, float]:
    """RMSE of ours over that of the loop, with a one-sided 95% limit above it (tables drawn anew), and that of weighted rows."""
    rng, exact, squares = np.random.default_rng(7), Decimal(str(epsilon)), []
    for seed in range(tables):
        table = draw(shape, groups, 1000 + seed)

        def error(released: Array, table: Grouped = table) -> float:
            return float(np.mean((released - table.truth)[table.rows_by_group > 0] ** 2))

        ours = [error(located(table, exact, Decimal(str(delta)), relation, rng)) for _ in range(runs)]
        theirs = [error(loop(table, exact, relation, rng)) for _ in range(runs)]
        before = [error(weighted(table, epsilon, rng)) for _ in range(runs)]
        squares.append([np.mean(ours), np.mean(theirs), np.mean(before)])
    array = np.array(squares)
    middle = array.mean(axis=0)
    drawn = array[rng.integers(0, tables, (400, tables))].mean(axis=1)
    limit = float(np.quantile(np.sqrt(drawn[:, 0] / drawn[:, 1]), 0.95))
    return math.sqrt(middle[0] / middle[1]), limit, math.sqrt(middle[2] / middle[1])


def report(lines: Sequence[tuple[str, int, float, float, Relation, tuple[float, float, float]]]) -> str:
    """A table, worst first in the summary."""
    ours = np.array([line[-1][0] for line in lines])
    text = [
        f"# Means by group against a loop over groups with ε/G, {datetime.date.today().isoformat()}",
        "",
        "RMSE over groups as a multiple of the loop's, 10,000 users; in brackets the one-sided 95% limit (tables drawn anew), then, under presence, weighted rows, the rule before.",
        f"Of {len(ours)} cases the median is {np.median(ours):.2f}, the 95% quantile {np.quantile(ours, 0.95):.2f}, the largest {ours.max():.2f}; "
        f"{int((ours <= 1.05).sum())} are at most 1.05.",
        "",
        "| shape | groups | ε | δ | protects | ours (limit) | weighted rows |",
        "|---|---|---|---|---|---|---|",
    ]
    text += [
        f"| {shape} | {groups} | {epsilon:g} | {delta:g} | {relation.value} | {ours:.2f} ({limit:.2f}) | "
        + ("– |" if relation.counts_are_public else f"{before:.2f} |")
        for shape, groups, epsilon, delta, relation, (ours, limit, before) in lines
    ]
    return "\n".join(text) + "\n"


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few repetitions, fewer cases")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    tables, runs = (3, 2) if arguments.short else (6, 3)
    lines = []
    for groups in (2, 10) if arguments.short else (2, 10, 50):
        for shape in SHAPES:
            for epsilon in (0.1, 1.0, 4.0):
                kinds = [(0.0, Relation.PRESENCE), (0.0, Relation.VALUES)]
                kinds += [(1e-6, Relation.PRESENCE)] if groups >= 50 else []
                for delta, relation in kinds:
                    few = (tables, 1) if groups >= 50 else (tables, runs)
                    found = ratio(shape, groups, epsilon, delta, relation, *few)
                    lines.append((shape, groups, epsilon, delta, relation, found))
                    print(shape, groups, epsilon, delta, relation.value, *(f"{one:.2f}" for one in found), flush=True)
    text = report(lines)
    print(text)
    (arguments.out / f"group-means-{datetime.date.today().isoformat()}.md").write_text(text)


if __name__ == "__main__":
    main()

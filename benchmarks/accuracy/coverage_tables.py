"""Tables for `coverage.py`, drawn anew in each run: how many rows each user has.

The priors of the posterior were chosen while looking at `TUNED` (and at the demo's table and others like it: most people alike, a power law beneath).
`HELD_OUT` was in view: two crowds and robots led to a change of what is read around the last visible bucket, and all of them were looked at when what is
added back was chosen. `FRESH` was looked at once: its two tables of people alike above a power law led to the prior above a break, which was
chosen on others of the kind. `NEW` was watched while the measured total was brought in (2026-11-16), so it is held out no more. `DRAWN` are mixtures whose kinds and parameters are drawn too: others of that law were looked at
while the measured total was made to speak, these were not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import shapes
from benchmarks.shapes import Rows

Draw = Callable[[np.random.Generator], Rows]


def _resampled(make: Callable[[], Rows]) -> Draw:
    once = functools.cache(make)
    return lambda rng: rng.choice(once(), len(once()))


def _whole(sizes: Any) -> Rows:
    rounded: Rows = np.clip(np.ceil(sizes), 1, 10**7).astype(np.int64)
    return rounded


TUNED: dict[str, Draw] = {
    "MovieLens-20M": _resampled(shapes.movielens_20m),
    "Book-Crossing": _resampled(shapes.book_crossing),
    "shop": _resampled(shapes.shop),
    "course": _resampled(shapes.course),
    "Zipf 2, 20k users": lambda rng: shapes.zipf(20_000, 2.0, rng),
    "Zipf 2.5, 2k": lambda rng: shapes.zipf(2_000, 2.5, rng),
    "Pareto 1.1, 100k": lambda rng: shapes.pareto(100_000, 1.1, rng),
    "Pareto 1.5, 5k": lambda rng: shapes.pareto(5_000, 1.5, rng, least=10),
    "Pareto 1.8, 12k": lambda rng: _whole(rng.pareto(1.8, 12_000) + 1),
    "Pareto 3, 2k": lambda rng: shapes.pareto(2_000, 3.0, rng, least=20),
    "log-normal 0.5, 2k": lambda rng: shapes.lognormal(2_000, 20, 0.5, rng),
    "log-normal 1, 20k": lambda rng: shapes.lognormal(20_000, 20, 1.0, rng),
    "log-normal 1.2, 6k": lambda rng: shapes.lognormal(6_000, 13.5, 1.2, rng),
    "log-normal 1.8, 12k": lambda rng: shapes.lognormal(12_000, 2.7, 1.8, rng),
    "log-normal 2, 50k": lambda rng: shapes.lognormal(50_000, 20, 2.0, rng),
    "geometric, 2k": lambda rng: rng.geometric(0.05, 2_000).astype(np.int64),
    "uniform to 100, 2k": lambda rng: rng.integers(1, 101, 2_000),
    "all equal to 1, 2k": lambda rng: shapes.equal(2_000, 1),
    "all equal to 1025, 2k": lambda rng: shapes.equal(2_000, 1025),
}

HELD_OUT: dict[str, Draw] = {
    "Weibull 0.5, 4k": lambda rng: _whole(15 * rng.weibull(0.5, 4_000)),
    "gamma 0.6, 8k": lambda rng: _whole(rng.gamma(0.6, 40, 8_000)),
    "two crowds, 10k": lambda rng: _whole(np.concatenate([rng.lognormal(1, 0.7, 9_000), rng.lognormal(4, 0.6, 1_000)])),
    "negative binomial, 3k": lambda rng: _whole(1 + rng.negative_binomial(0.5, 0.04, 3_000)),
    "Lomax 2.3, 30k": lambda rng: _whole(8 * rng.pareto(2.3, 30_000)),
    "log-normal 1.6 up to 200, 15k": lambda rng: np.minimum(shapes.lognormal(15_000, 8, 1.6, rng), 200),
    "Zipf 2.2, 6k": lambda rng: shapes.zipf(6_000, 2.2, rng),
    "Burr, 25k": lambda rng: _whole(6 * (rng.random(25_000) ** (-1 / 1.4) - 1) ** (1 / 1.5)),
    "60 robots among 5k": lambda rng: np.concatenate([rng.geometric(0.1, 5_000), rng.integers(2000, 4001, 60)]),
}

FRESH: dict[str, Draw] = {
    "Poisson body, 3% Pareto 1.6, 12k": lambda rng: np.concatenate(
        [1 + rng.poisson(8, 11_640), _whole(20 * (1 + rng.pareto(1.6, 360)))]
    ),
    "70% once, 30% log-normal 1.4, 9k": lambda rng: np.concatenate(
        [shapes.equal(6_300, 1), _whole(rng.lognormal(2, 1.4, 2_700))]
    ),
    "two populations, 6k": lambda rng: _whole(np.concatenate([rng.gamma(3, 5, 5_100), rng.lognormal(5, 0.5, 900)])),
    "log-logistic 1.7, 15k": lambda rng: _whole(5 * (1 / rng.random(15_000) - 1) ** (1 / 1.7)),
    "power law with cut-off, 20k": lambda rng: _cut_off(rng, 20_000),
    "Yule and Simon 1.6, 10k": lambda rng: rng.geometric(np.exp(-rng.exponential(1 / 1.6, 10_000))).astype(np.int64),
    "Poisson 11, 4k": lambda rng: 1 + rng.poisson(11, 4_000),
    "two log-normals, 25k": lambda rng: _whole(
        np.concatenate([rng.lognormal(1.5, 0.6, 22_500), rng.lognormal(2.5, 1.5, 2_500)])
    ),
    "half alike, half Pareto 2, 3k": lambda rng: _whole(
        np.concatenate([rng.normal(30, 4, 1_500).clip(1), 5 * (1 + rng.pareto(2, 1_500))])
    ),
    "a giant among 8k": lambda rng: np.append(rng.geometric(0.08, 7_999), 60_000),
}

NEW: dict[str, Draw] = {
    "binomial body, 8% Lomax 1.9, 7k": lambda rng: np.concatenate(
        [1 + rng.binomial(20, 0.4, 6_440), _whole(25 * (1 + rng.pareto(1.9, 560)))]
    ),
    "inverse gamma 2.4, 5k": lambda rng: _whole(30 / rng.gamma(2.4, 1.0, 5_000)),
    "log-gamma, 18k": lambda rng: _whole(np.exp(rng.gamma(2.0, 0.55, 18_000))),
    "half-Cauchy up to 5000, 10k": lambda rng: np.minimum(_whole(4 * np.abs(rng.standard_cauchy(10_000))), 5_000),
    "three kinds of people, 9k": lambda rng: _whole(
        np.concatenate([rng.gamma(2, 2, 6_000), rng.gamma(5, 8, 2_500), rng.gamma(6, 60, 500)])
    ),
    "geometric mixture, 15k": lambda rng: rng.geometric(rng.beta(1.2, 12, 15_000).clip(1e-4)).astype(np.int64),
}


def _kind(rng: np.random.Generator) -> Callable[[np.random.Generator, int], Any]:
    """One kind of people: how many rows they have."""
    size, spread, power, part = (
        np.exp(rng.uniform(0, 3.5)),
        rng.uniform(0.3, 1.6),
        rng.uniform(1.3, 3),
        rng.uniform(2, 8),
    )
    kinds: tuple[Callable[[np.random.Generator, int], Any], ...] = (
        lambda random, users: random.lognormal(np.log(size), spread, users),
        lambda random, users: size * (1 + random.pareto(power, users)),
        lambda random, users: random.geometric(1 / max(size, 1.01), users),
        lambda random, users: random.uniform(size, size * part, users),
        lambda random, users: np.full(users, size),
        lambda random, users: 1 + random.poisson(size, users),
    )
    return kinds[rng.integers(len(kinds))]


def _drawn(seed: int) -> Draw:
    """Two kinds of people, two power laws, rounded values or a cliff: 2,000 to 40,000 users."""
    rng = np.random.default_rng([14, seed])
    users, which = int(np.exp(rng.uniform(np.log(2_000), np.log(40_000)))), rng.integers(4)
    one, other, part, away = _kind(rng), _kind(rng), np.exp(rng.uniform(-4.6, -1.2)), np.exp(rng.uniform(1, 5))
    steep, flat, end, step = (
        rng.uniform(1.8, 3.5),
        rng.uniform(1.3, 2.2),
        np.exp(rng.uniform(1, 4)),
        rng.choice([5, 10, 50]),
    )

    def two_powers(random: np.random.Generator) -> Rows:
        rows = 1 + random.pareto(steep, users)
        return _whole(np.where(rows > end, end * (1 + random.pareto(flat, users)), rows))

    shapes: tuple[Draw, ...] = (
        lambda random: _whole(
            np.concatenate([one(random, users - int(part * users)), away * other(random, int(part * users))])
        ),
        two_powers,
        lambda random: _whole(np.ceil(one(random, users) / step) * step),
        lambda random: np.minimum(_whole(one(random, users)), int(end) + 1),
    )
    return shapes[which]


DRAWN: dict[str, Draw] = {f"drawn {seed}": _drawn(seed) for seed in range(24)}


def _cut_off(rng: np.random.Generator, users: int) -> Rows:
    """P(s) ∝ s^-1.8·e^(-s/400), by rejection."""
    drawn = rng.pareto(0.8, 2 * users) + 1
    return _whole(drawn[rng.random(2 * users) < np.exp(-drawn / 400)][:users])

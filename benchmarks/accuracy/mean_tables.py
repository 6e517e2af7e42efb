"""Tables for the coverage of means, drawn anew in each run: numbers of rows and user means in [0, 1].

``TUNED`` have the shapes that constants were found with. ``SEEN`` were meant to be held out, but priors were added after a look at them
(beta laws for votes, bends and tails for viewers and spending, an end inside a bucket for pupils). ``HELD_OUT`` were written last and
nothing was changed after they were run, until durations (and machines of ``HARD``) were looked at when caps were chosen by least expected error. ``HARD`` are those that no model can be expected to hold on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks import shapes
from benchmarks.accuracy.cases import VALUES
from benchmarks.shapes import Rows

Means = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator], tuple[Rows, Means]]
Generator = np.random.Generator


def _again(made: Callable[[], Rows]) -> Callable[[Generator], Rows]:
    """Another table of a published shape: as many users, drawn from it."""
    return lambda rng: rng.choice(made(), len(made()))


_COUNTS: dict[str, Callable[[Generator], Rows]] = {
    "MovieLens-20M": _again(shapes.movielens_20m),
    "Book-Crossing": _again(shapes.book_crossing),
    "shop": _again(shapes.shop),
    "course": _again(shapes.course),
    "Zipf 2.5, 2k users": lambda rng: shapes.zipf(2_000, 2.5, rng),
    "Pareto 1.5, 5k users": lambda rng: shapes.pareto(5_000, 1.5, rng, least=10),
    "log-normal 1, 20k users": lambda rng: shapes.lognormal(20_000, 20, 1.0, rng),
    "log-normal 2, 50k users": lambda rng: shapes.lognormal(50_000, 20, 2.0, rng),
    "geometric, 2k users": lambda rng: rng.geometric(0.05, 2_000).astype(np.int64),
    "uniform to 100, 2k users": lambda rng: rng.integers(1, 101, 2_000),
    "all equal to 1, 2k users": lambda rng: shapes.equal(2_000, 1),
}


def _valued(kind: str, counts: Callable[[Generator], Rows]) -> Draw:
    def draw(rng: Generator) -> tuple[Rows, Means]:
        rows, values = counts(rng), VALUES[kind]
        centre = values["centre"] * rng.uniform(0.75, 1.25)
        tilt = values["tilt"] * rng.uniform(0.4, 1.4) * rng.choice([-1, 1])
        return rows, shapes.user_means(rows, rng, centre, values["spread"], tilt, values["noise"])

    return draw


TUNED: dict[str, Draw] = {
    f"{name} / {kind}": _valued(kind, counts)
    for place, (name, counts) in enumerate(_COUNTS.items())
    for kind in (list(VALUES)[place % 3],)
}


def _gamma(counts: Callable[[Generator], Means], base: float, per: float, sd: float) -> Draw:
    """Amounts up to 200 whose mean depends on the logarithm of a user's rows; each value from a gamma law."""

    def draw(rng: Generator) -> tuple[Rows, Means]:
        rows = np.ceil(np.minimum(counts(rng), 20_000)).astype(np.int64)
        own = np.maximum(base + per * np.log(rows) + rng.normal(0, sd, len(rows)), 1)
        return rows, np.clip(rng.gamma(4.0 * rows, own / (4.0 * rows)), 0, 200) / 200

    return draw


def _votes(counts: Callable[[Generator], Rows], first: float, last: float, tilt: float) -> Draw:
    """Yes or no: a user's share of yes comes from a beta law, tilted by the logarithm of rows."""

    def draw(rng: Generator) -> tuple[Rows, Means]:
        rows = counts(rng)
        share, activity = np.clip(rng.beta(first, last, len(rows)), 1e-9, 1 - 1e-9), np.log(rows)
        odds = np.log(share / (1 - share)) + tilt * (activity - activity.mean()) / activity.std()
        return rows, rng.binomial(rows, 1 / (1 + np.exp(-odds))) / rows

    return draw


def _spend(rng: Generator) -> tuple[Rows, Means]:
    rows = np.ceil(rng.lognormal(1, 1.3, 25_000)).astype(np.int64)
    return rows, np.clip(rng.lognormal(np.log(0.03) + 0.1 * np.log(rows), 0.8), 0, 1)


def _two_humps(rng: Generator) -> tuple[Rows, Means]:
    rows = 1 + np.where(rng.random(10_000) < 0.8, rng.poisson(1, 10_000), rng.poisson(40, 10_000))
    return rows, np.clip(rng.normal(0.6, 0.12, 10_000) + 0.2 * rng.normal(size=10_000) / np.sqrt(rows), 0, 1)


def _machines(rng: Generator) -> tuple[Rows, Means]:
    rows = np.ceil(rng.lognormal(2, 1.0, 15_000)).astype(np.int64)
    own = np.where(rows > np.quantile(rows, 0.97), 0.3, 0.5) + rng.normal(0, 0.08, len(rows))
    return rows, np.clip(own + rng.normal(0, 0.2, len(rows)) / np.sqrt(rows), 0, 1)


SEEN: dict[str, Draw] = {
    "viewers": _gamma(lambda rng: rng.lognormal(2.6, 1.2, 6_000), 40, -2, 8),
    "readers": _gamma(lambda rng: rng.lognormal(1, 1.8, 12_000), 40, 2, 8),
    "pupils": _gamma(lambda rng: rng.integers(1, 60, 3_000).astype(np.float64), 40, 0, 8),
    "buyers": _gamma(lambda rng: rng.pareto(1.8, 12_000) + 1, 40, 3, 8),
    "votes, negative binomial": _votes(lambda rng: 1 + rng.negative_binomial(0.5, 0.02, 8_000), 2, 3, 0.3),
    "votes, Weibull": _votes(lambda rng: np.ceil(10 * rng.weibull(0.5, 30_000)).astype(np.int64), 0.6, 0.9, -0.3),
    "spending, log-normal": _spend,
    "two humps of rows": _two_humps,
}


def _few_bulk_buyers(rng: Generator) -> Means:
    rows = rng.geometric(0.1, 30_000).astype(np.float64)
    return np.where(rng.random(30_000) < 0.02, 20 * rows, rows)


HELD_OUT: dict[str, Draw] = {
    "likes, gamma-Poisson": _votes(lambda rng: 1 + rng.poisson(rng.gamma(0.7, 15, 9_000)), 5, 2, 0.2),
    "durations, log-normal 1.4": _gamma(lambda rng: rng.lognormal(2, 1.4, 20_000), 60, 3, 15),
    "orders, few bulk buyers": _gamma(_few_bulk_buyers, 50, -3, 12),
}

HARD: dict[str, Draw] = {
    "machines among the busiest": _machines,
    "Pareto 1.3, 40k users": _gamma(lambda rng: 2 * (rng.pareto(1.3, 40_000) + 1), 30, 4, 10),
}

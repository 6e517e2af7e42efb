"""Spending per customer, and the interval of a ratio: ``python -m benchmarks.accuracy.per_user`` (a minute).

Simulated in NumPy with the code that chooses the cap. Totals per user are those of the shapes in `cases.py` with prices that differ by
user. That a cap is used, and not a located centre, was decided on other shapes; the share of ε that chooses it and the rule are those of
sums, which were tuned on shapes like these. Bounds are stated as an analyst might: close, or far too wide.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.cases import COUNTS
from benchmarks.accuracy.noise import discrete_laplace
from benchmarks.accuracy.threshold_rule import total_caps
from benchmarks.results import table
from evenhand.bounding import PROFILE_SHARE
from evenhand.noise import Gaussian, IntegerNoise, Laplace
from evenhand.profiles import row_buckets, total_buckets
from evenhand.release import Additive, Quotient

Array = npt.NDArray[np.float64]
WIDTH = 2**27  # steps between the bounds
SHAPES = ("shop", "Book-Crossing", "course", "Pareto 1.5, 5k users", "log-normal 1, 20k users", "geometric, 2k users")
EPSILONS = (0.1, 1.0)
WIDER = (1.5, 30.0)  # the upper bound, in largest totals
USERS_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5)
REPEATS = 400


def pair(values: Array, caps: Array, epsilon: float, rng: np.random.Generator) -> Array:
    """The released mean for each cap: a pair of noisy sums (docs/proofs/mean-pair.md)."""
    order = np.sort(values)
    sums = np.concatenate([[0.0], np.cumsum(order)])
    k = np.searchsorted(order, caps, side="right")
    exact = sums[k] + (len(order) - k) * caps
    above = exact + rng.laplace(0, 1, len(caps)) * caps / epsilon
    below = len(order) * caps - exact + rng.laplace(0, 1, len(caps)) * caps / epsilon
    both = above + below
    return caps * np.where(both > 0, np.clip(above / np.where(both > 0, both, 1.0), 0.0, 1.0), 0.5)


def ours(values: Array, epsilon: float, rng: np.random.Generator) -> Array:
    """As a release: a cap chosen from a noisy histogram, then the pair; values are parts of the range."""
    buckets, share = total_buckets(WIDTH, WIDTH), float(PROFILE_SHARE)
    exact = buckets.histogram(np.floor(values * WIDTH + 0.5).astype(np.int64))
    noisy = exact + discrete_laplace(rng, 1 / (share * epsilon), (REPEATS, buckets.size))
    caps, _, found = total_caps(buckets, noisy.astype(np.float64), share * epsilon, (1 - share) * epsilon)
    return pair(values, np.where(found, np.minimum(caps / WIDTH, 1.0), 1.0), (1 - share) * epsilon, rng)


def baseline(values: Array, epsilon: float, rng: np.random.Generator) -> Array:
    """What is written in an hour: clip to the bounds, half of ε for the sum, half for the number of users."""
    noise = rng.laplace(0, 2 / epsilon, (2, REPEATS))
    return np.clip((values.sum() + noise[0]) / np.maximum(len(values) + noise[1], 1.0), 0.0, 1.0)


def hindsight(values: Array, epsilon: float, rng: np.random.Generator) -> float:
    """The smallest RMSE of any fixed cap, with all of ε."""
    caps = np.geomspace(values[values > 0].min(), 1.0, 60)
    return float(min(_rmse(pair(values, np.full(200, cap), epsilon, rng), values) for cap in caps))


def _rmse(released: Array, values: Array) -> float:
    return float(np.sqrt(np.mean((released - values.mean()) ** 2)))


def per_user() -> list[list[str]]:
    """Median and 95% quantile of |error| in multiples of the best cap in hindsight."""
    rows = []
    for name in SHAPES:
        rng = np.random.default_rng(31)
        counts = COUNTS[name]()
        totals = counts * np.exp(rng.normal(0, 0.4, len(counts)))
        for wider in WIDER:
            values = totals / (totals.max() * wider)
            for epsilon in EPSILONS:
                best = hindsight(values, epsilon, rng)
                methods: tuple[Callable[..., Array], ...] = (
                    ours,
                    lambda v, e, r: pair(v, np.ones(REPEATS), e, r),
                    baseline,
                )
                errors = [np.abs(method(values, epsilon, rng) - values.mean()) / best for method in methods]
                shown = [f"{np.median(each):.2g} / {np.quantile(each, 0.95):.2g}" for each in errors]
                rows.append([name, f"{wider:g}", f"{epsilon:g}", *shown])
    return rows


def shares() -> list[list[str]]:
    """RMSE of total over number of users by the share of ε that the users get, in multiples of an equal split."""
    rows = []
    for name in SHAPES:
        counts = COUNTS[name]()
        for epsilon in EPSILONS:
            found = [_over_users(counts, epsilon, share) for share in USERS_SHARES]
            rows.append([name, f"{epsilon:g}", *(f"{each / found[-1]:.2f}" for each in found)])
    return rows


def _over_users(counts: npt.NDArray[np.int64], epsilon: float, share: float) -> float:
    rng, buckets, people = np.random.default_rng(32), row_buckets(), len(counts)
    left, part = (1 - share) * epsilon, float(PROFILE_SHARE)
    noisy = buckets.histogram(counts) + discrete_laplace(rng, 1 / (part * left), (4 * REPEATS, buckets.size))
    caps, _, _ = total_caps(buckets, noisy.astype(np.float64), part * left, (1 - part) * left)
    kept = np.array([np.minimum(counts, cap).sum() for cap in caps])
    total = kept + rng.laplace(0, 1, len(caps)) * caps / ((1 - part) * left)
    users = people + rng.laplace(0, 1 / (share * epsilon), len(caps))
    return float(np.sqrt(np.mean((total / users - counts.mean()) ** 2)))


def coverage() -> list[list[str]]:
    """How often the 95% interval of a ratio holds the ratio before noise, and its median width over the ratio."""
    rows = []
    for kind in (Laplace, Gaussian):
        for above, below in ((300.0, 30.0), (3e4, 3e3), (2e3, 2e6), (5.0, 0.5)):
            intervals = [_ratio(kind, above, below).at(0.95) for _ in range(2000)]
            held = float(np.mean([low <= above / below <= high for low, high in intervals]))
            wide = float(np.median([high - low for low, high in intervals])) / (above / below)
            rows.append([kind.__name__, f"{above:g} / {below:g}", f"{held:.3f}", f"{wide:.3g}"])
    return rows


def _ratio(kind: type[IntegerNoise], above: float, below: float) -> Quotient:
    noise, unit = kind(Fraction(1000)), 0.01  # noise of about ten
    one, two = noise.add_to([round(above / unit), round(below / unit)])
    return Quotient(Additive(one * unit, noise, unit), Additive(two * unit, noise, unit), nonnegative=True)


def main() -> None:
    """Measure, write, print."""
    text = f"""# Spending per customer and ratios, {datetime.date.today().isoformat()}

|error| of the average total per user under presence, in multiples of the RMSE of the best fixed cap in hindsight with all of ε: median / 95%
quantile of {REPEATS} releases. *Bound*: the upper bound that was stated, in largest totals. *Uncapped*: the pair without a cap, with all of ε.
*Baseline*: clipped to the bounds, half of ε each for sum and number of users.

{table(["shape", "bound", "ε", "Evenhand", "uncapped", "baseline"], per_user())}

RMSE of rows over users, by the share of ε that the number of users gets, in multiples of an equal split (the default is 0.2).

{table(["shape", "ε", *(f"{share:g}" for share in USERS_SHARES)], shares())}

Coverage of the 95% interval of a ratio of two numbers with noise of scale 10, 2,000 draws; its median width in multiples of the ratio.

{table(["noise", "ratio", "held", "width"], coverage())}
"""
    print(text)
    place = Path(__file__).parent / "results" / f"{datetime.date.today().isoformat()}-per-user.md"
    place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

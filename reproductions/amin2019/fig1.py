"""Figure 1: no fixed quantile is a good cap for all ε; the ⌈1/ε⌉-th largest contribution is."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
from benchmarks.shapes import movielens_20m

from evenhand.bounding import PROFILE_SHARE
from evenhand.bounding.total_cap import believed_cap
from evenhand.guarantee import DataError
from evenhand.noise import Laplace
from evenhand.planning import plan
from evenhand.profiles import Histogram, Profile, row_buckets
from evenhand.release import Additive
from evenhand.statistics.believing import corrected
from reproductions.outcomes import Check, Outcome, Size, lines, near

Counts = npt.NDArray[np.int64]
RUNS = {"small": 200, "full": 1000}
PRIVATE_RUNS = {"small": 20, "full": 200}  # each looks at a posterior
EPSILONS = {size: [float(f"{e:.4g}") for e in np.geomspace(1e-5, 10, n)] for size, n in (("small", 7), ("full", 49))}
FILMS = 27_278
BEST, MEDIAN, HIGH = "best rank (not private)", "median (not private)", "95% quantile (not private)"
FOUND, GUESSED, NOISY_MEDIAN = "Evenhand", "Evenhand, shape guessed", "median, found privately"


def reproduce(out: Path, size: Size = "full", data: Path | None = None) -> Outcome:
    """Relative error of the number of ratings under six caps, averaged over the paper's 1000 runs (200 for Evenhand).

    Args:
        out: folder for numbers and picture.
        size: "small" for fewer runs and values of ε.
        data: a real ``ratings.csv`` or ``ratings.dat`` of MovieLens; the published shape otherwise.
    """
    counts = np.sort(movielens_20m() if data is None else read_counts(data))[::-1]
    rng = np.random.default_rng(2019)
    rows = []
    for epsilon in EPSILONS[size]:
        caps = {
            BEST: best_cap(counts, epsilon),
            MEDIAN: int(np.median(counts)),
            HIGH: int(np.quantile(counts, 0.95)),
            GUESSED: guessed_cap(epsilon),
        }
        for method, cap in caps.items():
            noise = rng.laplace(0, cap / epsilon, RUNS[size])
            error = np.abs(noise - cut(counts, np.array([cap]))).mean() / counts.sum()
            rows.append({"epsilon": epsilon, "error": float(error), "cap": method})
        private = chosen(counts, epsilon, PRIVATE_RUNS[size], rng)
        rows.append({"epsilon": epsilon, "error": private, "cap": FOUND})
        rows.append({"epsilon": epsilon, "error": noisy_median(counts, epsilon), "cap": NOISY_MEDIAN})
    error = {(row["cap"], row["epsilon"]): row["error"] for row in rows}
    title = "amin2019 figure 1: relative error of the number of ratings"
    outcome = Outcome(title, checks(counts, error, EPSILONS[size], data is None), rows)
    return outcome.write(out, "amin2019-fig1", lines(rows, "epsilon", "error", "cap", title))


def checks(
    counts: Counts, error: dict[tuple[str, float], float], epsilons: list[float], published: bool
) -> list[Check]:
    """What the figure shows, as numbers: ratios of mean absolute errors have about 3% of sampling error at 1000 runs."""

    def ratio(one: str, other: str, least: float = 0.0) -> list[float]:
        return [error[one, e] / error[other, e] for e in epsilons if e >= least]

    fixed = [min(error[MEDIAN, e], error[HIGH, e]) for e in epsilons]
    optimal = max(error[BEST, e] / other for e, other in zip(epsilons, fixed, strict=True))
    found = [
        Check("best rank against the better fixed quantile, worst ε", optimal, 0.0, 1.3),
        Check("median cap against best rank at ε = 10", ratio(MEDIAN, BEST)[-1], 100, math.inf),
        Check("95% cap against best rank at ε = 10", ratio(HIGH, BEST)[-1], 20, math.inf),
        Check("95% cap against best rank, best ε: optimal for one ε", min(ratio(HIGH, BEST)), 0.7, 1.3),
        Check("Evenhand, private, against best rank, worst ε ≥ 0.001", max(ratio(FOUND, BEST, 0.001)), 0, 6),
        Check("Evenhand, private, against the median found privately, worst ε", max(ratio(FOUND, NOISY_MEDIAN)), 0, 1),
        Check(
            "Evenhand, shape guessed, against the median cap, worst ε ≥ 1e-4", max(ratio(GUESSED, MEDIAN, 9e-5)), 0, 0.8
        ),
    ]
    if published:  # the ten largest are exact, so these follow from them alone
        at_one_tenth = mean_absolute(4988 / 0.1, float(cut(counts, np.array([4988]))[0])) / counts.sum()
        found.append(
            near(
                "relative error of the best rank at ε = 0.1",
                error[BEST, 0.1],
                at_one_tenth,
                0.25,
            )
        )
        found.append(Check("the cap at ε = 0.1", best_cap(counts, 0.1), 4988, 4988))
    return found


def best_cap(counts: Counts, epsilon: float) -> int:
    """The ⌈1/ε⌉-th largest count; ``counts`` are sorted from the largest."""
    return int(counts[min(math.ceil(1 / epsilon - 1e-12), len(counts)) - 1])


def cut(counts: Counts, caps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Σ max(0, x − T) for each cap."""
    rising = counts[::-1].astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(rising)])
    k = np.searchsorted(rising, caps, side="right")
    return (sums[-1] - sums[k]) - (len(rising) - k) * caps


def mean_absolute(scale: float, bias: float) -> float:
    """E|Laplace(scale) − bias|."""
    return bias + scale * math.exp(-bias / scale)


def chosen(counts: Counts, epsilon: float, runs: int, rng: np.random.Generator) -> float:
    """Mean relative error of a release that finds its cap out of the same ε and adds back what it probably cut off."""
    buckets, share = row_buckets(), float(PROFILE_SHARE)
    p, left = -math.expm1(-share * epsilon), (1 - share) * epsilon
    errors, users = [], buckets.histogram(counts)
    for _ in range(runs):
        noisy = users + rng.geometric(p, buckets.size) - rng.geometric(p, buckets.size)
        off = believed_cap(Histogram(buckets, noisy.tolist(), share * epsilon, "simulated"), left)
        cap = off.bound
        kept = float(counts.sum() - cut(counts, np.array([cap]))[0]) + rng.laplace() * cap / left
        noise = Laplace(Fraction(cap / left))
        made = corrected(Additive(kept, noise, 1.0), off.given(kept, noise.variance), whole=True)
        errors.append(abs(made.value - counts.sum()))
    return float(np.mean(errors) / counts.sum())


def guessed_cap(epsilon: float) -> int:
    """The cap that a plan finds from what an outsider may guess: 140,000 users with 20 million ratings, log-normal."""
    return math.ceil(plan("count", Profile.lognormal(1.2, users=140_000, rows=2e7), epsilon, points=2).best.bound)


def noisy_median(counts: Counts, epsilon: float) -> float:
    """Mean relative error of the median cap if the median has to be found: the exponential mechanism over the buckets' edges up to the number of films, a third of ε."""
    edges = np.array([edge for edge in row_buckets().edges[1:] if edge <= FILMS], dtype=np.int64)
    above = np.array([(counts > edge).sum() for edge in edges])
    logits = -np.abs(len(counts) - 2 * above) / 2 * (epsilon / 3)
    chances = np.exp(logits - logits.max())
    errors = [mean_absolute(edge / (epsilon * 2 / 3), off) for edge, off in zip(edges, cut(counts, edges), strict=True)]
    return float(chances @ errors / chances.sum() / counts.sum())


def read_counts(path: Path) -> Counts:
    """Ratings per user from MovieLens' ``ratings.csv`` (userId first) or ``ratings.dat`` (``::`` between fields)."""
    separator = "::" if path.suffix == ".dat" else ","
    try:
        with path.open(encoding="utf-8") as file:
            first = next(file, "")
            users = [int(line.split(separator, 1)[0]) for line in file]
    except (OSError, ValueError) as error:
        raise DataError(f"can't read ratings from {path}; expected MovieLens' ratings.csv or ratings.dat.") from error
    if path.suffix == ".dat" and first:
        users.append(int(first.split(separator, 1)[0]))
    counts: Counts = np.unique(np.array(users), return_counts=True)[1].astype(np.int64)
    return counts

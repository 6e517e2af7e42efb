"""Figure 1: no fixed quantile is a good cap for all ε; the ⌈1/ε⌉-th largest contribution is."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
from benchmarks.shapes import movielens_20m

from evenhand.bounding import PROFILE_SHARE
from evenhand.bounding.total_cap import total_caps
from evenhand.guarantee import DataError
from evenhand.profiles.buckets import row_buckets
from reproductions.outcomes import Check, Outcome, Size, lines, near

Counts = npt.NDArray[np.int64]
RUNS = {"small": 200, "full": 1000}
EPSILONS = [float(f"{epsilon:.4g}") for epsilon in np.geomspace(1e-5, 10, 49)]


def reproduce(out: Path, size: Size = "full", data: Path | None = None) -> Outcome:
    """Relative error of the number of ratings under four caps, averaged over the paper's 1000 runs.

    Args:
        out: folder for numbers and picture.
        size: "small" for 200 runs.
        data: a real ``ratings.csv`` or ``ratings.dat`` of MovieLens; the published shape otherwise.
    """
    counts = np.sort(movielens_20m() if data is None else read_counts(data))[::-1]
    rng = np.random.default_rng(2019)
    rows = []
    for epsilon in EPSILONS:
        caps = {
            "best rank (not private)": best_cap(counts, epsilon),
            "median": int(np.median(counts)),
            "95% quantile": int(np.quantile(counts, 0.95)),
        }
        for method, cap in caps.items():
            noise = rng.laplace(0, cap / epsilon, RUNS[size])
            error = np.abs(noise - cut(counts, np.array([cap]))).mean() / counts.sum()
            rows.append({"epsilon": epsilon, "error": float(error), "cap": method})
        rows.append({"epsilon": epsilon, "error": chosen(counts, epsilon, RUNS[size], rng), "cap": "Evenhand"})
    error = {(row["cap"], row["epsilon"]): row["error"] for row in rows}
    title = "amin2019 figure 1: relative error of the number of ratings"
    outcome = Outcome(title, checks(counts, error, data is None), rows)
    return outcome.write(out, "amin2019-fig1", lines(rows, "epsilon", "error", "cap", title))


def checks(counts: Counts, error: dict[tuple[str, float], float], published: bool) -> list[Check]:
    """What the figure shows, as numbers: ratios of mean absolute errors have about 3% of sampling error at 1000 runs."""
    best, median, high = "best rank (not private)", "median", "95% quantile"
    fixed = {e: min(error[median, e], error[high, e]) for e in EPSILONS}
    private = max(error["Evenhand", e] / error[best, e] for e in EPSILONS if e >= 0.01)
    found = [
        Check(
            "best rank against the better fixed quantile, worst ε",
            max(error[best, e] / fixed[e] for e in EPSILONS),
            0.0,
            1.3,
        ),
        Check("median cap against best rank at ε = 10", error[median, 10.0] / error[best, 10.0], 100, math.inf),
        Check("95% cap against best rank at ε = 10", error[high, 10.0] / error[best, 10.0], 20, math.inf),
        Check(
            "95% cap against best rank, best ε: optimal for one ε",
            min(error[high, e] / error[best, e] for e in EPSILONS),
            0.7,
            1.3,
        ),
        Check("Evenhand, private, against best rank, worst ε ≥ 0.01", private, 0, 6),
    ]
    if published:  # the ten largest are exact, so these follow from them alone
        at_one_tenth = mean_absolute(4988 / 0.1, float(cut(counts, np.array([4988]))[0])) / counts.sum()
        found.append(
            near(
                "relative error of the best rank at ε = 0.1",
                error[best, 0.1],
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
    """Mean relative error when the cap is chosen privately out of the same ε."""
    buckets, share = row_buckets(), float(PROFILE_SHARE)
    p = -math.expm1(-share * epsilon)
    noise = rng.geometric(p, (runs, buckets.size)) - rng.geometric(p, (runs, buckets.size))
    noisy = (buckets.histogram(counts) + noise).astype(np.float64)
    caps, _, _ = total_caps(buckets, noisy, share * epsilon, (1 - share) * epsilon)
    noisy_error = rng.laplace(size=runs) * caps / ((1 - share) * epsilon) - cut(counts, caps)
    return float(np.abs(noisy_error).mean() / counts.sum())


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

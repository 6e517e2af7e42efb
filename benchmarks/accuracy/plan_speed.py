"""A plan for a million users and 200 bounds takes less than a second: ``python -m benchmarks.accuracy.plan_speed``."""

from __future__ import annotations

import time

import numpy as np

from evenhand.planning import plan
from evenhand.profiles import Profile

BAR = 1.0  # seconds, once imports are done


def main() -> None:
    """Plan every statistic from a million distinct-looking counts, three times; the fastest run counts."""
    counts = np.floor(np.random.default_rng(1).pareto(1.2, 1_000_000) * 1e4) + 1
    worst = 0.0
    for statistic, bounds, protects in (
        ("count", None, "presence"),
        ("sum", (0, 5), "presence"),
        ("mean", (0, 5), "values"),
    ):
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            profile = Profile.counts(counts)
            plan(statistic, profile, epsilon=0.2, bounds=bounds, protects=protects, points=200)
            seconds.append(time.perf_counter() - start)
        print(f"{statistic:<6} {min(seconds):.3f} s ({len(profile.support.sizes):,} different counts)")
        worst = max(worst, min(seconds))
    print(f"worst {worst:.3f} s, bar {BAR:g} s")
    raise SystemExit(0 if worst < BAR else 1)


if __name__ == "__main__":
    main()

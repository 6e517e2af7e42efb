"""Beyond the paper: on mirrored tastes MaxSense and Pairwise-Preference guess, and the projection sketch sees."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from evenhand.pages.simulation import wrong_chart
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import preset
from reproductions.outcomes import Check, Outcome, Size

GRIDS = {"small": (100, 20, 2.0, 200_000, range(1)), "full": (200, 40, 1.0, 1_000_000, range(5))}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """N = 200, w = 40, ε = 1, one million users: about 5% of items wrong against about 48% (50% is chance)."""
    items, rated, epsilon, users, seeds = GRIDS[size]
    stops = [round(users / 2**step) for step in range(6, -1, -1)]
    sketches = ["maxsense", "pairwise", "projection"]
    runs = [study(preset("mirrored"), items, rated, epsilon, stops, sketches, seed=seed) for seed in seeds]
    final = {
        sketch: float(np.mean([p.wrong for run in runs for p in run if p.sketch == sketch and p.users == stops[-1]]))
        for sketch in sketches
    }
    checks = [
        Check("projection, items wrong", final["projection"], 0.0, 0.08),
        Check("maxsense, items wrong", final["maxsense"], 0.4, 0.5),
        Check("pairwise, items wrong", final["pairwise"], 0.4, 0.5),
    ]
    if size == "small":  # with more ratings per item, pairwise begins to see at this size
        checks[2] = Check("pairwise, items wrong", final["pairwise"], 0.15, 0.5)
    title = f"Mirrored tastes: N = {items}, w = {rated}, ε = {epsilon:g}"
    outcome = Outcome(title, checks, [asdict(point) for point in runs[0]])
    return outcome.write(out, "banerjee-mirrored", wrong_chart(runs[0], 0.5, title))

"""The 95% intervals of quantiles hold the truth where busy users differ, on tables that are drawn anew each time.

Tables and noise come from a seeded generator, so a failure is no chance. The long run, with more shapes, is ``benchmarks/accuracy/quantiles.py``.
"""

from __future__ import annotations

import numpy as np
from benchmarks.accuracy.quantiles import draw, released

QUANTILES = (0.25, 0.5, 0.9)


def test_the_truth_is_in_the_interval_of_a_quantile_where_busy_users_differ() -> None:
    """57 times of 60; an interval by the mean and standard deviation of what is believed about busy users held it 30 times."""
    rng, held = np.random.default_rng(4), 0
    for _ in range(20):
        table = draw("users differ 0.4", "log-normal 2", 5000, 1, rng)
        truth = table.truth(QUANTILES)[:, 0]
        _, ends, _, _ = released(table, QUANTILES, 0.1, rng)
        held += int(((ends[:, 0, 0] <= truth + 1e-9) & (truth <= ends[:, 0, 1] + 1e-9)).sum())
    assert held >= 50

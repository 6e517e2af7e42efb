"""The 95% intervals of quantiles hold the truth where busy users differ, on tables that are drawn anew each time.

Tables and noise come from a seeded generator, so a failure is no chance. The long run, with more shapes, is ``benchmarks/accuracy/quantiles.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.accuracy.quantile_tables import COLUMNS, draw
from benchmarks.accuracy.quantiles import released

QUANTILES = (0.1, 0.5, 0.9)


@pytest.mark.parametrize(("column", "users"), [("uniform", "log-normal, differ"), ("prices", "one row")])
def test_the_truth_is_in_the_interval_of_a_quantile(column: str, users: str) -> None:
    """95% of 60 are 57; by the noise alone, where busy users differ, half of them."""
    rng, held = np.random.default_rng(4), 0
    for _ in range(20):
        table = draw(column, users, 5000, rng)
        truth = table.truth(QUANTILES)
        _, ends, _ = released(table, COLUMNS[column], QUANTILES, 0.1, rng)
        held += int(((ends[:, 0] <= truth + 1e-9) & (truth <= ends[:, 1] + 1e-9)).sum())
    assert held >= 52

"""What the reproductions of banerjee compute with: exponents, and what campaigns needed. All of them run with the table (`tests/apps/test_reproductions_table.py`)."""

from __future__ import annotations

import numpy as np
import pytest


def test_a_wrong_exponent_would_be_noticed() -> None:
    from reproductions.banerjee.common import slope
    from reproductions.outcomes import Check

    found = slope([100, 200, 400], [100**1.5, 200**1.5, 400**1.5])  # N to the 1.5, as if the theorem said so
    assert found == pytest.approx(1.5)
    assert not Check("exponent of N", found, 1.75, 2.25).holds


def test_an_exponent_is_the_median_of_those_of_seeds() -> None:
    from reproductions.banerjee.common import exponent

    needs = [[100.0, 100.0, 100.0], [200.0, 400.0, 800.0]]  # exponents 1, 2 and 3
    found = exponent("exponent of N", [1, 2], needs, 1.5, 2.5)
    assert found.found == pytest.approx(2)
    assert found.interval == pytest.approx((1, 3))
    assert found.holds


def test_the_interval_of_a_median_holds_it_often_enough() -> None:
    """Of 4,000 times 12 runs, of which 96.1% should hold the median (the third smallest to the third largest), ± 0.3% of standard error."""
    from reproductions.outcomes import median_interval

    rng = np.random.default_rng(3)
    found = [median_interval(rng.exponential(size=12).tolist()) for _ in range(4000)]
    covered = float(np.mean([low <= np.log(2) <= high for _, low, high in found]))
    assert 0.95 < covered < 0.975
    assert median_interval([3.0, 1.0]) == (2.0, 1.0, 3.0)

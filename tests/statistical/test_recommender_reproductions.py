"""The reproductions of banerjee, at reduced size: every number in its range, and the ranges can be missed.

Simulations are seeded, so that a failure is a change in the code; the ranges are several standard errors wide.
"""

from __future__ import annotations

from pathlib import Path

import pytest

NAMES = (
    "banerjee-maxsense-scaling",
    "banerjee-exact",
    "banerjee-exact-pairwise",
    "banerjee-exact-several",
    "banerjee-several-questions",
    "banerjee-pairwise-rich",
    "banerjee-public-rated",
    "banerjee-regimes",
    "banerjee-mirrored",
)


@pytest.mark.parametrize("name", NAMES)
def test_reproduction_holds(name: str, tmp_path: Path) -> None:
    from reproductions.banerjee import REPRODUCTIONS

    outcome = REPRODUCTIONS[name](tmp_path, "small")
    assert outcome.holds, [check for check in outcome.checks if not check.holds]
    assert all(Path(file).stat().st_size > 500 for file in outcome.files)


def test_a_wrong_exponent_would_be_noticed() -> None:
    from reproductions.banerjee.common import slope
    from reproductions.outcomes import Check

    found = slope([100, 200, 400], [100**1.5, 200**1.5, 400**1.5])  # N to the 1.5, as if the theorem said so
    assert found == pytest.approx(1.5)
    assert not Check("exponent of N", found, 1.75, 2.25).holds


def test_every_reproduction_is_listed() -> None:
    from reproductions.banerjee import REPRODUCTIONS

    assert tuple(REPRODUCTIONS) == NAMES

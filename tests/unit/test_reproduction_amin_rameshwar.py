"""The figures of amin2018, amin2019 and rameshwar2024 at reduced size, with the tolerances that each check states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenhand.apps.reproduce_cli import registry

NAMES = [
    "amin2018-theorem1", "amin2018-corollary1",
    "amin2019-fig1", "amin2019-fig2", "amin2019-fig3", "rameshwar2024-fig2", "rameshwar2024-fig3",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_are_those_of_the_paper(name: str, tmp_path: Path) -> None:
    outcome = registry()[name](tmp_path, "small")
    missed = [check for check in outcome.checks if not check.holds]
    assert not missed
    assert outcome.checks
    assert all(Path(path).stat().st_size > 0 for path in outcome.files)


def test_a_wrong_number_does_not_hold() -> None:
    registry()
    from reproductions.outcomes import near

    assert not near("x", 1.2, 1.0, 0.1).holds
    assert near("x", 1.05, 1.0, 0.1).holds


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("ratings.csv", "userId,movieId,rating,timestamp\n1,10,3.5,0\n1,11,4.0,0\n2,10,1.0,0\n"),
        ("ratings.dat", "1::10::3.5::0\n1::11::4.0::0\n2::10::1.0::0\n"),
    ],
)
def test_real_ratings_are_counted(tmp_path: Path, file: str, text: str) -> None:
    registry()
    from reproductions.amin2019.fig1 import read_counts

    (tmp_path / file).write_text(text)
    assert np.sort(read_counts(tmp_path / file)).tolist() == [1, 2]

"""The reproductions of epasto2020 at reduced size: every number in its range, and the ranges can be missed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.guarantee import DataError

ROOT = Path(__file__).parents[2]
NAMES = ("example1", "theorem2", "theorem3")  # the others take longer: tests/apps/test_reproductions_table.py runs all


@pytest.mark.parametrize("name", NAMES)
def test_reproduction_holds(name: str, tmp_path: Path) -> None:
    from reproductions.epasto2020 import REPRODUCTIONS

    outcome = REPRODUCTIONS[f"epasto2020-{name}"](tmp_path, "small")
    assert outcome.holds, [check for check in outcome.checks if not check.holds]
    assert all(Path(file).stat().st_size > 500 for file in outcome.files)


def test_the_file_of_table_1_is_read_as_described(tmp_path: Path) -> None:
    from reproductions.epasto2020 import table1

    path = tmp_path / "drugLibTrain_raw.tsv"
    frame = pd.DataFrame(
        {
            "urlDrugName": ["a", "a", "b", "c", "b"],
            "rating": [1, 10, 5, 6, 7],
            "effectiveness": ["High", "Low", "High", "None", "Low"],
            "sideEffects": ["Mild", "None", "None", "Mild", "Mild"],
            "comment": ["with a\nnew line", "x", "y", "z", "w"],
        }
    )
    frame.to_csv(path, sep="\t")
    data = table1.read(path)
    assert data.users.tolist() == [0, 0, 1, 2, 1]
    np.testing.assert_array_equal(data.X[:, 1:].sum(axis=0), [2, 1, 2])  # Low, None; None
    with pytest.raises(DataError, match="urlDrugName"):
        table1.read(ROOT / "pyproject.toml")


def test_the_checks_of_table_1_would_notice_another_answer() -> None:
    from reproductions.epasto2020 import table1

    right = {("Our method", e): table1.OURS[e] for e in table1.EPSILONS}
    right |= {("All rows", e): table1.ALL_ROWS[e] for e in table1.EPSILONS}
    right |= {("Sample limit h*", e): table1.ROW_LIMIT[e] for e in table1.EPSILONS}
    assert all(check.holds for check in table1._of_the_file(right))
    assert not any(check.holds for check in table1._of_the_file({key: 1.2 * value for key, value in right.items()}))

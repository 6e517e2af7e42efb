"""The README's Python runs as it stands, next to a ratings table."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def _ratings(path: Path) -> None:
    random = np.random.default_rng(1)
    rows = np.minimum(np.ceil(random.pareto(1.2, 2000) * 5), 900).astype(int)
    users = np.repeat(np.arange(2000), rows)
    columns = {
        "userId": users,
        "movieId": random.integers(0, 50, len(users)),
        "rating": random.integers(1, 11, len(users)) / 2,
        "genre": random.choice(["drama", "comedy", "crime"], len(users)),
    }
    pq.write_table(pa.table(columns), path)


def test_the_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All blocks, one after another in one namespace, within the budget that the README sets up."""
    assert BLOCKS, "the README shows no Python"
    _ratings(tmp_path / "ratings.parquet")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md, block {number + 1}", "exec"), names)
    shown = capsys.readouterr().out
    assert "mean of rating" in shown
    assert ".explain() says how it was made" in shown

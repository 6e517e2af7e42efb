"""The examples run, print something without a warning, and write nothing but their own temporary files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert list(tmp_path.iterdir()) == []


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES.glob("*.py") if f"({path.name})" not in listed] == []


def test_questions_of_several_tables_are_answered(tmp_path: Path) -> None:
    """Within a tenth of the exact answers, at ε = 3 each: with a part of the rows left out by mistake, none would be."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "several_tables.py")], cwd=tmp_path, capture_output=True, text=True
    )
    found = re.search(r"exact answer: ([0-9.]+)%", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) < 10

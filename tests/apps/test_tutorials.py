"""The tutorials run from the first cell to the last, and print what they show; the documentation builds as a site without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import load

ROOT = Path(__file__).parents[2]
TUTORIALS = load("docs/tutorials/run.py")


@pytest.mark.parametrize("notebook", TUTORIALS.NOTEBOOKS, ids=lambda path: path.stem)
def test_tutorials_run_and_show_what_is_printed(notebook: Path) -> None:
    assert TUTORIALS.agrees(notebook), "run `python docs/tutorials/run.py --update` and read the difference"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    for page, words in {
        "index.html": "recommender",
        "reference/session.html": "bounding",
        "tutorials/first-release.html": "ledger",
    }.items():
        assert words in (tmp_path / page).read_text(encoding="utf-8")

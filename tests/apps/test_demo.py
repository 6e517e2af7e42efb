"""``evenhand demo`` makes the point in one screen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints on an ordinary terminal, run in an empty folder."""
    folder = tmp_path_factory.mktemp("demo")
    script = Path(sys.executable).with_name("evenhand")
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run([script, "demo"], capture_output=True, text=True, timeout=300, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [], "the demo leaves files behind"
    return done.stdout


def test_it_fits_one_screen(screen: str) -> None:
    lines = screen.splitlines()
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 100


def test_it_shows_truth_beside_release_and_what_rows_would_have_exposed(screen: str) -> None:
    for words in ("truth", "released", "ε =", "per row", "odds", "evenhand release --help"):
        assert words in screen


def test_the_releases_are_close_to_the_truth(screen: str) -> None:
    """Within 20%, at ε of 0.1 to 0.5 for each: a demo that is far off makes the wrong point."""
    found = re.findall(r"^(viewers|views|hours watched|mean stars)\s+([\d,.]+)\s+([\d,.]+)", screen, re.MULTILINE)
    assert [name for name, _, _ in found] == ["viewers", "views", "hours watched", "mean stars"]
    for _, truth, released in found:
        exact = float(truth.replace(",", ""))
        assert abs(float(released.replace(",", "")) - exact) < 0.2 * exact

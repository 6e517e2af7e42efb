"""Several processes on one table and one ledger; the long version is ``load.py --seconds 60``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def load(*options: str) -> dict[str, Any]:
    script = Path(__file__).with_name("load.py")
    command = [sys.executable, str(script), "--processes", "4", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert run.stdout, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    assert run.returncode == (0 if outcome["sound"] else 1)
    return outcome


def test_processes_share_a_table_and_a_ledger() -> None:
    outcome = load("--seconds", "3")
    assert outcome["sound"], outcome
    assert outcome["released"] >= 4
    assert outcome["refused"] == 0


def test_processes_stop_exactly_when_the_budget_is_spent() -> None:
    outcome = load("--seconds", "60", "--total", "0.02")
    assert outcome["sound"], outcome
    assert outcome["released"] == 20
    assert outcome["refused"] == 4

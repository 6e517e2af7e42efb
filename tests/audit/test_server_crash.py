"""The keeper's server under SIGKILL; the long version is ``server_crash.py --kills 20``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("keeper")


def crash(*options: str) -> dict[str, Any]:
    script = Path(__file__).with_name("server_crash.py")
    run = subprocess.run(
        [sys.executable, str(script), *options], capture_output=True, text=True, check=False, timeout=240
    )
    assert run.stdout, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    assert run.returncode == (0 if outcome["sound"] else 1)
    return outcome


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_server_loses_and_doubles_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    place = () if kind == "sqlite" else ("--ledger", str(request.getfixturevalue("postgres_url")))
    outcome = crash("--kills", "1", *place)
    assert outcome["sound"], outcome
    assert outcome["asked"] >= 6


def test_a_server_that_forgets_keys_is_caught() -> None:
    outcome = crash("--kills", "0", "--broken")
    assert outcome["paid_twice"] >= 6
    assert outcome["changed"] >= 6

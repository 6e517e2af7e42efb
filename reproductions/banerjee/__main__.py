"""Run all reproductions: PYTHONPATH=reproductions python -m banerjee OUT [small|full]."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import cast

from banerjee import REPRODUCTIONS
from banerjee.common import Size

out, size = Path(sys.argv[1]), cast(Size, sys.argv[2] if len(sys.argv) > 2 else "full")
missed = 0
for name, reproduce in REPRODUCTIONS.items():
    start = time.perf_counter()
    outcome = reproduce(out, size)
    print(f"{name} ({time.perf_counter() - start:.0f} s)")
    for check in outcome.checks:
        missed += not check.holds
        verdict = "holds" if check.holds else "MISSED"
        print(f"  {check.name}: {check.found:.3g} (expected {check.low:g} to {check.high:g}) {verdict}")
sys.exit(missed > 0)

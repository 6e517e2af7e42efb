"""``make bench``: run all benchmarks, or those named: ``python -m benchmarks speed accuracy``.

Options without values are handed on: ``python -m benchmarks peers --ours``.
"""

from __future__ import annotations

import subprocess
import sys

GROUPS = {
    "speed": [
        "benchmarks.speed.duckdb_ratio",
        "benchmarks.speed.groups_ratio",
        "benchmarks.speed.views_ratio",
        "benchmarks.speed.parts_ratio",
        "benchmarks.speed.spark_ratio",
        "benchmarks.speed.fit_ratio",
    ],
    "accuracy": [
        "benchmarks.accuracy",
        "benchmarks.accuracy.selection",
        "benchmarks.accuracy.hidden_numbers",
        "benchmarks.accuracy.groups",
        "benchmarks.accuracy.group_releases",
        "benchmarks.accuracy.release_coverage",
    ],
    "planning": ["benchmarks.accuracy.plan_speed"],
    "learning": ["benchmarks.learning", "benchmarks.learning.comparison"],
    "recommender": ["benchmarks.recommender", "benchmarks.recommender.grouped", "benchmarks.recommender.rounds"],
    "service": ["benchmarks.service", "benchmarks.service.bar"],
    "peers": ["benchmarks.peers"],
}


def main(wanted: list[str]) -> int:
    """Each benchmark runs in a process of its own, so that none pays for another's memory."""
    options = [word for word in wanted if word.startswith("-")]
    wanted = [word for word in wanted if not word.startswith("-")]
    unknown = [group for group in wanted if group not in GROUPS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; expected some of: {', '.join(GROUPS)}.", file=sys.stderr)
        return 2
    failed = 0
    for group in wanted or list(GROUPS):
        for module in GROUPS[group]:
            print(f"\n== {module}", flush=True)
            failed += subprocess.run([sys.executable, "-m", module, *options], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What passes between the benchmark and a runner: jobs in, answers out, one JSON object on each line.

A runner imports nothing but this module, the standard library, pyarrow and the library that it runs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict


class Job(TypedDict):
    """One question to one library with one set of parameters.

    Args:
        name: the question; ``column``: which of the two columns of the report this is for.
        path: Parquet with the columns ``user``, ``value`` and the grouping ones, keys from 0 to ``groups`` - 1.
        statistic: count, sum, mean, users or quantiles.
        by: the grouping column, or None; ``hidden``: whether its keys must be found privately.
        parameters: what the library is told; see ``advice.py`` and ``hindsight.py``.
        runs: at most so many repetitions, and no further one after ``seconds`` of work.
    """

    name: str
    column: str
    path: str
    statistic: str
    by: str | None
    groups: int
    hidden: bool
    bounds: tuple[float, float]
    quantiles: list[float]
    epsilon: float
    delta: float
    parameters: dict[str, Any]
    runs: int
    seconds: float


Answer = dict[int, list[float]]
"""By key (0 without groups): one number, or one for each quantile."""


def serve(answer: Callable[[Job], Answer]) -> None:
    """Answer all jobs of the file named first, into the file named second; a failure is an answer too."""
    jobs: list[Job] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with Path(sys.argv[2]).open("w", encoding="utf-8") as out:
        for number, job in enumerate(jobs):
            spent = 0.0
            for _ in range(job["runs"]):
                start = time.perf_counter()
                line: dict[str, Any] = {"job": number}
                try:
                    line["values"] = list(answer(job).items())
                except Exception as problem:
                    # The other library's failure is a result; the report shows it.
                    line["error"] = f"{type(problem).__name__}: {problem}"[:300]
                line["seconds"] = time.perf_counter() - start
                line["load"] = os.getloadavg()[0]  # seconds on a busy machine say little
                out.write(json.dumps(line) + "\n")
                out.flush()
                spent += line["seconds"]
                if "error" in line or spent > job["seconds"]:
                    break
            print(f"  {job['name']}, {job['column']}: {spent:.0f} s", file=sys.stderr, flush=True)

"""diffprivlib in an environment of its own: at row level, and at the user level that it can honestly promise."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.learning.problems import Data, Floats
from benchmarks.peers.environments import Peer, interpreter

DIFFPRIVLIB = Peer("diffprivlib 0.6.6", "diffprivlib", ("diffprivlib==0.6.6", "scikit-learn<1.6"))

ROWS_PER_USER = (1, 3, 10)
"""How many random rows of a user are kept, for a guarantee about the user: group privacy gives each row ε/τ."""

STRENGTHS = (1.0, 0.01)
"""Its inverse regularisation C."""

_RUNNER = """
import json, sys, warnings
import numpy as np
warnings.filterwarnings("ignore")
from diffprivlib.models import LinearRegression, LogisticRegression
jobs, data, found = json.load(open(sys.argv[1])), np.load(sys.argv[2]), []
X, y, rank = data["X"], data["y"], data["rank"]
for job in jobs:
    kept = rank < job["rows"] if job["rows"] else np.ones(len(y), bool)
    try:
        if job["regression"]:
            model = LinearRegression(epsilon=job["epsilon"], bounds_X=(-1, 1), bounds_y=(0, 1))
        else:
            model = LogisticRegression(epsilon=job["epsilon"], data_norm=X.shape[1] ** .5, C=job["C"], max_iter=300)
        model.fit(X[kept], y[kept])
        found.append([float(v) for v in np.append(np.ravel(model.coef_), np.ravel(model.intercept_))])
    except Exception as problem:
        found.append(f"{type(problem).__name__}: {problem}"[:200])
json.dump(found, open(sys.argv[3], "w"))
"""


def diffprivlib(data: Data, runs: int, rng: np.random.Generator) -> dict[str, list[list[Floats]]]:
    """The margins of each run with each setting: of ``rows`` (ε for a row) and of ``users`` (ε for all rows of a user).

    Raises:
        InstallError: if the library can't be installed on this machine.
    """
    python = interpreter(DIFFPRIVLIB)
    low, high = data.label_bounds or (0.0, 1.0)
    ranks = _ranks(data, rng)
    strengths = (1.0,) if data.label_bounds else STRENGTHS
    settings = [("rows", 0, C) for C in strengths] + [("users", rows, C) for rows in ROWS_PER_USER for C in strengths]
    jobs = [
        {"epsilon": data.epsilon / max(rows, 1), "rows": rows, "C": C, "regression": bool(data.label_bounds)}
        for _, rows, C in settings
        for _ in range(runs)
    ]
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("jobs.json", "data.npz", "found.json", "run.py")]
        places[0].write_text(json.dumps(jobs), encoding="utf-8")
        np.savez(places[1], X=data.box, y=(data.y - low) / (high - low), rank=ranks)
        places[3].write_text(_RUNNER, encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(python), str(places[3]), *map(str, places[:3])]
        subprocess.run(command, check=True, env=environment)
        found = json.loads(places[2].read_text(encoding="utf-8"))
    margins: dict[str, list[list[Floats]]] = {"rows": [], "users": []}
    for number, (kind, _, _) in enumerate(settings):
        own = [model for model in found[number * runs : (number + 1) * runs] if not isinstance(model, str)]
        A = np.c_[data.box, np.ones(len(data.y))]
        if own:
            scale = high - low if data.label_bounds else 1.0
            margins[kind].append([(low if data.label_bounds else 0.0) + scale * (A @ np.array(f)) for f in own])
        else:
            print(f"diffprivlib, {data.name}: {found[number * runs]}", flush=True)
    return margins


def _ranks(data: Data, rng: np.random.Generator) -> Floats:
    """The place of each row in a random order of its user's rows."""
    order = np.lexsort((rng.random(len(data.users)), data.users))
    ranks = np.empty(len(data.users))
    ranks[order] = np.arange(len(data.users)) - np.repeat(np.cumsum(data.counts) - data.counts, data.counts)
    return ranks

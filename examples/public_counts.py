"""A school: who attends which course is public; a person's marks are private.

With protects="values" the row counts are public, so bounds are chosen from them for free, and counts are exact.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand as eh

random = np.random.default_rng(4)
tests = random.integers(5, 60, 1_500)
marks = pd.DataFrame({"pupil": np.repeat(np.arange(1_500), tests)})
marks["course"] = random.choice(["music", "physics", "history"], len(marks))
ability = random.normal(68, 6, 1_500)
marks["points"] = np.clip(ability[marks.pupil] + random.normal(0, 12, len(marks)), 0, 100).round()

with tempfile.TemporaryDirectory() as folder:
    table = eh.read(marks, user="pupil", protects="values", public=["course"])
    session = eh.Session(table, eh.Ledger(Path(folder) / "budget.db", epsilon=2))
    print(session.count(by="course", epsilon=0.1).value.to_string(index=False), "  exact and free")
    print("spent:", session.ledger.spent)
    for strategy in ("auto", eh.SmoothWeights(), eh.CentredInterval()):
        release = session.mean("points", bounds=(0, 100), epsilon=0.5, bounding=strategy)
        print(f"{release.headline()} ± {release.error.noise:.2f}   {release.bounding.words}")
    print(f"exact: {marks.points.mean():.2f}")

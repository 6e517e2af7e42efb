"""A table, a budget, four answers. The exact values can be printed next to them because the data are generated."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand as eh

random = np.random.default_rng(1)
trips = np.ceil(random.lognormal(2, 1.2, 6_000)).astype(int)  # most riders take a few trips, some hundreds
rides = pd.DataFrame({"rider": np.repeat(np.arange(6_000), trips)})
rides["km"] = random.gamma(2, 1.5, len(rides)).round(2)

with tempfile.TemporaryDirectory() as folder:
    ledger = eh.Ledger(Path(folder) / "budget.db", epsilon=1.5)
    session = eh.Session(eh.read(rides, user="rider"), ledger)
    answers = [
        (session.users(epsilon=0.1), 6_000),
        (session.count(epsilon=0.4), len(rides)),
        (session.sum("km", bounds=(0, 30), epsilon=0.5), rides.km.sum()),
        (session.mean("km", bounds=(0, 30), epsilon=0.5), rides.km.mean()),
    ]
    for release, truth in answers:
        low, high = release.interval(0.95)
        print(f"{release.headline():32} interval {low:,.2f} to {high:,.2f}; exact {truth:,.2f}")
        print(f"    {release.bounding}")
    print("spent", ledger.spent, "of", ledger.total)

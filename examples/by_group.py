"""Groups: listed by you, or found privately in the data; the rest in one group; several statistics in one pass."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand as eh

random = np.random.default_rng(3)
visits = np.ceil(random.lognormal(1.5, 1, 4_000)).astype(int)
log = pd.DataFrame({"person": np.repeat(np.arange(4_000), visits)})
places = ["library", "pool", "museum", "park", "the one house at the end of the road"]
log["place"] = random.choice(places, len(log), p=[0.4, 0.3, 0.2, 0.0999, 0.0001])
log["minutes"] = random.gamma(2, 30, len(log)).round()

with tempfile.TemporaryDirectory() as folder:
    session = eh.Session(eh.read(log, user="person"), eh.Ledger(Path(folder) / "budget.db", epsilon=5, delta=1e-5))

    print("Public group names, and one group for the rest:")
    listed = session.users(by="place", keys=["library", "pool"], other="elsewhere", epsilon=1)
    print(listed.value.to_string(index=False))

    print("\nHidden group names, selected privately; places with few visitors are not shown:")
    found = session.count(by="place", epsilon=2, delta=1e-6)
    print(found.interval(0.95).round().to_string(index=False))
    print(found.details["selection"])

    print("\nSeveral statistics of the selected groups, in one pass:")
    both = session.aggregate(
        by="place", keys=found.value[["place"]], epsilon=2,
        visits=eh.count(), minutes=eh.mean("minutes", bounds=(0, 480)),
    )  # fmt: skip
    print(both.value.round(1).to_string(index=False))

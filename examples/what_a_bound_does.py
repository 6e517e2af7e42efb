"""The same count under many caps: a low cap cuts rows off, a high cap needs more noise, and Auto chooses one privately.

The column "cut" comes from the exact table. With real data it is private, which is why choosing a cap is hard.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand as eh

EPSILON = 0.5

random = np.random.default_rng(2)
posts = np.ceil(random.pareto(1.4, 5_000) * 5).astype(int)
table = pd.DataFrame({"author": np.repeat(np.arange(5_000), posts)})

with tempfile.TemporaryDirectory() as folder:
    session = eh.Session(eh.read(table, user="author"), eh.Ledger(Path(folder) / "budget.db", epsilon=10))
    print(f"{len(table):,} posts by 5,000 authors, the busiest with {posts.max():,}; ε = {EPSILON}")
    print(f"{'cap':>8} {'released':>10} {'noise ±':>10} {'cut':>10}")
    for cap in (1, 10, 100, 300, 1_000, 10_000):
        release = session.count(epsilon=EPSILON, bounding=eh.TotalCap(cap))
        cut = np.maximum(posts - cap, 0).sum()
        print(f"{cap:8,} {release.value:10,} {release.error.noise:10,.0f} {cut:10,}")
    chosen = session.count(epsilon=EPSILON)
    print(f"{'auto':>8} {chosen.value:10,} {chosen.error.noise:10,.0f}   {chosen.bounding}")

"""A generated table in the shape of MovieLens 20M: 138,493 users, about 20 million ratings."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

USERS, ROWS, MOVIES = 138_493, 20_000_263, 26_744


def ratings(folder: Path | None = None, users: int = USERS, rows: int = ROWS) -> Path:
    """The Parquet file, made once and kept in the temporary folder."""
    path = (folder or Path(tempfile.gettempdir())) / f"evenhand-ratings-{users}-{rows}.parquet"
    if path.exists():
        return path
    random = np.random.default_rng(7)
    counts = np.clip(np.exp(random.normal(np.log(68), 1.1, users)), 20, 9254)
    counts = np.clip(counts * (rows / counts.sum()), 20, 9254).astype(int)
    total = int(counts.sum())
    who = np.repeat(np.arange(1, users + 1, dtype=np.int32), counts)
    taste = random.normal(3.5, 0.45, users)
    stars = np.clip(np.round((np.repeat(taste, counts) + random.normal(0, 1, total)) * 2) / 2, 0.5, 5.0)
    movie = (random.zipf(1.2, total) % MOVIES).astype(np.int32)
    order = random.permutation(total)
    table = pa.table({"userId": who[order], "movieId": movie[order], "rating": stars[order]})
    pq.write_table(table, path, row_group_size=1_000_000)
    return path

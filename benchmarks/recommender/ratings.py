"""Recommendations on real ratings, against popularity and a factorisation, over several splits of the people.

    python -m benchmarks.recommender.ratings [FILE] [--users 10000,100000] [--epsilon 1,4] [--sketch maxsense,projection]

Without a file, ratings are made up: ratings per person and per item with long tails, tastes of eight dimensions.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.results import keep, table
from evenhand.recommender.simulation import Quality, RatingsTable, read_table, study_ratings


def made_up(people: int = 6000, items: int = 200, seed: int = 0) -> RatingsTable:
    """Long tails as in MovieLens: log-normal ratings per person, items rated ∝ 1/rank^0.7, likes by shared tastes."""
    random = np.random.default_rng(seed)
    quality, tastes = random.normal(0, 0.7, items), random.normal(0, 0.6, (items, 8))
    persons = random.normal(0, 0.6, (people, 8))
    fit = quality + persons @ tastes.T
    counts = np.clip(np.exp(random.normal(3.4, 0.9, people)).astype(int), 2, items // 2)
    # Gumbel keys: the first of each row are a draw without replacement by popularity and taste.
    keys = -0.7 * np.log(1 + np.arange(items)) + 0.8 * fit + random.gumbel(size=fit.shape)
    chosen = np.argsort(np.argsort(-keys, axis=1), axis=1) < counts[:, None]
    liked = random.random(fit.shape) < 1 / (1 + np.exp(-fit - 0.3))
    opinions = np.where(chosen, np.where(liked, 1, -1), 0).astype(np.int8)
    return RatingsTable(tuple(f"item {number}" for number in range(items)), opinions)


def main() -> int:
    """Print the table, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--users", default="10000,100000")
    parser.add_argument("--epsilon", default="1,4")
    parser.add_argument("--sketch", default="maxsense,projection")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    ratings = made_up() if given.file is None else read_table(given.file)
    users, levels = [int(text) for text in given.users.split(",")], given.epsilon.split(",")
    found: dict[tuple[str, str, str], list[Quality]] = defaultdict(list)
    start = time.process_time()
    for seed in range(given.splits):
        for one in study_ratings(ratings, 40, levels, users, given.sketch.split(","), seed=seed):
            found[one.method, one.epsilon or "", f"{one.users:,}" if one.users else ""].append(one)
    rows = []
    for key, runs in found.items():
        hits, gains = ([getattr(run, name) for run in runs] for name in ("hit_rate", "ndcg"))
        rows.append([*key, *(f"{np.median(v):.3f} ({min(v):.3f} to {max(v):.3f})" for v in (hits, gains))])
    name = given.file.name if given.file else "made up"
    text = f"""# Recommendations on ratings ({name}), {time.strftime("%Y-%m-%d")}

{len(ratings.opinions):,} people, the {len(ratings.items)} most rated items, at most 40 ratings per person. Median over {given.splits} splits of the people, and the
range; in each a fifth is judged, and the others are learnt from. {time.process_time() - start:.0f} s of one core.

{table(["recommendations by", "ε", "people", "hit rate at 10", "NDCG at 10"], rows)}
"""
    dated = f"{time.strftime('%Y-%m-%d')}-ratings-{name.replace('.', '-').replace(' ', '-')}"
    keep(given.out, dated, text, {" ".join(key): [run.to_dict() for run in runs] for key, runs in found.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())

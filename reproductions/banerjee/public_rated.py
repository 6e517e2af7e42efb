"""Where it is public which items people rated, Pairwise-Preference needs about N log N users, however few they rated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from evenhand.guarantee import parse_epsilon
from evenhand.recommender import Campaign
from evenhand.recommender.at_server import Batch, Fold
from evenhand.recommender.at_server.sketches import RatedSets
from evenhand.recommender.at_server.sketches.pairwise import Pairwise
from evenhand.recommender.planning import users_needed
from evenhand.recommender.simulation import items_wrong
from evenhand.recommender.tastes import Tastes, preset
from evenhand.recommender.tuning import Setting, strength
from reproductions.banerjee.common import WRONG, crossing, geometric, line_chart, slope
from reproductions.outcomes import Check, Outcome, Rows, Size

GRIDS = {
    "small": ((30, 60, 120), (3, 10, 30), range(5)),
    "full": ((50, 100, 200, 400), (3, 10, 30, 90), range(8)),
}
EPSILON = 1.0


def _rated_sets(users: int, items: int, rated: int, random: np.random.Generator) -> Iterator[list[int]]:
    """Everybody's rated items, drawn for some people at a time."""
    for at in range(0, users, 4096):
        keys = random.random((min(4096, users - at), items), np.float32)
        yield from keys.argpartition(rated - 1)[:, :rated].tolist()


def campaign_need(tastes: Tastes, items: int, rated: int, stops: list[int], seed: int) -> float:
    """One campaign of people who each rated ``rated`` random items and told which; only their likes are private."""
    random = np.random.default_rng(seed)
    users, labels = stops[-1], tastes.labels(items)
    names = [f"item {number}" for number in range(items)]
    campaign = Campaign(names, "pairwise", EPSILON, rated, users=users, public_rated=True)
    task = campaign.open(f"public {seed}")
    fold = Fold(task, rated=RatedSets(_rated_sets(users, items, rated, random)))
    sketch = fold.sketch
    assert isinstance(sketch, Pairwise)
    wrong = []
    for first, last in zip([0, *stops[:-1]], stops, strict=True):
        serials = np.arange(first, last)
        low, high, _ = sketch.pairs(serials)
        classes = random.choice(len(tastes.people), len(serials), p=tastes.people)
        likes = [random.random(len(serials)) < np.array(tastes.like)[classes, labels[item]] for item in (low, high)]
        bits = (likes[0] == likes[1]) ^ (random.random(len(serials)) >= (1 + strength(EPSILON)) / 2)
        fold.add(Batch(serials.astype(np.uint32), bits.astype(np.uint32), None))
        wrong.append(items_wrong(campaign.publish(fold, tastes.clusters).clusters, labels))
    return crossing(stops, wrong)


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Simulate over N with w = 10 and over w at one N; what is rated being private would cost (N/w)⁴ times as many."""
    items, rated, seeds = GRIDS[size]
    tastes, fixed_items = preset("mirrored"), items[-2]
    rows: Rows = []
    for n, w, series in [*((n, 10, "N varies") for n in items), *((fixed_items, w, "w varies") for w in rated)]:
        # With public rated items everybody rated both items they are asked about, as if they had rated all.
        near = users_needed(Setting("pairwise", n, n, parse_epsilon(EPSILON)), tastes, WRONG)
        assert near is not None
        stops = [round(near * 2 ** (step / 2)) for step in range(-4, 5)]
        need, error = geometric([campaign_need(tastes, n, w, stops, seed) for seed in seeds])
        rows.append({"items": n, "rated": w, "series": series, "users": need, "relative error": error})
    by_items, by_rated = ([row for row in rows if row["series"] == s] for s in ("N varies", "w varies"))
    hidden = users_needed(Setting("pairwise", fixed_items, 10, parse_epsilon(EPSILON)), tastes, WRONG)
    ten = next(row for row in by_items if row["items"] == fixed_items)
    checks = [
        Check("exponent of N", slope([r["items"] for r in by_items], [r["users"] for r in by_items]), 0.7, 1.5),
        Check("exponent of w", slope([r["rated"] for r in by_rated], [r["users"] for r in by_rated]), -0.3, 0.3),
        Check("private / public rated items, w = 10, forecast", (hidden or 0) / ten["users"], 100, 1e9),
    ]
    title = f"Public rated items: users for {WRONG:.0%} of items wrong (ε = 1)"
    return Outcome(title, checks, rows).write(
        out, "banerjee-public-rated", line_chart(by_items, "items", "users", "series", title)
    )

"""Do campaigns in rounds need fewer people than one round, at the same ε for everyone and with as many people?

    python -m benchmarks.recommender.rounds [--out FOLDER]

*Coarse, then within groups*: half the people are asked about whole groups of items, the others about items of one group each, drawn by
public randomness; or everybody twice, with half the ε each time. *Doubtful items again*: half the people are asked about all items, the
others about the third that lies nearest to the border. *Sides*: where tastes are mirrored, half the people answer a projection campaign; the
others find out at home, with its model, on which side they are, turn their ratings over if it is the second, and answer MaxSense.

A person's side is found from ratings that the question is not about: with all of them, the second round would confirm any first model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.results import keep, table
from evenhand.recommender import Campaign
from evenhand.recommender.at_server import Fold
from evenhand.recommender.at_server.clustering import kmeans_1d
from evenhand.recommender.at_server.sketches import Bits, Ints
from evenhand.recommender.at_server.sketches.maxsense import MaxSense
from evenhand.recommender.planning import plan
from evenhand.recommender.simulation import BlockPeople, items_wrong
from evenhand.recommender.tastes import Tastes, preset

Floats = NDArray[np.float64]
Wrong = dict[str, float]
World = tuple[str, int, Callable[[int], Wrong]]
"""A name, how many seeds, and a function from a seed to the share of items wrong by strategy."""
_CHUNK = 1 << 16
LIKE = (0.8, 0.2)


class Survey:
    """MaxSense with people who all agree, and rated each item with probability w/N independently of the others."""

    def __init__(self, labels: Ints, groups: Ints, rated: int, seed: int) -> None:
        self.labels, self.groups, self.rate = labels, groups, rated / len(labels)
        self.draws = max(1, round(len(labels) / rated))
        self.like = np.where(labels == 0, *LIKE)
        self.random = np.random.default_rng(seed)

    def _bits(self, quiet: Floats, epsilon: float) -> Bits:
        truth = self.random.random(len(quiet)) >= quiet
        return np.asarray(truth ^ (self.random.random(len(quiet)) < 1 / (np.exp(epsilon) + 1)))

    def items(
        self, users: int, epsilon: float, chosen: Ints | None = None, within: bool = False
    ) -> tuple[Floats, Floats]:
        """Ask about draws of all items, of some, or of one group each; the items' like rates, with their variances."""
        size = len(self.labels)
        sensed, ones = np.zeros(size), np.zeros(size)
        pools = [np.flatnonzero(self.groups == group) for group in np.unique(self.groups)]
        smallest = min(map(len, pools))
        for at in range(0, users, _CHUNK):
            count = min(_CHUNK, users - at)
            if within:
                which = np.array([pool[:smallest] for pool in pools])[self.random.integers(0, len(pools), count)]
                sets = np.take_along_axis(which, self.random.integers(0, smallest, (count, self.draws)), axis=1)
            else:
                pool = np.arange(size) if chosen is None else chosen
                sets = pool[self.random.integers(0, len(pool), (count, self.draws))]
            sets = np.sort(sets, axis=1)
            logs = np.log1p(-self.rate * self.like[sets])
            logs[:, 1:][sets[:, 1:] == sets[:, :-1]] = 0
            bits = self._bits(np.exp(logs.sum(axis=1)), epsilon)
            sensed += np.bincount(sets.ravel(), minlength=size)
            ones += np.bincount(sets.ravel(), np.repeat(bits, self.draws), size)
        flip = 1 / (np.exp(epsilon) + 1)
        share = (ones / np.maximum(sensed, 1) - flip) / (1 - 2 * flip)
        noise = 0.25 / np.maximum(sensed, 1e-9) / (1 - 2 * flip) ** 2
        overall = np.full(size, share[sensed > 0].mean())
        if within:
            overall = (np.bincount(self.groups, share) / np.bincount(self.groups))[self.groups]
        others = np.clip(1 - overall, 1e-3, 1) ** (1 - 1 / self.draws)
        return (1 - (1 - share) / others) / self.rate, noise / (others * self.rate) ** 2

    def whole_groups(self, users: int, epsilon: float) -> tuple[Floats, Floats]:
        """Ask about draws of one group each, and look at groups only: their like rates, with their variances."""
        rates, noise = self.items(users, epsilon, within=True)
        sizes = np.bincount(self.groups)
        return np.bincount(self.groups, rates) / sizes, np.bincount(self.groups, noise) / sizes**2


def _wrong(rates: Floats, labels: Ints) -> float:
    return items_wrong(kmeans_1d(rates, 2), labels)


def _toward_groups(rates: Floats, noise: Floats, groups: Ints, means: Floats | None = None) -> Floats:
    """Drawn toward the mean of the group, the more the less items of a group differ beyond noise."""
    own = np.bincount(groups, rates) / np.bincount(groups)
    means = own if means is None else means
    within = float(((rates - own[groups]) ** 2).mean())
    kept = max(0.0, 1 - float(noise.mean()) / max(within, 1e-12))
    return np.asarray(means[groups] + kept * (rates - own[groups]))


def first_moment(labels: Ints, groups: Ints, rated: int, users: int, seed: int) -> dict[str, float]:
    """All strategies for tastes that everybody shares, in one world."""
    survey, half = Survey(labels, groups, rated, seed), users // 2
    rates, noise = survey.items(users, 1.0)
    found = {"one round": _wrong(rates, labels)}
    found["one round, drawn toward groups"] = _wrong(_toward_groups(rates, noise, groups), labels)
    for name, people, epsilon in (("half the people each", half, 1.0), ("half the ε each", users, 0.5)):
        coarse, coarse_noise = survey.whole_groups(people, epsilon)
        rates, noise = survey.items(people, epsilon, within=True)
        sizes = np.bincount(groups)
        own, own_noise = np.bincount(groups, rates) / sizes, np.bincount(groups, noise) / sizes**2
        means = (coarse / coarse_noise + own / own_noise) / (1 / coarse_noise + 1 / own_noise)
        found[f"coarse, then within groups, {name}"] = _wrong(_toward_groups(rates, noise, groups, means), labels)
    rates, noise = survey.items(half, 1.0)
    clusters = kmeans_1d(rates, 2)
    border = (rates[clusters == 0].mean() + rates[clusters == 1].mean()) / 2
    doubtful = np.argsort(np.abs(rates - border))[: len(labels) // 3]
    again, again_noise = survey.items(half, 1.0, chosen=doubtful)
    both = (rates / noise + again / again_noise) / (1 / noise + 1 / again_noise)
    rates[doubtful] = both[doubtful]
    found["doubtful items again"] = _wrong(rates, labels)
    return found


class SidedPeople(BlockPeople):
    """People who turn their ratings over if they lean against a published axis; see `at_home.rounds`."""

    def __init__(self, tastes: Tastes, items: int, rated: int, axis: Floats, seed: int) -> None:
        super().__init__(tastes, items, rated, seed)
        self.axis = axis

    def like_any(self, sketch: MaxSense, numbers: Ints) -> Bits:
        x, rows = self.opinions(len(numbers), sketch.task.rated), np.arange(len(numbers))[:, None]
        sets = sketch.sets(numbers)[:, 0]
        asked = x[rows, sets]
        apart = x.copy()
        apart[rows, sets] = 0
        side = np.where(apart @ self.axis < 0, -1, 1)
        return np.asarray((asked == side[:, None]).any(axis=1))[:, None]


def sides(tastes: Tastes, items: int, rated: int, users: int, seed: int) -> dict[str, float]:
    """One round of projection, and two rounds, by people and by ε, in one world."""
    names = [f"item {number}" for number in range(items)]
    labels = tastes.labels(items)

    def first(people: int, epsilon: str) -> Any:
        campaign = Campaign(names, "projection", epsilon, rated, users=people, pool="auto")
        fold = Fold(campaign.open(f"rounds {seed}"))
        BlockPeople(tastes, items, rated, seed).answer(fold, 0, people)
        return campaign.publish(fold, 2)

    found = {"one round": items_wrong(first(users, "1").clusters, labels)}
    for name, people, epsilon in (("half the people each", users // 2, "1"), ("half the ε each", users, "0.5")):
        axis = np.array(first(people, epsilon).embedding)[:, 0]
        campaign = Campaign(names, "maxsense", epsilon, rated, users=people)
        fold = Fold(campaign.open(f"rounds {seed}"))
        SidedPeople(tastes, items, rated, axis, 1000 + seed).answer(fold, 0, people)
        found[f"sides, {name}"] = items_wrong(campaign.publish(fold, 2).clusters, labels)
    return found


def _shared() -> list[World]:
    """Tastes that everybody shares, and groups that fit them more or less."""
    worlds: list[World] = []
    for items, rated, groups, aligned, part in (
        *((200, 40, 5, aligned, part) for aligned in (1.0, 0.6, 0.0) for part in (0.25, 1.0)),
        (2000, 200, 10, 0.6, 0.25),
    ):
        best = plan(items, rated, 1, preset("popular")).best
        assert best is not None
        users = int((best.needed or 0) * part)

        def run(seed: int, given: tuple[int, int, int, float, int] = (items, rated, groups, aligned, users)) -> Wrong:
            items, rated, groups, aligned, users = given
            random = np.random.default_rng(seed)
            group = np.arange(items) % groups
            labels = np.where(random.random(items) < aligned, group % 2, random.integers(0, 2, items))
            return first_moment(labels, group, rated, users, seed)

        worlds.append(
            (f"{items:,} items, {aligned:.0%} as their group; {users:,} people", 20 if items < 1000 else 5, run)
        )
    return worlds


def _mirrored() -> list[World]:
    """Half the people, or fewer, like what the others dislike; where ratings are scarce and where they are not."""
    uneven = Tastes(((0.8, 0.2), (0.2, 0.8)), people=(0.7, 0.3), items=(0.6, 0.4))
    return [
        (f"{name}, {items} items, {rated} rated; {users:,} people", 5, partial(sides, tastes, items, rated, users))
        for name, tastes, items, rated, users in (
            ("mirrored", preset("mirrored"), 50, 20, 40_000),
            ("mirrored", preset("mirrored"), 100, 20, 160_000),
            ("mirrored", preset("mirrored"), 100, 20, 320_000),
            ("70:30, items 60:40", uneven, 100, 20, 240_000),
        )
    ]


def main() -> int:
    kinds = {"shared": _shared, "mirrored": _mirrored}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--kind", choices=list(kinds), help="only these tastes")
    given = parser.parse_args()
    for kind in [given.kind] if given.kind else list(kinds):
        rows, raw = [], {}
        for name, seeds, run in kinds[kind]():
            results = [run(seed) for seed in range(seeds)]
            raw[name] = results
            for strategy in results[0]:
                wrong = [one[strategy] for one in results]
                rows.append([name, strategy, f"{np.median(wrong):.1%}", f"{np.quantile(wrong, 0.95):.1%}"])
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
        day = datetime.now(UTC).date().isoformat()
        head = f"# Items in the wrong cluster, in one round and in two: {kind} tastes, {day}\n\n"
        about = "ε = 1 for everyone in total; like rates 0.8 and 0.2; 20 generated worlds each, 5 of those that take long.\n\n"
        text = head + about + table(["tastes", "strategy", "median", "95% quantile"], rows) + "\n"
        keep(given.out, f"{day}-rounds-{kind}", text, raw)
    return 0


if __name__ == "__main__":
    sys.exit(main())

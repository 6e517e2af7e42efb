"""Popular things: `top` and `distinct` against what a skilled user would write, and against Knop and Steinke 2023.

Run with ``python -m benchmarks.accuracy.popular [--short]``; prints two tables. The constants of `distinct` were tuned on other tables
(log-normal users with Zipf words, seed 7). Those of `top` were set with these shapes in view, so its figures say nothing about tables of another kind.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

import evenhand as eh
from evenhand.noise import rho_for

Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Pairs = tuple[Whole, Whole]

DELTA = 1e-6
K = 10
EPSILONS = (0.1, 0.4, 1.0, 4.0)


def popular(users: int, sizes: Whole, things: int, power: float, rng: np.random.Generator) -> Pairs:
    """Users with so many draws each from things whose popularity falls with a power; each pair once."""
    chances = np.cumsum(1 / np.arange(1, things + 1) ** power)
    user = np.repeat(np.arange(users), sizes)
    thing = np.searchsorted(chances / chances[-1], rng.random(len(user)))
    both = np.unique(user * things + thing)
    return both // things, both % things


def sizes(users: int, median: float, sigma: float, rng: np.random.Generator, most: int = 400) -> Whole:
    """Log-normal numbers of things per user."""
    return np.clip(np.rint(median * np.exp(sigma * rng.standard_normal(users))), 1, most).astype(np.int64)


TOP: dict[str, Callable[[np.random.Generator], Pairs]] = {
    "ratings, 4k users, median 60 of 3,700": lambda g: popular(4000, sizes(4000, 60, 1.1, g), 3700, 0.8, g),
    "baskets, 10k users, median 12 of 20,000": lambda g: popular(10000, sizes(10000, 12, 0.9, g), 20000, 0.9, g),
    "few, 5k users, median 3 of 500": lambda g: popular(5000, sizes(5000, 3, 0.7, g), 500, 0.6, g),
    "one city each, 3k users, 50": lambda g: popular(3000, np.ones(3000, np.int64), 50, 0.7, g),
    "one word each, 20k users, 20,000": lambda g: popular(20000, np.ones(20000, np.int64), 20000, 1.0, g),
}

DISTINCT: dict[str, Callable[[np.random.Generator], Pairs]] = {
    "words, Zipf 1.1, 2k users": lambda g: popular(2000, sizes(2000, 50, 1.5, g, 5000), 10**6, 1.1, g),
    "words, Zipf 0.8, 5k users": lambda g: popular(5000, sizes(5000, 8, 1.2, g, 2000), 300_000, 0.8, g),
    "ratings, 2k users": lambda g: popular(2000, sizes(2000, 70, 1.0, g), 5000, 0.9, g),
    "one value each, 8k users": lambda g: popular(8000, np.ones(8000, np.int64), 50_000, 1.0, g),
    "log-normal 2, own values": lambda g: popular(4000, sizes(4000, 2, 1.8, g, 20_000), 10**8, 0.0, g),
}


def ask(pairs: Pairs, question: Callable[[eh.Session], eh.Release], times: int) -> list[eh.Release]:
    """The same question several times, of a session without a shelf."""
    user, thing = pairs
    table = eh.read(pa.table({"u": user, "thing": thing}), user="u")
    with tempfile.TemporaryDirectory() as folder:
        ledger = eh.Ledger(Path(folder) / "b.db", epsilon=10**6, delta=0.5)
        return [question(eh.Session(table, ledger)) for _ in range(times)]


def judged(found: Sequence[int], counts: Whole) -> tuple[float, float]:
    """The share of the true top K that was found, and the users of what was found relative to the best."""
    order = np.argsort(-counts, kind="stable")
    best = counts[order[:K]]
    share = float(np.mean(counts[list(found)] >= best[-1])) * len(found) / K if len(found) else 0.0
    return share, float(counts[list(found)].sum() / best.sum())


def baseline(pairs: Pairs, epsilon: float, hidden: bool, rng: np.random.Generator, times: int) -> tuple[float, float]:
    """Users by thing with noise, sorted, the first K: with the number of things per user and the noise that are best in hindsight."""
    user, thing = pairs
    best = (0.0, 0.0)
    things = int(thing.max()) + 1
    counts = np.bincount(thing, minlength=things)
    for limit in (1, 2, 3, 5, 10, 20, 50, 100, 400):
        for gaussian in (False, True):
            if not hidden and gaussian:
                continue
            results = []
            for _ in range(times):
                kept = _sampled(user, limit, rng)
                seen = np.bincount(thing[kept], minlength=things).astype(float)
                if gaussian:
                    half = Decimal(str(DELTA / 2))
                    sigma = math.sqrt(limit / (2 * float(rho_for(Decimal(str(epsilon)), half))))
                    noisy = seen + sigma * rng.standard_normal(things)
                    needed = 1 + sigma * math.sqrt(2 * math.log(limit / (DELTA / 2)))
                else:
                    noisy = seen + rng.laplace(0, limit / epsilon, things)
                    needed = 1 + limit / epsilon * math.log(limit / (2 * DELTA))
                shown = np.argsort(-np.where(seen > 0, noisy, -np.inf) if hidden else -noisy)[:K]
                results.append(judged([place for place in shown if not hidden or noisy[place] >= needed], counts))
            best = max(best, tuple(np.mean(results, axis=0).tolist()), key=lambda pair: pair[1])
    return best


def _sampled(user: Whole, limit: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """At most ``limit`` random pairs of each user."""
    order = np.lexsort((rng.random(len(user)), user))
    first = np.maximum.accumulate(np.where(np.diff(user[order], prepend=-1) != 0, np.arange(len(user)), 0))
    return order[np.arange(len(user)) - first < limit]


def matching(pairs: Pairs, limit: int) -> int:
    """The largest number of values that users can support, each at most ``limit``: a maximum flow."""
    user, (_, value) = pairs[0], np.unique(pairs[1], return_inverse=True)
    users, values = int(user.max()) + 1, int(value.max()) + 1
    start = np.concatenate([np.zeros(users), user + 1, users + 1 + np.arange(values)])
    end = np.concatenate([1 + np.arange(users), users + 1 + value, np.full(values, users + values + 1)])
    room = np.concatenate([np.full(users, limit), np.ones(len(user) + values)])
    size = users + values + 2
    graph = csr_matrix((room.astype(np.int32), (start.astype(np.int32), end.astype(np.int32))), shape=(size, size))
    return int(maximum_flow(graph, 0, size - 1).flow_value)


def knop_steinke(
    found: Floats, epsilon: float, rng: np.random.Generator, times: int, beta: float = 0.05
) -> tuple[Floats, Floats]:
    """Their mechanism with limits 1 to len(found): the lower bound that it gives out, and the estimate behind it."""
    limits = np.arange(1, len(found) + 1)
    cost = 2 * limits / epsilon * math.log(1 / (2 * beta))
    worth = found - cost - 4 / epsilon * math.log(len(found) / beta) * limits
    scores = ((worth[:, None] - worth[None]) / (limits[:, None] + limits[None])).min(axis=1)
    chances = np.exp(epsilon / 4 * (scores - scores.max()))
    chosen = rng.choice(len(found), times, p=chances / chances.sum())
    estimate = found[chosen] + rng.laplace(0, 2 * limits[chosen] / epsilon)
    return estimate - cost[chosen], estimate


def top_table(times: int) -> None:
    """`top` with hidden and with public names."""
    print(
        "| table | names | ε | top 10 found: ours / baseline in hindsight | users of the found: ours / baseline |\n|---|---|---|---|---|"
    )
    for name, make in TOP.items():
        rng = np.random.default_rng(31)
        pairs = make(rng)
        things = int(pairs[1].max()) + 1
        counts = np.bincount(pairs[1], minlength=things)
        for hidden in (True, False):
            given = {"delta": DELTA} if hidden else {"keys": list(range(things))}
            for epsilon in EPSILONS:
                releases = ask(pairs, lambda s, e=epsilon, g=given: s.top("thing", K, epsilon=e, **g), times)  # type: ignore[misc]
                ours = np.mean([judged(one.value["thing"].tolist(), counts) for one in releases], axis=0)
                base = baseline(pairs, epsilon, hidden, rng, min(times, 6))
                names = "hidden" if hidden else "public"
                print(
                    f"| {name} | {names} | {epsilon:g} | {ours[0]:.2f} / {base[0]:.2f} | {ours[1]:.2f} / {base[1]:.2f} |",
                    flush=True,
                )


def distinct_table(times: int) -> None:
    """`distinct` by its absolute error relative to the truth: median and 95% quantile."""
    print(
        "| table | values | ε | ours: median, 95% | Knop and Steinke, estimate | their lower bound |\n|---|---|---|---|---|---|"
    )
    for name, make in DISTINCT.items():
        rng = np.random.default_rng(32)
        pairs = make(rng)
        truth = len(np.unique(pairs[1]))
        found = np.array([matching(pairs, limit) for limit in range(1, 101)], dtype=float)
        for epsilon in EPSILONS:
            releases = ask(pairs, lambda s, e=epsilon: s.distinct("thing", epsilon=e), times)  # type: ignore[misc]
            lower, estimate = knop_steinke(found, epsilon, rng, 4000)
            cells = [
                _spread(np.array(given, dtype=float), truth)
                for given in ([one.value for one in releases], estimate, lower)
            ]
            print(f"| {name} | {truth:,} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


def _spread(values: Floats, truth: int) -> str:
    wrong = np.abs(values - truth) / truth
    return f"{np.median(wrong):.3f}, {np.quantile(wrong, 0.95):.3f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few repetitions")
    parser.add_argument("--only", choices=["top", "distinct"], help="one of the tables")
    arguments = parser.parse_args()
    times = 5 if arguments.short else 40
    if arguments.only != "distinct":
        top_table(times)
    if arguments.only != "top":
        distinct_table(times)


if __name__ == "__main__":
    main()

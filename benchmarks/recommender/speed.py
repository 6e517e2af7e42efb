"""Speed of the recommender's server on one core, against its bars and against pure-LDP's OLH server.

    python -m benchmarks.recommender [--out FOLDER]

Every figure is the best of several runs, in reports per second of one core's time, so that what else the machine
does matters little.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import keep, table
from evenhand.recommender import Campaign
from evenhand.recommender.at_server import Batch, Fold
from evenhand.recommender.simulation import BlockPeople
from evenhand.recommender.tastes import preset

RUNS = 5


@dataclass(frozen=True)
class Figure:
    """Reports per second, and the bar it must clear, if any."""

    what: str
    reports_per_second: float
    bar: float | None = None

    @property
    def holds(self) -> bool:
        return self.bar is None or self.reports_per_second >= self.bar


def best_of(reports: int, work: Callable[[], object]) -> float:
    """The most reports per second over several runs."""
    rates = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        rates.append(reports / (time.process_time() - start))
    return max(rates)


def campaign_of(sketch: str, items: int, rated: int, users: int, pool: int | None) -> Campaign:
    names = (f"item {number}" for number in range(items))
    campaign = Campaign(names, sketch, 1, rated, users=users, pool=pool)
    campaign.open("benchmark")
    return campaign


def from_a_pool(sketch: str, items: int, rated: int, tastes: str, simulated: bool) -> list[Figure]:
    """Reports that share a pool of queries; simulated ones are drawn from the exact law of each query's answers."""
    users, pool = 1 << 22, 1 << 17
    campaign = campaign_of(sketch, items, rated, users, pool)
    serials = np.arange(users, dtype=np.uint32)
    ready = Batch(serials, np.random.default_rng(0).integers(0, 2, users, np.uint32), campaign.issuer.tags(serials))
    order = np.random.default_rng(0).permutation(users)
    shuffled = Batch(ready.serials[order], ready.answers[order], None)
    name = f"{sketch}, N={items}, w={rated}, pool"
    figures = []
    if simulated:
        people = BlockPeople(preset(tastes), items, rated)
        people.answer(Fold(campaign.task), 0, 1)  # prepares the pool's chances, once for all its reports
        played = best_of(users, lambda: people.answer(Fold(campaign.task), 0, users))
        figures.append(Figure(f"{name}: simulate and fold", played, 10e6))
    return [
        *figures,
        Figure(f"{name}: fold", best_of(users, lambda: Fold(campaign.task).add(ready)), 10e6),
        Figure(f"{name}: fold, random order", best_of(users, lambda: Fold(campaign.task).add(shuffled))),
        Figure(f"{name}: fold, tokens checked", best_of(users, lambda: campaign.fold().add(ready))),
    ]


def from_own_queries(sketch: str, items: int, rated: int, tastes: str, bar: float, both: bool) -> list[Figure]:
    """Reports that each have a query of their own, derived again by the server."""
    users = 1 << 18
    campaign = campaign_of(sketch, items, rated, users, None)
    people = BlockPeople(preset(tastes), items, rated)
    people.answer(Fold(campaign.task), 0, users)  # fills the table of chances, which is part of no campaign
    ready = people.reports(Fold(campaign.task).sketch, 0, users)
    name = f"{sketch}, N={items}, w={rated}, own queries"
    fold = best_of(users, lambda: Fold(campaign.task).add(ready))
    played = best_of(users, lambda: people.answer(Fold(campaign.task), 0, users))
    return [
        Figure(f"{name}: simulate and fold", played, bar if both else None),
        Figure(f"{name}: fold", fold, bar),
    ]


def pure_ldp() -> list[Figure]:
    """pure-LDP's optimal local hashing over as many items, for scale; nothing if it is not installed."""
    try:
        from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    except ImportError:
        return []
    client, server = LHClient(epsilon=1, d=1000, use_olh=True), LHServer(epsilon=1, d=1000, use_olh=True)
    reports = [client.privatise(1 + number % 1000) for number in range(1000)]
    rate = best_of(len(reports), lambda: [server.aggregate(report) for report in reports])
    return [Figure("pure-LDP OLH server, d=1000", rate)]


def on_one_core() -> None:
    """Start again with BLAS on one thread, which it decides when it is loaded."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.recommender", *sys.argv[1:]])


def report(figures: list[Figure], facts: dict[str, Any]) -> str:
    """Markdown: a row per figure."""
    rows = [
        [
            figure.what,
            f"{figure.reports_per_second:,.0f}",
            "" if figure.bar is None else f"{figure.bar:,.0f}",
            "" if figure.bar is None else "holds" if figure.holds else "MISSED",
        ]
        for figure in figures
    ]
    return f"""# Recommender, {facts["date"]}

Peak memory {facts["peak_memory_mb"]:,} MB, {facts["cores"]} cores, load {facts["load"]}.

{table(["", "reports per second", "bar", ""], rows)}
"""


def main() -> int:
    """Print the figures, write them down, and exit 1 if a bar is missed."""
    on_one_core()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    out = parser.parse_args().out
    figures = [
        *from_a_pool("maxsense", 1000, 20, "popular", simulated=True),
        *from_own_queries("maxsense", 1000, 20, "popular", 1e6, both=True),
        *from_a_pool("projection", 200, 40, "mirrored", simulated=False),
        *from_own_queries("projection", 200, 40, "mirrored", 3e5, both=False),
        *pure_ldp(),
    ]
    facts: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "figures": [asdict(figure) for figure in figures],
    }
    keep(out, str(facts["date"]), report(figures, facts), facts)
    return int(not all(figure.holds for figure in figures))

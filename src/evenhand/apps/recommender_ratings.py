"""``evenhand recommender simulate --ratings``: campaigns among people resampled from a table of ratings."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.apps.console import parse_list, progress
from evenhand.apps.recommender_files import say
from evenhand.guarantee import UsageError, parse_epsilon

if TYPE_CHECKING:
    from evenhand.recommender.simulation import Quality

_NOT_PRIVATE = "NOT PRIVATE: computed from the ratings in the file, only for those who may see the file."


def simulate_on_ratings(
    path: Path,
    columns: str,
    like_from: float,
    items: int,
    rated: int,
    epsilons: list[str],
    stops: list[int],
    sketches: list[str],
    out: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Print, and draw, how good the recommendations get."""
    from evenhand.recommender.simulation import read_table, study_ratings, verdicts

    names = parse_list(columns)
    if len(names) != 3:
        raise UsageError(f"--columns {columns!r}: expected three names, for user, item and rating.")
    for epsilon in epsilons:
        parse_epsilon(epsilon)
    start = time.monotonic()
    with progress("Reading") as tell:
        table = read_table(path, names[0], names[1], names[2], like_from, items)
        found = study_ratings(table, rated, epsilons, stops, sketches, seed=seed, tell=tell)
        about = f"People resampled from {path.name}: {len(table.opinions):,} people, {len(table.items)} items"
        files = [] if out is None else _draw(out, found, about, tell)
    took = {
        "seconds": round(time.monotonic() - start, 1),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    data: dict[str, Any] = {
        "about": about,
        "simulated": True,
        "not_private": True,
        "quality": [quality.to_dict() for quality in found],
        "judged_people": len(found[0].hits),
        "verdicts": verdicts(found),
        **took,
        "files": files,
    }
    lines = [
        _NOT_PRIVATE,
        f"{about}; judged on {len(found[0].hits)} who are in no campaign, by one like each that was left out.",
        *_table_lines(found),
        *verdicts(found),
        f"Took {took['seconds']:.0f} s and at most {took['peak_memory_mb']} MB.",
        *(f"Wrote {file}" for file in files),
    ]
    say(as_json, data, "\n".join(lines))


def _draw(out: Path, found: list[Quality], about: str, tell: Callable[[str], None]) -> list[str]:
    from evenhand.pages.charts import save
    from evenhand.pages.simulation import ratings_chart

    tell("Drawing")
    out.mkdir(parents=True, exist_ok=True)
    return list(save(ratings_chart(found, about), out / "quality", about))


def _table_lines(found: list[Quality]) -> list[str]:
    lines = [f"{'recommendations by':<30}{'ε':>6}{'people':>12}{'hit rate@10':>13}{'± error':>9}{'NDCG@10':>9}"]
    for one in found:
        people = "" if one.users is None else f"{one.users:,}"
        lines.append(
            f"{one.method:<30}{one.epsilon or '':>6}{people:>12}{one.hit_rate:>13.3f}{one.hit_rate_error:>9.3f}"
            f"{one.ndcg:>9.3f}"
        )
    return lines

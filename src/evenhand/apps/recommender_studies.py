"""``evenhand recommender plan`` and ``simulate``: what a campaign needs, and what it would find."""

from __future__ import annotations

import resource
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.apps.console import AsJson, parse_list, progress, say, write
from evenhand.guarantee import UsageError, parse_epsilon

if TYPE_CHECKING:
    from evenhand.pages.charts import Chart
    from evenhand.recommender.tastes import Tastes

_MOST_SIMULATED = 3_000_000

Items = Annotated[int, typer.Option(help="The number of items.")]
Rated = Annotated[int, typer.Option(help="How many ratings a person has.")]
Epsilon = Annotated[str, typer.Option(help="The ε of one person's answer; simulate --ratings takes several: a,b,c.")]
TastesName = Annotated[str, typer.Option(help="Assumed tastes: popular, mirrored or three.")]
Like = Annotated[
    str | None, typer.Option(help="Other tastes: like rates by item class, people classes split by ; as .9,.2;.1,.6")
]


def plan(
    items: Items = 200,
    rated: Rated = 40,
    epsilon: Epsilon = "1",
    users: Annotated[int | None, typer.Option(help="How many people you have, if you know.")] = None,
    tastes: TastesName = "popular",
    like: Like = None,
    groups: Annotated[
        int | None, typer.Option(help="Ask about so many public groups of the items, such as genres, instead.")
    ] = None,
    public_rated: Annotated[
        bool, typer.Option("--public-rated", help="It is public which items people rated; only likes are protected.")
    ] = False,
    check: Annotated[bool, typer.Option(help="Simulate the best sketch beside the forecast.")] = True,
    page: Annotated[
        Path | None, typer.Option(help="A file for a page with a chart: people needed by catalogue size and ε.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How many people are needed, which sketch suits, and what can't be done. Reads nobody's data.

    Example: evenhand recommender plan --items 1000 --rated 20 --epsilon 1 --users 6000 --page plan.html
    """
    from evenhand.recommender.planning import plan as make_plan
    from evenhand.recommender.simulation import study
    from evenhand.recommender.tuning import groups_rated

    assumed = _tastes(tastes, like)
    about = f"{items} items in {groups} groups, {rated} ratings per person: a campaign about the groups.\n"
    if groups is not None:
        items, rated = groups, groups_rated(groups, rated)
    found = make_plan(items, rated, epsilon, assumed, users, public_rated)
    words, data = (about if groups is not None else "") + found.words(), found.to_dict()
    if check and found.best and found.best.needed:
        stops = _looks(users, found.best.needed)
        with progress(f"Simulating {max(stops, default=0)} people"):
            sketch = [found.best.setting.sketch]
            points = study(assumed, items, rated, epsilon, stops, sketch, public_rated=public_rated) if stops else []
        data["simulated"] = [asdict(point) for point in points]
        words += "".join(
            f"\nA simulation of {point.sketch} with {point.users:,} people got {point.wrong:.1%} of items wrong."
            for point in points
        )
        if found.best.needed > _MOST_SIMULATED:
            words += f"\nMore than {_MOST_SIMULATED:,} people are not simulated here."
    if page is not None:
        from evenhand.pages.limits import limits_page
        from evenhand.recommender.planning import limits

        along = "items in the catalogue" if groups is None else "groups of items"
        panels = limits(items, rated, epsilon, assumed, public_rated)
        write(page, limits_page("What a campaign takes", words, panels, along).encode())
        words += f"\nWrote {page}"
    say(as_json, data, words)


def _looks(users: int | None, needed: int) -> list[int]:
    """After how many simulated people to look: at those there are, and about where the forecast is reached."""
    wanted = {users, needed // 2, needed, 2 * needed} - {None}
    return sorted(count for count in wanted if count is not None and 0 < count <= _MOST_SIMULATED)


def simulate(
    items: Items = 200,
    rated: Rated = 40,
    epsilon: Epsilon = "1",
    users: Annotated[str, typer.Option(help="After how many people to look: a,b,c.")] = "3000,10000,30000,100000",
    tastes: TastesName = "popular",
    like: Like = None,
    sketch: Annotated[str, typer.Option(help="Sketches: a,b,c or all.")] = "all",
    public_rated: Annotated[
        bool, typer.Option("--public-rated", help="It is public which items people rated; only likes are protected.")
    ] = False,
    ratings: Annotated[
        Path | None, typer.Option(help="Resample people from this file instead: MovieLens, or CSV or Parquet.")
    ] = None,
    columns: Annotated[str, typer.Option(help="Its columns for user, item and rating.")] = "userId,movieId,rating",
    like_from: Annotated[float, typer.Option(help="With --ratings: a rating of at least this is a like.")] = 4.0,
    out: Annotated[Path | None, typer.Option(help="A folder for pictures, as PNG, SVG and HTML.")] = None,
    seed: Annotated[int, typer.Option(help="Which simulated people; has no bearing on privacy.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Play whole campaigns with simulated people: items wrong, and how good the recommendations are.

    Examples: evenhand recommender simulate --tastes mirrored --users 10000,100000 --out pictures;
    evenhand recommender simulate --ratings ratings.csv --users 100000,1000000 --epsilon 1,4 --out pictures
    """
    stops, names = _counts(users), _sketches(sketch, public_rated)
    if ratings is None:
        data, lines = _on_tastes(_tastes(tastes, like), items, rated, epsilon, stops, names, seed, public_rated, out)
    elif public_rated:
        raise UsageError("--public-rated is for assumed tastes; leave it out with --ratings.")
    else:
        levels = parse_list(epsilon)
        data, lines = _on_ratings(ratings, columns, like_from, items, rated, levels, stops, names, seed, out)
    say(as_json, data, "\n".join([*lines, *(f"Wrote {file}" for file in data["files"])]))


def _on_tastes(
    assumed: Tastes, items: int, rated: int, epsilon: str, stops: list[int], sketches: list[str], seed: int, public_rated: bool, out: Path | None
) -> tuple[dict[str, Any], list[str]]:  # fmt: skip
    """Simulated people of assumed tastes: what came out, and the same as lines."""
    from evenhand.recommender.planning import chance
    from evenhand.recommender.simulation import compare, draw_opinions, study

    models: dict[str, Any] = {}
    with progress("Simulating"):
        points = study(
            assumed, items, rated, epsilon, stops, sketches, seed=seed, models=models, public_rated=public_rated
        )
        training, tests = (draw_opinions(assumed, items, rated, count, seed + count) for count in (5000, 1000))
        qualities = compare(models, training, tests, assumed.clusters, seed)
    about, files = f"{items} items, {rated} ratings per person, ε = {epsilon}", []
    if out is not None:
        from evenhand.pages.simulation import quality_chart, wrong_chart

        with progress("Drawing"):
            files = _draw(out, "quality", quality_chart(qualities, about), about)
            files += _draw(out, "items-wrong", wrong_chart(points, chance(assumed), about), about)
    data = {
        "about": about,
        "simulated": True,
        "not_private": False,
        "items_wrong": [asdict(point) for point in points],
        "quality": [quality.to_dict() for quality in qualities],
        "files": files,
    }
    wrong = [f"{one.sketch:<16}{one.users:>12,}{one.wrong:>14.1%}{one.expected:>10.1%}" for one in points]
    lines = [f"{'sketch':<16}{'people':>12}{'items wrong':>14}{'forecast':>10}", *wrong, ""]
    lines.append(f"{'recommendations by':<30}{'hit rate@10':>12}{'NDCG@10':>9}")
    return data, lines + [f"{one.method:<30}{one.hit_rate:>12.3f}{one.ndcg:>9.3f}" for one in qualities]


def _on_ratings(
    path: Path, columns: str, like_from: float, items: int, rated: int, epsilons: list[str], stops: list[int], sketches: list[str], seed: int, out: Path | None
) -> tuple[dict[str, Any], list[str]]:  # fmt: skip
    """People resampled from a table of ratings: how good the recommendations get, and the same as lines."""
    from evenhand.recommender.simulation import read_table, study_ratings, verdicts

    names = parse_list(columns)
    if len(names) != 3:
        raise UsageError(f"--columns {columns!r}: expected three names, for user, item and rating.")
    for epsilon in epsilons:
        parse_epsilon(epsilon)
    start, files = time.monotonic(), []
    with progress("Reading") as tell:
        table = read_table(path, names[0], names[1], names[2], like_from, items)
        found = study_ratings(table, rated, epsilons, stops, sketches, seed=seed, tell=tell)
        about = f"People resampled from {path.name}: {len(table.opinions):,} people, {len(table.items)} items"
        if out is not None:
            from evenhand.pages.simulation import ratings_chart

            tell("Drawing")
            files = _draw(out, "quality", ratings_chart(found, about), about)
    judged, said = len(found[0].hits), verdicts(found)
    seconds = round(time.monotonic() - start, 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    data = {
        "about": about,
        "simulated": True,
        "not_private": True,
        "quality": [quality.to_dict() for quality in found],
        "judged_people": judged,
        "verdicts": said,
        "seconds": seconds,
        "peak_memory_mb": memory,
        "files": files,
    }
    lines = [
        "NOT PRIVATE: computed from the ratings in the file, only for those who may see the file.",
        f"{about}; judged on {judged} who are in no campaign, by one like each that was left out.",
        f"{'recommendations by':<30}{'ε':>6}{'people':>12}{'hit rate@10':>13}{'± error':>9}{'NDCG@10':>9}",
    ]
    for one in found:
        people = "" if one.users is None else f"{one.users:,}"
        measured = f"{one.hit_rate:>13.3f}{one.hit_rate_error:>9.3f}{one.ndcg:>9.3f}"
        lines.append(f"{one.method:<30}{one.epsilon or '':>6}{people:>12}{measured}")
    return data, [*lines, *said, f"Took {seconds:.0f} s and at most {memory} MB."]


def _draw(out: Path, name: str, chart: Chart, about: str) -> list[str]:
    from evenhand.pages.charts import save

    out.mkdir(parents=True, exist_ok=True)
    return save(chart, out / name, about)


def _tastes(name: str, like: str | None) -> Tastes:
    from evenhand.recommender.tastes import Tastes, preset

    if like is None:
        return preset(name)
    try:
        rates = tuple(tuple(float(rate) for rate in row.split(",")) for row in like.split(";"))
    except ValueError:
        raise UsageError(f"--like {like!r} is not a table of numbers; expected such as 0.8,0.2;0.2,0.8.") from None
    return Tastes(rates)


def _counts(given: str) -> list[int]:
    texts = parse_list(given.replace("_", ""))
    if not texts or not all(text.isdigit() and int(text) > 0 for text in texts):
        raise UsageError(f"--users {given!r}: expected whole numbers of people such as 10000,100000.")
    return sorted({int(text) for text in texts})


def _sketches(given: str, public_rated: bool) -> list[str]:
    from evenhand.recommender.messages import SKETCHES, find_sketch

    able = [name for name, sketch in SKETCHES.items() if sketch.public_rated or not public_rated]
    names = able if given == "all" else parse_list(given)
    for name in names:
        find_sketch(name)
    if not set(names) <= set(able):
        raise UsageError(f"--sketch {given} with --public-rated; expected {', '.join(able)}.")
    return names

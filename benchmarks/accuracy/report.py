"""The measurements as a few tables that a person can read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.accuracy.cases import FROM, HARD, PUBLISHED
from benchmarks.results import table

SHOWN = ("0.1", "1.0", "4.0")  # the ε of the columns
METHODS = (
    "Evenhand",
    "median cap",
    "95% cap",
    "amin2019 literally",
)

Cells = dict[tuple[str, str], float]  # by shape and ε


def report(result: dict[str, Any], date: str) -> str:
    """Markdown: bars first, then a row per shape."""
    return f"""# Accuracy, {date}

{_bars(result)}

The mean's error against the best smooth weights in hindsight, geometric mean: {_against_smooth(result["mean"])}.

## Count and sum: |error| in multiples of the best fixed cap's RMSE, median / 95%

{_totals(result)}

## Count by simple rules, the same multiples

{_methods(result["count"])}

## Mean: RMSE in multiples of the best strategy in hindsight, values / presence, the worst kind of values

{_means(result["mean"])}
"""


def _bars(result: dict[str, Any]) -> str:
    rows = []
    limits: list[tuple[str, float]] = [("median", 3), ("95%", 6), ("99.9%", 50)]
    for statistic in ("count", "sum"):
        for figure, limit in limits:
            cells = {
                (name, eps): row["Evenhand"][figure]
                for name, by_epsilon in result[statistic].items()
                if name not in HARD
                for eps, row in by_epsilon.items()
                if float(eps) >= FROM
            }
            rows.append(_bar(f"{statistic}, {figure}", limit, cells))
    for relation, limit in (("values", 1.5), ("presence", 2.0)):
        rows.append(_bar(f"mean, {relation}", limit, _figures(result["mean"], relation, "multiple")))
    head = "bar (ε ≥ 0.1, at least 2,000 users)", "published shapes: worst", "where", "all shapes: worst", "where"
    return table([*head, "geometric mean"], rows)


def _bar(title: str, limit: float, cells: Cells) -> list[str]:
    published = {where: value for where, value in cells.items() if where[0].split(" / ")[0] in PUBLISHED}
    return [f"{title} ≤ {limit:g}", *_worst(published, limit), *_worst(cells, limit), _average(cells.values())]


def _worst(cells: Cells, limit: float) -> list[str]:
    where = max(cells, key=lambda key: cells[key])
    above = sum(value > limit for value in cells.values())
    return [f"{cells[where]:.2f}; {above} of {len(cells)} above", f"{where[0]}, ε = {where[1]}"]


def _average(multiples: Iterable[float]) -> str:
    return f"{float(np.exp(np.mean(np.log(list(multiples))))):.2f}"


def _figures(means: dict[str, Any], relation: str, figure: str) -> dict[tuple[str, str], Any]:
    return {
        (name, eps): row[relation][figure]
        for name, by_epsilon in means.items()
        for eps, row in by_epsilon.items()
        if float(eps) >= FROM
    }


def _against_smooth(means: dict[str, Any]) -> str:
    found = []
    for relation in ("values", "presence"):
        rmse, best = (_figures(means, relation, figure) for figure in ("rmse", "hindsight"))
        found.append(f"{_average(rmse[where] / best[where]['SmoothWeights'] for where in rmse)} under {relation}")
    return ", ".join(found)


def _pair(one: float, other: float) -> str:
    return " / ".join(f"{value:.2g}" if value < 100 else f"{value:,.0f}" for value in (one, other))


def _totals(result: dict[str, Any]) -> str:
    head = [f"{statistic}, ε = {eps}" for statistic in ("count", "sum") for eps in SHOWN]
    rows = []
    for name in result["count"]:
        found = [result[statistic][name][eps]["Evenhand"] for statistic in ("count", "sum") for eps in SHOWN]
        rows.append([name, *(_pair(one["median"], one["95%"]) for one in found)])
    return table(["shape", *head], rows)


def _methods(counts: dict[str, Any]) -> str:
    rows = []
    for name in PUBLISHED:
        for eps in SHOWN:
            found = counts[name][eps]
            rows.append([name, eps, *(_pair(found[method]["median"], found[method]["95%"]) for method in METHODS)])
    return table(["shape", "ε", *METHODS], rows)


def _means(means: dict[str, Any]) -> str:
    rows = []
    for shape in dict.fromkeys(name.split(" / ")[0] for name in means):
        kinds = [by_epsilon for name, by_epsilon in means.items() if name.split(" / ")[0] == shape]
        worst = [
            [max(kind[eps][relation]["multiple"] for kind in kinds) for relation in ("values", "presence")]
            for eps in SHOWN
        ]
        rows.append([shape, *(f"{values:.2f} / {presence:.2f}" for values, presence in worst)])
    return table(["shape", *(f"ε = {eps}" for eps in SHOWN)], rows)

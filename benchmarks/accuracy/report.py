"""The measurements as tables that a person can read."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.accuracy.cases import FROM, HARD, PUBLISHED

_METHODS = (
    "Evenhand",
    "median cap",
    "95% cap",
    "amin2019 literally",
    "PipelineDP advice",
    "Tumult get_bounds",
    "OpenDP recipe",
)


def report(result: dict[str, Any], date: str) -> str:
    """Markdown: bars first, then every shape."""
    parts = [f"# Accuracy, {date}\n", _bars(result)]
    for statistic in ("count", "sum"):
        parts += [
            f"\n## {statistic}: |error| in multiples of the best fixed cap's RMSE, median / 95%\n",
            _totals(result[statistic]),
        ]
    parts += [
        "\n## mean: RMSE in multiples of the best strategy in hindsight, values / presence\n",
        _means(result["mean"]),
    ]
    parts += [
        "\n## quantile: rank RMSE in multiples of the best weight bound with all of ε, q = 0.5 / 0.9\n",
        _quantiles(result["quantile"]),
    ]
    return "\n".join(parts) + "\n"


def _bars(result: dict[str, Any]) -> str:
    lines = [
        "| bar (ε ≥ 0.1, at least 2,000 users) | published shapes: worst | where | all shapes: worst | where | geometric mean |",
        "|---|---|---|---|---|---|",
    ]
    for statistic in ("count", "sum"):
        for figure, limit in (("median", 3), ("95%", 6), ("99.9%", 50)):
            cells = {
                (name, eps): row["Evenhand"][figure]
                for name, rows in result[statistic].items()
                if name not in HARD
                for eps, row in rows.items()
                if float(eps) >= FROM
            }
            lines.append(_bar(f"{statistic}, {figure}", limit, cells))
    for relation, limit in (("values", 1.5), ("presence", 2)):
        cells = {
            (name, eps): row[relation]["multiple"]
            for name, rows in result["mean"].items()
            for eps, row in rows.items()
            if float(eps) >= FROM
        }
        lines.append(_bar(f"mean, {relation}", limit, cells))
    return "\n".join(lines)


def _bar(title: str, limit: float, cells: dict[tuple[str, str], float]) -> str:
    published = {where: value for where, value in cells.items() if where[0].split(" / ")[0] in PUBLISHED}
    mean = float(np.exp(np.mean(np.log(list(cells.values())))))
    return f"| {title} ≤ {limit} | {_worst(published, limit)} | {_worst(cells, limit)} | {mean:.2f} |"


def _worst(cells: dict[tuple[str, str], float], limit: float) -> str:
    where = max(cells, key=lambda key: cells[key])
    above = sum(value > limit for value in cells.values())
    return f"{cells[where]:.2f}; {above} of {len(cells)} above | {where[0]}, ε = {where[1]}"


def _totals(rows: dict[str, Any]) -> str:
    lines = ["| shape | ε | " + " | ".join(_METHODS) + " |", "|---|---|" + "---|" * len(_METHODS)]
    for name, by_epsilon in rows.items():
        for epsilon, row in by_epsilon.items():
            cells = [f"{row[m]['median']:.2g} / {row[m]['95%']:.2g}" for m in _METHODS]
            lines.append(f"| {name} | {epsilon} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _means(rows: dict[str, Any]) -> str:
    return _by_epsilon("shape / values", rows, ("values", "presence"))


def _quantiles(rows: dict[str, Any]) -> str:
    return _by_epsilon("shape", rows, ("0.5", "0.9"))


def _by_epsilon(head: str, rows: dict[str, Any], pair: tuple[str, str]) -> str:
    """A row a shape, a column an ε, and in each cell the multiples of both kinds."""
    epsilons = list(next(iter(rows.values())))
    lines = [f"| {head} | " + " | ".join(f"ε = {e}" for e in epsilons) + " |", "|---|" + "---|" * len(epsilons)]
    for name, by_epsilon in rows.items():
        cells = [" / ".join(f"{row[kind]['multiple']:.2f}" for kind in pair) for row in by_epsilon.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)

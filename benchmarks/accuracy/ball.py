"""Means of several columns in an L1 ball against a box with ε shared, on shares of a whole: ``python -m benchmarks.accuracy.ball``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import evenhand as eh

SHAPES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "one row": lambda rng: np.ones(3000),
    "Pareto 1.5": lambda rng: np.ceil(rng.pareto(1.5, 3000) + 1e-9),
}
RUNS = 12


def measured(columns: int, shape: str, epsilon: float) -> dict[str, tuple[float, float]]:
    """RMSE over columns: median and 95% quantile over tables drawn anew."""
    found: dict[str, list[float]] = {}
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        rows = np.minimum(SHAPES[shape](rng), 1000).astype(int)
        tastes = rng.dirichlet(np.full(columns, 1.0), len(rows)) * 5 + 0.1  # users differ
        values = rng.standard_gamma(np.repeat(tastes, rows, axis=0))
        names = [f"c{index}" for index in range(columns)]
        data = pd.DataFrame(values / values.sum(axis=1, keepdims=True), columns=names)
        data["u"] = np.repeat(np.arange(len(rows)), rows)
        truth = data[names].mean().to_numpy()
        with tempfile.TemporaryDirectory() as folder:
            ask = eh.Session(
                eh.read(data, user="u", protects="values"), eh.Ledger(Path(folder) / "l.db", epsilon=10**4)
            )
            ways: dict[str, dict[str, Any]] = {
                "ball": {"ball": 1},
                "ball, NormClip()": {"ball": 1, "bounding": eh.NormClip()},
                "box": {"bounds": (0, 1)},
            }
            for name, options in ways.items():
                release = ask.mean(names, epsilon=epsilon, **options)
                found.setdefault(name, []).append(float(np.sqrt(np.mean((np.array(release.value) - truth) ** 2))))
    return {name: (float(np.median(errors)), float(np.quantile(errors, 0.95))) for name, errors in found.items()}


def main() -> None:
    """Print the table."""
    print(
        "| rows per user | columns | ε | ball: median, 95% | ball, NormClip() | box, bounds=(0, 1) |\n|---|--:|--:|--:|--:|--:|"
    )
    for shape in SHAPES:
        for columns in (3, 10, 30):
            for epsilon in (0.2, 1.0):
                cells = " | ".join(f"{a:.2g}, {b:.2g}" for a, b in measured(columns, shape, epsilon).values())
                print(f"| {shape} | {columns} | {epsilon:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

"""Means in a ball: the formula without noise, rows outside, what is refused, and an interval that holds the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.noise import seam

COUNTS = np.array([1] * 30 + [20, 300])
NAMES = ["a", "b", "c"]


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    values = rng.dirichlet([2, 1, 1], COUNTS.sum()) * rng.choice([-1, 1], (COUNTS.sum(), 3))
    return pd.DataFrame(values, columns=NAMES).assign(u=np.repeat(np.arange(len(COUNTS)), COUNTS))


def session(data: pd.DataFrame, folder: Path, protects: str = "values") -> eh.Session:
    return eh.Session(eh.read(data, user="u", protects=protects), eh.Ledger(folder / "l.db", epsilon=10**4))


@pytest.mark.parametrize("bounding", [eh.SmoothWeights(4), eh.NormClip(4), eh.NormClip(), "auto"], ids=str)
def test_the_formula_without_noise(bounding: Any, tmp_path: Path) -> None:
    data = frame()
    with seam.replaced(seam.silent):
        release = session(data, tmp_path).mean(NAMES, ball=1, epsilon=1, bounding=bounding)
    sums, rows = data.groupby("u")[NAMES].sum().to_numpy(), COUNTS[:, None]
    bound = release.bounding.parameter
    assert bound is not None
    if release.bounding.strategy == "NormClip":
        expected = (sums * np.minimum(1, bound / np.abs(sums).sum(axis=1, keepdims=True))).sum(axis=0) / COUNTS.sum()
    else:
        weights = np.minimum(rows, bound)
        expected = (sums / rows * weights).sum(axis=0) / weights.sum()
    assert release.value == pytest.approx(list(expected), abs=1e-4)
    for (low, high), truth in zip(release.interval(), data[NAMES].mean(), strict=True):
        assert low <= truth <= high


def test_the_clipped_norm_is_chosen_by_rank(tmp_path: Path) -> None:
    ask = session(frame(), tmp_path)
    for epsilon, rows in ((6, 300), (3, 20), (2, 1)):  # the ⌈2d/ε⌉-th largest
        release = ask.mean(NAMES, ball=2, epsilon=epsilon, bounding=eh.NormClip())
        assert release.bounding.parameter == pytest.approx(2 * rows)


def test_rows_outside_are_scaled_and_missing_values_count_as_zero(tmp_path: Path) -> None:
    data = pd.DataFrame({"u": [1, 2, 3, 4], "a": [30.0, np.nan, np.inf, 0], "b": [-10.0, 0.5, 0, -np.inf]})
    with seam.replaced(seam.silent):
        release = session(data, tmp_path).mean(["a", "b"], ball=2, epsilon=1, bounding=eh.SmoothWeights(1))
    # Each column is clamped to ±2 first, so (30, −10) becomes (2, −2) and then (1, −1).
    assert release.value == pytest.approx([(1 + 0 + 2 + 0) / 4, (-1 + 0.5 + 0 - 2) / 4], abs=1e-4)


def test_noise_does_not_grow_with_the_columns(tmp_path: Path) -> None:
    data = frame()
    for number in range(20):
        data[f"x{number}"] = 0.0
    ask = session(data, tmp_path)
    few = ask.mean(NAMES, ball=1, epsilon=20, bounding=eh.SmoothWeights(2))
    more = ask.mean([*NAMES, *(f"x{number}" for number in range(20))], ball=1, epsilon=20, bounding=eh.SmoothWeights(2))
    assert few.error.noise == more.error.noise
    assert few.usable  # ± 0.018: precise enough where a column has a third of a row, not where it has a 23rd
    assert not more.usable


def test_nobody_is_no_error(tmp_path: Path) -> None:
    assert len(session(frame().head(0), tmp_path).mean(NAMES, ball=1, epsilon=1).value) == 3


@pytest.mark.parametrize(
    ("options", "protects", "words"),
    [
        ({"ball": 0}, "values", "largest Σ"),
        ({"ball": "wide"}, "values", "largest Σ"),
        ({"ball": 1, "bounds": (0, 1)}, "values", "without bounds= and by="),
        ({"ball": 1, "by": "a"}, "values", "without bounds= and by="),
        ({"ball": 1, "bounding": eh.TotalCap(2)}, "values", "expected 'auto', eh.SmoothWeights"),
        ({"ball": 1, "bounding": eh.NormClip(2, norm=2)}, "values", "expected 'auto', eh.SmoothWeights"),
        ({"ball": 1, "bounding": eh.NormClip(2**40)}, "values", "too large"),
        ({"ball": 1}, "presence", "needs protects='values'"),
    ],
)
def test_what_is_refused_costs_nothing(options: Any, protects: str, words: str, tmp_path: Path) -> None:
    ask = session(frame(), tmp_path, protects)
    with pytest.raises(eh.UsageError, match=words):
        ask.mean(NAMES, epsilon=1, **options)
    assert ask.ledger.spent.epsilon == 0

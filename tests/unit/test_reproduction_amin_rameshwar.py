"""The figures of amin2018, amin2019 and rameshwar2024 at reduced size, with the tolerances that each check states."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from evenhand.apps.reproduce_cli import registry
from evenhand.planning.excess_risk import Participation

NAMES = [
    "amin2018-lemma1", "amin2018-theorem1", "amin2018-corollary1",
    "amin2019-fig1", "amin2019-fig2", "amin2019-fig3", "rameshwar2024-fig2", "rameshwar2024-fig3",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_are_those_of_the_paper(name: str, tmp_path: Path) -> None:
    outcome = registry()[name](tmp_path, "small")
    missed = [check for check in outcome.checks if not check.holds]
    assert not missed
    assert outcome.checks
    assert all(Path(path).stat().st_size > 0 for path in outcome.files)


def test_a_wrong_number_does_not_hold() -> None:
    registry()
    from reproductions.outcomes import near

    assert not near("x", 1.2, 1.0, 0.1).holds
    assert near("x", 1.05, 1.0, 0.1).holds


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("ratings.csv", "userId,movieId,rating,timestamp\n1,10,3.5,0\n1,11,4.0,0\n2,10,1.0,0\n"),
        ("ratings.dat", "1::10::3.5::0\n1::11::4.0::0\n2::10::1.0::0\n"),
    ],
)
def test_real_ratings_are_counted(tmp_path: Path, file: str, text: str) -> None:
    registry()
    from reproductions.amin2019.fig1 import read_counts

    (tmp_path / file).write_text(text)
    assert np.sort(read_counts(tmp_path / file)).tolist() == [1, 2]


class EverybodyHeavy(Participation):
    """Counts users at the cap as above it, as the paper's example does."""

    def heavy_users(self, n: float, delta: float) -> int:
        return int((self.p >= self.gamma).sum())


class TooSure(Participation):
    """Divides the bias by two."""

    def bias(self, variance: float = 0.25) -> float:
        return super().bias(variance) / 2


def printed(losses: np.ndarray, sharpness: float) -> float:
    """The law with a tenth of the loss in its exponents."""
    above = losses - losses.min()
    chances = np.exp(-sharpness * above / 10)
    return float(chances @ above / chances.sum())


def uncapped(drawn: Participation, means: np.ndarray, n: int, rng: np.random.Generator) -> float:
    """The deviation of losses of which no row was dropped."""
    counts = rng.multinomial(n, drawn.p)
    return float(np.abs(rng.binomial(counts[:, None], means).sum(axis=0) / n - drawn.q @ means).max())


@pytest.mark.parametrize(
    ("name", "broken", "twin"),
    [
        ("amin2018-lemma1", "expected_excess", printed),
        ("amin2018-lemma1", "EPSILON", 20.0),
        ("amin2018-theorem1", "deviation", uncapped),
        ("amin2018-theorem1", "Participation", TooSure),
        ("amin2018-corollary1", "Participation", EverybodyHeavy),
    ],
)
def test_a_wrong_implementation_is_found_out(
    name: str, broken: str, twin: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = registry()[name]
    monkeypatch.setattr(importlib.import_module(f"reproductions.{name.replace('-', '.')}"), broken, twin)
    assert not run(tmp_path, "small").holds

"""Candidate events: scores of an output that might tell two tables apart, learned from a training half.

The Neyman–Pearson lemma says that the best events are thresholds on the likelihood ratio. A black box hides it, so several
guesses are tried: each coordinate, how far each lies from the usual, the likelihood ratio that Laplace noise would have and the
one that Gaussian noise would have. A bad guess costs power; validity comes from the other half of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.audit.mechanism import Outputs

Score = Callable[[Outputs], npt.NDArray[np.float64]]

_COORDINATES = 24  # the most telling ones get scores of their own
_CHANCE = 4.0  # standard errors beyond which a coordinate is taken to differ
_THRESHOLDS = 60


@dataclass(frozen=True)
class Event:
    """The outputs whose score is above a threshold (or not), in words and as a test.

    Args:
        words: what happens, for a reader.
        score: of an output.
        threshold: between the scores.
        above: whether the event is a score above the threshold, or at most at it.
    """

    words: str
    score: Score
    threshold: float
    above: bool

    def count(self, outputs: Outputs) -> int:
        """In how many of the outputs it happens."""
        happened = self.score(outputs) > self.threshold
        return int(happened.sum()) if self.above else int(len(happened) - happened.sum())


def candidates(one: Outputs, other: Outputs) -> Iterator[tuple[Event, float, float]]:
    """Events worth testing, each with its share of either training sample."""
    for words, score in _scores(one, other):
        first, second = np.sort(score(one)), np.sort(score(other))
        both = np.concatenate([first, second])
        grid = np.unique(np.quantile(both, np.linspace(0.002, 0.998, _THRESHOLDS), method="lower"))
        below = [np.searchsorted(sample, grid, side="right") / len(sample) for sample in (first, second)]
        for threshold, p, q in zip(grid, *below, strict=True):
            yield Event(f"{words} ≤ {threshold:.6g}", score, float(threshold), above=False), float(p), float(q)
            yield Event(f"{words} > {threshold:.6g}", score, float(threshold), above=True), 1 - float(p), 1 - float(q)


def _scores(one: Outputs, other: Outputs) -> Iterator[tuple[str, Score]]:
    centres = [_median(sample) for sample in (one, other)]
    spread = _spread(np.concatenate([one, other]), (centres[0] + centres[1]) / 2)
    shift = np.abs(_means(one) - _means(other)) / spread
    order = np.argsort(-shift)[:_COORDINATES]
    for index in order.tolist():
        yield f"output {index}", _Coordinate(index)
        yield f"distance of output {index} from its usual value", _Distance(index, float(centres[0][index]))
    # Coordinates that differ by chance would only add noise to a sum over coordinates.
    telling = order[shift[order] > _CHANCE * np.sqrt(2 / min(len(one), len(other)))]
    if len(telling) > 1:
        yield "likelihood ratio of Laplace noise", _LaplaceRatio(telling, centres[0], centres[1], spread)
        yield "likelihood ratio of Gaussian noise", _GaussianRatio(telling, _means(other) - _means(one), spread)


@dataclass(frozen=True)
class _Coordinate:
    index: int

    def __call__(self, outputs: Outputs) -> npt.NDArray[np.float64]:
        return _present(outputs[:, self.index])


@dataclass(frozen=True)
class _Distance:
    index: int
    centre: float

    def __call__(self, outputs: Outputs) -> npt.NDArray[np.float64]:
        return _present(np.abs(outputs[:, self.index] - self.centre))


@dataclass(frozen=True, eq=False)
class _LaplaceRatio:
    """Σ (|x − centre on one table| − |x − centre on the other|)/spread: the exact log-likelihood ratio of Laplace noise."""

    columns: npt.NDArray[np.intp]
    one: npt.NDArray[np.float64]
    other: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]

    def __call__(self, outputs: Outputs) -> npt.NDArray[np.float64]:
        known = _present(outputs)[:, self.columns]
        one, other, spread = (part[self.columns] for part in (self.one, self.other, self.spread))
        return np.asarray(((np.abs(known - one) - np.abs(known - other)) / spread).sum(axis=1))


@dataclass(frozen=True, eq=False)
class _GaussianRatio:
    """Σ x·shift/spread²: the log-likelihood ratio of Gaussian noise, up to constants."""

    columns: npt.NDArray[np.intp]
    shift: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]

    def __call__(self, outputs: Outputs) -> npt.NDArray[np.float64]:
        direction = (self.shift / self.spread**2)[self.columns]
        return np.asarray(_present(outputs)[:, self.columns] @ direction)


def _present(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """NaN ("not there") as a number below all others, so that its appearance is an event like any other."""
    return np.nan_to_num(values, nan=-1e18, posinf=1e18, neginf=-1e17)


def _median(sample: Outputs) -> npt.NDArray[np.float64]:
    return np.asarray(np.median(_present(sample), axis=0))


def _means(sample: Outputs) -> npt.NDArray[np.float64]:
    return np.asarray(_present(sample).mean(axis=0))


def _spread(sample: Outputs, centre: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.maximum(np.abs(_present(sample) - centre).mean(axis=0), 1e-12))

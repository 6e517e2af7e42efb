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

Array = npt.NDArray[np.float64]
Score = Callable[[Outputs], Array]

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
    samples = [_present(sample) for sample in (one, other)]
    centres = [np.median(sample, axis=0) for sample in samples]
    shift = samples[1].mean(axis=0) - samples[0].mean(axis=0)
    spread = np.maximum(np.abs(np.concatenate(samples) - (centres[0] + centres[1]) / 2).mean(axis=0), 1e-12)
    moved = np.abs(shift) / spread
    order = np.argsort(-moved)[:_COORDINATES]
    for index in order.tolist():
        yield f"output {index}", _coordinate(index)
        yield f"distance of output {index} from its usual value", _distance(index, float(centres[0][index]))
    # Coordinates that differ by chance would only add noise to a sum over coordinates.
    telling = order[moved[order] > _CHANCE * np.sqrt(2 / min(len(one), len(other)))]
    if len(telling) > 1:
        yield "likelihood ratio of Laplace noise", _laplace_ratio(telling, centres, spread)
        yield "likelihood ratio of Gaussian noise", _gaussian_ratio(telling, shift, spread)


def _coordinate(index: int) -> Score:
    return lambda outputs: _present(outputs[:, index])


def _distance(index: int, centre: float) -> Score:
    return lambda outputs: _present(np.abs(outputs[:, index] - centre))


def _laplace_ratio(columns: npt.NDArray[np.intp], centres: list[Array], spread: Array) -> Score:
    """Σ (|x − centre on one table| − |x − centre on the other|)/spread: the exact log-likelihood ratio of Laplace noise."""
    one, other, scale = (part[columns] for part in (*centres, spread))

    def score(outputs: Outputs) -> Array:
        known = _present(outputs)[:, columns]
        return np.asarray(((np.abs(known - one) - np.abs(known - other)) / scale).sum(axis=1))

    return score


def _gaussian_ratio(columns: npt.NDArray[np.intp], shift: Array, spread: Array) -> Score:
    """Σ x·shift/spread²: the log-likelihood ratio of Gaussian noise, up to constants."""
    direction = (shift / spread**2)[columns]
    return lambda outputs: np.asarray(_present(outputs)[:, columns] @ direction)


def _present(values: Array) -> Array:
    """NaN ("not there") as a number below all others, so that its appearance is an event like any other."""
    return np.nan_to_num(values, nan=-1e18, posinf=1e18, neginf=-1e17)

"""A released mean with what bounding probably did to it: the correction, and the interval that holds the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.bounding import MeanBelief
from evenhand.pages.numbers import rounded
from evenhand.profiles import Array, sure_part
from evenhand.release import Believed, Error, Interval, Scaled, Unknown
from evenhand.statistics.draft import Outcome

MODEL = (
    "covers the noise and what bounding did, on a model of how far busy users differ and of users too few to be seen; "
    "a single user with a large part of all rows may hide from it"
)
MODEL_OF_VALUES = "covers the noise and what bounding did, on a model of how far busy users differ"
UNKNOWN_BIAS = (
    "the bound was given and nothing tells how far it moved the mean, which lies somewhere within its bounds; "
    "noise_interval() covers the noise alone"
)
PUBLIC_BIAS = "of bounding is at most what the public numbers of rows allow, which the release says"
WORST_CASE = "covers the noise and the most that this bound can have moved the mean, whatever the values are"
CAPPED = "covers the noise and what the cap took from users above it, on a model of users too few to be seen; one user far above all others may hide"
NOBODY_CUT = "covers the noise; no user was cut off"
LEFT = "what bounding did may differ from the correction by so much, as the model believes"
NOBODY_SEEN = (
    "too few people for this ε: no number of rows stands out from the noise, so nothing tells how far bounding moved the mean; "
    "more people or more ε would help"
)

LEAST_SHOWN = 0.05
"""Of the standard deviation of the noise: a smaller correction says nothing."""


@dataclass(frozen=True)
class Widened:
    """A noise interval, wider on either side by the most that bounding can have done, which public facts bound.

    A verdict judges the noise alone where the bound was the analyst's, and so is its choice; all of it where the bound was chosen here.
    """

    noise_only: Interval
    by: float
    feasible: tuple[float, float]
    covers: str = WORST_CASE
    chosen: bool = False
    below: float | None = None
    """By how much on the lower side, where that differs."""

    @property
    def judged(self) -> Interval:
        """What a verdict reads."""
        return self if self.chosen else self.noise_only

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.noise_only.at(confidence)
        below = self.by if self.below is None else self.below
        return max(low - below, self.feasible[0]), min(high + self.by, self.feasible[1])


def believed(outcome: Outcome, belief: MeanBelief, bounds: tuple[float, float], public: bool) -> Outcome:
    """The outcome with the bias that ``belief`` holds: corrected, its interval widened by all of it.

    Args:
        outcome: the bounded mean with the interval of its noise.
        belief: what is known about users.
        bounds: of a value.
        public: whether the numbers of rows are public.
    """
    low, width, noise = bounds[0], bounds[1] - bounds[0], outcome.error.noise or 0.0
    amounts, weights = belief.amounts((outcome.value - low) / width, noise / width)
    why = "" if belief.visible else NOBODY_SEEN
    return with_amounts(outcome, amounts * width, weights, MODEL_OF_VALUES if public else MODEL, bounds, why)


def with_amounts(
    outcome: Outcome, amounts: Array, weights: Array, covers: str, bounds: tuple[float, float], why: str = ""
) -> Outcome:
    """The outcome corrected by what bounding took away for all one knows, its interval widened by all of it."""
    noise = outcome.error.noise or 0.0
    correction = sure_part(amounts, weights)
    deviation = float(np.sqrt(np.average((amounts - correction) ** 2, weights=weights)))
    interval = Believed(outcome.interval, amounts, weights, covers, why, bounds)
    outcome = replace(outcome, interval=interval, error=Error(noise, deviation, LEFT))
    if abs(correction) < LEAST_SHOWN * noise:
        return outcome
    value = min(max(outcome.value + correction, bounds[0]), bounds[1])
    shown = corrected(outcome.value, value, noise)
    return replace(outcome, value=value, details={**outcome.details, "correction": shown})


def corrected(measured: float, value: float, noise: float) -> dict[str, Any]:
    """What the details of a release say about its correction."""
    way = "raised" if value > measured else "lowered"
    words = (
        f"{way} by {rounded(abs(value - measured), noise)}, what bounding probably did to it; "
        f"{rounded(measured, noise)} was measured"
    )
    return {"amount": value - measured, "measured": measured, "words": words}


def times(outcome: Outcome, factor: float) -> Outcome:
    """A mean in another unit: a sum over a public number of rows, or of parts of a public range."""
    scaled = replace(
        outcome,
        value=outcome.value * factor,
        interval=Scaled(outcome.interval, factor),
        error=outcome.error.scaled(factor),
    )
    if "correction" not in outcome.details:
        return scaled
    measured = outcome.details["correction"]["measured"] * factor
    shown = corrected(measured, scaled.value, scaled.error.noise or 0.0)
    return replace(scaled, details={**outcome.details, "correction": shown})


def limited(outcome: Outcome, by: float | None, bounds: tuple[float, float], chosen: bool = False) -> Outcome:
    """The outcome of a bound of which no more is known than how far it can have moved the mean, or not even that; ``chosen`` here, or given."""
    if by is None:
        return replace(outcome, interval=Unknown(outcome.interval, UNKNOWN_BIAS, least=bounds[0], most=bounds[1]))
    error = Error(outcome.error.noise, by, "at most, whatever the values are")
    return replace(outcome, interval=Widened(outcome.interval, by, bounds, chosen=chosen), error=error)

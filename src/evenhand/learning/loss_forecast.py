"""Whether a model that was learned with noise is likely to beat a constant one, from released numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import gamma

from evenhand.learning.data.private_values import Floats
from evenhand.learning.fitting import halved
from evenhand.learning.slopes import ByClass, Slopes

if TYPE_CHECKING:
    from evenhand.learning.descent.descent import Descent, Start

_SCORES = np.linspace(-5.0, 5.0, 401)
_CHANCES = np.exp(-(_SCORES**2) / 2) / np.exp(-(_SCORES**2) / 2).sum()


_FLATTER = 4
"""Where a classifier ends, its loss is about this much flatter than where it is most curved (measured, benchmarks/accuracy/descent.py)."""


@dataclass(frozen=True)
class LossForecast:
    """What noise costs and what the features bring, in units of the average loss; rough, to a factor of a few.

    For two classes, assumed are normal margins, labels whose chances are what the model says, uncorrelated features, and a descent that has
    converged: curvature and gain are then integrals over the margin, whose variance is the sum of squared coefficients of
    standardised features. Noise is a known part of that sum on average, and is taken off; so is what noise alone would have made of it.
    Otherwise the loss is taken for a parabola.

    Attributes:
        noise: about what the noise in the coefficients adds to the loss; infinite where there are too few users to tell.
        gain: about what the features would take off the loss of a constant model if there were no noise.
    """

    noise: float
    gain: float

    @property
    def loss_above_constant(self) -> float:
        """What the model is likely to lose more than a constant one; negative if it beats it."""
        return self.noise - self.gain

    @property
    def words(self) -> str:
        """The forecast as a sentence."""
        if math.isinf(self.noise):
            return "too few users to tell what noise does to the model; don't rely on it."
        verdict = "likely to beat" if self.loss_above_constant < 0 else "not likely to beat"
        return (
            f"by the released numbers, the features bring about {self.gain:.2g} and noise costs about {self.noise:.2g} of the average loss "
            f"(to a factor of a few): {verdict} a constant model."
        )

    @classmethod
    def of(cls, start: Start, done: Descent, coefficients: Floats, slopes: Slopes, classifies: bool) -> LossForecast:
        """From where a descent started and ended, and its coefficients of features, for a loss taken for a parabola."""
        if start.hidden:
            return cls(math.inf, 0.0)
        curvature = start.curvature / (_FLATTER if classifies else 1)
        by_noise = len(coefficients) * (_noise(start, done) / (curvature + float(done.pull[0]))) ** 2
        half = curvature / 2 * slopes.steepest * slopes.unit
        return cls(half * by_noise, half * max(float(coefficients @ coefficients) - by_noise, 0.0))

    @classmethod
    def of_two_classes(
        cls, start: Start, done: Descent, features: int, minimised: ByClass, meant: ByClass
    ) -> LossForecast:
        """The same for two classes, with the coefficients of standardised features first.

        Args:
            minimised, meant: slopes of the loss that was descended along, and of the one that is forecast.
        """
        if start.hidden:
            return cls(math.inf, 0.0)
        noise = _noise(start, done)
        squares, others = float(done.f[:features] @ done.f[:features]), features - 1
        middle = float(done.f[features:].sum())  # the intercept, if there is one
        if done.believed is not None:
            gains = done.believed.gains(meant, middle, math.sqrt(squares)) * meant.steepest
            likely = float(done.believed.weights @ gains)
            return cls(max(likely - done.believed.surely(gains), 0.0), likely)
        across, along, _ = (one + float(done.pull[0]) for one in curvatures(minimised, middle, math.sqrt(squares)))
        own_across, own_along, _ = curvatures(meant, middle, math.sqrt(squares))
        cost = noise**2 / 2 * (others * own_across / across**2 + own_along / along**2)
        push = noise * math.sqrt(features)
        made = alone(minimised, start, done)
        cost = max(cost * meant.steepest, push * made / 2 * minimised.steepest)
        by_noise = max(noise**2 * (others / across**2 + 1 / along**2), made**2)
        return cls(cost, _gain(meant, middle, math.sqrt(max(squares - by_noise, 0.0))) * meant.steepest)

    @classmethod
    def of_regression(
        cls, design: Floats, coefficients: Floats, covariance: Floats, normal: Floats, laplace: Floats
    ) -> LossForecast:
        """For least squares on public features, half the square being the loss; sampling error counts as noise.

        What errors with the covariances ``normal``, of large sampling errors, and ``laplace`` would explain one time in a hundred counts as
        nothing explained.
        """
        mean, second = design.mean(axis=0), design.T @ design / len(design)
        about = second - np.outer(mean, mean)
        explained = float(coefficients @ about @ coefficients)
        shown = explained > _by_chance(normal @ about, laplace @ about)
        gain = max(explained - float(np.sum(covariance * about)), 0.0) / 2 if shown else 0.0
        return cls(float(np.sum(covariance * second)) / 2, gain)


def _by_chance(normal: Floats, laplace: Floats) -> float:
    """What a sum of squares with these second moments exceeds one time in a hundred."""
    both = normal + laplace
    mean = float(np.trace(both))
    # The square of a Laplace variable has the variance 5 in units of its squared mean, that of a normal one 2.
    variance = 2 * float(np.sum(both * both.T)) + 3 * float(np.sum(laplace * laplace.T))
    return float(gamma.ppf(0.99, mean**2 / variance, scale=variance / mean)) if mean > 0 else 0.0


def _noise(start: Start, done: Descent) -> float:
    """Of the gradient, averaged over users and over the steps whose iterates are."""
    averaged = done.noise[done.averaged :]
    return float(np.linalg.norm(averaged)) / len(averaged) / start.weight


def curvatures(slopes: ByClass, middle: float, sd: float) -> tuple[float, float, float]:
    """Second derivatives of the average loss across and along the coefficients, and along these and the constant, if margins are normal
    and chances right."""
    margins = middle + sd * _SCORES
    right, around = slopes.chances(margins), 2.0**-4
    rise = (slopes.by_class(margins + around) - slopes.by_class(margins - around)) / (2 * around)
    curved = np.maximum((1 - right) * rise[0] + right * rise[1], 1e-9) * _CHANCES
    return float(curved.sum()), float(curved @ _SCORES**2), float(curved @ _SCORES)


def alone(slopes: ByClass, start: Start, done: Descent) -> float:
    """How long coefficients noise alone would make, at the intercept of the descent, if labels had nothing to do with features.

    With a rare class and a low intercept the loss is flat to one side, and that is longer than curvatures tell.
    """
    push, pull = _noise(start, done) * math.sqrt(len(done.f) - 1), float(done.pull[0])
    middle = float(done.f[-1]) - done.moved
    part = float(slopes.chances(np.array([start.constant]))[0])

    def held(tried: float) -> bool:
        negative, positive = slopes.by_class(middle + tried * _SCORES)
        back = ((1 - part) * negative + part * positive) @ (_CHANCES * _SCORES) + pull * tried
        return not back < push

    return sum(halved(held, 0.0, 8.0, 40)) / 2


def _gain(slopes: ByClass, middle: float, sd: float) -> float:
    """How much less than a constant model such margins lose: for each row, the slopes between its margin and the constant."""
    margins = middle + sd * _SCORES
    right = slopes.chances(margins)
    constant = slopes.constant(float(right @ _CHANCES))
    between = constant + (margins - constant)[:, None] * (np.arange(64) + 0.5) / 64
    negative, positive = slopes.by_class(between.ravel()).reshape(2, len(margins), 64).mean(axis=2) * (
        margins - constant
    )
    return -float(((1 - right) * negative + right * positive) @ _CHANCES)

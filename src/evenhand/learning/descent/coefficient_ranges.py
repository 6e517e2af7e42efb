"""How far the coefficients of a descent may be from the minimum of its loss on the same rows: noise, clamp, and steps that were too few.

Near the minimum a step is linear in where it starts, so the noise of all steps adds up in a known way once the curvature of the loss is
known. That is bought with one vector: the users' second derivatives at the released model, clamped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evenhand.learning.data.features import FeatureMap
from evenhand.learning.data.private_values import Floats
from evenhand.learning.data.user_rows import CURVED, FULL, UserRows, clamped
from evenhand.learning.descent.descent import Descent, NoisySums, Start, responses
from evenhand.learning.descent.preparation import Scaling
from evenhand.learning.loss_forecast import curvatures
from evenhand.learning.slopes import ByClass, Slopes

CURVATURE_SHARE = Fraction(3, 100)
"""The share of the vector that the curvature comes from."""

MOST_COEFFICIENTS = 64
"""Coefficients up to which it is bought: its noise grows with the square of their number."""

_CLAMP = 1.5  # of a usual user's second derivatives; cutting longer ones makes ranges wider, not shorter
_CUT = 0.05  # what the clamp cuts off, all users together: this times how many are beyond it, in units of the clamp (measured)
_UNLEARNED = 0.1  # the part of the margins' variance that steps may have left before nothing can be said
_PASSED = np.linspace(0.0, 1.0, 9)  # from the curvature where a descent ended to twice that on its way


@dataclass(frozen=True, eq=False)
class Curvature:
    """Second derivatives of the average loss as they are believed to be, and as they would be for uncorrelated features.

    ``uncertain``: the standard deviation of each; ``drawn``: the part of the way by which they were drawn to what is expected.
    """

    matrix: Floats
    expected: Floats
    uncertain: float
    drawn: float


def bought_curvature(
    sums: NoisySums, slopes: Slopes, h: float, start: Start, users: float, f: Floats, intercept: bool
) -> Curvature:
    """Ask for the sum of users' second derivatives at a released model; what noise hides is as if features were normal and uncorrelated."""
    usual, size = min(max(start.weight / max(users, 1.0), 1.0), h), len(f)
    expected = _expected(slopes, f, intercept)
    longest = _CLAMP * usual * float(np.trace(expected))
    row, column = np.triu_indices(size)
    twice = np.where(row == column, 1.0, math.sqrt(2))  # a number off the diagonal stands for two

    def per_user(rows: UserRows) -> Iterator[Floats]:
        weights = rows.weights(h) * (FULL / (longest * CURVED))
        for part, curved in rows.curvatures(f, slopes):
            yield clamped(curved * twice, weights[part])[0]

    total, sd = sums.ask(per_user, len(twice), FULL**2)
    scale = longest / (FULL * start.weight)
    matrix = np.zeros((size, size))
    matrix[row, column] = matrix[column, row] = total / twice * scale
    return _believed(matrix, expected, (sd * scale) ** 2)


def _expected(slopes: Slopes, f: Floats, intercept: bool) -> Floats:
    """Second derivatives of the average loss, if standardised features are normal and not correlated, and a model's chances right."""
    if not isinstance(slopes, ByClass):
        return slopes.bend * np.eye(len(f))
    own, middle = (f[:-1], float(f[-1])) if intercept else (f, 0.0)
    length = float(np.linalg.norm(own))
    across, along, mixed = curvatures(slopes, middle, length)
    toward = own / max(length, 1e-12)
    matrix = across * np.eye(len(f))
    matrix[: len(own), : len(own)] += (along - across) * np.outer(toward, toward)
    if intercept:
        matrix[-1, :-1] = matrix[:-1, -1] = mixed * toward
    return matrix


def _believed(matrix: Floats, expected: Floats, noise: float) -> Curvature:
    """A symmetric matrix with noise of this variance (off the diagonal half of it) drawn to what is expected, by how far it is off."""
    size, trace = len(matrix), float(np.trace(matrix))
    if trace > 4 * math.sqrt(size * noise):
        expected = expected * (trace / float(np.trace(expected)))
    off, numbers = matrix - expected, size * (size + 1) / 2
    apart = max(float(np.sum(off**2)) / numbers - noise, 0.0)
    perhaps = apart + noise * math.sqrt(2 / numbers)
    kept, uncertain = apart / (apart + noise), math.sqrt(perhaps * noise / (perhaps + noise))
    return Curvature(expected + kept * off, expected, uncertain, 1 - kept)


@dataclass(frozen=True, eq=False)
class Spread:
    """The covariance of coefficients about the minimum, and how far steps that were too few may have left them from it.

    ``why``: why there is none; empty if there is.
    """

    covariance: Floats
    unlearned: Floats
    why: str = ""

    @classmethod
    def none(cls, why: str) -> Spread:
        return cls(np.zeros((0, 0)), np.zeros(0), why)

    def ranges(self, values: Floats, to_original: Floats, confidence: float) -> Floats:
        """Low and high of coefficients that are ``to_original`` times those of the descent."""
        from scipy.stats import norm

        sd = np.sqrt(np.einsum("ij,jk,ik->i", to_original, self.covariance, to_original))
        reach = float(norm.ppf((1 + confidence) / 2)) * sd + np.abs(to_original @ self.unlearned)
        return np.column_stack([values - reach, values + reach])


def spread(curvature: Curvature, start: Start, done: Descent, regularisation: float) -> Spread:
    """From released numbers and the public rule of the steps."""
    if start.hidden:
        return Spread.none("too few users to tell what noise does")
    own, directions = np.linalg.eigh(curvature.matrix)
    ended = np.einsum("ji,jk,ki->i", directions, curvature.expected, directions)
    least = own - curvature.uncertain - curvature.drawn * np.abs(own - ended)
    if (least <= own / 4).any():
        return Spread.none(
            "noise hides how curved the loss is: too few users for so many coefficients, or too correlated features"
        )
    held = directions.T**2 @ done.pull
    summed = (least + regularisation + held) * start.weight
    variance, _ = responses(summed, done)
    cut = _CUT * (done.beyond or 0.0) * done.clip / math.sqrt(len(own)) / summed
    # On the way to the model the loss was more curved than where it ends, most of all along the model.
    steeper = (own * (1 + np.maximum(start.curvature / ended, 1.0)) / 2 + regularisation + held) * start.weight
    left = np.abs(responses(steeper, done)[1]) + held / (own + regularisation + held)
    for part in _PASSED:  # momentum may have carried it too far at any of these curvatures
        left = np.maximum(left, -responses(summed + part * (2 * steeper - summed), done)[1])
    learned = directions.T @ (done.f - done.first)
    off = left / (1 - np.minimum(left, 0.99)) * learned
    if own @ off**2 > _UNLEARNED * (own @ learned**2):
        return Spread.none("the steps ended before the coefficients were learned")
    covariance = (directions * (variance + cut**2)) @ directions.T
    if done.believed is not None:  # stretched by a number that is not known exactly
        part = np.append(np.full(len(own) - 1, done.stretched), 1.0)
        toward = np.append(done.f[:-1], 0.0) / max(float(np.linalg.norm(done.f[:-1])), 1e-12)
        covariance = covariance * np.outer(part, part) + done.believed.unsure**2 * np.outer(toward, toward)
    covariance[-1, -1] += (done.recalibrated / curvature.expected[-1, -1]) ** 2
    return Spread(covariance, directions @ off)


def reported(standard: Scaling, box: FeatureMap, slopes: Slopes) -> Floats:
    """The matrix that turns coefficients of a descent into those of features as they came, the intercept last."""
    rows = standard.to_box(np.eye(box.size), box.intercept) * slopes.unit
    matrix = np.array([np.r_[box.to_original(row)] for row in rows]).T
    return matrix if box.intercept else matrix[:-1]

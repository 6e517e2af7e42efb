"""A mean from noisy distances around two centres and a noisy number of rows, by least squares, and its interval."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from evenhand.noise import IntegerNoise, Laplace
from evenhand.release.intervals import Fieller

_LEAST = 1e-9  # a large ε leaves no noise that doubles can tell from none


@dataclass(frozen=True)
class ResidualMean(Fieller):
    """A mean ``offset + unit·m`` from what three noisy numbers say about the total T and the rows N of a group.

    Around the second centre the unknowns are N and M = T − N·second. Released were ``first = M + gap·N + noise``, ``second = M + noise``
    and ``rows = N + noise``: three linear equations, solved by weighted least squares. So an error of the rows counts only in
    proportion to the distance from the second centre, and the change between the two centres says something about N as well.

    Args:
        first: distances from the first centre, in grid steps × rows.
        second: distances from the second centre.
        gap: the second centre minus the first, in grid steps.
        rows: the number of rows; exact if its noise is None.
        scales: what one step of noise in each of the three is worth.
        noises: of the three.
        feasible: the range of m, in grid steps from the second centre.
        offset: the value of the second centre.
        unit: what a grid step is worth.
    """

    first: float
    second: float
    gap: float
    rows: float
    scales: tuple[float, float, float]
    noises: tuple[IntegerNoise, IntegerNoise, IntegerNoise | None]
    feasible: tuple[float, float]
    offset: float
    unit: float

    @property
    def fraction(self) -> float:
        """The estimate of m; 0, the centre, when the rows are lost in noise."""
        low, high = self.feasible
        (distance, rows), _, deviation = self._solved
        if rows <= 2 * deviation:
            return min(max(0.0, low), high)
        return min(max(distance / rows, low), high)

    @property
    def spread(self) -> float:
        """The standard deviation of the released mean, to first order; half the range at most."""
        low, high = self.feasible
        (_, rows), _, deviation = self._solved
        variance = sum(
            (coefficient * self._deviation(index)) ** 2
            for index, coefficient in enumerate(self._coefficients(self.fraction))
        )
        if rows <= 2 * deviation:
            return self.unit * (high - low) / 2
        return self.unit * min(math.sqrt(variance) / rows, (high - low) / 2)

    def plausible(self, m: float, confidence: float) -> bool:
        (distance, rows), _, _ = self._solved
        scales = [abs(coefficient) * self._scale(index) for index, coefficient in enumerate(self._coefficients(m))]
        laplace = all(isinstance(noise, Laplace | None) for noise in self.noises)
        return _tail(scales, abs(distance - m * rows), laplace) >= 1 - confidence

    def _scale(self, index: int) -> float:
        noise = self.noises[index]
        return 0.0 if noise is None else float(noise.scale) * self.scales[index]

    def _deviation(self, index: int) -> float:
        noise = self.noises[index]
        return 0.0 if noise is None else math.sqrt(noise.variance) * self.scales[index]

    @functools.cached_property
    def _solved(self) -> tuple[tuple[float, float], list[tuple[float, float]], float]:
        """(M, N), how much each of the three numbers counts in them, and the standard deviation of N."""
        first, second = (1 / max(self._deviation(index), _LEAST) ** 2 for index in (0, 1))
        if self.noises[2] is None:
            both = first + second
            gains = [(first / both, 0.0), (second / both, 0.0), (-self.gap * first / both, 1.0)]
            deviation = 0.0
        else:
            third = 1 / max(self._deviation(2), _LEAST) ** 2
            mm, mn, nn = first + second, first * self.gap, third + first * self.gap**2
            determinant = mm * third + first * second * self.gap**2  # mm·nn − mn², without cancellation
            inverse = (nn / determinant, -mn / determinant, mm / determinant)
            gains = [
                (first * (inverse[0] + self.gap * inverse[1]), first * (inverse[1] + self.gap * inverse[2])),
                (second * inverse[0], second * inverse[1]),
                (third * inverse[1], third * inverse[2]),
            ]
            deviation = math.sqrt(max(inverse[2], 0.0))
        numbers = (self.first, self.second, self.rows)
        distance = sum(gain[0] * number for gain, number in zip(gains, numbers, strict=True))
        rows = sum(gain[1] * number for gain, number in zip(gains, numbers, strict=True))
        return (distance, rows), gains, deviation

    def _coefficients(self, m: float) -> list[float]:
        """How much each noise counts in M − m·N, which is 0 at the true m."""
        _, gains, _ = self._solved
        return [distance - m * rows for distance, rows in gains]


def _tail(scales: list[float], distance: float, laplace: bool) -> float:
    """P(|Σ scale·Z| > distance), at least, for independent Laplace (or normal) Z."""
    distance = max(distance - 2 * sum(scale > 0 for scale in scales), 0.0)
    positive = sorted((scale for scale in scales if scale > 0), reverse=True)
    if not positive:
        return 1.0 if distance == 0 else 0.0
    if not laplace:
        return math.erfc(distance / (math.sqrt(2) * math.hypot(*positive)))
    # Scales that are nearly equal are told apart upwards: the closed form divides by their differences.
    for index in range(len(positive) - 2, -1, -1):
        positive[index] = max(positive[index], positive[index + 1] * 1.01)
    tail = 0.0
    for scale in positive:
        factor = math.prod(scale**2 / (scale**2 - other**2) for other in positive if other != scale)
        tail += factor * math.exp(-distance / scale)
    return min(tail, 1.0)

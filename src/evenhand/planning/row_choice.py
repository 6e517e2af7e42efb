"""How many rows of each user to keep, how strongly to regularise, and where to put the noise, by forecast.

The forecast of the excess of the average loss is that of a quadratic about the best coefficients f, with a guess of the
curvature h of the average loss along each coordinate. With n_τ kept rows and λ = Λ/n_τ,

    ½ Σ h·(λf)²/(h + λ)²  +  ½ Σ h·v  +  what dropping rows does,

where v is the variance of a coefficient: that of the noise for output perturbation, Var b/(n_τ(h + λ))² for a linear term b.
Dropping rows leaves d/2·(1/n_τ − 1/n) more sampling error, and changes the mix of users: ½(ρχ)², with χ² as in
`population/support.py`; both are for likelihoods, and scaled by ``unit`` for other losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from evenhand.guarantee import exact_product, split
from evenhand.profiles import Array, Sums, Support

LARGEST_TAU = 2**20
LARGEST_REGULARISATION = 1e15

_LEAST_LEFT = 0.1  # of ε for the linear term: more than the second noise takes

METHODS = ("objective", "output")

HETEROGENEITY = 1 / 8
"""ρ: how far the average slope of users with many rows is from that of the others, in standard deviations of a row's."""


SHRINKS = (1, 4, 16)
"""What features may be divided by when Λ is chosen: where there is little to learn from, Λ should leave the intercept alone."""

INEXACT = 50 * 2.0**-14
"""How inexactly a minimum with a linear term is found, as the scale of the noise that covers it at ε = 1, in units of a row's gradient
(`learning/perturbation/objective_perturbation.py`)."""


SPREAD = 0.25
"""The variance of a feature, in squares of its largest magnitude: half of it, about the middle."""

LARGEST_SHARE, LEAST_SHARE = Decimal("0.03"), Decimal("0.01")
"""Of ε, for a constant model, for how far features vary, and for the comparison with the constant, each."""

_ENOUGH = 100  # users times ε of either: with more, a smaller share tells the models apart


def comparing(epsilon: Decimal, users: float, balance: float = 1.0) -> Decimal:
    """The part of ε for a constant model, or for the comparison with it, given how many users there are."""
    wanted = Decimal(repr(_ENOUGH / max(users * balance * float(epsilon), 1.0)))
    return split(epsilon, min(max(wanted, LEAST_SHARE), LARGEST_SHARE))[0]


def spread_price(epsilon: Decimal, users: float) -> Decimal:
    """The part of ε that finds how far features vary: nothing where there are too few users to find it."""
    return comparing(epsilon, users) if users * float(exact_product(epsilon, LARGEST_SHARE)) >= _ENOUGH else Decimal(0)


def balance_of(lower: float, upper: float) -> float:
    """How curved the average loss of a constant model is, in units of the most, for two classes of such weights."""
    return 4 * lower * upper / (lower + upper)


@dataclass(frozen=True)
class LossFacts:
    """What a forecast has to know about a loss (see `evenhand.learning.losses.MarginLoss`), and ``spread``, how far features vary."""

    steepest: float
    roundest: float
    at_zero: float
    classifies: bool
    typical: float = 1.0
    spread: float = SPREAD


@dataclass(frozen=True)
class RowShape:
    """Where rows of features lie: in a ball of this radius, or in a box with this ``edge`` inside it; then a constant 1 if there is an intercept."""

    features: int
    intercept: bool = True
    edge: float | None = None
    radius: float = 1.0

    @property
    def norm(self) -> float:
        """The largest norm of a row, the constant included."""
        return math.sqrt(self.radius**2 + 1.0) if self.intercept else self.radius

    def shrunk(self, factor: int) -> RowShape:
        """Features divided by a factor."""
        return replace(self, edge=None if self.edge is None else self.edge / factor, radius=self.radius / factor)


@dataclass(frozen=True)
class Scales:
    """Public facts and guesses of the learning problem that the forecast needs.

    Coefficients are of two kinds, those of features and the intercept (if there is one); a guess is for all of a kind.

    Args:
        counts: how many coefficients there are of each kind.
        blocks: in blocks of how many they are, and how far one row moves the gradient in such a block.
        slope: L, the largest norm of a row's gradient.
        trace: c·R², the largest trace of the Hessian of a row's loss.
        each: a guess of the variance of one feature.
        bends: a guess of the curvature of the average loss along each coefficient of a kind.
        along: the same where coefficients are shrunk; less, where margins are known to be large.
        coefficients: a guess of the magnitude of each coefficient of a kind.
        gain: a guess of what the best model gains on a constant.
        unit: a guess of the variance of a row's slope over its curvature: 1 for a likelihood.
        inexact: how inexactly the minimum with a linear term is found, as the scale of its gradient's noise.
        moves: k, how many users' worth of rows change between neighbours.
        epsilon: what is left for the release.
        most: how much of the curvature of all rows along a feature's coefficient Λ may be.
        apart: how far the average slope of busy users is taken to be from that of others, in standard deviations of a row's.
    """

    counts: Array
    blocks: tuple[tuple[int, float], ...]
    slope: float
    trace: float
    each: float
    bends: Array
    along: Array
    coefficients: Array
    gain: float
    unit: float
    inexact: float
    moves: int
    epsilon: float
    most: float = math.inf
    apart: float = HETEROGENEITY

    @classmethod
    def of(cls, loss: LossFacts, shape: RowShape, norm: float | None, moves: int, epsilon: float) -> Scales:
        """The guesses for a loss and a shape of rows; ``norm`` is that of good coefficients, where it is known."""
        features, radius = shape.features, shape.radius
        # Not small: the loss is less curved along the coefficients than across, so shrinking them costs more than is forecast.
        typical = (7.0 if loss.classifies else loss.steepest * 7 / 16) * math.sqrt(features)
        # Where features vary little, good coefficients are larger: margins are what is guessed.
        norm = typical * math.sqrt(SPREAD / loss.spread) if norm is None else norm
        # Slopes are half as curved as they can be.
        counts, roundness = [float(features)], loss.roundest * loss.typical
        blocks = [(features, radius) if shape.edge is None else (1, shape.edge)]
        each = loss.spread * radius**2 / features
        bends, coefficients = [roundness / 2 * each], [norm / math.sqrt(features) / radius]
        if shape.intercept:
            counts.append(1.0)
            blocks.append((1, 1.0))
            bends.append(roundness / 2)
            coefficients.append(typical / 2 / math.sqrt(features))
        slope = loss.steepest * shape.norm
        return cls(
            np.array(counts), tuple((size, width * loss.steepest) for size, width in blocks), slope, loss.roundest * shape.norm**2,
            each, np.array(bends), np.array(bends), np.array(coefficients), loss.at_zero / 3 * loss.typical,
            1.0 if loss.classifies else loss.steepest**2 / 64, INEXACT * slope, moves, epsilon,
        )  # fmt: skip

    @property
    def flattens(self) -> bool:
        """Whether the loss is flat for large margins, as those of classes are."""
        return self.unit == 1.0

    @property
    def size(self) -> int:
        """d, the number of coefficients."""
        return int(self.counts.sum())

    @property
    def norm(self) -> float:
        """The norm of the guessed coefficients."""
        return math.sqrt(float(self.counts @ self.coefficients**2))

    def shrinkage(self, kept: float, regularisation: Array) -> Array:
        """The excess loss that the regulariser causes."""
        ridge = (regularisation / kept)[:, None]
        lost = 0.5 * self.counts * self.bends * (ridge * self.coefficients / (self.along + ridge)) ** 2
        # Without any coefficients a constant is left, which loses what there was to gain.
        features = lost[:, 0] if math.isinf(self.gain) else -self.gain * np.expm1(-lost[:, 0] / self.gain)
        return np.asarray(features + lost[:, 1:].sum(axis=1))

    def noise(self, method: str, tau: float, kept: float, regularisation: Array) -> Array:
        """The excess loss that the noise causes; infinite where the method is impossible."""
        if method == "output":
            return self._spherical(self.moves * tau * self.slope / (regularisation * self.epsilon))
        variance = self.variance(tau, kept, regularisation)
        found = 0.5 * np.sum(self.counts * self.bends * variance, axis=1)
        return np.asarray(found + self._spherical(self.inexact / (regularisation * self.epsilon)))

    def variance(self, tau: float, kept: float, regularisation: Array) -> Array:
        """What a random linear term does to a coefficient of each kind, for each Λ; infinite where ε is not enough for Λ."""
        rank = min(tau, self.size)
        left = self.epsilon - rank * np.log1p(tau * self.trace / (rank * regularisation))
        possible = left >= _LEAST_LEFT * self.epsilon
        scale = self.moves * tau / np.where(possible, left, self.epsilon) / kept
        # A point drawn uniformly in a ball of dimension m has variance 1/(m + 2) along each axis.
        spread = np.array([move**2 / (size + 2) for size, move in self.blocks])
        radius = (self.size + 1) * (self.size + 2)
        ridge = (regularisation / kept)[:, None]
        found = radius * spread * (scale[:, None] / (self.bends + ridge)) ** 2
        return np.where(possible[:, None], found, np.inf)

    def _spherical(self, scale: Array) -> Array:
        """The excess loss by spherical noise of this scale in the coefficients."""
        return 0.5 * float(self.counts @ self.bends) * (self.size + 1) * scale**2


@dataclass(frozen=True)
class RowChoice:
    """τ, Λ, the method, and the forecast behind them."""

    tau: int
    regularisation: float
    method: str
    bias: float
    shrinkage: float
    noise: float
    kept: float

    @property
    def excess(self) -> float:
        """The forecast excess of the average loss."""
        return self.bias + self.shrinkage + self.noise


def choose_rows(
    support: Support, scales: Scales, method: str, tau: int | None = None, regularisation: float | None = None
) -> RowChoice:
    """Choose what is not given, from a public or bought support; ``method`` may be ``"auto"``."""
    return min(row_forecasts(support, scales, method, tau, regularisation), key=lambda choice: choice.excess)


def row_forecasts(
    support: Support, scales: Scales, method: str, tau: int | None = None, regularisation: float | None = None
) -> list[RowChoice]:
    """The forecast for each τ: the less is dropped the more noise is needed, and in between is the best."""
    sums = Sums.of(support)
    tried = [float(tau)] if tau is not None else limits_to_try(min(float(support.sizes.max()), LARGEST_TAU))
    methods = METHODS if method == "auto" else (method,)
    return [_forecast(sums, scales, one, size, regularisation) for size in tried for one in methods]


def limits_to_try(top: float) -> list[float]:
    """Limits from 1 to ``top``, each about a quarter more than the one before."""
    steps = np.arange(0, math.log(max(top, 1.0)) / math.log(1.25) + 1)
    return sorted({max(1.0, min(top, float(math.ceil(1.25**step)))) for step in steps})


def _forecast(sums: Sums, scales: Scales, method: str, tau: float, regularisation: float | None) -> RowChoice:
    at = np.array([tau])
    rows = max(sums.support.rows, 1.0)
    kept = max(float(sums.kept(at)[0]), 1.0)
    if regularisation is None:
        wide = np.geomspace(1e-4, 1e9, 200) * tau * scales.trace * max(1.0, 1 / scales.epsilon)
        tried = np.minimum(wide, LARGEST_REGULARISATION)
    else:
        tried = np.array([regularisation])
    shrinkage, noise = scales.shrinkage(kept, tried), scales.noise(method, tau, kept, tried)
    noise = np.where(tried <= scales.most * kept * scales.bends[0], noise, np.inf)
    best = int(np.argmin(shrinkage + noise))
    sampling = scales.size * max(1 / kept - 1 / rows, 0.0)
    mix = scales.apart**2 * float(sums.chi_square(at)[0])
    numbers = (scales.unit / 2 * (sampling + mix), float(shrinkage[best]), float(noise[best]))
    return RowChoice(math.ceil(tau), float(tried[best]), method, *numbers, kept)

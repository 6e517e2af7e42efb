"""Normal noise against a threshold: how wide it must be, how high the threshold, and a coin that falls as the noise would.

Whether an integer plus real normal noise reaches a threshold is a coin with a known probability, so the noise itself need not be
drawn. The calibration is that of the real Gaussian mechanism (Balle and Wang 2018): about 7% less noise than what ρ-zCDP asks
for. Doubles decide nothing on their own: calibration rounds toward more noise by a margin far above their error, and
a coin that they leave open is decided in 160-digit arithmetic (docs/proofs/key-selection.md).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from statistics import NormalDist

from evenhand.guarantee import fixed_context

MARGIN = 2.0**-36  # relative; the error of the formulas below in doubles is under 2^-39
_LARGEST_EPSILON = 300.0  # more would overflow exponentials; noise for less is noise for more
_OPEN = 2.0**-40  # around the probability of a coin: far above what erfc can be off
_BITS = 384
_DIGITS = 160
_FAR = 20  # beyond so many standard deviations the probability is under 2^-280
_WORK = fixed_context(_DIGITS)


@lru_cache(maxsize=256)
def normal_multiplier(epsilon: Decimal, delta: Decimal) -> float:
    """A σ, in units of the L2 sensitivity, for which the Gaussian mechanism is (ε, δ)-private; hardly more than the least."""
    e, allowed = min(float(epsilon), _LARGEST_EPSILON) * (1 - MARGIN), float(delta) * (1 - MARGIN)
    return smallest(lambda sigma: hockey_stick(1 / sigma, e) <= allowed)


def hockey_stick(mu: float, epsilon: float) -> float:
    """The δ at ε of a Gaussian mechanism with sensitivity μσ, or slightly more: Balle and Wang 2018, Theorem 8.

    Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ); it grows with μ and falls as ε grows, which may be negative.
    """
    above, below = upper_tail(epsilon / mu - mu / 2), math.exp(epsilon) * upper_tail(epsilon / mu + mu / 2)
    return above - below + MARGIN * (above + below)


def smallest(enough: Callable[[float], bool]) -> float:
    """The smallest σ that is enough, or slightly more; every larger one must be."""
    low, high = 2.0**-10, 1.0
    while not enough(high):
        low, high = high, 2 * high
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def quantile(chance: float) -> float:
    """A z with P(N ≥ z) ≤ ``chance``, hardly above the least."""
    z = -NormalDist().inv_cdf(chance)
    while upper_tail(z) * (1 + MARGIN) > chance:
        z += 1e-9 * max(1.0, abs(z))
    return z


def upper_tail(z: float) -> float:
    """P(N ≥ z) of a standard normal variable, in doubles."""
    return math.erfc(z / math.sqrt(2)) / 2


def reached(values: Sequence[int], sigma: float, threshold: int) -> list[bool]:
    """For each integer whether it reaches the threshold once normal noise N(0, σ²) is added."""
    draws = memoryview(secrets.token_bytes(8 * len(values))).cast("Q")
    return [_coin(threshold - value, sigma, draw) for value, draw in zip(values, draws, strict=True)]


def _coin(distance: int, sigma: float, draw: int) -> bool:
    """Whether a uniform number, of which ``draw`` is the first 64 bits, is below P(σN ≥ distance)."""
    chance, uniform = upper_tail(distance / sigma), draw * 2.0**-64
    if abs(uniform - chance) > _OPEN:
        return uniform < chance
    return decided(distance, sigma, draw << (_BITS - 64) | secrets.randbits(_BITS - 64))


def decided(distance: int, sigma: float, draw: int) -> bool:
    """The same with 384 bits and 160 digits."""
    z = _WORK.divide(Decimal(distance), Decimal.from_float(sigma))
    if z.copy_abs() > _FAR:
        return z < 0
    return Decimal(draw) < _WORK.multiply(exact_upper_tail(z), Decimal(2**_BITS))


def exact_upper_tail(z: Decimal) -> Decimal:
    """P(N ≥ z) for |z| ≤ 20, off by less than 10^-120: ½ − φ(z)·(z + z³/3 + z⁵/(3·5) + …), whose terms have one sign."""
    square, term, series, odd = _WORK.multiply(z, z), z, z, 1
    while term.copy_abs() > Decimal("1e-155"):
        odd += 2
        term = _WORK.divide(_WORK.multiply(term, square), Decimal(odd))
        series = _WORK.add(series, term)
    density = _WORK.divide(_WORK.exp(_WORK.divide(square, Decimal(-2))), _WORK.sqrt(_WORK.multiply(Decimal(2), _pi())))
    return _WORK.subtract(Decimal("0.5"), _WORK.multiply(density, series))


@lru_cache(maxsize=1)
def _pi() -> Decimal:
    """π by Machin's formula, in integers: 16·arctan(1/5) − 4·arctan(1/239)."""
    one: int = 10 ** (_DIGITS + 10)

    def arctan(inverse: int) -> int:
        power, total, n = one // inverse, one // inverse, 1
        while power:
            power //= -inverse * inverse
            n += 2
            total += power // n
        return total

    return _WORK.divide(Decimal(16 * arctan(5) - 4 * arctan(239)), Decimal(one))

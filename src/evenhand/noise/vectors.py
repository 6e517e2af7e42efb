"""Spherical, blockwise and Gaussian noise on an integer lattice, from 120-digit arithmetic and the system's secure source.

The mechanisms here need real-valued noise (a Gamma radius and a uniform direction or place; normal variates whose
composition accountants know). Sampling it in doubles would leave gaps that reveal the exact value. Instead the
exact vector is first rounded to a public lattice, and the noise, drawn with 384 random bits per variate and
computed to 120 digits, is rounded to the same lattice: the sum is what rounding does to (lattice vector + real
noise), so it is post-processing of the real-valued mechanism, up to a distance that docs/proofs/output-perturbation.md
states.

Python's decimal operators round to the precision of the program's current context, whatever that is. So every
operation here names a context of this module, of which nothing is left to defaults that a program may change.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import reduce

from evenhand.guarantee import fixed_context
from evenhand.noise import seam

DIGITS = 120
BITS = 384


_WORK, _UP = fixed_context(DIGITS), fixed_context(DIGITS, ROUND_CEILING)
_UNIT = _WORK.divide(Decimal(1), Decimal(2**BITS))


def add_spherical(values: Sequence[int], scale: Fraction) -> list[int]:
    """Add noise with density ∝ exp(−‖b‖₂/scale), rounded to integers.

    Guarantee: if one user moves the integer vector by at most Δ in L2 norm, ε = Δ/scale.
    """
    substitute = seam.current()
    if substitute is not None:
        return substitute("spherical", values, scale)
    direction = _normals(len(values))
    length = _WORK.sqrt(_sum(_WORK.multiply(x, x) for x in direction))
    radius = _WORK.minus(_sum(_WORK.ln(_uniform()) for _ in values))  # Gamma(d): a sum of exponentials
    factor = _WORK.divide(_WORK.multiply(radius, _at_least(scale)), length)
    return [value + _round(_WORK.multiply(x, factor)) for value, x in zip(values, direction, strict=True)]


def add_blockwise(values: Sequence[int], blocks: Sequence[tuple[int, Fraction]]) -> list[int]:
    """Add noise with density ∝ exp(−max ‖b_B‖₂/scale_B), the largest over blocks B of coordinates, rounded to integers.

    A block is given by its size and its scale, in the order of the coordinates.

    Guarantee: if one user moves the coordinates of each block by at most ε·scale_B in L2 norm, this is ε-private.
    """
    substitute = seam.current()
    if substitute is not None:
        return substitute("blockwise", values, max(scale for _, scale in blocks))
    # A place drawn uniformly in the product of the unit balls, times Gamma(d + 1).
    radius = _WORK.minus(_sum(_WORK.ln(_uniform()) for _ in range(len(values) + 1)))
    noise = [
        _WORK.multiply(x, _WORK.multiply(radius, _at_least(scale))) for size, scale in blocks for x in _in_ball(size)
    ]
    return [value + _round(x) for value, x in zip(values, noise, strict=True)]


def _in_ball(size: int) -> list[Decimal]:
    """A point drawn uniformly in the unit ball."""
    if size == 1:
        return [_WORK.subtract(_WORK.multiply(_uniform(), Decimal(2)), Decimal(1))]
    direction = _normals(size)
    length = _WORK.sqrt(_sum(_WORK.multiply(x, x) for x in direction))
    factor = _WORK.divide(_WORK.exp(_WORK.divide(_WORK.ln(_uniform()), Decimal(size))), length)
    return [_WORK.multiply(x, factor) for x in direction]


def add_normal(values: Sequence[int], scale: Fraction) -> list[int]:
    """Add independent normal noise of standard deviation ``scale``, rounded to integers.

    Guarantee: if one user moves the integer vector by at most Δ in L2 norm, the release is the Gaussian mechanism
    with noise multiplier scale/Δ.
    """
    substitute = seam.current()
    if substitute is not None:
        return substitute("normal", values, scale)
    factor = _at_least(scale)
    draws = _normals(len(values))
    return [value + _round(_WORK.multiply(x, factor)) for value, x in zip(values, draws, strict=True)]


def _normals(count: int) -> list[Decimal]:
    """Standard normal variates by Marsaglia's polar method."""
    result: list[Decimal] = []
    while len(result) < count:
        u, v = (_WORK.subtract(_WORK.multiply(_uniform(), Decimal(2)), Decimal(1)) for _ in range(2))
        square = _WORK.add(_WORK.multiply(u, u), _WORK.multiply(v, v))
        if 0 < square < 1:
            factor = _WORK.sqrt(_WORK.divide(_WORK.multiply(_WORK.ln(square), Decimal(-2)), square))
            result += [_WORK.multiply(u, factor), _WORK.multiply(v, factor)]
    return result[:count]


def _uniform() -> Decimal:
    """Uniform on (0, 1], in steps of 2^−BITS."""
    return _WORK.multiply(Decimal(secrets.randbits(BITS) + 1), _UNIT)


def _sum(terms: Iterable[Decimal]) -> Decimal:
    return reduce(_WORK.add, terms, Decimal(0))


def _round(value: Decimal) -> int:
    return int(value.to_integral_value(rounding=ROUND_HALF_EVEN, context=_WORK))


def _at_least(scale: Fraction) -> Decimal:
    """A scale as a decimal, rounded toward more noise."""
    return _UP.divide(Decimal(scale.numerator), Decimal(scale.denominator))

"""Spherical and Gaussian noise on an integer lattice, from 80-digit arithmetic and the system's secure source.

The mechanisms here need real-valued noise (a Gamma radius and a uniform direction; normal variates whose
composition accountants know). Sampling it in doubles would leave holes that betray the exact value. Instead the
exact vector is first rounded to a public lattice, and the noise, drawn with 256 random bits a variate and
computed to 80 digits, is rounded to the same lattice: the sum is what rounding does to (lattice vector + real
noise), so it is post-processing of the real-valued mechanism, up to a distance of about 10⁻⁷⁰.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from evenhand.noise import seam

_BITS = 256
_WORK = Context(prec=80, Emax=10**6, Emin=-(10**6))
_UNIT = Decimal(2) ** -_BITS


def add_spherical(values: Sequence[int], scale: Fraction) -> list[int]:
    """Add noise with density ∝ exp(−‖b‖₂/scale), rounded to integers.

    Guarantee: if one user moves the integer vector by at most Δ in L2 norm, ε = Δ/scale.
    """
    substitute = seam.current()
    if substitute is not None:
        return substitute("spherical", values, scale)
    direction = _normals(len(values))
    length = _WORK.sqrt(sum((_WORK.multiply(x, x) for x in direction), Decimal(0)))
    radius = -sum((_WORK.ln(_uniform()) for _ in values), Decimal(0))  # Gamma(d): a sum of exponentials
    factor = _WORK.divide(_WORK.multiply(radius, _decimal(scale)), length)
    return [value + _round(_WORK.multiply(x, factor)) for value, x in zip(values, direction, strict=True)]


def add_normal(values: Sequence[int], scale: Fraction) -> list[int]:
    """Add independent normal noise of standard deviation ``scale``, rounded to integers.

    Guarantee: if one user moves the integer vector by at most Δ in L2 norm, the release is the Gaussian mechanism
    with noise multiplier scale/Δ.
    """
    substitute = seam.current()
    if substitute is not None:
        return substitute("normal", values, scale)
    factor = _decimal(scale)
    draws = _normals(len(values))
    return [value + _round(_WORK.multiply(x, factor)) for value, x in zip(values, draws, strict=True)]


def _normals(count: int) -> list[Decimal]:
    """Standard normal variates by Marsaglia's polar method."""
    result: list[Decimal] = []
    while len(result) < count:
        u, v = (_WORK.subtract(_WORK.multiply(_uniform(), 2), 1) for _ in range(2))
        square = _WORK.add(_WORK.multiply(u, u), _WORK.multiply(v, v))
        if 0 < square < 1:
            factor = _WORK.sqrt(_WORK.divide(_WORK.multiply(_WORK.ln(square), -2), square))
            result += [_WORK.multiply(u, factor), _WORK.multiply(v, factor)]
    return result[:count]


def _uniform() -> Decimal:
    """Uniform on (0, 1], in steps of 2^−256."""
    return _WORK.multiply(Decimal(secrets.randbits(_BITS) + 1), _UNIT)


def _round(value: Decimal) -> int:
    return int(value.to_integral_value(rounding=ROUND_HALF_EVEN, context=_WORK))


def _decimal(value: Fraction) -> Decimal:
    return _WORK.divide(Decimal(value.numerator), Decimal(value.denominator))

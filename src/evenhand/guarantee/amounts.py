"""ε and δ as exact decimals, so that ten times 0.1 is 1."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction

from evenhand.guarantee.errors import UsageError

Amount = Decimal | int | float | str
"""What a caller may write for ε or δ. A float means the decimal that Python prints for it."""

LARGEST_EPSILON = Decimal(10_000)
"""Beyond this e^ε exceeds 10^4000, which protects nothing and is most likely a typing error."""

SMALLEST_EPSILON = Decimal("1e-9")

_LARGEST_EXPONENT = 400
_DIGITS = 18  # decimals that a split of ε keeps; what is cut off is never spent
_EXACT = Context(prec=80)


def parse_epsilon(given: Amount, name: str = "epsilon", largest: Decimal = LARGEST_EPSILON) -> Decimal:
    """Read an ε: a finite number in [1e-9, largest], as an exact decimal."""
    value = _decimal(given, name, f"a positive number such as {name}=0.5")
    if not SMALLEST_EPSILON <= value <= largest:
        raise UsageError(
            f"{name}={given} is out of range: expected a number between {SMALLEST_EPSILON:f} and {largest:f}. "
            f"Typical values lie between 0.01 and 10; a smaller {name} protects more."
        )
    return value


def parse_delta(given: Amount, name: str = "delta") -> Decimal:
    """Read a δ: a number in [0, 1), as an exact decimal."""
    value = _decimal(given, name, f"a number in [0, 1) such as {name}=1e-6")
    if not 0 <= value < 1:
        raise UsageError(
            f"{name}={given} is out of range: expected 0 <= {name} < 1, well below one over the number of users."
        )
    return value


def split(epsilon: Decimal, share: float | Decimal | Fraction) -> tuple[Decimal, Decimal]:
    """Split ε into ``share`` of it (rounded down) and the rest: the two add up to ε exactly."""
    part = Fraction(str(share)) if isinstance(share, float | Decimal) else Fraction(share)
    scaled = Fraction(epsilon) * part * 10**_DIGITS
    first = Decimal(scaled.numerator // scaled.denominator).scaleb(-_DIGITS, _EXACT).normalize(_EXACT)
    return first, _EXACT.subtract(epsilon, first)


def divide(epsilon: Decimal, parts: int) -> Decimal:
    """One of ``parts`` equal shares of ε, rounded down so that together they never exceed it."""
    return (
        _EXACT.divide(epsilon, Decimal(parts))
        .quantize(Decimal(1).scaleb(-_DIGITS), rounding=ROUND_FLOOR, context=_EXACT)
        .normalize(_EXACT)
    )


def portion(amount: Decimal, parts: int) -> Decimal:
    """One of so many equal parts, rounded down in its 70th digit: a δ may be too small for the decimals that `split` keeps."""
    return Context(prec=70, rounding=ROUND_FLOOR).divide(amount, Decimal(parts)) if parts > 1 else amount


def exact_sum(amounts: Iterable[Decimal]) -> Decimal:
    """The sum of amounts, in a context of its own: the caller's decimal precision does not matter."""
    return functools.reduce(_EXACT.add, amounts, Decimal(0))


def exact_difference(amount: Decimal, part: Decimal) -> Decimal:
    """What is left of an amount, in a context of its own."""
    return _EXACT.subtract(amount, part)


def parse_fraction(given: float | str | Decimal | Fraction) -> Fraction:
    """Read a number, or text such as "1/3", as an exact rational; ValueError if it is none or has an absurd exponent.

    ``Fraction("1e999999999")`` would work for hours.
    """
    try:
        if isinstance(given, float | str | Decimal) and "/" not in str(given):
            exact = Decimal(str(given).strip())
            if not exact.is_finite() or (exact and abs(exact.adjusted()) > _LARGEST_EXPONENT):
                raise ValueError
            return Fraction(exact)
        return Fraction(given)
    except (TypeError, ValueError, ArithmeticError):
        raise ValueError(f"{given!r} is not a number") from None


def plain(value: Decimal) -> str:
    """A decimal as a person would write it: no exponent, no trailing zeros; tiny ones as 1e-9."""
    if value and abs(value) < Decimal("1e-4"):
        return f"{value.normalize():e}".replace("e-0", "e-")
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal(given: Amount, name: str, expected: str) -> Decimal:
    try:
        if isinstance(given, bool):
            raise TypeError
        if not isinstance(given, Decimal | int | float | str):
            given = float(given)  # NumPy's numbers
        value = Decimal(repr(float(given))) if isinstance(given, float) else Decimal(given)
    except (InvalidOperation, TypeError, ValueError):
        raise UsageError(f"{name}={given!r} is not a number; expected {expected}.") from None
    if not value.is_finite():
        raise UsageError(f"{name}={given} is not finite; expected {expected}.")
    if value and (value.adjusted() < -60 or len(value.as_tuple().digits) > 40):
        raise UsageError(f"{name}={given} has more digits than are kept; expected {expected}.")
    if math.isinf(float(value)):
        raise UsageError(f"{name}={given} is too large; expected {expected}.")
    return value.normalize(_EXACT) if value else Decimal(0)

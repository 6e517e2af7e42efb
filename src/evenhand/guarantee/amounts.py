"""ε and δ as exact decimals, so that ten times 0.1 is 1; all arithmetic on them is here, or in a context that is made here.

What Python's operators make of two decimals depends on the context of the thread that calls: its precision, its rounding, what it
raises for. That is the caller's, so nothing else in this package uses them on amounts (`tests/unit/test_amounts.py` reads the tree).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction

from evenhand.guarantee.errors import UsageError, told

Amount = Decimal | int | float | str
"""What a caller may write for ε or δ. A float means the decimal that Python prints for it."""

LARGEST_EPSILON = Decimal(10_000)
"""Beyond this e^ε exceeds 10^4000, which protects nothing and is most likely a typing error."""

SMALLEST_EPSILON = Decimal("1e-9")

_LARGEST_EXPONENT = 400
_DIGITS = 18  # decimals that a split of ε keeps; what is cut off is never spent
_LARGEST_POWER = 10**9  # of ten: e^(αε) of the largest ε and α is far below


def fixed_context(digits: int, rounding: str = ROUND_HALF_EVEN, *, exact: bool = False) -> Context:
    """A context that no program can change: where one states less, the rest comes from `decimal.DefaultContext`, which is anybody's.

    Args:
        digits: that results have.
        rounding: of what has more.
        exact: raise instead of rounding.
    """
    traps = [InvalidOperation, DivisionByZero, Overflow, *([Inexact] if exact else [])]
    return Context(digits, rounding, -_LARGEST_POWER, _LARGEST_POWER, capitals=1, clamp=0, flags=[], traps=traps)


# Far more digits than amounts have; should one have more, sums are rounded up and what is left is rounded down.
_DOWN, _UP = fixed_context(160, ROUND_FLOOR), fixed_context(160, ROUND_CEILING)
_PORTION = fixed_context(70, ROUND_FLOOR)


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
    first = Decimal(scaled.numerator // scaled.denominator).scaleb(-_DIGITS, _DOWN).normalize(_DOWN)
    return first, _DOWN.subtract(epsilon, first)


def divide(epsilon: Decimal, parts: int) -> Decimal:
    """One of ``parts`` equal shares of ε, rounded down so that together they never exceed it."""
    each = _DOWN.divide(epsilon, Decimal(parts))
    return _DOWN.quantize(each, Decimal(f"1e-{_DIGITS}")).normalize(_DOWN)


def portion(amount: Decimal, parts: int) -> Decimal:
    """One of so many equal parts, rounded down in its 70th digit: a δ may be too small for the decimals that `split` keeps."""
    return _PORTION.divide(amount, Decimal(parts)) if parts > 1 else amount


def exact_sum(amounts: Iterable[Decimal]) -> Decimal:
    """The sum of amounts."""
    return functools.reduce(_UP.add, amounts, Decimal(0))


def exact_difference(amount: Decimal, part: Decimal) -> Decimal:
    """What is left of an amount."""
    return _DOWN.subtract(amount, part)


def exact_product(amount: Decimal, factor: Decimal | int) -> Decimal:
    """So many times an amount."""
    return _UP.multiply(amount, factor)


def exact_text(amount: Decimal) -> str:
    """An amount as it is stored: all digits, and the same text for the same amount."""
    return _DOWN.to_sci_string(amount)


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
    if value and value.copy_abs() < Decimal("1e-4"):
        return f"{value.normalize(_DOWN):e}".replace("e-0", "e-")
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
        raise UsageError(f"{name}={told(given)} is not a number; expected {expected}.") from None
    if not value.is_finite():
        raise UsageError(f"{name}={given} is not finite; expected {expected}.")
    if value and (value.adjusted() < -60 or len(value.as_tuple().digits) > 40):
        raise UsageError(f"{name}={given} has more digits than are kept; expected {expected}.")
    if math.isinf(float(value)):
        raise UsageError(f"{name}={given} is too large; expected {expected}.")
    return value.normalize(_DOWN) if value else Decimal(0)

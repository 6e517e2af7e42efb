"""ε and δ are exact decimals: sums neither drift nor exceed what was given."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.guarantee import divide, parse_delta, parse_epsilon, plain, split

epsilons = st.decimals("1e-9", "1e4", allow_nan=False, allow_infinity=False, places=12).filter(
    lambda value: value >= Decimal("1e-9")
)


@given(st.floats(1e-9, 1e4))
def test_a_float_means_what_python_prints(epsilon: float) -> None:
    assert parse_epsilon(epsilon) == Decimal(repr(epsilon))


@given(epsilons)
def test_text_and_decimal_agree(epsilon: Decimal) -> None:
    assert parse_epsilon(str(epsilon)) == parse_epsilon(epsilon) == epsilon


@given(epsilons, st.floats(0, 1))
def test_a_split_adds_up_exactly(epsilon: Decimal, share: float) -> None:
    first, rest = split(epsilon, share)
    assert first + rest == epsilon
    assert first >= 0
    assert rest >= 0
    assert Fraction(first) <= Fraction(epsilon) * Fraction(str(share))


@given(epsilons, st.integers(1, 1000))
def test_equal_parts_never_exceed_the_whole(epsilon: Decimal, parts: int) -> None:
    each = divide(epsilon, parts)
    assert each * parts <= epsilon
    assert epsilon - each * parts < Decimal("1e-14")


@given(epsilons)
def test_plain_text_is_exact(epsilon: Decimal) -> None:
    assert Decimal(plain(epsilon)) == epsilon


@pytest.mark.parametrize(
    ("given_", "shown"), [("0.1", "0.1"), ("1e-6", "1e-6"), ("100", "100"), ("2.50", "2.5"), ("0", "0")]
)
def test_plain_text_is_what_a_person_writes(given_: str, shown: str) -> None:
    assert plain(Decimal(given_)) == shown


def test_ten_tenths_are_one() -> None:
    assert sum((parse_epsilon(0.1) for _ in range(10)), start=Decimal(0)) == 1


def test_delta_may_be_zero_but_not_one() -> None:
    assert parse_delta(0) == 0
    with pytest.raises(ValueError, match="delta"):
        parse_delta(1)

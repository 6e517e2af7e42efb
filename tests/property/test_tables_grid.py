"""The integer grid: every value of every table lands between the integers of its bounds."""

from __future__ import annotations

import math

from hypothesis import assume, example, given
from hypothesis import strategies as st

from evenhand.guarantee import UsageError
from evenhand.tables import Grid, parse_bounds

numbers = st.floats(-1e149, 1e149, allow_nan=False)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[float, float]:
    low, high = sorted((draw(numbers), draw(numbers)))
    try:
        return parse_bounds((low, high))
    except UsageError:
        assume(False)
        raise


def _steps(grid: Grid, value: float) -> int:
    """What the engines compute, in the same doubles."""
    clamped = min(max(value, grid.low), grid.high)
    return grid.bottom + grid.steps_above(clamped)


@given(bounds=bounds(), value=st.floats(allow_nan=False), about_low=st.booleans(), bits=st.integers(6, 30))
@example(bounds=(1e16, 1e16 + 2), value=1e16, about_low=True, bits=30)
@example(bounds=(-5e-150, 5e-150), value=5e-324, about_low=False, bits=30)
@example(bounds=(0.0, 1e149), value=math.inf, about_low=False, bits=30)
def test_values_land_between_the_bounds(bounds: tuple[float, float], value: float, about_low: bool, bits: int) -> None:
    grid = Grid.about(bounds, bounds[0] if about_low else 0.0, bits)
    assert grid.bottom <= _steps(grid, value) <= grid.top
    assert grid.width <= 2 ** (bits + 1)
    assert grid.reach <= 2**bits
    assert math.isfinite(grid.factor)
    assert grid.factor == float(grid.steps_per_unit) > 0


@given(bounds=bounds(), one=st.floats(allow_nan=False), other=st.floats(allow_nan=False))
def test_larger_values_have_larger_integers(bounds: tuple[float, float], one: float, other: float) -> None:
    grid = Grid.about(bounds, 0.0)
    low, high = sorted((one, other))
    assert _steps(grid, low) <= _steps(grid, high)


@given(bounds=bounds(), share=st.floats(0, 1))
def test_a_value_is_found_again_to_within_a_step(bounds: tuple[float, float], share: float) -> None:
    low, high = bounds
    value = min(low + (high - low) * share, high)
    grid = Grid.about(bounds, low)
    back = low + grid.units(_steps(grid, value))
    assert abs(back - value) <= float(1 / grid.steps_per_unit) + 1e-15 * max(abs(low), abs(high))

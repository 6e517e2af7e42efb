"""The one place where tests may replace the source of randomness. Nothing public leads here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

Sampler = Callable[[str, Sequence[int], Fraction], list[int]]
"""Takes the name of the distribution, the integers and the scale; returns the noisy integers."""

_substitute: ContextVar[Sampler | None] = ContextVar("evenhand_test_sampler", default=None)


@contextmanager
def replaced(sampler: Sampler) -> Iterator[None]:
    """Draw noise from ``sampler`` instead of the secure source, for a test."""
    token = _substitute.set(sampler)
    try:
        yield
    finally:
        _substitute.reset(token)


def silent(name: str, values: Sequence[int], scale: Fraction) -> list[int]:
    """A sampler that adds nothing: tests look at the integers before noise through it."""
    return list(values)


def current() -> Sampler | None:
    """The substitute in force, if a test has set one."""
    return _substitute.get()

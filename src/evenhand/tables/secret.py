"""A wrapper around what the engine computed, so that nothing prints it on the way to the noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Secret(Generic[T]):
    """An exact aggregate. It can't be printed, formatted, pickled or compared; only the release room opens it."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def map(self, change: Callable[[T], U]) -> Secret[U]:
        """What ``change`` makes of the value, still closed."""
        return Secret(change(self._value))

    def reveal(self) -> T:
        """The exact value; for the release room alone, which adds noise or knows that it is public."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(...)"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret can't be pickled: it holds exact values of a private table")

"""A wrapper around what the engine computed, so that nothing prints it on the way to the noise."""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class Secret(Generic[T]):
    """An exact aggregate. It can't be printed, formatted, pickled or compared; only the release room opens it."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The exact value. Whoever calls this must add noise before anything leaves."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(...)"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret can't be pickled: it holds exact values of a private table")

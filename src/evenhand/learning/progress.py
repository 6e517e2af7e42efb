"""How fits run: without NumPy's warnings, and with a line for a person who waits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from evenhand.learning.private_values import unwarned
from evenhand.pages.progress import watched

S = TypeVar("S")
R = TypeVar("R")
P = ParamSpec("P")


def fitting(fit: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A ``fit`` that says after two seconds what is being fitted, and for how long; not how far it is, which rows decide."""

    quiet: Callable[Concatenate[S, P], R] = unwarned(fit)

    @functools.wraps(fit)
    def told(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with watched(type(self).__name__):
            return quiet(self, *args, **kwargs)

    return told

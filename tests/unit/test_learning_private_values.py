"""Objects with methods of their own: none of these methods runs, so none can raise or warn."""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, WeightedERM
from evenhand.learning.data.private_values import double, identity, same

METHODS = """
    __eq__ __ne__ __hash__ __lt__ __gt__ __le__ __ge__ __bool__ __float__ __int__ __index__ __complex__ __str__ __repr__
    __bytes__ __iter__ __len__ __getitem__ __getattribute__ __getattr__ __array__ __pos__ __abs__ item tolist replace
"""


def _raise(*_: Any, **__: Any) -> Any:
    raise RuntimeError("Ann 17")


def hostile(*bases: type) -> type:
    """A subclass whose methods all raise."""
    return type("Hostile", bases, dict.fromkeys(METHODS.split(), _raise))


def emptied(kind: type) -> Any:
    """An instance whose slots were never filled."""
    return kind.__new__(kind) if kind is uuid.UUID else object.__new__(hostile(kind))


class Zone(datetime.tzinfo):
    def utcoffset(self, moment: Any) -> Any:
        return _raise()

    def dst(self, moment: Any) -> Any:
        return _raise()

    def tzname(self, moment: Any) -> Any:
        return _raise()


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


PLAIN: list[tuple[type, tuple[Any, ...]]] = [
    (float, (3.5,)), (int, (3,)), (int, (10**400,)), (complex, (1,)), (str, ("3",)), (bytes, (b"3",)), (Decimal, ("3.5",)),
    (np.float64, (3.5,)), (np.str_, ("3",)), (datetime.date, (2020, 1, 2)), (datetime.datetime, (2020, 1, 2, 3)),
    (datetime.timedelta, (1,)), (tuple, ((1, 2),)), (list, ((1, 2),)),
]  # fmt: skip


def of_itself() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


def fraction() -> Any:
    made: Any = object.__new__(hostile(Fraction))
    for name, whole in (("_numerator", 7), ("_denominator", 2)):
        Fraction.__dict__[name].__set__(made, whole)
    return made


OBJECTS: dict[str, Callable[[], Any]] = {
    **{
        f"{kind.__name__} {args}"[:30]: partial(lambda kind, args: hostile(kind)(*args), kind, args)
        for kind, args in PLAIN
    },
    "object": lambda: hostile(object)(),
    "fraction": fraction,
    "empty fraction": lambda: emptied(Fraction),
    "empty uuid": lambda: emptied(uuid.UUID),
    "part": lambda: (1, hostile(float)(2.5), hostile(object)()),
    "zone": lambda: datetime.datetime(2020, 1, 2, tzinfo=Zone()),
    "list of itself": of_itself,
    "timedelta64": lambda: np.timedelta64(5, "s"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_no_method_of_an_object_is_called(name: str) -> None:
    value = OBJECTS[name]()
    assert type(double(value)) is float
    known = identity(value)
    assert not same(value, "another")
    assert known is None or {known: 1}[identity(value)] == 1


@pytest.mark.parametrize(("kind", "args"), PLAIN)
def test_a_subclass_counts_as_the_plain_value(kind: type, args: tuple[Any, ...]) -> None:
    value, usual = hostile(kind)(*args), kind(*args)
    assert identity(value) == identity(usual) is not None
    assert same(value, usual)
    np.testing.assert_equal(double(value), double(usual))


def test_what_defines_no_equality_is_told_apart_by_itself() -> None:
    assert same(Colour.RED, Colour.RED)
    assert not same(Colour.RED, Colour.BLUE)
    assert double(fraction()) == 3.5


ROWS = 24
FITS: dict[str, Callable[..., Any]] = {
    "bounded": BoundedERM(1, rows_per_user=2, regularisation=1.0, feature_norm=1.0).fit,
    "weighted": WeightedERM(1, steps=3, weight_bound=1, feature_norm=1.0).fit,
    "selection": HypothesisSelection([lambda X: [1] * len(X), lambda X: [0] * len(X)], 1, rows_per_user=1).fit,
    "regression": LabelPrivateRegression(1, label_bounds=(0, 1), weighting="all").fit,
}


@pytest.mark.parametrize("role", ["X", "y", "users"])
@pytest.mark.parametrize("name", FITS)
def test_fits_do_not_pass_on_what_an_object_raises(name: str, role: str) -> None:
    for made in OBJECTS.values():
        given: dict[str, Any] = {"X": np.empty((ROWS, 1), object), "y": np.empty(ROWS, object)}
        given["X"][:, 0], given["y"][:] = np.arange(ROWS) / ROWS, np.arange(ROWS) % 2
        given["users"] = np.array([f"user {row // 2}" for row in range(ROWS)], object)
        if name == "regression" and role != "y":  # there only labels are private
            continue
        place = (ROWS - 1, 0) if role == "X" else ROWS - 1
        given[role][place] = made()
        FITS[name](**given)

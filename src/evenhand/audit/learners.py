"""Estimators as mechanisms: fit again and again, and look at everything that was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.audit.catalogue import Case
from evenhand.audit.mechanism import BlackBox, Claim, Pair

_MODEL = ("coef_", "intercept_")
_GIANT = 99
_DELTA = 1e-3  # the largest that WeightedERM takes


class Data(NamedTuple):
    """Rows to learn from: features, labels and users."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    users: npt.NDArray[np.int64]


def _fit(name: str, claim: Claim, make: Callable[[], Any], attributes: tuple[str, ...] = _MODEL) -> BlackBox:
    """A fresh estimator for each output, which is all of its released attributes."""

    def learned(data: Data) -> list[float]:
        fitted = make().fit(data.X, data.y, users=data.users)
        return [float(number) for name in attributes for number in np.ravel(getattr(fitted, name))]

    return BlackBox(name, claim, learned)


def learners() -> Iterator[Case]:
    """Every estimator under every relation that it knows, with bounds given and chosen."""
    from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, WeightedERM

    # So much regularisation that the hinge is at its steepest for every row: a user moves as far as is declared.
    hinge: dict[str, Any] = {"loss": "huber-svm", "fit_intercept": False}
    erm = partial(BoundedERM, epsilon=1, rows_per_user=2, regularisation=100.0, feature_norm=1.0, **hinge)
    weighted = partial(WeightedERM, epsilon=1, delta=_DELTA, steps=1, weight_bound=2, feature_norm=1.0, **hinge)
    selection = partial(HypothesisSelection, [_always(0), _always(1), _always(1)], epsilon=1, rows_per_user=2)

    presence, values, pure, approximate = _presence(), _values(), Claim(1.0), Claim(1.0, _DELTA)
    three: dict[str, Any] = {"loss": "logistic", "classes": (0, 1, 2)}
    chosen: dict[str, Any] = {"rows_per_user": "auto", "regularisation": "auto"}
    for relation, pairs in (("presence", presence), ("values", values)):
        protects: dict[str, Any] = {"protects": relation}
        for name, claim, make, attributes in (
            ("BoundedERM", pure, partial(erm, **protects, method="objective"), _MODEL),
            (
                "BoundedERM, output, class weights",
                pure,
                partial(erm, **protects, method="output", class_weight={0: 1, 1: 5}),
                _MODEL,
            ),
            ("BoundedERM, auto", pure, partial(erm, **protects, **chosen), _MODEL),
            (
                "WeightedERM",
                approximate,
                partial(weighted, **protects, fit_intercept=True),
                (*_MODEL, "curvature_"),
            ),
            ("WeightedERM, clip given", approximate, partial(weighted, **protects, clip=0.1), _MODEL),
            ("WeightedERM, three classes", approximate, partial(weighted, **protects, **three), _MODEL),
            ("WeightedERM, as published", approximate, partial(weighted, **protects, clip="lipschitz"), _MODEL),
            ("HypothesisSelection", pure, partial(selection, **protects), ("best_index_",)),
            ("HypothesisSelection, auto", pure, partial(selection, **protects, rows_per_user="auto"), ("best_index_",)),
        ):
            yield Case(_fit(f"{name} ({relation})", claim, make, attributes), pairs=pairs, slow=True)
    pairs = _labels()
    regression = partial(LabelPrivateRegression, epsilon=1, label_bounds=(0, 1))
    one = pairs[0].one
    given = partial(regression, weights=regression().fit(one.X, one.y, one.users).weights_)
    yield Case(_fit("LabelPrivateRegression (labels)", pure, given), pairs=pairs, slow=True)
    company = tuple(Pair(pair.name, _in_company(pair.one), _in_company(pair.other)) for pair in pairs)
    bought = partial(regression, noise_sd="private", weighting="all", fit_intercept=False)
    yield Case(_fit("LabelPrivateRegression, private σ (labels)", pure, bought), pairs=company, slow=True)


def _crowd() -> Data:
    grid = np.linspace(-0.9, 0.9, 12)
    return Data(np.column_stack([grid, grid**2]), (grid > 0).astype(np.float64), np.arange(12) // 2)


def _presence() -> tuple[Pair, ...]:
    """A user with very many equal rows, at the edge of the feature ball."""
    few, giant = _crowd(), np.full(40, _GIANT)
    rows = np.tile([1.0, 0.0], (40, 1))
    return tuple(
        Pair(f"a giant who always says {label:g}", _joined(few, Data(rows, np.full(40, label), giant)), few)
        for label in (0.0, 1.0)
    )


def _values() -> tuple[Pair, ...]:
    """The giant stays, and says the opposite."""
    (no, yes) = (pair.one for pair in _presence())
    mirrored = Data(np.where(no.users[:, None] == _GIANT, -no.X, no.X), no.y, no.users)
    return (Pair("a giant changes every label", no, yes), Pair("a giant changes every feature", no, mirrored))


def _in_company(data: Data) -> Data:
    """One feature, and the crowd once more: groups of users enough to buy σ from."""
    crowd = _crowd()
    joined = _joined(data, Data(crowd.X, crowd.y, crowd.users + 10))
    return Data(joined.X[:, :1], joined.y, joined.users)


def _joined(*parts: Data) -> Data:
    return Data(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _labels() -> tuple[Pair, ...]:
    """One user's labels at one end of the bounds or at the other."""
    data = _crowd()
    users = np.where(np.arange(12) < 6, 0, data.users)
    low, against = np.zeros(12), data.X[:, 0] < -0.5

    def turns(how: str, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> Pair:
        one, other = (Data(data.X, np.where(users == 0, labels, data.y), users) for labels in (before, after))
        return Pair(f"a heavy user turns {how}", one, other)

    return turns("from low to high", low, low + 1), turns("against the features", against, ~against)


def _always(label: int) -> Callable[[Any], npt.NDArray[np.int64]]:
    return lambda rows: np.full(len(rows), label)

"""Estimators as mechanisms: fit again and again, and look at everything that was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.audit.catalogue import DELTA, Case
from evenhand.audit.mechanism import Claim, Outputs, Pair


@dataclass(frozen=True)
class Data:
    """Rows to learn from: features, labels and users."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    users: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Fit:
    """An estimator; the outputs are its released attributes.

    Args:
        name: how it appears in the results.
        claim: what it promises.
        make: a fresh estimator.
        attributes: what is released.
    """

    name: str
    claim: Claim
    make: Callable[[], Any]
    attributes: tuple[str, ...] = ("coef_", "intercept_")

    def sample(self, table: Data, count: int) -> Outputs:
        """Released attributes, one fit per row."""
        return np.array([self._once(table) for _ in range(count)])

    def _once(self, table: Data) -> npt.NDArray[np.float64]:
        fitted = self.make().fit(table.X, table.y, users=table.users)
        return np.concatenate([np.ravel(getattr(fitted, name)).astype(np.float64) for name in self.attributes])


def learners() -> Iterator[Case]:
    """Every estimator under every relation that it knows, with bounds given and chosen, and with samples of users."""
    from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, WeightedERM

    # So much regularisation that the hinge is at its steepest for every row: a user moves as far as is declared.
    erm = partial(BoundedERM, epsilon=1, loss="huber-svm", rows_per_user=2, regularisation=100.0, fit_intercept=False)
    weighted = partial(
        WeightedERM, epsilon=1, delta=DELTA, loss="huber-svm", steps=1, weight_bound=2, fit_intercept=False
    )
    selection = partial(HypothesisSelection, [_always(0), _always(1), _always(1)], epsilon=1, rows_per_user=2)
    presence, values, pure, approximate = _presence(), _values(), Claim(1.0), Claim(1.0, DELTA)
    chosen: dict[str, Any] = {"rows_per_user": "auto", "regularisation": "auto"}
    for relation, pairs in (("presence", presence), ("values", values)):
        protects = {"protects": relation}
        for name, claim, make, attributes in (
            ("BoundedERM", pure, partial(erm, **protects), _MODEL),
            ("BoundedERM, auto", pure, partial(erm, **protects, **chosen), _MODEL),
            ("WeightedERM", approximate, partial(weighted, **protects), _MODEL),
            ("WeightedERM, auto", approximate, partial(weighted, **protects, weight_bound="auto"), _MODEL),
            ("WeightedERM, sample", approximate, partial(weighted, **protects, sample=0.5, steps=10), _MODEL),
            ("HypothesisSelection", pure, partial(selection, **protects), ("best_index_",)),
            ("HypothesisSelection, auto", pure, partial(selection, **protects, rows_per_user="auto"), ("best_index_",)),
        ):
            yield Case(Fit(f"{name} ({relation})", claim, make, attributes), pairs=pairs, slow=True)
    pairs = _labels()
    regression = partial(LabelPrivateRegression, epsilon=1, label_bounds=(0, 1))
    weights = regression().fit(pairs[0].one.X, pairs[0].one.y, pairs[0].one.users).weights_
    given = partial(regression, weights=weights)
    yield Case(Fit("LabelPrivateRegression (labels)", pure, given), pairs=pairs, slow=True)
    company = tuple(Pair(pair.name, _in_company(pair.one), _in_company(pair.other)) for pair in pairs)
    bought = partial(regression, noise_sd="private", weighting="all", fit_intercept=False)
    yield Case(Fit("LabelPrivateRegression, private σ (labels)", pure, bought), pairs=company, slow=True)


_MODEL = ("coef_", "intercept_")


_GIANT = 99


def _crowd() -> Data:
    grid = np.linspace(-0.9, 0.9, 12)
    return Data(np.column_stack([grid, grid**2]), (grid > 0).astype(np.float64), np.arange(12) // 2)


def _presence() -> tuple[Pair, ...]:
    """A giant whose rows all say the same, at the edge of the feature ball."""
    few = _crowd()
    giant = np.full(40, _GIANT)
    pairs = []
    for label in (0.0, 1.0):
        more = Data(
            np.concatenate([few.X, np.tile([1.0, 0.0], (40, 1))]),
            np.concatenate([few.y, np.full(40, label)]),
            np.concatenate([few.users, giant]),
        )
        pairs.append(Pair(f"a giant who always says {label:g}", more, few))
    return tuple(pairs)


def _values() -> tuple[Pair, ...]:
    """The giant stays, and says the opposite."""
    (no, yes) = (pair.one for pair in _presence())
    mirrored = Data(np.where(no.users[:, None] == _GIANT, -no.X, no.X), no.y, no.users)
    return (Pair("a giant changes every label", no, yes), Pair("a giant changes every feature", no, mirrored))


def _in_company(data: Data) -> Data:
    """One feature, and the crowd once more: groups of users enough to buy σ from."""
    crowd = _crowd()
    return Data(
        np.concatenate([data.X, crowd.X])[:, :1],
        np.concatenate([data.y, crowd.y]),
        np.concatenate([data.users, crowd.users + 10]),
    )


def _labels() -> tuple[Pair, ...]:
    """One user's labels at one end of the bounds or at the other."""
    data = _crowd()
    users = np.where(np.arange(12) < 6, 0, data.users)
    own = users == 0
    return (
        Pair(
            "a heavy user turns from low to high",
            Data(data.X, np.where(own, 0.0, data.y), users),
            Data(data.X, np.where(own, 1.0, data.y), users),
        ),
        Pair(
            "a heavy user turns against the features",
            Data(data.X, np.where(own, (data.X[:, 0] < -0.5).astype(float), data.y), users),
            Data(data.X, np.where(own, (data.X[:, 0] >= -0.5).astype(float), data.y), users),
        ),
    )


def _always(label: int) -> Callable[[Any], npt.NDArray[np.int64]]:
    return lambda rows: np.full(len(rows), label)

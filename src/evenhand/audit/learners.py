"""Estimators as mechanisms: fit again and again, and look at everything that was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
        """Released attributes, one fit a row."""
        return np.array([self._once(table) for _ in range(count)])

    def _once(self, table: Data) -> npt.NDArray[np.float64]:
        fitted = self.make().fit(table.X, table.y, users=table.users)
        return np.concatenate([np.ravel(getattr(fitted, name)).astype(np.float64) for name in self.attributes])


def learners() -> Iterator[Case]:
    """All estimators, with given bounds: what they choose by themselves is chosen as in `statistics`."""
    from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, WeightedERM

    def erm() -> Any:
        # So much regularisation that the hinge is at its steepest for every row: a user moves as far as is declared.
        return BoundedERM(epsilon=1, loss="huber-svm", rows_per_user=2, regularisation=100.0, fit_intercept=False)

    def weighted() -> Any:
        return WeightedERM(epsilon=1, delta=DELTA, loss="huber-svm", steps=1, weight_bound=2, fit_intercept=False)

    def selection() -> Any:
        return HypothesisSelection([_always(0), _always(1), _always(1)], epsilon=1, rows_per_user=2)

    yield Case(Fit("BoundedERM (presence)", Claim(1.0), erm), pairs=_presence(), slow=True)
    yield Case(Fit("WeightedERM (presence)", Claim(1.0, DELTA), weighted), pairs=_presence(), slow=True)
    yield Case(
        Fit("HypothesisSelection (presence)", Claim(1.0), selection, ("best_index_",)), pairs=_presence(), slow=True
    )
    pairs = _labels()
    weights = LabelPrivateRegression(epsilon=1, label_bounds=(0, 1)).fit(
        pairs[0].one.X, pairs[0].one.y, pairs[0].one.users
    )

    def regression() -> Any:
        return LabelPrivateRegression(epsilon=1, label_bounds=(0, 1), weights=weights.weights_)

    yield Case(Fit("LabelPrivateRegression (labels)", Claim(1.0), regression), pairs=pairs, slow=True)


def _crowd() -> Data:
    grid = np.linspace(-0.9, 0.9, 12)
    return Data(np.column_stack([grid, grid**2]), (grid > 0).astype(np.float64), np.arange(12) // 2)


def _presence() -> tuple[Pair, ...]:
    """A giant whose rows all say the same, at the edge of the feature ball."""
    few = _crowd()
    giant = np.full(40, 99)
    pairs = []
    for label in (0.0, 1.0):
        more = Data(
            np.concatenate([few.X, np.tile([1.0, 0.0], (40, 1))]),
            np.concatenate([few.y, np.full(40, label)]),
            np.concatenate([few.users, giant]),
        )
        pairs.append(Pair(f"a giant who always says {label:g}", more, few))
    return tuple(pairs)


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

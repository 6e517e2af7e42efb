"""Slopes of the multinomial logistic loss: a score for each class, probabilities from exact integers."""

from __future__ import annotations

import numpy as np

from evenhand.learning.private_values import Floats
from evenhand.learning.slopes import SCORE_BITS, SLOPE, Shorts, Slopes

_BITS = 9  # scores are told apart in cells of 2^-9
_POWERS = 2**14  # cells below the largest score; beyond, a class has no probability at all
_ONE = 2**30  # e^0


class Softmax(Slopes):
    """``p_k − 1`` for a row's own class, ``p_k`` for the others, times the weight of its class.

    Exponentials come from a public table by the exact difference to the largest score; they are integers, so their sum is exact in any
    order, and a probability is one quotient, which IEEE 754 rounds one way. A row's slopes together have norm at most √2.
    """

    @classmethod
    def of(cls, weights: Floats) -> Softmax:
        """For as many classes as there are weights, the largest being 1.

        No eigenvalue of diag(p) − ppᵀ exceeds ½; where all scores are equal they are 1/K.
        """
        powers = np.rint(np.exp(-np.arange(_POWERS + 1) / 2.0**_BITS) * _ONE)
        return cls(np.r_[weights, powers], 0.5, 1 / len(weights), scores=len(weights))

    def at(self, scores: Floats, targets: Shorts) -> Floats:
        weights, powers = self.table[: self.scores], self.table[self.scores :]
        below = scores.max(axis=1, keepdims=True) - scores
        cells = np.minimum(np.rint(below * 2.0 ** (_BITS - SCORE_BITS)), _POWERS).astype(np.int32)
        parts = powers[cells]
        slopes: Floats = np.rint(parts * SLOPE / parts.sum(axis=1, keepdims=True))
        slopes[np.arange(len(targets)), targets] -= SLOPE
        return np.rint(slopes * weights[targets][:, None])

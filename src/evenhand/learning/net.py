"""A finite net of linear hypotheses in the unit ball, to choose from privately (amin2018, section 4)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.guarantee import UsageError
from evenhand.learning.private_values import Floats

MOST_HYPOTHESES = 20_000


@dataclass(frozen=True)
class LinearHypothesis:
    """``⟨w, x⟩``, or with ``classes`` the second of them where that is positive, else the first."""

    weights: tuple[float, ...]
    classes: tuple[Any, Any] | None = None

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """One prediction per row."""
        margin: Floats = np.asarray(X, dtype=np.float64) @ np.array(self.weights)
        return margin if self.classes is None else np.where(margin > 0, self.classes[1], self.classes[0])


def linear_net(dimension: int, distance: float, classes: tuple[Any, Any] | None = None) -> list[LinearHypothesis]:
    """Linear hypotheses such that every w with ‖w‖₂ ≤ 1 has one within ``distance``; for `HypothesisSelection`.

    Amin et al. (2018) sample from the whole ball. A net is chosen from exactly, in integers, where a sampler for the ball would need a proof about its
    doubles and its mixing. For a loss that changes by at most L·‖x‖ per unit of w, the best of the net is within L·‖x‖·distance of the best of the ball. The
    number of hypotheses grows like (√d/(2·distance))^d times the volume of the ball: it is for a few features.

    Args:
        dimension: d, the number of features.
        distance: how far the ball may be from the net, up to 1.
        classes: two labels, to classify; None to predict numbers.

    Example:
        >>> HypothesisSelection(linear_net(2, 0.1, classes=(0, 1)), epsilon=1).fit(X, y, users=ids)
    """
    if dimension < 1 or not 0 < distance <= 1:
        raise UsageError(f"linear_net({dimension}, {distance}): expected one feature or more, and a distance up to 1.")
    step = 2 * distance / math.sqrt(dimension)
    # Points of a cubic lattice are within step·√d/2 of everything; those beyond the ball are moved onto it, which brings them nearer.
    reach = math.floor(1 / step + 0.5)
    if (2 * reach + 1) ** dimension > 20 * MOST_HYPOTHESES:
        raise _too_many(dimension, distance)
    found: dict[tuple[float, ...], None] = {}
    for place in itertools.product(range(-reach, reach + 1), repeat=dimension):
        length = step * math.hypot(*place)
        if length <= (1 + distance) * (1 + 1e-9):
            found[tuple(step * one / max(length, 1.0) for one in place)] = None
    if len(found) > MOST_HYPOTHESES:
        raise _too_many(dimension, distance)
    return [LinearHypothesis(weights, classes) for weights in found]


def _too_many(dimension: int, distance: float) -> UsageError:
    return UsageError(
        f"linear_net({dimension}, {distance}) has more than {MOST_HYPOTHESES:,} hypotheses; expected fewer features or a larger distance. BoundedERM "
        "is for more features."
    )

"""What a sketch may ask simulated people: their opinions, or one of the questions that populations answer faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from evenhand.recommender.at_server.sketches.sensing import Sensing

Bits = NDArray[np.bool_]
Ints = NDArray[np.int64]
Opinions = NDArray[np.int8]
"""People x items: 1 for a like, -1 for a dislike, 0 where not rated."""


class Population(Protocol):
    """People as a simulation meets them: a fresh one for each query of a call. `simulation` has two populations."""

    def opinions(self, count: int, cap: int | None) -> Opinions:
        """What so many people think; of more than ``cap`` ratings a random choice, as at home."""

    def like_any(self, sketch: Sensing, numbers: Ints) -> Bits:
        """Whether they like any item of the sets of these queries: queries x questions."""

    def rate_alike(self, low: Ints, high: Ints) -> Bits:
        """Whether they rated both items of each pair, and the same."""

    def lean_alike(self, first: NDArray[np.uint8], second: NDArray[np.uint8], cap: int) -> Bits:
        """Whether their ratings have inner products of one sign with two ±1 vectors each, given as packed bits."""

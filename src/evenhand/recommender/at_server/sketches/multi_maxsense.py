"""Multi-MaxSense on the server: disjoint sets, cut from a random order of the catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.recommender.at_server.sketches.base import remembers_last
from evenhand.recommender.at_server.sketches.sensing import Sensing


class MultiMaxSense(Sensing):
    """Several MaxSense questions at once; their sets share no item, so the answers are nearly independent."""

    batch = 1024

    @remembers_last
    def sets(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The items of each set, ascending."""
        keys = np.ascontiguousarray(self.stream(numbers, 4 * self.size)).view("<u4").astype(np.uint64)
        # Key and item in one number: sorting orders by key, then by item.
        packed = keys << np.uint64(32) | np.arange(self.size, dtype=np.uint64)
        packed.sort(axis=1)
        taken = packed[:, : self.task.questions * self.task.set_size] & np.uint64(0xFFFFFFFF)
        sets = taken.reshape(len(numbers), self.task.questions, self.task.set_size)
        sets.sort(axis=2)
        return sets

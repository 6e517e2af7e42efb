"""MaxSense on the server: Nθ/w items drawn with replacement for each query."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.recommender.at_server.sketches.base import remembers_last
from evenhand.recommender.at_server.sketches.sensing import Sensing

_SHORT_WORDS_UP_TO = 4096  # larger catalogues draw from 32-bit words


class MaxSense(Sensing):
    """An item drawn twice counts twice. Given one draw, the others are independent of it, so the expected
    share of ones depends on nothing but how often the item is liked: no bias is left for more users to meet.
    """

    @remembers_last
    def sets(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The drawn items, in order."""
        word = np.dtype("<u2" if self.size <= _SHORT_WORDS_UP_TO else "<u4")
        taken = self.stream(numbers, self.task.set_size * word.itemsize)
        drawn: Any = np.ascontiguousarray(taken).view(word).astype(f"u{2 * word.itemsize}")
        drawn *= drawn.dtype.type(self.size)
        drawn >>= drawn.dtype.type(8 * word.itemsize)
        return cast(NDArray[Any], drawn[:, None, :])

"""What the sums of many reports say about the items: the input to clustering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """What the sums say about each item.

    Args:
        profile: a row per item; items of one cluster have the same expected row.
        noise: the standard deviation of each entry of a row around its expectation.
        embedding: a vector per item whose inner products say who is liked together; None if there is none.
        popularity: the estimated share of raters who like each item; None if the sketch is blind to it.
        signals: how many directions stand out of the noise.
    """

    profile: Floats
    noise: float
    embedding: Floats | None
    popularity: Floats | None
    signals: int

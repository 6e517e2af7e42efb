"""Noise for simulations: NumPy's generator, fast and repeatable, never used for a release."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def discrete_laplace(rng: np.random.Generator, scale: float, shape: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Integer noise with P(k) ∝ exp(−|k|/scale): the difference of two geometric variables."""
    p = -np.expm1(-1 / scale)
    noise: npt.NDArray[np.int64] = rng.geometric(p, shape) - rng.geometric(p, shape)
    return noise

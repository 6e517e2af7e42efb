"""Exact noise for integers, vectors and choices; each mechanism states its privacy map. Only the release room draws it."""

from evenhand.noise.calibration import rho_for
from evenhand.noise.counted import TruncatedGeometric
from evenhand.noise.integers import LARGEST_SCALE, Gaussian, IntegerNoise, Laplace
from evenhand.noise.library import opendp
from evenhand.noise.noisy_max import NoisyMax
from evenhand.noise.passing import Round, Way
from evenhand.noise.rounded import Normal
from evenhand.noise.shown_counts import ShownCounts
from evenhand.noise.top_k import TopK
from evenhand.noise.weighted import UNIT, NormalThreshold

__all__ = [
    "LARGEST_SCALE",
    "UNIT",
    "Gaussian",
    "IntegerNoise",
    "Laplace",
    "NoisyMax",
    "Normal",
    "NormalThreshold",
    "Round",
    "ShownCounts",
    "TopK",
    "TruncatedGeometric",
    "Way",
    "opendp",
    "rho_for",
]

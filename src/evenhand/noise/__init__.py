"""Exact noise for integers, vectors and choices; each mechanism states its privacy map. Only the release room draws it."""

from evenhand.noise.calibration import rho_for
from evenhand.noise.integers import LARGEST_SCALE, Gaussian, IntegerNoise, Laplace
from evenhand.noise.library import opendp
from evenhand.noise.noisy_max import NoisyMax
from evenhand.noise.steps import noise_multiplier, rho_of_steps
from evenhand.noise.vectors import add_normal, add_spherical

__all__ = [
    "LARGEST_SCALE",
    "Gaussian",
    "IntegerNoise",
    "Laplace",
    "NoisyMax",
    "add_normal",
    "add_spherical",
    "noise_multiplier",
    "opendp",
    "rho_for",
    "rho_of_steps",
]

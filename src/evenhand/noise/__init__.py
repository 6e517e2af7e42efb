"""Exact integer noise and selection on top of OpenDP; each mechanism states its privacy map."""

from evenhand.noise.calibration import rho_for
from evenhand.noise.integers import LARGEST_SCALE, Gaussian, IntegerNoise, Laplace
from evenhand.noise.library import opendp
from evenhand.noise.selection import NoisyMax

__all__ = ["LARGEST_SCALE", "Gaussian", "IntegerNoise", "Laplace", "NoisyMax", "opendp", "rho_for"]

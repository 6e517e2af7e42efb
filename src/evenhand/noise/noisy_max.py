"""Choosing one of many candidates by integer score, privately: permute-and-flip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.noise import seam
from evenhand.noise.integers import round_up
from evenhand.noise.library import sampler


@dataclass(frozen=True)
class NoisyMax:
    """Select the index of a high score: permute-and-flip, never worse than the exponential mechanism.

    Guarantee: if one user moves each score by at most ``sensitivity``, the selection is ε-private with
    ε = 2·sensitivity/scale. Half of that if the scores are ``monotone``: adding a user moves none of them up, or none of them
    down. Sampling is exact (OpenDP), on integers.

    Reference: McKenna and Sheldon 2020, Permute-and-Flip.
    """

    scale: Fraction

    @classmethod
    def calibrated(cls, sensitivity: int, epsilon: Decimal, monotone: bool = False) -> NoisyMax:
        """The least noise that protects this sensitivity with ε."""
        return cls(round_up((1 if monotone else 2) * Fraction(max(sensitivity, 1)) / Fraction(epsilon)))

    def epsilon(self, sensitivity: int, monotone: bool = False) -> Fraction:
        """The privacy map."""
        return (1 if monotone else 2) * Fraction(sensitivity) / self.scale

    def choose(self, scores: Sequence[int]) -> int:
        """The index of the chosen candidate."""
        if seam.current() is not None:
            return max(range(len(scores)), key=lambda index: scores[index])
        return int(sampler("noisy max", float(self.scale))(list(scores)))

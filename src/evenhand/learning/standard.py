"""Private centres and spreads of features, so that a descent does not depend on how wide the bounds are.

Bounds only say where values may be. Where they are is bought with a few hundredths of (ε, δ): the average of each
feature (with the number of users), how long users' vectors of squared deviations are, and those vectors, clamped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.learning.noisy_sums import NoisySums
from evenhand.learning.private_values import Floats
from evenhand.learning.user_rows import BOX, FULL, UNIT, UserRows, clamped

VECTORS = 3
"""How many noisy vectors `bought` asks for."""


@dataclass(frozen=True, eq=False)
class Standard:
    """``(x − centre)·ratio``, from steps of the box to steps of a spread, and a noisy number of users."""

    centre: Floats
    ratio: Floats
    users: float = math.nan

    @classmethod
    def given(cls, spread: Floats) -> Standard:
        """A public spread about the middle of the bounds, in units of their half-widths."""
        return cls(np.zeros(len(spread)), UNIT / (BOX * spread))

    def to_box(self, f: Floats, intercept: bool) -> Floats:
        """Rows of coefficients for features in units of their half-widths; the constant last if there is one."""
        scaled = f[:, : len(self.centre)] * self.ratio * (BOX / UNIT)
        return np.column_stack([scaled, f[:, -1] - scaled @ (self.centre / BOX)]) if intercept else scaled


def bought(sums: NoisySums, features: int, centred: bool) -> Standard:
    """Ask for centres and spreads; without an intercept the centre stays where the bounds put it."""
    centre, users = _centre(sums, features)
    centre = centre if centred else np.zeros(features)
    longest = _typical_length(sums, centre)
    spread = _spread(sums, centre, longest, users)
    return Standard(centre, UNIT / spread, users)


def _centre(sums: NoisySums, features: int) -> tuple[Floats, float]:
    one = math.isqrt(features * BOX**2)  # the number of users counts as much as all features together

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for _, mean in rows.moments(1, np.zeros(features)):
            yield np.column_stack([np.clip(mean, -BOX, BOX), np.full(len(mean), float(one))])

    total, sd = sums.ask(per_user, features + 1, features * BOX**2 + one**2)
    users = max(total[-1], sd) / one
    centre, noise = total[:-1] / users, sd / users
    # What noise alone would do is taken off: a centre that is mostly noise would make features depend on the constant.
    kept = max(1 - noise**2 / max(float(np.mean(centre**2)), 1.0), 0.0)
    return np.clip(np.rint(centre * kept), -BOX, BOX), users


def _typical_length(sums: NoisySums, centre: Floats) -> float:
    """Twice the median length of users' vectors of average squared deviations, to a factor of two."""
    size = 31 + (len(centre).bit_length() + 1) // 2  # octaves from 1 to √features · 2^30, the largest length
    # Squared deviations are below 2^30; with so many bits taken away, squares of what is left add up exactly.
    coarse = max(30 - (53 - len(centre).bit_length()) // 2, 0)

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for _, squares in rows.moments(2, centre):
            short = np.rint(squares * 2.0**-coarse)
            octave = np.frexp(np.einsum("ij,ij->i", short, short))[1] // 2 + coarse
            yield np.eye(size)[np.clip(octave, 0, size - 1)]

    counts, _ = sums.ask(per_user, size, 1)
    balance = np.cumsum(counts) - np.cumsum(counts[::-1])[::-1]  # not longer, minus not shorter
    balance[-1] = 0
    return float(2.0 ** (int(np.argmax(balance >= 0)) + 1))


def _spread(sums: NoisySums, centre: Floats, longest: float, users: float) -> Floats:
    """Standard deviations about the centre, in steps; those that the noise hides are drawn to the average of all."""

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for _, squares in rows.moments(2, centre):
            yield clamped(squares, np.full(len(squares), FULL / longest))[0]

    total, sd = sums.ask(per_user, len(centre), FULL**2)
    variance, noise = total / users * (longest / FULL), sd / users * (longest / FULL)
    average = max(float(variance.mean()), noise / math.sqrt(len(centre)))
    apart = max(float(variance.var()) - noise**2, 0.0)
    drawn = average + apart / (apart + noise**2) * (variance - average)
    return np.sqrt(np.maximum(drawn, max(average / 50, noise, 1.0)))

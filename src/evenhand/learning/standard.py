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

_ROWS = 12  # octaves of rows per user, up to 2^11
_NEAR = 4  # octaves within which users count for a typical length, those further away less


@dataclass(frozen=True, eq=False)
class Standard:
    """``(x − centre)·ratio``, from steps of the box to steps of a spread, times a matrix if features were whitened.

    ``users``: a noisy number of users; ``rows``: as many as a busy user has; ``target``: the average of users' labels in `BOX` steps, if it was asked for.
    """

    centre: Floats
    ratio: Floats
    users: float = math.nan
    rows: float = math.nan
    target: float = 0.0
    whitened: Floats | None = None

    @classmethod
    def given(cls, spread: Floats) -> Standard:
        """A public spread about the middle of the bounds, in units of their half-widths."""
        return cls(np.zeros(len(spread)), UNIT / (BOX * spread))

    def to_box(self, f: Floats, intercept: bool) -> Floats:
        """Rows of coefficients for features in units of their half-widths; the constant last if there is one."""
        own = f[:, : len(self.centre)]
        scaled = (own if self.whitened is None else own @ self.whitened.T) * self.ratio * (BOX / UNIT)
        return np.column_stack([scaled, f[:, -1] - scaled @ (self.centre / BOX)]) if intercept else scaled


def bought(sums: NoisySums, features: int, centred: bool, labels: bool) -> Standard:
    """Ask for centres and spreads, and the average of labels that are numbers; without an intercept the centre stays where the bounds put it."""
    found, users = _centre(sums, features, labels)
    centre = found[:features] if centred else np.zeros(features)
    longest, rows = _typical_length(sums, centre, users)
    spread = _spread(sums, centre, longest, users)
    return Standard(centre, UNIT / spread, users, rows, float(found[features:].sum()))


def _centre(sums: NoisySums, features: int, labels: bool) -> tuple[Floats, float]:
    size = features + labels
    one = math.isqrt(size * BOX**2)  # the number of users counts as much as all averages together

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for (part, mean), (_, targets) in zip(rows.moments(1, np.zeros(features)), rows.sums_of_targets(), strict=True):
            own = np.rint(targets / rows.counts[part])[:, None]
            means = np.clip(np.hstack([mean, own] if labels else [mean]), -BOX, BOX)
            yield np.column_stack([means, np.full(len(mean), float(one))])

    total, sd = sums.ask(per_user, size + 1, size * BOX**2 + one**2)
    users = max(total[-1], sd) / one
    centre, noise = total[:-1] / users, sd / users
    # What noise alone would do is taken off: a centre that is mostly noise would make features depend on the constant.
    kept = max(1 - noise**2 / max(float(np.mean(centre**2)), 1.0), 0.0)
    return np.clip(np.rint(centre * kept), -BOX, BOX), users


def _typical_length(sums: NoisySums, centre: Floats, users: float) -> tuple[float, float]:
    """Twice the typical length of users' vectors of average squared deviations, and the rows that a twentieth of the users exceed, to a factor of two."""
    size = 31 + (len(centre).bit_length() + 1) // 2  # octaves from 1 to √features · 2^30, the largest length
    # Squared deviations are below 2^30; with so many bits taken away, squares of what is left add up exactly.
    coarse = max(30 - (53 - len(centre).bit_length()) // 2, 0)

    def per_user(rows: UserRows) -> Iterator[Floats]:
        for part, squares in rows.moments(2, centre):
            short = np.rint(squares * 2.0**-coarse)
            octave = np.frexp(np.einsum("ij,ij->i", short, short))[1] // 2 + coarse
            own = np.frexp(rows.counts[part] - 0.5)[1]  # 1 row, 2, 3 to 4, 5 to 8
            yield np.hstack([np.eye(size)[np.clip(octave, 0, size - 1)], np.eye(_ROWS)[np.clip(own, 0, _ROWS - 1)]])

    found, sd = sums.ask(per_user, size + _ROWS, 2)
    counts = found[:size]
    # The octave with most users near it: a median of all octaves would add up the noise of the many empty ones.
    near = np.maximum(_NEAR - np.abs(np.subtract.outer(np.arange(size), np.arange(size))), 0)
    return float(2.0 ** (int(np.argmax(near @ counts)) + 1)), _busy(found[size:], users, sd)


def _busy(octaves: Floats, users: float, sd: float) -> float:
    """The rows that a twentieth of the users exceed, or more users where noise hides so few, to a factor of two."""
    above, below = np.cumsum(octaves[:0:-1])[::-1], np.cumsum(octaves[:-1])
    # Users with more than 1, 2, 4, ... rows are counted from either end; either count has the noise of the octaves it adds up.
    part = np.arange(1, len(octaves)) / len(octaves)
    more = part * above + (1 - part) * (users - below)
    noise = sd * np.sqrt(part * (1 - part) * len(octaves))
    few = more < np.maximum(users / 20, 3 * noise)
    return 2.0 ** int(np.argmax(few)) if few.any() else 2.0 ** len(few)


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

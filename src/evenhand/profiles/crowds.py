"""A crowd apart: users far above all others, too few to stand out from the noise, and yet more than it usually brings.

A robot farm among people is no part of a curve that falls off. There are many places where one could be, so a single high count says
little: each place and size has its prior, and the counts decide.
"""

from __future__ import annotations

import numpy as np

from evenhand.profiles.support import Array

_PRIOR = 0.01  # that there is one: in one table of a hundred
_SPLITS = (
    (1.0,),
    (1 / 3, 2 / 3),
    (2 / 3, 1 / 3),
    (1 / 8, 3 / 8, 3 / 8, 1 / 8),
    (0.05, 0.15, 0.3, 0.3, 0.15, 0.05),
    (0.03, 0.06, 0.11, 0.14, 0.16, 0.16, 0.14, 0.11, 0.06, 0.03),
)
"""How it spreads over buckets: robots are alike, busy people differ."""
_PARTS, _FIRST = np.concatenate(_SPLITS), np.cumsum([0, *map(len, _SPLITS[:-1])])
_PEOPLE = np.geomspace(1.5, 12.0, 6)  # in scales of the noise: more would stand out
_NEAREST, _FARTHEST = 1.0, 7.0  # from J, in logarithms
AT_MOST = 0.09
"""Of the belief, before the total is measured: a crowd chooses no bound. For that it has to stand out (`occupied.py`): a bound at a crowd that
is not there multiplies the noise."""
HIDES = 8.0
"""In scales of the noise: a smaller crowd seldom changes an interval. One of c scales is at most e^c times as likely with its counts as
without, there are some 450 places, sizes and widths, and an upper end at 97.5% moves only if the belief reaches 2.5%."""
_IMPOSSIBLE = 1e-6  # odds below which a crowd is left out


def crowds(noisy: Array, expected: Array, distance: Array, scale: float) -> tuple[Array, Array]:
    """Users by crowd and bucket, and the odds for each crowd against none.

    Args:
        noisy: counts.
        expected: users without a crowd.
        distance: of each bucket from J.
        scale: of the noise.
    """
    places = np.flatnonzero((distance >= _NEAREST) & (distance <= _FARTHEST))
    rest, spread = (noisy - expected)[places], scale**2 + expected[places] / 2
    alone = np.abs(rest) / np.sqrt(spread) + np.log(spread) / 2
    added = _PARTS[:, None, None] * (scale * _PEOPLE[:, None])  # by part of a crowd, its size and the bucket
    wider = np.sqrt(spread + added / 2)
    better = alone - np.abs(rest - added) / wider - np.log(wider)  # 0 in buckets without anybody of the crowd
    kinds, fits = [], []
    for split, first in zip(_SPLITS, _FIRST, strict=True):
        starts = range(len(places) - len(split) + 1)
        kinds += [(split, places[start], people) for start in starts for people in _PEOPLE]
        shifted = [better[first + part, :, part : part + len(starts)] for part in range(len(split))]
        fits.append(np.sum(shifted, axis=0).T.ravel())
    if not kinds:
        return np.zeros((0, len(noisy))), np.zeros(0)
    odds = _PRIOR / len(kinds) * np.exp(np.minimum(np.concatenate(fits), 50.0))
    likely = np.flatnonzero(odds > _IMPOSSIBLE)
    found = np.zeros((len(likely), len(noisy)))
    for users, kind in zip(found, likely, strict=True):
        split, start, people = kinds[kind]
        users[start : start + len(split)] = np.multiply(split, people * scale)
    return found, odds[likely]

"""How well each curve of a family explains the noisy counts around the last bucket J that stands out, and above it."""

from __future__ import annotations

import numpy as np

from evenhand.profiles.curves import Curves
from evenhand.profiles.support import Array

_UNBROKEN = 0.5  # how likely it is beforehand that a curve explains all counts around J; a break is as likely anywhere
_FREE = 1.0  # by which counts below a break may lie off anything, as a part of themselves


def evidence(curves: Curves, noisy: Array, tolerance: Array, scale: float, last: int | None) -> Array:
    """The logarithm of how likely each curve is, up to a constant, by shape and, within each, by level.

    Args:
        curves: the family.
        noisy: counts, from the first bucket that the curves explain.
        tolerance: by which a curve may miss each, as a part of it.
        scale: of the noise.
        last: the place of J among them; None where no bucket stands out.
    """
    shapes = np.ascontiguousarray(curves.shapes[:, : curves.shown].T)
    counts, half = noisy[: curves.shown, None], tolerance[: curves.shown, None] ** 2 / 2
    before, breaks = (curves.priors[None, :], 0.0) if last is None else _breaks(curves, noisy[:last], scale)
    found = np.empty((shapes.shape[1], len(curves.levels)))
    # One level after the other and in place: with fresh arrays for all of them, most of the time goes into getting memory.
    misses, width = np.empty_like(shapes), np.empty_like(shapes)
    for place, level in enumerate(curves.levels):
        users = np.multiply(shapes, level, out=misses)
        np.multiply(users, half, out=width)
        width += 0.5
        width *= users
        width += scale**2
        np.sqrt(width, out=width)
        np.subtract(counts, users, out=misses)
        np.abs(misses, out=misses)
        misses /= width
        misses += np.log(width, out=width)
        end = last or 0
        misses[end] = misses[end:].sum(axis=0)
        for bucket in range(end - 1, -1, -1):
            misses[bucket] += misses[bucket + 1]
        logs = before + breaks - misses[: end + 1]
        top = logs.max(axis=0)
        found[:, place] = top + np.log(np.exp(logs - top).sum(axis=0))
    return found.ravel()


def _breaks(curves: Curves, below: Array, scale: float) -> tuple[Array, Array]:
    """For a curve that begins to explain the counts at each bucket up to J: how likely it is beforehand, and how likely the counts below it are.

    Args:
        curves: the family.
        below: noisy counts below J.
        scale: of their noise.
    """
    last = len(below)
    size = np.sqrt(scale**2 + (_FREE * np.maximum(below, 0.0)) ** 2 / 2)
    free = np.concatenate([[0.0], np.cumsum(-1 - np.log(size))])
    prior = np.full(last + 1, (1 - _UNBROKEN) / max(last, 1))
    prior[0] = _UNBROKEN if last else 1.0
    before = np.repeat(curves.apart[None, :], last + 1, axis=0)
    before[0] = curves.priors
    return before, (free + np.log(prior))[:, None]

"""The same ChaCha20 streams as at home, for many queries at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

QUERY, TAG = 1, 2  # the nonce's second word: what a stream is for

_LANES = 8192  # blocks computed side by side: enough to hide the cost of a call, few enough for the cache
_CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4").astype(np.uint32)
_LEFT, _HALF, _RIGHT = [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]

Words = NDArray[np.uint32]


def keystream(key: bytes, purpose: int, numbers: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """The first ``size`` bytes of the stream of each number, one row each.

    Reference: RFC 8439, section 2.3; nonce and counter as in ``docs/recommender/wire-format.md``.
    """
    blocks = -(-size // 64)
    words = np.empty((len(numbers) * blocks, 16), "<u4")
    secret = np.frombuffer(key, "<u4").astype(np.uint32)
    lanes = max(1, _LANES // blocks)
    for at in range(0, len(numbers), lanes):
        some = np.repeat(numbers[at : at + lanes].astype(np.uint32), blocks)
        counters = np.tile(np.arange(blocks, dtype=np.uint32), len(some) // blocks)
        tail = np.stack((counters, some, np.full_like(some, purpose), np.zeros_like(some)))
        words[at * blocks : at * blocks + len(some)] = _blocks(secret, tail)
    return words.view(np.uint8).reshape(len(numbers), blocks * 64)[:, :size]


def _blocks(key: Words, tail: Words) -> Words:
    """ChaCha20 blocks, one row each, for the columns of ``tail``: counter and nonce."""
    shape = tail.shape
    heads = [np.broadcast_to(row[:, None], shape) for row in (_CONSTANTS, key[:4], key[4:])]
    a, b, c, d = (np.array(row) for row in (*heads, tail))
    spare = np.empty_like(a)
    for _ in range(10):
        _quarter_rounds(a, b, c, d, spare)
        b, c, d = b[_LEFT], c[_HALF], d[_RIGHT]
        _quarter_rounds(a, b, c, d, spare)
        b, c, d = b[_RIGHT], c[_HALF], d[_LEFT]
    for row, start in zip((a, b, c, d), (*heads, tail), strict=True):
        row += start
    return np.concatenate((a, b, c, d)).T


def _quarter_rounds(a: Words, b: Words, c: Words, d: Words, spare: Words) -> None:
    """The four quarter rounds of a round, in place: one row of the state against another."""
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x += y
        z ^= x
        np.left_shift(z, turn, out=spare)
        np.right_shift(z, 32 - turn, out=z)
        z |= spare

"""Tokens: the right to answer once, which only the holder of the server's secret can issue."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.at_server.stream import TAG, Words, keystream
from evenhand.recommender.messages import Task, Token
from evenhand.recommender.messages.wire import read

SECRET_SIZE = 32
_TAGS_PER_BLOCK = 8

Serials = Words
Tags = NDArray[np.uint64]


class Issuer:
    """Issues a task's tokens and recognises them again.

    A tag is eight bytes of a keyed ChaCha20 stream at the serial's place: whoever lacks the secret guesses
    one with probability 2^-64. Eight tags share a block, so checking reports in order costs an eighth each.
    """

    def __init__(self, task: Task, secret: bytes) -> None:
        if len(secret) != SECRET_SIZE:
            raise UsageError(f"The server's secret has {len(secret)} bytes; expected {SECRET_SIZE}.")
        self.task = task
        self._key = hashlib.sha256(b"evenhand/recommender/1/token\0" + secret + task.id).digest()

    def token(self, serial: int) -> Token:
        return next(self.tokens(serial, 1))

    def tokens(self, first: int, count: int) -> Iterator[Token]:
        """``count`` tokens with serials from ``first`` on."""
        if first < 0 or count < 0 or first + count > self.task.tokens:
            raise UsageError(f"Serials {first} to {first + count - 1} are not all among the {self.task.tokens} issued.")
        serials = np.arange(first, first + count, dtype=np.uint32)
        for serial, tag in zip(serials.tolist(), self.tags(serials), strict=True):
            yield Token(self.task.short_id, serial, tag.tobytes())

    def tags(self, serials: Serials) -> Tags:
        block = serials // _TAGS_PER_BLOCK
        fresh = np.concatenate(([True], block[1:] != block[:-1])) if len(block) else np.zeros(0, bool)
        streams: Tags = keystream(self._key, TAG, block[fresh], 64).view("<u8")
        return np.asarray(streams[np.cumsum(fresh) - 1, serials % _TAGS_PER_BLOCK])


def read_secret(path: Path) -> bytes:
    """The secret in a file of hexadecimal digits."""
    try:
        return bytes.fromhex(read(path).decode().strip())
    except ValueError:
        raise DataError(f"{path} is not a server's secret: expected 64 hexadecimal digits.") from None

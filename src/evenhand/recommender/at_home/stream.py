"""The public stream that a query is read from: ChaCha20 (RFC 8439) with the query's number in the nonce."""

from __future__ import annotations

import struct

_QUERY = 1  # the nonce's second word: what the stream is for
_MASK = 0xFFFFFFFF
_CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_QUARTER = ((0, 1, 3, 16), (2, 3, 1, 12), (0, 1, 3, 8), (2, 3, 1, 7))


def block(key: bytes, counter: int, nonce: tuple[int, int, int]) -> bytes:
    """One 64-byte block of the ChaCha20 key stream.

    Reference: RFC 8439, section 2.3.
    """
    start = (*_CONSTANTS, *struct.unpack("<8I", key), counter, *nonce)
    x = list(start)
    for _ in range(10):
        for corners in (*_COLUMNS, *_DIAGONALS):
            for a, b, d, turn in _QUARTER:
                i, j, k = corners[a], corners[b], corners[d]
                x[i] = (x[i] + x[j]) & _MASK
                mixed = x[k] ^ x[i]
                x[k] = (mixed << turn | mixed >> (32 - turn)) & _MASK
    return struct.pack("<16I", *((a + b) & _MASK for a, b in zip(x, start, strict=True)))


class Stream:
    """The random bytes of one query, read from front to back."""

    def __init__(self, key: bytes, number: int) -> None:
        self._key, self._nonce = key, (number, _QUERY, 0)
        self._counter, self._left = 0, b""

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        while len(self._left) < size:
            self._left += block(self._key, self._counter, self._nonce)
            self._counter += 1
        taken, self._left = self._left[:size], self._left[size:]
        return taken

    def words(self, count: int, size: int = 4) -> list[int]:
        """The next ``count`` little-endian words of ``size`` bytes."""
        taken = self.take(count * size)
        return [int.from_bytes(taken[at : at + size], "little") for at in range(0, len(taken), size)]

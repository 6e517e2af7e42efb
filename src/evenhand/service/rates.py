"""How often somebody may ask: so many requests a minute, in a table that does not grow with those who ask."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from array import array
from collections.abc import Callable

_SLOTS = 1 << 14
"""For strangers. Two addresses share a slot by chance, and then a rate; which do can't be foreseen from outside."""


def refilled(left: float, seconds: float, per_second: float, most: float) -> tuple[bool, float]:
    """Whether one more is admitted after so many seconds, and what is then left of a burst."""
    left = min(most, left + seconds * per_second)
    return (True, left - 1) if left >= 1 else (False, left)


class Rates:
    """At most so many requests a minute by one account, or by one address without a valid token; a pause earns a burst.

    Args:
        per_minute: how many.
        clock: in seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._key = secrets.token_bytes(16)
        self._lock = threading.Lock()
        now = clock()
        self._left, self._at = array("d", [per_minute] * _SLOTS), array("d", [now] * _SLOTS)
        self._accounts: dict[str, tuple[float, float]] = {}  # as many as the keeper has made

    def account(self, name: str) -> bool:
        """Whether somebody with a valid token may ask now."""
        with self._lock:
            now = self._clock()
            left, at = self._accounts.get(name, (float(self._per_minute), now))
            admitted, left = self._next(left, now - at)
            self._accounts[name] = (left, now)
            return admitted

    def stranger(self, party: str) -> bool:
        """Whether somebody without one may, known by an address."""
        digest = hashlib.blake2b(party.encode(), key=self._key, digest_size=8).digest()
        slot = int.from_bytes(digest, "big") % _SLOTS
        with self._lock:
            now = self._clock()
            admitted, self._left[slot] = self._next(self._left[slot], now - self._at[slot])
            self._at[slot] = now
            return admitted

    def _next(self, left: float, seconds: float) -> tuple[bool, float]:
        return refilled(left, seconds, self._per_minute / 60, self._per_minute)

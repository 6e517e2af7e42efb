"""Which questions a worker takes on, told from declared slots alone: a clock that runs through them one after the other.

Every question has a slot, computed from public facts (`slots.py`), and may not use more. So whatever was taken on and fits into the time
before its deadline is computed by then, whatever rows are in the table; and what does not fit is refused before anything is paid.
Nothing here knows how long a question really took. The argument is docs/proofs/schedule.md.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from evenhand.guarantee import UsageError
from evenhand.ledger.questions import Busy

SHARE = 0.75
"""Of a deadline: what slots may take of it. The rest is for the commit of an answer, and `RESERVE`."""
RESERVE = 0.125
"""Of a deadline: by how much all that waits may be behind the clock of slots."""
GRACE = 1.0
"""Seconds that a question may use beyond its slot while the reserve lasts: a busy machine, the first question after a start."""


@dataclass(eq=False)
class Place:
    """A slot that was reserved: by the clock of slots it is over at ``end``."""

    analyst: str
    slot: float
    end: float
    latest: float


@dataclass
class Schedule:
    """The declared slots of one worker.

    An analyst may have as much waiting as is left free for others: alone half of the time, one of two a third, one of n an n+1-th. So
    somebody who has nothing waiting finds room for a slot of a quarter of the window beside one who floods.

    Args:
        deadline: seconds from a question to its answer.
        clock: what time it is; tests and simulations give their own.
    """

    deadline: float
    clock: Callable[[], float] = time.monotonic
    _free: float = -math.inf  # when all reserved slots are over
    _places: dict[str, deque[Place]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def window(self) -> float:
        """Seconds of slots that may wait at any time."""
        return SHARE * self.deadline

    @property
    def largest(self) -> float:
        """The largest slot that a question may have."""
        return self.window / 2

    def waiting(self) -> float:
        """Seconds of slots that were reserved and are not over."""
        with self._lock:
            return max(0.0, self._free - self.clock())

    def require_room(self, slot: float) -> None:
        """Refuse what never fits."""
        if slot > self.largest:
            raise UsageError(
                f"this question is too large for the keeper's deadline: its declared time is {slot:.2g} s, and with a deadline of "
                f"{self.deadline:g} s it may be {self.largest:.2g} s. Ask for fewer groups, quantiles or settings, or have the keeper "
                "raise the deadline. Nothing was read or spent."
            )

    def reserve(self, analyst: str, slot: float) -> Place:
        """A place for a question; raises Busy if there is none now, and UsageError if there never is."""
        self.require_room(slot)
        with self._lock:
            now = self.clock()
            begin = max(now, self._free)
            mine = sum(place.slot for place in self._pruned(analyst, now)) + slot
            free = self.window - (begin + slot - now)
            if mine > free:
                seconds = max(1, math.ceil((mine - free) / 2))
                yours = "you have as many questions waiting as one analyst may" if mine > slot else "the server is busy"
                raise Busy(f"{yours}; ask again in {seconds} s. Nothing was read or spent.", retry_after=seconds)
            self._free = begin + slot
            place = Place(analyst, slot, self._free, now + self.window)
            self._places.setdefault(analyst, deque()).append(place)
            return place

    def insist(self, analyst: str, slot: float) -> Place:
        """A place for a question that was paid for before a restart: behind all others, however many there are."""
        with self._lock:
            now = self.clock()
            self._free = max(now, self._free) + slot
            place = Place(analyst, slot, self._free, max(self._free, now + self.window))
            self._places.setdefault(analyst, deque()).append(place)
            return place

    def grace(self, left: float) -> float:
        """Seconds that a question may use beyond its slot, with ``left`` seconds of slots still to be worked through, its own among them.

        Nobody is late for that: a worker that is ahead of the clock of slots, or not far behind it, can spare them.
        """
        with self._lock:
            ahead = self._free - (self.clock() + left)
        return min(GRACE, max(0.0, RESERVE * self.deadline + ahead))

    def cancel(self, place: Place) -> None:
        """Give back a place whose question was not paid, as far as its time lies ahead; what comes after it moves up."""
        with self._lock:
            places = self._places.get(place.analyst, deque())
            back = min(place.slot, place.end - self.clock())
            if place not in places or back <= 0:
                return
            places.remove(place)
            self._free -= back
            for later in itertools.chain.from_iterable(self._places.values()):
                if later.end > place.end:
                    later.end -= back

    def _pruned(self, analyst: str, now: float) -> deque[Place]:
        places = self._places.get(analyst)
        if places is None:
            return deque()
        while places and places[0].end <= now:
            places.popleft()
        if not places:
            del self._places[analyst]
        return places


def turns(last: str, waiting: list[str]) -> str:
    """Whose turn it is after ``last``: the next name in the alphabet that waits, around and around."""
    ordered = sorted(waiting)
    return next(itertools.chain((name for name in ordered if name > last), ordered))

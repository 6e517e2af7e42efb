"""Strangers at the door: how many connections there may be, and how long one may keep the server waiting.

Headers and a body have to arrive within a time, and an answer has to be read within one. There is a number of connections in all and
for one address. If they are taken, whoever has kept the server waiting longest, of all or of that address, makes room for the next one; a request
that is complete is never cut off.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    from resource import RLIMIT_NOFILE, getrlimit, setrlimit
except ImportError:  # Windows sets no such limit
    getrlimit = None  # type: ignore[assignment]

ACCEPTED = 200
"""Connections that may wait to be accepted, and are accepted before the first of them is counted."""
FILES = ACCEPTED + 100
"""Open files that are not counted as connections: those, and ledgers, tables, libraries."""
_MOST_FILES = 1 << 16
_LATE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True)
class Limits:
    """How much a stranger may take up.

    Args:
        connections: in all; fewer where the process may not open so many files.
        by_address: connections and requests of one address at a time; 0 where addresses are not looked at.
        headers: seconds until the headers of a request have arrived.
        body: seconds until its body has.
        unread: seconds for which an answer may wait for being read.
    """

    connections: int = 1000
    by_address: int = 100
    headers: float = 10.0
    body: float = 30.0
    unread: float = 30.0


class Crowd:
    """How many there are of each address at a time.

    Args:
        most: of one address; 0 for any number.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._here: Counter[str] = Counter()

    def enters(self, party: str) -> bool:
        """Count one more, if that may be."""
        if self._most and self._here[party] >= self._most:
            return False
        self._here[party] += 1
        return True

    def leaves(self, party: str) -> None:
        """Count one less."""
        self._here[party] -= 1
        if not self._here[party]:
            del self._here[party]

    @contextmanager
    def during(self, party: str) -> Iterator[bool]:
        """Whether one more may come in, who leaves at the end."""
        entered = self.enters(party)
        try:
            yield entered
        finally:
            if entered:
                self.leaves(party)


def party(address: str | None) -> str:
    """Who is behind an address, as far as it tells: an IPv6 network of 64 bits is given to one customer."""
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped or ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def _files() -> int:
    """How many files may be open as connections."""
    if getrlimit is None:
        return 10_000
    files, most = getrlimit(RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # as many as the system lets this process have
        setrlimit(RLIMIT_NOFILE, (min(most, _MOST_FILES), most))
        files = min(most, _MOST_FILES)
    return max(1, files - FILES if files > 2 * FILES else files // 2)


class Room:
    """The connections of one server.

    Args:
        limits: how many there may be, and for how long.
        proxies: addresses and networks whose connections are those of many people.
    """

    def __init__(self, limits: Limits, proxies: Sequence[str] = ()) -> None:
        self.limits = limits
        self._most = min(limits.connections, _files())
        self._proxies = [ipaddress.ip_network(one, strict=False) for one in proxies]
        self._crowd = Crowd(limits.by_address)
        self._here: dict[Guarded, str | None] = {}
        self._waiting: dict[Guarded, None] = {}  # the one who waits longest first

    def enters(self, one: Guarded, address: str | None) -> bool:
        """Let a connection in, if there is room or if somebody makes room."""
        whose = None if not self.limits.by_address or self._is_proxy(address) else party(address)
        if len(self._here) >= self._most and not self._makes_room(self._waiting):
            return False
        if whose is not None and not self._crowd.enters(whose):
            if not self._makes_room(other for other in self._waiting if self._here.get(other) == whose):
                return False
            self._crowd.enters(whose)
        self._here[one] = whose
        return True

    def _makes_room(self, waiting: Iterable[Guarded]) -> bool:
        """End the connection of these that has kept the server waiting longest."""
        longest = next(iter(waiting), None)
        if longest is None:
            return False
        self.leaves(longest)
        longest.transport.abort()
        return True

    def leaves(self, one: Guarded) -> None:
        """A connection has ended; said again it changes nothing."""
        self._waiting.pop(one, None)
        whose = self._here.pop(one, None)
        if whose is not None:
            self._crowd.leaves(whose)

    def waits(self, one: Guarded, *, for_client: bool) -> None:
        """Whether the server waits for this client, from now on."""
        self._waiting.pop(one, None)
        if for_client and one in self._here:
            self._waiting[one] = None

    def _is_proxy(self, address: str | None) -> bool:
        try:
            found = ipaddress.ip_address(address or "")
        except ValueError:
            return False
        return any(found in network for network in self._proxies)

    def protocol(self, **given: Any) -> Guarded:  # noqa: ANN401 - what uvicorn hands to a protocol
        """A connection that has just been made."""
        return Guarded(self, **given)


class Guarded(H11Protocol):
    """HTTP/1.1 for a client that the server waits for only so long."""

    def __init__(self, room: Room, **given: Any) -> None:  # noqa: ANN401 - what uvicorn hands to a protocol
        super().__init__(**given)
        self._room, self._awaited, self._patience = room, "", None

    _patience: asyncio.TimerHandle | None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self._room.enters(self, self.client[0] if self.client else None):
            transport.abort()
            return
        self._waits_for("headers")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._waits_for({h11.IDLE: "headers", h11.SEND_BODY: "body"}.get(self.conn.their_state, ""))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waits_for({h11.IDLE: "next", h11.SEND_BODY: "body"}.get(self.conn.their_state, ""))

    def connection_lost(self, exc: Exception | None) -> None:
        self._waits_for("")
        self._room.leaves(self)
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self._room.limits.unread, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _waits_for(self, awaited: str) -> None:
        """What has to come from the client now; the time for it starts once, however slowly it comes."""
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        self._room.waits(self, for_client=bool(awaited))
        # Between two requests uvicorn's own time for idle connections runs.
        seconds = {"headers": self._room.limits.headers, "body": self._room.limits.body}.get(awaited)
        if seconds is not None:
            self._patience = self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self.transport.is_closing():
            return
        answering = self.cycle is not None and self._awaited == "body" and self.cycle.response_started
        if not answering:
            self.transport.write(_LATE)
        self.transport.close() if not answering else self.transport.abort()

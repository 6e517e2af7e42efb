"""How long a server waits for strangers, how many it lets in, whom it believes: on real sockets."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from evenhand.service.connections import Limits, party
from evenhand.service.rates import Rates
from evenhand.service.running import configured

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-a: "
NO_BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\ntoken="
QUICK = Limits(connections=30, by_address=6, headers=0.4, body=0.6, unread=0.4)

Serve = Callable[..., int]


async def _echo(request: Request) -> Response:
    await request.body()
    return PlainTextResponse(request.client.host if request.client else "nobody")


async def _slow(request: Request) -> Response:
    await asyncio.sleep(1.2)
    return PlainTextResponse("slow")


async def _large(request: Request) -> Response:
    return PlainTextResponse("x" * 60_000_000)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server with these limits and proxies; its port."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(limits: Limits, proxies: tuple[str, ...] = ()) -> int:
        routes = [Route("/", _echo, methods=["GET", "POST"]), Route("/slow", _slow), Route("/large", _large)]
        server = uvicorn.Server(configured(Starlette(routes=routes), "127.0.0.1", 0, limits, proxies))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        running.append((server, thread))
        return int(server.servers[0].sockets[0].getsockname()[1])

    yield start
    for server, thread in running:
        server.should_exit = server.force_exit = True
        thread.join(10)


def whole(path: str = "", headers: str = "") -> bytes:
    return f"GET /{path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode()


def opened(port: int, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(sent)
    return connection


def received(connection: socket.socket) -> bytes:
    """Everything until the server ends the connection."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def answers(port: int, path: str = "", headers: str = "") -> bytes:
    with opened(port, whole(path, headers + "Connection: close\r\n")) as connection:
        return received(connection)


@pytest.mark.parametrize("sent", [b"", HALF, NO_BODY])
def test_what_does_not_arrive_is_not_waited_for(serve: Serve, sent: bytes) -> None:
    port, started = serve(QUICK), time.monotonic()
    with opened(port, sent) as connection:
        assert received(connection).startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("sent", [HALF, NO_BODY])
def test_a_little_at_a_time_is_not_enough(serve: Serve, sent: bytes) -> None:
    """The time is for all of it, and one more byte does not begin it again."""
    with opened(serve(QUICK), sent) as connection:
        for _ in range(60):
            time.sleep(0.1)
            try:
                connection.sendall(b"y")
            except OSError:
                return
    raise AssertionError("the server still waits")


def test_a_complete_request_is_never_cut_off(serve: Serve) -> None:
    """However long its answer takes; and connections that are kept alive may ask again."""
    port = serve(QUICK)
    assert answers(port, "slow").endswith(b"slow")
    with opened(port, whole()) as connection:
        time.sleep(0.7)
        connection.sendall(whole(headers="Connection: close\r\n"))
        assert received(connection).count(b"HTTP/1.1 200 OK") == 2


def test_an_answer_that_is_not_read_is_not_kept(serve: Serve) -> None:
    with opened(serve(QUICK), whole("large")) as connection:
        time.sleep(2)
        assert len(received(connection)) < 60_000_000


@pytest.mark.parametrize("limits", [Limits(connections=20, by_address=1000), Limits(connections=500, by_address=20)])
@pytest.mark.parametrize("sent", [HALF, NO_BODY])
def test_who_keeps_the_server_waiting_makes_room(serve: Serve, limits: Limits, sent: bytes) -> None:
    """Connections that send nothing more: the server goes on answering others, from the same address, too."""
    port = serve(limits)
    idle = [opened(port, sent) for _ in range(60)]
    started = time.monotonic()
    assert answers(port).endswith(b"127.0.0.1")
    assert time.monotonic() - started < 5
    open_still = 0
    for connection in idle:
        connection.settimeout(0.05)
        try:
            open_still += connection.recv(1) != b""
        except TimeoutError:
            open_still += 1
        except OSError:
            pass
        connection.close()
    assert open_still <= 20


def test_requests_that_are_answered_make_no_room(serve: Serve) -> None:
    """One address has its number of them; the next one is refused."""
    port = serve(QUICK)
    busy = [opened(port, whole("slow", "Connection: close\r\n")) for _ in range(6)]
    time.sleep(0.3)
    assert answers(port) == b""
    assert all(received(one).endswith(b"slow") for one in busy)
    assert answers(port).endswith(b"127.0.0.1")


def test_a_proxys_headers_are_believed_if_it_is_named(serve: Serve) -> None:
    """Connections of a proxy are those of many people, so they are not counted as one address."""
    headers = "X-Forwarded-For: 203.0.113.9\r\n"
    assert answers(serve(QUICK), headers=headers).endswith(b"127.0.0.1")
    assert answers(serve(QUICK, ("10.0.0.5/32",)), headers=headers).endswith(b"127.0.0.1")
    port = serve(QUICK, ("127.0.0.0/8",))
    assert answers(port, headers=headers).endswith(b"203.0.113.9")
    busy = [opened(port, whole("slow", "Connection: close\r\n")) for _ in range(12)]
    assert all(received(one).endswith(b"slow") for one in busy)


def test_one_network_is_one_stranger() -> None:
    assert party("2001:db8::1") == party("2001:db8::ffff:2") != party("2001:db8:0:1::1")
    assert party("::ffff:192.0.2.7") == party("192.0.2.7") == "192.0.2.7"
    assert party("drop table") == party(None) == "unknown"


def test_rates_do_not_grow_with_addresses() -> None:
    """Neither in memory nor in time; whoever asked too often waits, and strangers do not slow an account down."""
    now = [0.0]
    rates = Rates(60, clock=lambda: now[0])
    size = sum(map(sys.getsizeof, vars(rates).values()))
    assert [rates.stranger("192.0.2.1") for _ in range(61)] == [True] * 60 + [False]
    for number in range(50_000):
        rates.stranger(f"192.0.2.{number}")
    assert sum(map(sys.getsizeof, vars(rates).values())) == size
    assert [rates.account("ann") for _ in range(61)] == [True] * 60 + [False]
    assert rates.account("bob")
    now[0] += 2
    assert [rates.account("ann") for _ in range(3)] == [True, True, False]
    now[0] += 600
    assert [rates.stranger("192.0.2.1") for _ in range(61)] == [True] * 60 + [False]


def test_files_stay_for_ledgers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may open few files takes fewer connections."""
    from evenhand.service import connections

    monkeypatch.setattr(connections, "setrlimit", lambda *_: None)
    for files in (256, 1024):
        monkeypatch.setattr(connections, "getrlimit", lambda _, files=files: (files, files))
        room: Any = connections.Room(Limits(connections=100_000))
        assert 100 <= room._most <= files - 100

"""Running the server: one process, a line once it accepts requests, an orderly end on SIGTERM."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from socket import socket

import uvicorn
from starlette.applications import Starlette

from evenhand.service import logs
from evenhand.service.connections import ACCEPTED, Limits, Room
from evenhand.service.keeper import Keeper


class _Server(uvicorn.Server):
    """Says where it listens as soon as it does, and ends its work before the signal that it was sent ends the process."""

    def __init__(self, config: uvicorn.Config, accepting: Callable[[str], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._accepting, self._ending = accepting, ending

    async def startup(self, sockets: list[socket] | None = None) -> None:
        logs.watch_loop(asyncio.get_running_loop())
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._accepting(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        await super().shutdown(sockets)
        await asyncio.to_thread(self._ending)


def run(
    keeper: Keeper,
    app: Starlette,
    host: str,
    port: int,
    accepting: Callable[[str], None],
    *,
    limits: Limits | None = None,
    proxies: Sequence[str] = (),
) -> None:
    """Serve a keeper's tables until the process is told to stop."""
    # A transaction is a dozen calls of the database, and after each its thread waits for those that compute, 5 ms by default.
    sys.setswitchinterval(0.0005)
    keeper.lock()
    keeper.warm()
    keeper.resume()
    keeper.watch()
    serve(app, host, port, accepting, limits=limits or Limits(), proxies=proxies, ending=keeper.close)


def serve(
    app: Starlette,
    host: str,
    port: int,
    accepting: Callable[[str], None],
    *,
    limits: Limits,
    proxies: Sequence[str] = (),
    ending: Callable[[], None] = lambda: None,
) -> None:
    """Serve until the process is told to stop.

    Args:
        limits: of connections.
        proxies: addresses and networks whose headers about their clients are believed.
    """
    logs.install()
    _Server(configured(app, host, port, limits, proxies), accepting, ending).run()


def configured(app: Starlette, host: str, port: int, limits: Limits, proxies: Sequence[str] = ()) -> uvicorn.Config:
    """How a server listens."""
    return uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False, ws="none", lifespan="off",
        backlog=ACCEPTED, http=Room(limits, proxies).protocol,  # type: ignore[arg-type]
        proxy_headers=bool(proxies), forwarded_allow_ips=list(proxies), timeout_graceful_shutdown=10,
    )  # fmt: skip

"""Running the server: one process, a line once it accepts requests, an orderly end on SIGTERM."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from socket import socket

import uvicorn
from starlette.applications import Starlette

from evenhand.service.keeper import Keeper


class _Server(uvicorn.Server):
    """Says where it listens as soon as it does, and ends its work before the signal that it was sent ends the process."""

    def __init__(self, config: uvicorn.Config, accepting: Callable[[str], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._accepting, self._ending = accepting, ending

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._accepting(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        await super().shutdown(sockets)
        await asyncio.to_thread(self._ending)


class JsonLines(logging.Formatter):
    """A log line as one JSON object: the message and the fields given with it, nothing formatted from data."""

    _own = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in self._own}
        now = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": now, "level": record.levelname, "event": record.msg, **fields}, default=str)


def run(keeper: Keeper, app: Starlette, host: str, port: int, accepting: Callable[[str], None]) -> None:
    """Serve a keeper's tables until the process is told to stop."""
    # A transaction is a dozen calls of the database, and after each its thread waits for those that compute, 5 ms by default.
    sys.setswitchinterval(0.0005)
    keeper.lock()
    keeper.resume()
    keeper.watch()
    serve(app, host, port, accepting, ending=keeper.close)


def serve(
    app: Starlette,
    host: str,
    port: int,
    accepting: Callable[[str], None],
    *,
    addresses: bool = True,
    ending: Callable[[], None] = lambda: None,
) -> None:
    """Serve until the process is told to stop; without ``addresses`` a proxy's headers about its clients are not read."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    root = logging.getLogger("evenhand")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False, ws="none",
        proxy_headers=addresses, timeout_graceful_shutdown=10,
    )  # fmt: skip
    _Server(config, accepting, ending).run()

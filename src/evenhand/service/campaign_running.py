"""Running a campaign's server: one process, a line once it accepts requests, an orderly end on SIGTERM."""

from __future__ import annotations

import logging
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from evenhand.service.running import JsonLines, _Server


def run(app: Starlette, host: str, port: int, accepting: Callable[[str], None]) -> None:
    """Serve until the process is told to stop."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    root = logging.getLogger("evenhand")
    root.addHandler(handler)
    # No proxy's headers, no access log, no web sockets: nothing that would write down an address.
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=10,
    )
    _Server(config, accepting).run()

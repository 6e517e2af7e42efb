"""A campaign over HTTP, as ``docs/recommender/http.md`` has it: the task, reports, the model; and how far it is.

There is no log of requests, and no address is looked at: what is logged are defects and stores that fail, by kind.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from evenhand.guarantee import DataError, EvenhandError, MessageError, UsageError
from evenhand.recommender.at_server.store import ReportStatus
from evenhand.recommender.messages import RECORD_SIZE, PublishedModel, Task
from evenhand.recommender.messages.exchange import read_message
from evenhand.service.campaign_config import Configured
from evenhand.service.campaign_intake import Intake, Rate

log = logging.getLogger("evenhand.campaign")

HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_COUNTED_FOR = 10.0  # seconds for which the status shows the same number
_SAID_FOR = 10.0  # seconds for which a store that fails is not mentioned again
_WORDS = {
    ReportStatus.MALFORMED: "This is not a report about this campaign's task.",
    ReportStatus.FORGED: "The token's tag is not that of its serial.",
    ReportStatus.REDEEMED: "The token was used before, with another answer.",
    ReportStatus.CLOSED: "The campaign takes no more reports.",
}

M = TypeVar("M", Task, PublishedModel)
Endpoint = Callable[[Request], Awaitable[Response]]


class Watched(Generic[M]):
    """A message in a file that may be written while the server runs; what is damaged or does not fit is not taken.

    Args:
        kind: of message.
        path: of the file.
        accept: raises a `UsageError` for a message that does not fit; anything else it raises is passed on, and it is asked again.
    """

    def __init__(self, kind: type[M], path: Path, accept: Callable[[M], None]) -> None:
        self._kind: type[M] = kind
        self._accept: Callable[[M], None] = accept
        self._path = path
        self._state: tuple[int, ...] | None = None
        self.message: M | None = None
        self.body = b""

    def look(self) -> M | None:
        """The message of now; None before there was one."""
        try:
            found = os.stat(self._path)
        except OSError:
            return self.message
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        if state != self._state:
            try:
                message = read_message(self._kind, self._path)
                self._accept(message)
                self.message, self.body = message, message.to_json().encode()
            except (MessageError, UsageError) as error:
                log.error("not taken", extra={"file": self._path.name, "why": str(error)})
            self._state = state
        return self.message


class CampaignServer:
    """One process of a campaign's server; several may share a store."""

    def __init__(self, found: Configured) -> None:
        self._found = found
        self._task = Watched(Task, found.task, found.store.open)
        self._model = Watched(PublishedModel, found.model, self._check_model)
        self._intake = Intake(lambda records: found.store.take(records, found.issuer, closed=self._closed))
        self._rates = {method: Rate(found.per_second) for method in ("GET", "POST")}
        self._counted: tuple[float, int] | None = None
        self._counting = asyncio.Lock()  # one count at a time: threads are for storing
        self._failed = -_SAID_FOR
        if self._task.look() is None:
            raise DataError(f"{found.task} can't be served: the log says why.")

    @property
    def _closed(self) -> bool:
        return self._found.until is not None and datetime.now(UTC) > self._found.until

    def _check_model(self, model: PublishedModel) -> None:
        if model.task != self._found.issuer.task.id:
            raise UsageError("The model is of another task.")

    async def task(self, request: Request) -> Response:
        self._task.look()
        return _reply(self._task.body)

    async def model(self, request: Request) -> Response:
        if self._model.look() is None:
            return _error(404, "No model is published yet.")
        return _reply(self._model.body)

    async def groups(self, request: Request) -> Response:
        if self._found.groups is None:
            return _error(404, "The task is not about groups.")
        return Response(self._found.groups, 200, HEADERS, "text/csv")

    async def status(self, request: Request) -> Response:
        task = self._task.look()
        async with self._counting:
            if self._counted is None or time.monotonic() - self._counted[0] > _COUNTED_FOR:
                self._counted = time.monotonic(), await asyncio.to_thread(self._found.store.count)
        state = "closed" if self._closed else "waiting" if task is None or task.beacon is None else "open"
        fields = {"evenhand": "status", "version": 1, "state": state, "reports": self._counted[1]}
        return _reply(json.dumps({**fields, "published": self._model.look() is not None}).encode())

    async def report(self, request: Request) -> Response:
        record = b""
        async for chunk in request.stream():
            record += chunk
            if len(record) > RECORD_SIZE:
                break
        if len(record) != RECORD_SIZE:
            return _error(400, _WORDS[ReportStatus.MALFORMED])
        task = self._task.look()
        if task is None or task.beacon is None:
            return _error(503, "The task is not open yet.", wait=60)
        if self._intake.full:
            return _error(503, "Too many reports wait to be stored. Send the same report again later.", wait=5)
        outcome = await self._intake.put(record)
        if outcome is ReportStatus.STORED:
            return Response(None, 204, HEADERS)
        return _error(outcome, _WORDS[outcome])

    def guarded(self, work: Endpoint) -> Endpoint:
        """Within the rate; whatever fails is one error, and the server goes on."""

        async def handle(request: Request) -> Response:
            if not self._rates["POST" if request.method == "POST" else "GET"].admits():
                return _error(429, "Too many requests. Try again in a moment.", wait=1)
            try:
                return await work(request)
            except ClientDisconnect:
                return _error(400, "The request ended early.")
            except EvenhandError as error:
                if time.monotonic() - self._failed >= _SAID_FOR:
                    self._failed = time.monotonic()
                    log.error("store failed", extra={"why": str(error)})
                return _error(503, "Reports can't be stored now. Send the same report again later.", wait=30)
            except Exception as error:  # a defect: its text may hold a report, so only its kind is logged
                log.error("defect", extra={"error": type(error).__name__})
                return _error(500, "Something failed on the server.")

        return handle


def application(server: CampaignServer, page: Path | None = None) -> Starlette:
    """The server's routes.

    Args:
        page: a folder with the client, served as a demonstration: people should have it from elsewhere.
    """

    async def refused(request: Request, error: Exception) -> Response:
        return _error(error.status_code if isinstance(error, HTTPException) else 500, "There is nothing here.")

    routes: list[Route | Mount] = [
        Route("/task", server.guarded(server.task)),
        Route("/report", server.guarded(server.report), methods=["POST"]),
        Route("/model", server.guarded(server.model)),
        Route("/groups", server.guarded(server.groups)),
        Route("/status", server.guarded(server.status)),
    ]
    if page is not None:
        routes.append(Mount("/", StaticFiles(directory=page, html=True)))
    app = Starlette(routes=routes, exception_handlers={HTTPException: refused})
    app.router.redirect_slashes = False
    return app


def _reply(body: bytes) -> Response:
    return Response(body, 200, HEADERS, "application/json")


def _error(status: int, message: str, wait: int | None = None) -> Response:
    body = json.dumps({"evenhand": "error", "version": 1, "message": message})
    retry = {} if wait is None else {"Retry-After": str(wait)}
    return Response(body, status, {**HEADERS, **retry}, "application/json")

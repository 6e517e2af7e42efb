"""The keeper over HTTP: JSON in, JSON out, a bearer token on every request.

What is refused is said in one form, ``{"error": kind, "message": text}``. Messages come from `EvenhandError`, which never
holds anything read from a row; of any other failure only an identifier is shown. Logs hold names, times and kinds, no values.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from evenhand.guarantee import BudgetExceeded, EvenhandError, UsageError
from evenhand.ledger.desk import Busy, NeedsApproval
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.answers import WAIT, Desks
from evenhand.service.keeper import Keeper
from evenhand.service.openapi import description
from evenhand.service.questions import LARGEST
from evenhand.service.routes import ENDPOINTS, Endpoint
from evenhand.service.web import Web

log = logging.getLogger("evenhand.http")

LARGEST_BODY = 2 * LARGEST
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Refused(Exception):  # noqa: N818
    """A request that is not let in."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status, self.kind, self.message = status, kind, message


@dataclass
class Counts:
    """What /metrics shows: numbers of requests, never of rows."""

    requests: dict[tuple[str, int], int]


class Rates:
    """At most so many requests a minute by one token, or by one address without a valid token.

    Args:
        per_minute: how many.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._times: dict[str, deque[float]] = defaultdict(deque)
        self._lock = threading.Lock()

    def admit(self, who: str) -> bool:
        with self._lock:
            now, times = time.monotonic(), self._times[who]
            while times and times[0] <= now - 60:
                times.popleft()
            if len(times) >= self._per_minute:
                return False
            times.append(now)
            if len(self._times) > 10_000:  # addresses that came once
                recent = {key: value for key, value in self._times.items() if value[-1] > now - 60}
                self._times = defaultdict(deque, recent)
            return True


def application(keeper: Keeper, accounts: Accounts, *, per_minute: int = 600) -> Starlette:
    """The server's routes."""
    rates, counts, desks = Rates(per_minute), Counts(defaultdict(int)), Desks(keeper)

    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        """Every request: an audit line, the headers, and errors in one form."""
        number, started, who = secrets.token_hex(6), time.monotonic(), "nobody"
        try:
            response = await go_on(request)
            who = getattr(request.state, "who", who)
        except Exception as error:  # a defect: its text may hold anything, so only its kind is logged
            log.error("defect", extra={"request": number, "error": type(error).__name__})
            response = _error(500, "defect", f"something failed on the server; the keeper finds it under {number}.")
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        route = request.scope.get("route")
        path = route.path if isinstance(route, Route) else "other"
        counts.requests[path, response.status_code] += 1
        took = round(time.monotonic() - started, 3)
        fields: dict[str, object] = {"request": number, "who": who, "method": request.method, "path": path}
        log.info("request", extra={**fields, "status": response.status_code, "seconds": took})
        return response

    def entered(request: Request, *roles: Role) -> Account:
        """Whose request it is, if one of these roles may make it."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        account = accounts.find(token.strip()) if scheme.lower() == "bearer" else None
        address = request.client.host if request.client else "unknown"
        if not rates.admit(f"token {account.name}" if account else f"address {address}"):
            raise Refused(429, "too many requests", f"more than {per_minute} requests in a minute; wait and ask again.")
        if account is None:
            raise Refused(
                401, "not allowed", "the token is missing, wrong, expired or revoked; ask the keeper for one."
            )
        request.state.who = account.name
        if account.role not in roles:
            raise Refused(
                403, "not allowed", f"this is for {' or '.join(roles)}; the token is one of a {account.role}."
            )
        return account

    async def body(request: Request) -> dict[str, Any]:
        if int(request.headers.get("content-length") or 0) > LARGEST_BODY:
            raise Refused(413, "usage", f"the request is larger than {LARGEST_BODY} bytes.")
        content = b""
        async for chunk in request.stream():
            content += chunk
            if len(content) > LARGEST_BODY:
                raise Refused(413, "usage", f"the request is larger than {LARGEST_BODY} bytes.")
        try:
            data = json.loads(content, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise Refused(400, "usage", "the request is not JSON.") from None
        if not isinstance(data, dict):
            raise Refused(400, "usage", "the request is not a JSON object.")
        return data

    def route(one: Endpoint) -> Route:
        work: Callable[..., dict[str, Any]] = getattr(desks, one.work)
        waits = (0,) if work in (desks.ask, desks.shown) else ()

        async def handle(request: Request) -> Response:
            try:
                account = await run_in_threadpool(entered, request, *one.roles)
                given = await body(request) if one.method == "POST" else dict(request.query_params)
                result = await run_in_threadpool(work, account, {**given, **request.path_params}, *waits)
                running = desks.running(result) if waits else None
                if running is not None:  # no thread waits with it
                    done, _ = await asyncio.wait([asyncio.wrap_future(running)], timeout=WAIT)
                    if done:
                        result["answer"] = json.loads(running.result())
            except Refused as refused:
                return _error(refused.status, refused.kind, refused.message)
            except EvenhandError as error:
                refusal = _error(*_kind(error), str(error))
                if isinstance(error, Busy):
                    refusal.headers["Retry-After"] = str(error.retry_after)
                return refusal
            return JSONResponse(result)

        return Route(one.path, handle, methods=[one.method])

    async def health(request: Request) -> Response:
        trouble = keeper.trouble()
        return PlainTextResponse(trouble or "ok", 503 if trouble else 200)

    async def metrics(request: Request) -> Response:
        lines = [
            f'evenhand_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(counts.requests.items())
        ]
        return PlainTextResponse("\n".join(["# TYPE evenhand_requests_total counter", *lines, ""]))

    async def openapi(request: Request) -> Response:
        return JSONResponse(description(ENDPOINTS))

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/metrics", metrics),
            Route("/openapi.json", openapi),
            *(route(one) for one in ENDPOINTS if one.work),
            *Web(keeper, desks, accounts, rates.admit).routes(),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _kind(error: EvenhandError) -> tuple[int, str]:
    if isinstance(error, Busy):
        return 429, "busy"
    if isinstance(error, NeedsApproval):
        return 409, "needs approval"
    if isinstance(error, BudgetExceeded):
        return 402, "budget"
    return (400, "usage") if isinstance(error, UsageError) else (422, "data")


def _error(status: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"error": kind, "message": message}, status)

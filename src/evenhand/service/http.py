"""The keeper over HTTP: JSON in, JSON out, a bearer token on every request.

What is refused is said in one form, ``{"error": kind, "message": text}``. Messages come from `EvenhandError`, which never
holds anything read from a row, and `Refusals` takes the keeper's files and hosts out of them; of any other failure only an identifier is
shown. Logs hold names, times and kinds, no values.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from evenhand.guarantee import EvenhandError
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.answers import WAIT, Desks
from evenhand.service.connections import Crowd, Limits, party
from evenhand.service.keeper import Keeper
from evenhand.service.logs import Seldom
from evenhand.service.openapi import description
from evenhand.service.questions import LARGEST
from evenhand.service.rates import Rates
from evenhand.service.refusals import Refusals, Refused, Unavailable
from evenhand.service.routes import ENDPOINTS, Endpoint
from evenhand.service.turns import Threads
from evenhand.service.web import Web

log = logging.getLogger("evenhand.http")

LARGEST_BODY = 2 * LARGEST
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_BUSY = "more than {} requests in a minute; wait and ask again."
_MANY = "too many requests of this address are open at the same time; wait for the earlier ones."
PAUSE = 0.5
"""Seconds before "too many requests" is said to an account: who asks again at once, on many connections, costs the others little."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass
class Counts:
    """What /metrics shows: numbers of requests, never of rows. A question is counted when it was taken, not when its answer is there."""

    requests: dict[tuple[str, int], int]


def application(
    keeper: Keeper, accounts: Accounts, *, per_minute: int = 600, by_address: int = Limits.by_address
) -> Starlette:
    """The server's routes.

    Args:
        keeper: whose tables are asked about.
        accounts: whose token is whose.
        per_minute: requests by one account, or by one address without a valid token.
        by_address: requests of one address at a time, as a proxy names it.
    """
    rates, counts, desks = Rates(per_minute), Counts(defaultdict(int)), Desks(keeper)
    crowd, threads, refusals = Crowd(by_address), Threads(keeper.prices.workers or 1), _refusals(keeper, accounts)
    flood, forwarded = Seldom(), Seldom()

    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        """Every request: an audit line, the headers, and errors in one form."""
        number, started, who = secrets.token_hex(6), time.monotonic(), "nobody"
        with crowd.during(party(_address(request))) as entered:
            try:
                response = await go_on(request) if entered else _error(Refused(429, "too many requests", _MANY))
                who = getattr(request.state, "who", who)
            except ClientDisconnect:
                response = _error(Refused(408, "usage", "the request ended before it was complete."))
            except Exception as error:  # a defect: its text may hold anything, so only its kind is logged
                log.error("defect", extra={"request": number, "error": type(error).__name__})
                told = f"something failed on the server; the keeper finds it under {number}."
                response = _error(Refused(500, "defect", told))
        if response.status_code == 429 and getattr(
            request.state, "known", False
        ):  # strangers could hold connections with it
            await asyncio.sleep(PAUSE)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        route = request.scope.get("route")
        path = route.path if isinstance(route, Route) else "other"
        if not getattr(request.state, "counted", False):
            counts.requests[path, response.status_code] += 1
        named = request.headers.get("x-forwarded-for")
        if named is not None and (_address(request) or "unknown") not in named and forwarded.happened():
            log.warning("a proxy's headers are not believed: proxies in keeper.toml does not name it")
        fields: dict[str, object] = {"request": number, "who": who, "path": path, "status": response.status_code}
        fields["method"] = request.method if request.method in _METHODS else "other"
        if who == "nobody" and response.status_code in (408, 429):  # strangers decide how many of these there are
            times = flood.happened()
            if times:
                log.info("requests refused", extra={"status": response.status_code, "times": times})
        else:
            log.info("request", extra={**fields, "seconds": round(time.monotonic() - started, 3)})
        return response

    def found(token: str) -> Account | None:
        try:
            return accounts.find(token)
        except EvenhandError as error:
            log.error("tokens can't be looked up", extra={"error": type(error).__name__})
            raise Unavailable("tokens can't be looked up") from None

    async def entered(request: Request, *roles: Role) -> Account:
        """Whose request it is, if one of these roles may make it."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        account = await threads.checked(found, token.strip()) if scheme.lower() == "bearer" else None
        request.state.known = account is not None
        if not (rates.account(account.name) if account else rates.stranger(party(_address(request)))):
            raise Refused(429, "too many requests", _BUSY.format(per_minute))
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
        content = bytearray()
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

    def refusing(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """What may go wrong with a request, in one form."""

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except Refused as refused:
                return _error(refused)
            except EvenhandError as error:
                return _error(refusals.of(error))

        return handled

    def route(one: Endpoint) -> Route:
        work: Callable[..., dict[str, Any]] = getattr(desks, one.work)
        waits = (0,) if work in (desks.ask, desks.shown) else ()
        turns = threads.prices if work == desks.preview else threads.work

        async def handle(request: Request) -> Response:
            account = await entered(request, *one.roles)
            given = await body(request) if one.method == "POST" else dict(request.query_params)
            result = await turns.run(account.name, work, account, {**given, **request.path_params}, *waits)
            running = desks.running(result) if waits else None
            if running is not None:  # no thread waits with it
                request.state.counted = True
                counts.requests[one.path, 200] += 1
                done, _ = await asyncio.wait([asyncio.wrap_future(running)], timeout=WAIT)
                if done:
                    result["answer"] = json.loads(running.result())
            return JSONResponse(result)

        return Route(one.path, refusing(handle), methods=[one.method])

    async def health(request: Request) -> Response:
        trouble = keeper.trouble()
        return PlainTextResponse(trouble or "ok", 503 if trouble else 200)

    async def metrics(request: Request) -> Response:
        await entered(request, Role.KEEPER)
        lines = [
            f'evenhand_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(counts.requests.items())
        ]
        return PlainTextResponse("\n".join(["# TYPE evenhand_requests_total counter", *lines, ""]))

    async def openapi(request: Request) -> Response:
        return JSONResponse(description(ENDPOINTS))

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/metrics", refusing(metrics)),
            Route("/openapi.json", openapi),
            *(route(one) for one in ENDPOINTS if one.work),
            *Web(keeper, desks, accounts, rates, threads, refusals).routes(),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )
    app.router.redirect_slashes = False  # a redirection would name the host that the request named
    return app


def _refusals(keeper: Keeper, accounts: Accounts) -> Refusals:
    """Errors without the places where this keeper keeps things."""
    offered = list(keeper.tables.values())
    return Refusals.hiding(
        [accounts.location, *(one.desk.ledger.location for one in offered), *(one.table.source for one in offered)]
    )


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None


def _error(refused: Refused) -> JSONResponse:
    headers = {"Retry-After": str(refused.retry_after)} if refused.status in (429, 503) else None
    return JSONResponse({"error": refused.kind, "message": refused.message}, refused.status, headers)

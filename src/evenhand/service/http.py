"""The keeper over HTTP: JSON in, JSON out, a bearer token on every request.

What is refused is said in one form, ``{"error": kind, "message": text}``. Messages come from `EvenhandError`, which never
holds anything read from a row; of any other failure only an identifier is shown. Logs hold names, times and kinds, no values.
"""

from __future__ import annotations

import json
import logging
import secrets
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

import evenhand
from evenhand.guarantee import BudgetExceeded, EvenhandError, UsageError, plain
from evenhand.ledger import Budget
from evenhand.ledger.desk import Asked, NeedsApproval, Standing
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.keeper import Keeper
from evenhand.service.questions import LARGEST

log = logging.getLogger("evenhand.http")

LARGEST_BODY = 2 * LARGEST
WAIT = 20.0
"""Seconds that a request for an answer may wait, so that clients need not ask again and again."""

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

    def admit(self, who: str) -> bool:
        now, times = time.monotonic(), self._times[who]
        while times and times[0] <= now - 60:
            times.popleft()
        if len(times) >= self._per_minute:
            return False
        times.append(now)
        if len(self._times) > 10_000:  # addresses that came once
            self._times = defaultdict(deque, {key: value for key, value in self._times.items() if value[-1] > now - 60})
        return True


def application(keeper: Keeper, accounts: Accounts, *, per_minute: int = 600) -> Starlette:
    """The server's routes."""
    rates, counts = Rates(per_minute), Counts(defaultdict(int))

    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        """Every request: an audit line, the headers, and errors in one form."""
        number, started, who = secrets.token_hex(6), time.monotonic(), "nobody"
        try:
            response = await go_on(request)
            who = getattr(request.state, "who", who)
        except Exception as error:  # a defect: its text may hold anything, so only its kind is logged
            log.error("defect", extra={"request": number, "error": type(error).__name__})
            response = _error(500, "defect", f"something failed on the server; the keeper finds it under {number}.")
        response.headers.update(HEADERS)
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

    def route(path: str, work: Callable[..., dict[str, Any]], method: str, *roles: Role) -> Route:
        async def handle(request: Request) -> Response:
            try:
                account = await run_in_threadpool(entered, request, *roles)
                given = await body(request) if method == "POST" else dict(request.query_params)
                result = await run_in_threadpool(work, account, {**given, **request.path_params})
            except Refused as refused:
                return _error(refused.status, refused.kind, refused.message)
            except EvenhandError as error:
                return _error(*_kind(error), str(error))
            return JSONResponse(result)

        return Route(path, handle, methods=[method])

    def tables(account: Account, _: dict[str, Any]) -> dict[str, Any]:
        return {"tables": [_described(name, one) for name, one in keeper.offered(account.name).items()]}

    def budget(account: Account, _: dict[str, Any]) -> dict[str, Any]:
        limits = keeper.analysts[account.name].limits
        desks = {id(one.desk): one.desk for one in keeper.offered(account.name).values()}.values()
        return {
            "yours": {"total": _amounts(limits.total), "spent": [_amounts(desk.spent(account.name)) for desk in desks]},
            "populations": [
                {"total": _amounts(desk.ledger.total), "remaining": _amounts(desk.ledger.remaining)} for desk in desks
            ],
        }

    def preview(account: Account, given: dict[str, Any]) -> dict[str, Any]:
        return keeper.preview(account.name, _text(given, "table"), _question(given))

    def ask(account: Account, given: dict[str, Any]) -> dict[str, Any]:
        key = _text(given, "key")
        if key is None:
            raise UsageError(
                "key= is missing: any text that you use for this one question, so that a retry is not paid twice."
            )
        asked = keeper.ask(account.name, _text(given, "table"), key, _question(given))
        return shown(account, {"id": asked.id})

    def shown(account: Account, given: dict[str, Any]) -> dict[str, Any]:
        keeper.wait(given["id"], WAIT)
        mine = None if account.role is Role.KEEPER else account.name
        asked, held = keeper.find(mine, given["id"])
        return _asked(asked) | (
            {"standing": "paid", "ready": held.isoformat()}
            if held
            else {"answer": asked.answer and json.loads(asked.answer)}
        )

    def history(account: Account, _: dict[str, Any]) -> dict[str, Any]:
        mine = None if account.role is Role.KEEPER else account.name
        desks = {id(one.desk): one.desk for one in keeper.tables.values()}.values()
        return {"questions": [_asked(one) for desk in desks for one in desk.asked(mine)]}

    def decide(account: Account, given: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(given.get("approve"), bool):
            raise UsageError(f"approve={given.get('approve')!r}: expected true or false.")
        return _asked(keeper.decide(given["id"], approve=given["approve"], by=account.name))

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def metrics(request: Request) -> Response:
        lines = [
            f'evenhand_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(counts.requests.items())
        ]
        return PlainTextResponse("\n".join(["# TYPE evenhand_requests_total counter", *lines, ""]))

    everybody = (Role.ANALYST, Role.KEEPER)
    return Starlette(
        routes=[
            Route("/health", health),
            Route("/metrics", metrics),
            route("/v1/tables", tables, "GET", Role.ANALYST),
            route("/v1/budget", budget, "GET", Role.ANALYST),
            route("/v1/preview", preview, "POST", Role.ANALYST),
            route("/v1/questions", ask, "POST", Role.ANALYST),
            route("/v1/questions", history, "GET", *everybody),
            route("/v1/questions/{id}", shown, "GET", *everybody),
            route("/v1/questions/{id}/decision", decide, "POST", Role.KEEPER),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _kind(error: EvenhandError) -> tuple[int, str]:
    if isinstance(error, NeedsApproval):
        return 409, "needs approval"
    if isinstance(error, BudgetExceeded):
        return 402, "budget"
    return (400, "usage") if isinstance(error, UsageError) else (422, "data")


def _error(status: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"error": kind, "message": message}, status)


def _question(given: dict[str, Any]) -> dict[str, Any]:
    question = given.get("question")
    if not isinstance(question, dict):
        raise UsageError('question= is missing: expected an object such as {"ask": "count", "epsilon": "0.1"}.')
    return question


def _text(given: dict[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{name}= is not text.")
    return value


def _amounts(budget: Budget) -> dict[str, str]:
    return {"epsilon": plain(budget.epsilon), "delta": plain(budget.delta)}


def _asked(asked: Asked) -> dict[str, Any]:
    return {
        "id": asked.id,
        "analyst": asked.analyst,
        "key": asked.key,
        **json.loads(asked.question),
        "cost": _amounts(asked.cost),
        "standing": Standing.PAID if asked.standing is Standing.ANSWERED else asked.standing,
        "time": asked.time,
        "decided_by": asked.decided_by,
    }


def _described(name: str, one: Any) -> dict[str, Any]:  # noqa: ANN401 - an offered table
    table = one.table
    columns = [{"name": column, "type": str(kind)} for column, kind in table.expression.schema().items()]
    return {
        "name": name,
        "description": one.description,
        "user": list(table.user),
        "protects": table.relation.value,
        "public": list(table.public),
        "columns": columns,
        "version": evenhand.__version__,
    }

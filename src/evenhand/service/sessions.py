"""Who is signed in on the page.

A session is a random cookie that scripts can't read and other sites can't send (HttpOnly, SameSite=Strict); every form also carries
a token of its session, and a form that a browser says comes from another site is refused. A session ends with its token.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from evenhand.guarantee import EvenhandError
from evenhand.pages.service.frame import ANALYST, KEEPER, Person
from evenhand.pages.service.home import not_done, sign_in
from evenhand.pages.service.look import POLICY
from evenhand.service.accounts import Accounts, Role
from evenhand.service.connections import party
from evenhand.service.rates import Rates
from evenhand.service.refusals import Refusals, Refused
from evenhand.service.turns import Threads, Turns

COOKIE = "evenhand_session"
HOURS = 8.0
LARGEST_FORM = 200_000
HEADERS = {"Content-Security-Policy": POLICY, "Cross-Origin-Opener-Policy": "same-origin"}
_BUSY = "There were too many requests in the last minute. Wait a moment, and try again."
_AWAY = "The server can't look up tokens now. Try again later."
_OLD = "The form was too old, or came from another site. Go back and try again."
_WRONG = "The token is wrong, expired or revoked; ask the keeper for one."


@dataclass
class _Signed:
    token: str
    csrf: str
    until: float


class Sessions:
    """Signing in and out, and routes for people who are signed in.

    Args:
        accounts: whose token is whose.
        rates: whether somebody may make one more request now.
        threads: where work is done.
        refusals: how errors are told.
    """

    def __init__(self, accounts: Accounts, rates: Rates, threads: Threads, refusals: Refusals) -> None:
        self._accounts, self._rates, self._threads, self._refusals = accounts, rates, threads, refusals
        self._signed: dict[str, _Signed] = {}

    def routes(self) -> list[Route]:
        return [Route("/in", self._in, methods=["POST"]), Route("/out", self._out, methods=["POST"])]

    def route(
        self,
        path: str,
        work: Callable[..., Response],
        method: str = "GET",
        role: Role | None = None,
        turns: Turns | None = None,
    ) -> Route:
        """A page for people who are signed in; with a role, for them only."""
        turns = turns or self._threads.work

        async def handle(request: Request) -> Response:
            signed = self._signed.get(request.cookies.get(COOKIE, ""))
            account = None
            try:
                if signed is not None and signed.until > time.monotonic():
                    account = await self._threads.checked(self._accounts.find, signed.token)  # it may be revoked by now
            except EvenhandError:
                return html(not_done(_AWAY), 503)
            request.state.known = account is not None
            if not (self._rates.account(account.name) if account else self._rates.stranger(_party(request))):
                return html(not_done(_BUSY), 429)
            if signed is None or account is None:
                return html(sign_in(), 401 if path != "/" else 200)
            request.state.who = account.name
            person = Person(account.name, signed.csrf, KEEPER if account.role is Role.KEEPER else ANALYST)
            given = await _form(request) if method == "POST" else dict(request.query_params)
            if method == "POST" and not _own(request, signed.csrf, given.pop("csrf", "")):
                return html(not_done(_OLD, person), 403)
            if role is not None and account.role is not role:
                return html(not_done(f"This is for the {role}; you are signed in as {account.role}.", person), 403)
            try:
                return await turns.run(account.name, work, account, person, {**given, **request.path_params})
            except Refused as refused:
                return html(not_done(refused.message, person), refused.status)
            except EvenhandError as error:
                told = self._refusals.of(error)
                return html(not_done(told.message, person), 503 if told.status == 503 else 400)

        return Route(path, handle, methods=[method])

    async def _in(self, request: Request) -> Response:
        if not self._rates.stranger(_party(request)):
            return html(sign_in(_BUSY), 429)
        token = (await _form(request)).get("token", "").strip()
        try:
            account = await self._threads.checked(self._accounts.find, token)
        except EvenhandError:
            return html(sign_in(_AWAY), 503)
        if account is None or _foreign(request):
            return html(sign_in(_WRONG), 401)
        now = time.monotonic()
        self._signed = {key: one for key, one in self._signed.items() if one.until > now}
        key = secrets.token_urlsafe(32)
        self._signed[key] = _Signed(token, secrets.token_urlsafe(32), now + HOURS * 3600)
        response = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, key, httponly=True, samesite="strict", secure=secure, max_age=int(HOURS * 3600))
        return response

    async def _out(self, request: Request) -> Response:
        signed = self._signed.get(request.cookies.get(COOKIE, ""))
        given = await _form(request)
        response = RedirectResponse("/", 303)
        if signed is not None and _own(request, signed.csrf, given.get("csrf", "")):
            self._signed.pop(request.cookies[COOKIE], None)
            response.delete_cookie(COOKIE)
        return response


def html(page: str, status: int = 200) -> Response:
    """A page under the content policy."""
    return Response(page, status, HEADERS, "text/html")


def _own(request: Request, expected: str, given: str) -> bool:
    """Whether a form is one that this session was given."""
    return not _foreign(request) and hmac.compare_digest(expected.encode(), given.encode())


def _foreign(request: Request) -> bool:
    """Whether the browser says that another site sent this. Clients that say nothing are no browsers of today."""
    return request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")


def _party(request: Request) -> str:
    return party(request.client.host if request.client else None)


async def _form(request: Request) -> dict[str, str]:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST_FORM:
            return {}
    return dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True))

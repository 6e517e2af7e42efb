"""The page: sign in with a token, build a question, see its price, pay, read the answer. Works without script.

A session is a random cookie that scripts can't read and other sites can't send (HttpOnly, SameSite=Strict); every form also carries
a token of its session. All text from people or tables is escaped where it is put into a page, and the content security policy
allows no script, so that a name which is code stays text.
"""

from __future__ import annotations

import hmac
import io
import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from evenhand.guarantee import EvenhandError, UsageError
from evenhand.pages import service as pages
from evenhand.pages.release import release_page
from evenhand.release import Release, written
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.answers import Desks
from evenhand.service.forms import OFFERED, TITLES, harmless, question_of

COOKIE = "evenhand_session"
HOURS = 8.0
LARGEST_FORM = 200_000


@dataclass
class _Signed:
    token: str
    csrf: str
    until: float


class Web:
    """The routes of the page.

    Args:
        desks: what analysts and the keeper may do; the same as over JSON.
        accounts: whose token is whose.
    """

    def __init__(self, desks: Desks, accounts: Accounts) -> None:
        self._desks, self._accounts = desks, accounts
        self._signed: dict[str, _Signed] = {}

    def routes(self) -> list[Route]:
        return [
            self._route("/", self._home),
            self._route("/ask", self._ask),
            self._route("/answers/{id}", self._answer),
            self._route("/answers/{id}/{form}", self._download),
            self._route("/price", self._price, "POST"),
            self._route("/pay", self._pay, "POST"),
            self._route("/decide", self._decide, "POST"),
            Route("/in", self._in, methods=["POST"]),
            Route("/out", self._out, methods=["POST"]),
        ]

    async def _in(self, request: Request) -> Response:
        token = (await _form(request)).get("token", "").strip()
        account = await run_in_threadpool(self._accounts.find, token)
        if account is None:
            return _html(pages.sign_in("The token is wrong, expired or revoked; ask the keeper for one."), 401)
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
        if signed is not None and hmac.compare_digest(signed.csrf.encode(), given.get("csrf", "").encode()):
            self._signed.pop(request.cookies[COOKIE], None)
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE)
        return response

    def _route(self, path: str, work: Callable[..., Response], method: str = "GET") -> Route:
        async def handle(request: Request) -> Response:
            signed = self._signed.get(request.cookies.get(COOKIE, ""))
            account = None
            if signed is not None and signed.until > time.monotonic():
                account = await run_in_threadpool(self._accounts.find, signed.token)  # it may be revoked by now
            if signed is None or account is None:
                return _html(pages.sign_in(), 401 if path != "/" else 200)
            request.state.who = account.name
            given = await _form(request) if method == "POST" else dict(request.query_params)
            if method == "POST" and not hmac.compare_digest(signed.csrf.encode(), given.pop("csrf", "").encode()):
                return _html(pages.not_done("The form was too old. Go back and try again."), 403)
            try:
                return await run_in_threadpool(work, account, signed.csrf, {**given, **request.path_params})
            except EvenhandError as error:
                return _html(pages.not_done(str(error), signed.csrf, account.name), 400)

        return Route(path, handle, methods=[method])

    def _home(self, account: Account, csrf: str, _: Mapping[str, str]) -> Response:
        asked = self._desks.history(account)["questions"]
        if account.role is Role.KEEPER:
            return _html(pages.overview(asked, self._desks.populations(), csrf, account.name))
        tables, budget = self._desks.tables(account)["tables"], self._desks.budget(account)
        return _html(pages.home(tables, budget, asked, csrf, account.name))

    def _ask(self, account: Account, csrf: str, given: Mapping[str, str]) -> Response:
        names = {one["name"]: one for one in self._desks.tables(account)["tables"]}
        one = names.get(given.get("table", ""))
        if one is None:
            raise UsageError(f"there is no table of that name for you; expected one of {sorted(names)}.")
        return _html(pages.ask(one, [(name, TITLES.get(name, name)) for name in OFFERED], csrf, account.name))

    def _price(self, account: Account, csrf: str, given: Mapping[str, str]) -> Response:
        question, table = question_of(given), given.get("table")
        preview = self._desks.preview(account, {"table": table, "question": question})
        return _html(pages.price(preview, table or "", str(uuid.uuid4()), question, csrf, account.name))

    def _pay(self, account: Account, csrf: str, given: Mapping[str, str]) -> Response:
        try:
            question = json.loads(given.get("question", ""))
        except ValueError:
            raise UsageError("the question was lost on the way; build it again.") from None
        asked = self._desks.ask(
            account, {"table": given.get("table") or None, "key": given.get("key"), "question": question}, wait=0
        )
        return RedirectResponse(f"/answers/{asked['id']}", 303)

    def _answer(self, account: Account, csrf: str, given: Mapping[str, str]) -> Response:
        asked, release = self._released(account, given["id"])
        response = _html(pages.answer(asked, release, csrf, account.name))
        if release is None and asked["standing"] == "paid":
            response.headers["Refresh"] = "2"
        return response

    def _download(self, account: Account, csrf: str, given: Mapping[str, str]) -> Response:
        _, release = self._released(account, given["id"])
        if release is None:
            raise UsageError("there is no answer to download yet.")
        kind = given["form"]
        if kind == "json":
            return _file(json.dumps(release.to_dict(), default=str), "application/json", "answer.json")
        if kind == "html":
            return _file(release_page(release), "text/html", "answer.html")
        if kind == "csv":
            text = io.StringIO()
            release.to_csv(text)  # type: ignore[arg-type]
            return _file(harmless(text.getvalue()), "text/csv", "answer.csv")
        if kind == "svg":
            picture = io.StringIO()
            release.plot().save(picture, format="svg")
            return Response(picture.getvalue(), media_type="image/svg+xml")
        raise UsageError(f"{kind!r} is no form of an answer; expected csv, json, html or svg.")

    def _released(self, account: Account, id: str) -> tuple[dict[str, Any], Release | None]:
        asked = self._desks.shown(account, {"id": id}, wait=1)
        answer = asked.get("answer")
        return asked, written.read(answer) if answer else None

    def _decide(self, account: Account, csrf: str, given: Mapping[str, str]) -> Response:
        if account.role is not Role.KEEPER:
            raise UsageError("approvals are the keeper's to decide.")
        self._desks.decide(account, {"id": given.get("id", ""), "approve": given.get("approve") == "yes"})
        return RedirectResponse("/", 303)


async def _form(request: Request) -> dict[str, str]:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST_FORM:
            return {}
    return dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True))


def _html(page: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(page, status, {"Content-Security-Policy": pages.POLICY})


def _file(content: str, kind: str, name: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(content, media_type=kind, headers=headers)

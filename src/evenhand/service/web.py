"""The page: sign in with a token, build a question, see its price, pay, read the answer. Works without script.

A session is a random cookie that scripts can't read and other sites can't send (HttpOnly, SameSite=Strict); every form also carries
a token of its session. All text from people or tables is escaped where it is put into a page, and the content security policy
allows no script, so that a name which is code stays text.
"""

from __future__ import annotations

import csv
import hmac
import io
import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from evenhand.guarantee import EvenhandError, UsageError
from evenhand.pages import service as pages
from evenhand.pages.release import release_page
from evenhand.pages.style import lines, paragraphs, warning
from evenhand.release import Release, written
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.answers import Desks
from evenhand.statistics import STATISTICS

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
                return _html(pages.whole("Not done", "<p>The form was too old. Go back and try again.</p>"), 403)
            try:
                return await run_in_threadpool(work, account, signed.csrf, {**given, **request.path_params})
            except EvenhandError as error:
                page = pages.whole(
                    "Not done", f"{warning(str(error))}<p><a href='/'>Back</a></p>", signed.csrf, account.name
                )
                return _html(page, 400)

        return Route(path, handle, methods=[method])

    def _home(self, account: Account, csrf: str, _: Mapping[str, str]) -> Response:
        asked = self._desks.history(account)["questions"]
        if account.role is Role.KEEPER:
            return _html(pages.whole("The keeper's view", self._overview(asked, csrf), csrf, account.name))
        parts = []
        for one in self._desks.tables(account)["tables"]:
            parts.append(
                f"<h2>{escape(one['name'])}</h2><p>{escape(one['description'])}</p>{pages.columns_table(one)}"
                f'<p><a href="/ask?table={escape(one["name"])}">Ask about {escape(one["name"])}</a></p>'
            )
        budget = pages.budget_lines(self._desks.budget(account))
        body = (
            f"{''.join(parts)}<h2>Budget</h2>{budget}<h2>Asked before</h2>{pages.questions_table(asked, names=False)}"
        )
        return _html(pages.whole("Ask", body, csrf, account.name))

    def _overview(self, asked: list[dict[str, Any]], csrf: str) -> str:
        waiting = [one for one in asked if one["standing"] == "waiting"]
        decisions = "".join(
            f"<h3>{escape(pages.in_words(one['question']))}</h3>"
            + lines([("by", one["analyst"]), ("table", one["table"]), ("cost", f"ε = {one['cost']['epsilon']}")])
            + '<div class="side">'
            + pages.form(
                "/decide", [pages.field_hidden("id", one["id"]), pages.field_hidden("approve", "yes")], "Approve", csrf
            )
            + pages.form(
                "/decide",
                [pages.field_hidden("id", one["id"]), pages.field_hidden("approve", "no")],
                "Deny",
                csrf,
                second=True,
            )
            + "</div>"
            for one in waiting
        )
        budgets = "".join(
            f"<h3>{escape(name)}</h3>{lines(list(rows.items()))}" for name, rows in self._desks.populations().items()
        )
        return (
            f"<h2>Waiting for your approval</h2>{decisions or '<p>Nothing waits.</p>'}<h2>Budgets</h2>{budgets}"
            f"<h2>Questions</h2>{pages.questions_table(asked, names=True)}"
        )

    def _ask(self, account: Account, csrf: str, given: Mapping[str, str]) -> Response:
        names = {one["name"]: one for one in self._desks.tables(account)["tables"]}
        one = names.get(given.get("table", ""))
        if one is None:
            raise UsageError(f"there is no table of that name for you; expected one of {sorted(names)}.")
        columns = [("", "—"), *((column["name"], column["name"]) for column in one["columns"])]
        chosen = given.get
        parts = [
            pages.field_hidden("table", one["name"]),
            pages.field_choice(
                "ask", "What", [(name, _TITLES.get(name, name)) for name in _OFFERED], chosen("ask", "")
            ),
            pages.field_choice("column", "Of which column", columns, chosen("column", ""), "For counts, leave it out."),
            pages.field_text(
                "bounds", "Smallest and largest value", "Such as 0 to 240; left out, they are found privately."
            ),
            pages.field_text("quantiles", "Quantiles", "For quantiles, such as 0.5, 0.9."),
            pages.field_choice("by", "By group", columns, chosen("by", "")),
            pages.field_text("keys", "Group names", "If they are public: such as drama, comedy. Hidden names need δ."),
            pages.field_text("epsilon", "ε", "What to spend; a smaller one protects more.", "0.1"),
            pages.field_text("delta", "δ", "For hidden group names, such as 1e-6.", ""),
        ]
        sql = [
            pages.field_hidden("table", one["name"]),
            pages.field_hidden("ask", "sql"),
            pages.field_area("text", "Query", "Such as SELECT genre, COUNT(*) FROM table GROUP BY genre"),
            pages.field_text("epsilon", "ε", "What to spend.", "0.1"),
            pages.field_text("delta", "δ", "For hidden group names, such as 1e-6.", ""),
        ]
        body = (
            f"{pages.columns_table(one)}<h2>By choosing</h2>{pages.form('/price', parts, 'Show the price', csrf)}"
            f"<h2>In SQL</h2>{pages.form('/price', sql, 'Show the price', csrf)}"
        )
        return _html(pages.whole(f"Ask about {one['name']}", body, csrf, account.name))

    def _price(self, account: Account, csrf: str, given: Mapping[str, str]) -> Response:
        question, table = _question(given), given.get("table")
        preview = self._desks.preview(account, {"table": table, "question": question})
        hidden = [
            pages.field_hidden("table", table or ""),
            pages.field_hidden("key", str(uuid.uuid4())),
            pages.field_hidden("question", json.dumps(question)),
        ]
        pay = pages.form("/pay", hidden, f"Pay ε = {question['epsilon']} and ask", csrf)
        enough = pay if preview["affordable"] else warning("This is more than your budget, or everybody's, holds.")
        body = f"<pre>{escape(preview['text'])}</pre>{enough}<p><a href='/ask?table={escape(table or '')}'>Another question</a></p>"
        return _html(pages.whole("What it would cost", body, csrf, account.name))

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
        title = pages.in_words(asked["question"])
        if release is None:
            ready = asked.get("ready")
            text = f"The answer appears at {ready[:19]} UTC." if ready else f"This question is {asked['standing']}."
            response = _html(pages.whole(title, paragraphs(text), csrf, account.name))
            if asked["standing"] == "paid":
                response.headers["Refresh"] = "2"
            return response
        links = "".join(
            f'<a href="/answers/{escape(asked["id"])}/{kind}">{kind.upper()}</a>' for kind in ("csv", "json", "html")
        )
        picture = ""
        if release.grouped and len(release.value):
            picture = f'<figure><img src="/answers/{escape(asked["id"])}/svg" alt="The groups with their 95% intervals"></figure>'
        shown = release.to_html().partition("</style>")[2].removesuffix("</section>")
        body = f'{shown}{picture}<h2>Download</h2><p class="side">{links}</p>'
        return _html(pages.whole(title, body, csrf, account.name))

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
            return _file(_harmless(text.getvalue()), "text/csv", "answer.csv")
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


_OFFERED = [name for name in STATISTICS if name not in ("ratio", "histogram", "top")]
_TITLES = {
    "count": "Number of rows",
    "users": "Number of people",
    "sum": "Sum",
    "mean": "Average",
    "per_user_mean": "Average over people",
    "variance": "Variance",
    "std": "Standard deviation",
    "median": "Median",
    "quantiles": "Quantiles",
    "distinct": "Number of different values",
}


def _question(given: Mapping[str, str]) -> dict[str, Any]:
    """The form as a question; what is wrong with it is said by the session, as everywhere."""
    question: dict[str, Any] = {"ask": given.get("ask", "count"), "epsilon": given.get("epsilon", "").strip() or "0.1"}
    for name in ("column", "by", "delta", "text"):
        if given.get(name, "").strip():
            question[name] = given[name].strip()
    if given.get("bounds", "").strip():
        ends = given["bounds"].replace("to", " ").replace(",", " ").replace(":", " ").split()
        question["bounds"] = [_number(end) for end in ends]
    if given.get("quantiles", "").strip() and question["ask"] == "quantiles":
        question["quantiles"] = [_number(part) for part in given["quantiles"].replace(",", " ").split()]
    if given.get("keys", "").strip():
        question["keys"] = [key.strip() for key in next(csv.reader([given["keys"]]))]
    return question


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is not a number.") from None


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


def _harmless(text: str) -> str:
    """CSV in which no cell is a formula for a spreadsheet."""
    rows = list(csv.reader(io.StringIO(text)))
    out = io.StringIO()
    csv.writer(out).writerows([[f"'{cell}" if cell[:1] in "=+@\t\r" else cell for cell in row] for row in rows])
    return out.getvalue()

"""The page: build a question, see its price, pay, read the answer; for the keeper, decide, verify and hand out. Works without script.

All text from people or tables is escaped where it is put into a page, and the content security policy allows no script, so
that a name which is code stays text.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from evenhand.guarantee import EvenhandError, UsageError
from evenhand.ledger import Budget, handout, registry
from evenhand.ledger.desk import NeedsApproval
from evenhand.pages.compliance import compliance_page
from evenhand.pages.notebook import Card
from evenhand.pages.release import release_page
from evenhand.pages.service import answering, asking, home, keeping
from evenhand.pages.service.frame import Person
from evenhand.release import Release
from evenhand.service import books
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.answers import Desks
from evenhand.service.forecasts import forecast, guesses
from evenhand.service.forms import OFFERED, harmless, question_of
from evenhand.service.keeper import Keeper
from evenhand.service.rates import Rates
from evenhand.service.refusals import Refusals
from evenhand.service.sessions import Sessions, html
from evenhand.service.stored import shown
from evenhand.service.turns import Threads


class Web:
    """The routes of the page.

    Args:
        keeper: whose tables and ledgers are shown.
        desks: what analysts and the keeper may do; the same as over JSON.
        accounts: whose token is whose.
        rates: whether somebody may make one more request now.
        threads: where work is done.
        refusals: how errors are told.
    """

    def __init__(
        self, keeper: Keeper, desks: Desks, accounts: Accounts, rates: Rates, threads: Threads, refusals: Refusals
    ) -> None:
        self._keeper, self._desks, self._accounts, self._refusals = keeper, desks, accounts, refusals
        self._prices, self._sessions = threads.prices, Sessions(accounts, rates, threads, refusals)

    def routes(self) -> list[Route]:
        route, analyst, keeper = self._sessions.route, Role.ANALYST, Role.KEEPER
        return [
            route("/", self._home),
            route("/history", self._history),
            route("/ask", self._ask, "GET", analyst),
            route("/price", self._price, "POST", analyst, self._prices),
            route("/pay", self._pay, "POST", analyst),
            route("/answers/{id}", self._answer),
            route("/answers/{id}/{form}", self._download),
            route("/decide", self._decide, "POST", keeper),
            route("/revoke", self._revoke, "POST", keeper),
            route("/ledgers", self._ledgers, "GET", keeper),
            route("/verify", self._verify, "POST", keeper),
            route("/ledgers/{number}/{form}", self._handed_out, "GET", keeper),
            *self._sessions.routes(),
        ]

    def _home(self, account: Account, person: Person, _: Mapping[str, str]) -> Response:
        asked = self._desks.history(account)["questions"]
        if account.role is Role.KEEPER:
            waiting = self._desks.history(account, {"standing": "waiting"})["questions"]
            asked = [*waiting, *(one for one in asked if one["standing"] != "waiting")]
            return html(keeping.overview(asked, books.populations(self._keeper), self._accounts.listed(), person))
        if account.role is not Role.ANALYST:  # somebody who only reads
            return self._history(account, person, {})
        tables = self._desks.tables(account)["tables"]
        return html(home.home(tables, books.allowances(self._keeper, account.name), asked, person))

    def _history(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        before = {"before": given["before"]} if given.get("before") else {}
        page = self._desks.history(account, before)
        return html(
            home.history(
                page["questions"], person, names=account.role is not Role.ANALYST, earlier=page.get("before", "")
            )
        )

    def _ask(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        table = self._described(account, given)
        known = guesses(self._desks, account, table["name"])
        return html(asking.ask(table, OFFERED, {**known, **given}, person))

    def _price(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        """The price; a question that can't be asked is shown again in its form, with what is wrong about it."""
        described = self._described(account, given)
        table = described["name"]
        try:
            question = question_of(given)
            preview = self._desks.preview(account, {"table": table, "question": question})

            def at(epsilon: float) -> dict[str, Any]:
                return self._desks.preview(account, {"table": table, "question": {**question, "epsilon": str(epsilon)}})

            expected = forecast(preview, at, question, given, described)
        except EvenhandError as error:
            refused = self._refusals.of(error)
            status = 503 if refused.status == 503 else 400
            return html(asking.ask(described, OFFERED, given, person, refused.message), status)
        cost = Budget(*(Decimal(preview["guarantee"]["exact"][name]) for name in ("epsilon", "delta")))
        desk, limits = self._keeper.tables[table].desk, self._keeper.limits(account.name)
        (name,) = (name for name, one in books.desks(self._keeper, account.name).items() if one is desk)
        asked = {
            "question": question, "table": table, "key": str(uuid.uuid4()), "form": dict(given),
            "approval": books.needs_approval(desk, account.name, limits, cost),
        }  # fmt: skip
        return html(
            asking.price(preview, asked, books.allowance(self._keeper, account.name, name, desk), expected, person)
        )

    def _pay(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        try:
            question = json.loads(given.get("question", ""))
        except (ValueError, RecursionError):
            raise UsageError("the question was lost on the way; build it again.") from None
        key, sent = given.get("key"), {"table": given.get("table") or None, "question": question}
        try:
            id = self._desks.ask(account, {**sent, "key": key}, wait=0)["id"]
        except NeedsApproval:
            id = self._keeper.asked_by_key(account.name, sent["table"], str(key)).id
        return RedirectResponse(f"/answers/{id}", 303)

    def _answer(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        asked, found = self._answered(account, given["id"])
        response = html(answering.answer(asked, found, person))
        if found is None and asked["standing"] == "paid":
            ready = asked.get("ready")
            left = (datetime.fromisoformat(ready) - datetime.now(UTC)).total_seconds() if ready else 1
            response.headers["Refresh"] = str(max(1, int(left) + 1))
        return response

    def _download(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        asked, found = self._answered(account, given["id"])
        if found is None:
            raise UsageError("there is no answer to download yet.")
        kind, forms = given["form"], answering.files(found)
        if kind not in forms:
            raise UsageError(f"{kind!r} is no form of this answer; expected one of {list(forms)}.")
        if isinstance(found, Card):
            return _file(json.dumps(asked["answer"]), "application/json", "answer.json")
        if kind == "json":
            return _file(json.dumps(found.to_dict(), default=str), "application/json", "answer.json")
        if kind == "html":
            return _file(release_page(found), "text/html", "answer.html")
        text = io.StringIO()
        found.to_csv(text)  # type: ignore[arg-type]
        return _file(harmless(text.getvalue()), "text/csv", "answer.csv")

    def _decide(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        self._desks.decide(account, {"id": given.get("id", ""), "approve": given.get("approve") == "yes"})
        return RedirectResponse("/", 303)

    def _revoke(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        self._accounts.revoke(given.get("id", ""))
        return RedirectResponse("/", 303)

    def _ledgers(self, account: Account, person: Person, given: Mapping[str, str], verified: str = "") -> Response:
        return html(keeping.ledgers(books.populations(self._keeper, events=True), person, verified))

    def _verify(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        name, desk = books.numbered(self._keeper, given.get("number", ""))
        desk.verify()
        events = len(desk.ledger.events)
        said = (
            f"{name}: {events} events agree with the totals and with what each analyst spent. Head {desk.ledger.head}"
        )
        return self._ledgers(account, person, given, said)

    def _handed_out(self, account: Account, person: Person, given: Mapping[str, str]) -> Response:
        name, desk = books.numbered(self._keeper, given["number"])
        form, ledger = given["form"], desk.ledger
        if form == "events.csv":
            return _file(harmless(handout.as_csv(ledger)), "text/csv", form)
        if form == "events.jsonl":
            return _file(handout.as_jsonl(ledger), "application/x-ndjson", form)
        if form == "compliance.html":
            return _file(compliance_page(handout.compliance(ledger)), "text/html", form)
        if form == "registry.yaml":
            return _file(registry.yaml(registry.entry(ledger, slug=name)), "application/yaml", form)
        raise UsageError(f"{form!r} can't be handed out; expected one of {list(keeping.HANDED_OUT)}.")

    def _described(self, account: Account, given: Mapping[str, str]) -> dict[str, Any]:
        names: dict[str, dict[str, Any]] = {one["name"]: one for one in self._desks.tables(account)["tables"]}
        found = names.get(given.get("table", ""))
        if found is None:
            raise UsageError(f"there is no table of that name for you; expected one of {sorted(names)}.")
        return found

    def _answered(self, account: Account, id: str) -> tuple[dict[str, Any], Release | Card | None]:
        asked = self._desks.shown(account, {"id": id}, wait=1)
        return asked, shown(asked["answer"]) if asked.get("answer") else None


def _file(content: str, kind: str, name: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(content, media_type=kind, headers=headers)

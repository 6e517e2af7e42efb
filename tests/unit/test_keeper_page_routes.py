"""Who gets which page of a keeper's server, under which headers, how often, and what becomes of what people type."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

import evenhand as eh
from evenhand.ledger import Budget
from evenhand.ledger.desk import Desk, Limits
from evenhand.pages.service import asking, home, keeping
from evenhand.pages.service.frame import Person
from evenhand.service import keeper as keeper_module
from evenhand.service import stored
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.answers import Desks
from evenhand.service.forecasts import forecast
from evenhand.service.forms import harmless, question_of
from evenhand.service.granted import Analyst, Offered
from evenhand.service.http import PAUSE, application
from evenhand.service.keeper import Keeper
from evenhand.service.routes import ENDPOINTS
from evenhand.service.sessions import LARGEST_FORM
from evenhand.tables.engines.copied import copied

SERVER = Path(__file__).parents[2] / "docs/trust/server.md"
FOR = {"/ask": "analyst", "/price": "analyst", "/pay": "analyst"} | dict.fromkeys(
    ("/decide", "/revoke", "/verify", "/ledgers", "/ledgers/{number}/{form}"), "keeper"
)


class Place:
    """A server without a network.

    Args:
        folder: for its files.
        per_minute: requests.
    """

    def __init__(self, folder: Path, per_minute: int = 600) -> None:
        table = copied(eh.read(pd.DataFrame({"u": [1, 2], "v": [1.0, 2.0]}), user="u"))
        desk = Desk(eh.Ledger(folder / "b.db", epsilon=9))
        self.keeper = Keeper({"t": Offered(table, desk)}, {"ann": Analyst(Limits(Budget(Decimal(3))), immediate=True)})
        self.accounts = Accounts(folder / "a.db")
        self.app: Starlette = application(self.keeper, self.accounts, per_minute=per_minute)

    def call(
        self,
        method: str,
        path: str,
        form: dict[str, str] | None = None,
        cookie: str = "",
        site: str = "same-origin",
        token: str = "",
        data: object = None,
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of a response."""
        named = [(b"cookie", cookie.encode()), (b"sec-fetch-site", site.encode())]
        named += [(b"authorization", f"Bearer {token}".encode())] if token else []
        content = urlencode(form or {}) if data is None else json.dumps(data)
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "query_string": query.encode(),
            "headers": named, "scheme": "http", "server": ("keeper", 80), "client": ("10.0.0.1", 1), "root_path": "",
        }  # fmt: skip
        sent: list[dict[str, Any]] = []
        asked = iter([{"type": "http.request", "body": content.encode(), "more_body": False}])

        async def receive() -> dict[str, Any]:
            return next(asked, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        body = b"".join(one.get("body", b"") for one in sent[1:])
        return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}, body.decode()

    def signed_in(self, name: str) -> str:
        """The cookie that a browser sends once its user has signed in."""
        token = self.accounts.issue(name, Role.KEEPER if name == "keeper" else Role.ANALYST)
        _, headers, _ = self.call("POST", "/in", {"token": token})
        return headers["set-cookie"].partition(";")[0]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def routes(place: Place) -> list[tuple[str, str]]:
    described = {one.path for one in ENDPOINTS}
    pages = [one for one in place.app.routes if isinstance(one, Route) and one.path not in described]
    return [(method, one.path) for one in pages for method in (one.methods or set()) - {"HEAD"}]


def test_every_page_is_for_somebody(place: Place) -> None:
    """Strangers see the sign-in page, others what their role allows; a form without its token does nothing; headers are on all."""
    ann, keeper = place.signed_in("ann"), place.signed_in("keeper")
    csrf = {
        who: re.findall('name="csrf" value="([^"]+)"', place.call("GET", "/", cookie=cookie)[2])[0]
        for who, cookie in (("ann", ann), ("keeper", keeper))
    }
    for method, path in routes(place):
        if path in ("/in", "/out"):
            continue
        asked = path.replace("{number}", "0").replace("{form}", "events.csv").replace("{id}", "none")
        status, headers, text = place.call(method, asked)
        assert (status, "Token" in text) == (200 if path == "/" else 401, True), path
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        for who, cookie, role in (("ann", ann, "analyst"), ("keeper", keeper, "keeper")):
            if method == "POST":
                assert place.call(method, asked, {"csrf": "forged"}, cookie)[0] == 403, path
                foreign = place.call(method, asked, {"csrf": csrf[who]}, cookie, "cross-site")
                assert foreign[0] == 403, path
            status = place.call(method, asked, {"csrf": csrf[who]}, cookie)[0]
            assert (status == 403) == (FOR.get(path, role) != role), (path, who)


def test_profiles_and_models_have_a_page(place: Place) -> None:
    """What was asked from Python: a table of it, how it was made, and the file; a form that it does not have is refused."""
    ann = place.signed_in("ann")
    fit = {"ask": "fit", "estimator": "BoundedERM", "label": "v", "features": ["v"], "feature_norm": 1, "epsilon": "1"}
    fit |= {"loss": "squared", "label_bounds": [0, 2], "regularisation": 30, "rows_per_user": 1, "method": "output"}
    for question, title, cell in (
        ({"ask": "profile", "epsilon": "1"}, "People by number of rows", 'data-label="users"'),
        (fit, "BoundedERM of v", 'data-label="coefficient">intercept<'),
    ):
        asked = place.keeper.ask("ann", None, title, question)
        Desks(place.keeper).shown(Account("ann", Role.ANALYST), {"id": asked.id}, wait=60)
        status, _, text = place.call("GET", f"/answers/{asked.id}", cookie=ann)
        assert status == 200
        assert f"<h1>{title}" in text
        assert cell in text
        status, headers, text = place.call("GET", f"/answers/{asked.id}/json", cookie=ann)
        assert (status, "attachment" in headers["content-disposition"]) == (200, True)
        assert list(json.loads(text)) == ["model" if question is fit else "profile"]
        assert place.call("GET", f"/answers/{asked.id}/csv", cookie=ann)[0] == 400
    assert "BoundedERM of v" in place.call("GET", "/history", cookie=ann)[2]


def test_the_page_forecasts_what_the_preview_does(place: Place) -> None:
    """With a profile, the preview's own error at each ε; without one, a range from guesses, and without those, what is missing."""
    described = Desks(place.keeper).tables(Account("ann", Role.ANALYST))["tables"][0]

    def seen(question: dict[str, Any], **typed: str) -> dict[str, Any]:
        def at(epsilon: float | str) -> dict[str, Any]:
            return place.keeper.preview("ann", None, {**question, "epsilon": str(epsilon)})

        return forecast(at(question["epsilon"]), at, question, typed, described)

    count = {"ask": "count", "epsilon": "0.5"}
    assert "people and rows" in seen(count)["missing"]
    low, high = seen(count, people="1000", rows="9000")["points"][4][1:]
    assert 10 < low < high < 10_000
    place.keeper.ask("ann", None, "p", {"ask": "profile", "epsilon": "2"})
    while place.keeper._profile("ann", "t") is None:
        time.sleep(0.02)
    points = seen(count)["points"]
    assert len(points) == 9
    for epsilon, low, high in points:
        told = place.keeper.preview("ann", None, {**count, "epsilon": str(epsilon)})["error"]["total"]
        assert low == high == told > 0
    by = {**count, "by": "v", "keys": [1, 2]}
    told = place.keeper.preview("ann", None, by)["groups"]["count"]["typical"][1]["error"]
    assert seen(by)["points"][4][1] == told


def test_every_page_is_on_the_list(place: Place) -> None:
    """Nothing is served that the documentation does not name."""
    listed = re.findall(r"^- `(GET|POST) (\S+)`", SERVER.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(routes(place))


def test_named_tests_exist() -> None:
    """The list of risks names tests that are there."""
    named = set(re.findall(r"`(test_\w+)`", SERVER.read_text(encoding="utf-8")))
    there = {
        name
        for file in (SERVER.parents[2] / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= there


def test_too_many_requests(tmp_path: Path) -> None:
    """By address before signing in, guesses at tokens included; by name afterwards, however many tokens and sessions."""
    place = Place(tmp_path, per_minute=6)
    sessions = [place.signed_in("ann") for _ in range(2)]
    statuses = [place.call("POST", "/in", {"token": "guess"})[0] for _ in range(6)]
    assert statuses == [401] * 4 + [429] * 2
    assert place.call("GET", "/")[0] == 429
    statuses = [place.call("GET", "/history", cookie=sessions[number % 2])[0] for number in range(8)]
    assert statuses == [200] * 6 + [429] * 2
    asked = time.monotonic()
    assert place.call("GET", "/history", cookie=sessions[0])[0] == 429
    assert time.monotonic() - asked >= PAUSE  # an account that asks again at once is slowed down


def test_a_form_that_is_too_large_is_no_form(place: Place) -> None:
    ann = place.signed_in("ann")
    csrf = re.findall('name="csrf" value="([^"]+)"', place.call("GET", "/", cookie=ann)[2])[0]
    assert place.call("POST", "/price", {"table": "t", "text": "x" * LARGEST_FORM, "csrf": csrf}, ann)[0] == 403


def test_hidden_fields_are_not_asked() -> None:
    typed = {"column": "v", "bounds": "0 to 5", "quantiles": "0.5", "keys": "a, b", "epsilon": " 0.2 ", "by": ""}
    assert question_of({**typed, "ask": "count"}) == {"ask": "count", "epsilon": "0.2"}
    assert question_of({**typed, "ask": "mean"}) == {"ask": "mean", "epsilon": "0.2", "column": "v", "bounds": [0, 5]}
    assert question_of({**typed, "ask": "sql", "text": "SELECT 1"}) == {
        "ask": "sql",
        "epsilon": "0.2",
        "text": "SELECT 1",
    }
    asked = question_of({**typed, "ask": "quantiles", "by": "g"})
    assert (asked["quantiles"], asked["keys"], asked["by"]) == ([0.5], ["a", "b"], "g")


def test_no_cell_is_a_formula() -> None:
    text = "name,value\n=1+1,-5.5\n-2+cmd|' /C calc'!A0,1e-06\n@x,+3\n\tx,-inf\n"
    rows = [line.split(",") for line in harmless(text).splitlines()]
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'-2+cmd|' /C calc'!A0", "'@x", "'\tx"]
    assert [row[1] for row in rows[1:]] == ["-5.5", "1e-06", "+3", "-inf"]


def test_numbers_of_requests_are_the_keepers(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is counted when it was taken: when its answer was there depends on the table."""
    ann, keeper = place.accounts.issue("ann", Role.ANALYST), place.accounts.issue("keeper", Role.KEEPER)
    assert [place.call("GET", "/metrics", token=token)[0] for token in ("", "guess", ann, keeper)] == [
        401,
        401,
        403,
        200,
    ]
    started = threading.Event()

    def slow(answer: stored.Answer) -> str:
        started.wait(30)
        return stored.answer_text(answer)

    monkeypatch.setattr(keeper_module, "answer_text", slow)
    question = {"question": {"ask": "count", "epsilon": "1"}, "key": "k"}
    asking = threading.Thread(target=lambda: place.call("POST", "/v1/questions", token=ann, data=question))
    asking.start()
    counted = 'path="/v1/questions",status="200"} 1'
    until = time.monotonic() + 5
    while counted not in (told := place.call("GET", "/metrics", token=keeper)[2]) and time.monotonic() < until:
        time.sleep(0.02)
    waits = asking.is_alive()
    started.set()
    asking.join(20)
    assert counted in told
    assert waits
    assert counted in place.call("GET", "/metrics", token=keeper)[2]  # once


@pytest.mark.parametrize("gone", ["a.db", "b.db"])
def test_nobody_hears_where_things_are_kept(
    place: Place, tmp_path: Path, gone: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that is away is 503, to strangers, analysts and on the page; the keeper's log says which."""
    ann, cookie = place.accounts.issue("ann", Role.ANALYST), place.signed_in("ann")
    place.call("GET", "/v1/budget", token=ann)
    (tmp_path / gone).rename(tmp_path / "moved")
    answers = [
        place.call("GET", "/v1/budget", token=ann),
        place.call("POST", "/v1/questions", token=ann, data={"question": {"ask": "count", "epsilon": "1"}, "key": "k"}),
        place.call("GET", "/history", cookie=cookie),
        *(
            [place.call("GET", "/v1/tables", token="guess"), place.call("POST", "/in", {"token": ann})]
            if gone == "a.db"
            else []
        ),
    ]
    for status, headers, text in answers:
        assert status == 503, text
        assert not any(word in text for word in (str(tmp_path), gone, "SQLite", "sqlite", "ledger.events"))
        assert "retry-after" in headers or "html" in headers["content-type"]
    assert {"not available", "tokens can't be looked up"} & {record.message for record in caplog.records}


def test_a_budget_that_is_used_up_is_said_without_its_place(place: Place, tmp_path: Path) -> None:
    ann = place.accounts.issue("ann", Role.ANALYST)
    for name, epsilon in (("first", "2"), ("second", "2")):
        data = {"question": {"ask": "count", "epsilon": epsilon}, "key": name}
        status, _, text = place.call("POST", "/v1/questions", token=ann, data=data)
    assert (status, str(tmp_path) in text) == (402, False)
    place.keeper.analysts["ann"].limits.__dict__["total"] = Budget(Decimal(100))
    data = {"question": {"ask": "count", "epsilon": "50"}, "key": "third"}
    status, _, text = place.call("POST", "/v1/questions", token=ann, data=data)
    assert (status, str(tmp_path) in text, "the budget in ledger of the keeper" in text) == (402, False, True)


TYPED: dict[str, dict[str, str]] = {
    "people": {"people": "inf", "rows": "10"},
    "not a number": {"people": "nan", "rows": "10"},
    "too many": {"people": "1e300", "rows": "1e301"},
    "none": {"people": "0", "rows": "0"},
    "bounds": {"ask": "sum", "column": "v", "bounds": "1e308 to 1e309", "people": "10", "rows": "100"},
    "quantiles": {"ask": "quantiles", "column": "v", "quantiles": "inf"},
    "a long key": {"by": "v", "keys": "a" * 140_000},
    "NUL": {"by": "v", "keys": "a\0b"},
    "epsilon": {"epsilon": "9" * 5000},
}


@pytest.mark.parametrize("typed", TYPED)
def test_what_cannot_be_read_in_a_form_is_said(place: Place, typed: str) -> None:
    """In its form, never as a defect."""
    ann = place.signed_in("ann")
    csrf = re.findall('name="csrf" value="([^"]+)"', place.call("GET", "/", cookie=ann)[2])[0]
    form = {"table": "t", "ask": "count", "epsilon": "0.1", "csrf": csrf, **TYPED[typed]}
    status, _, text = place.call("POST", "/price", form, ann)
    assert (status, 'role="alert"' in text) == (400, True), text[-500:]


def test_names_of_groups_may_stand_on_several_lines(place: Place) -> None:
    assert question_of({"by": "g", "keys": 'a, "b, c"\nd\r\n'})["keys"] == ["a", "b, c", "d"]


def test_a_type_that_is_code_stays_text() -> None:
    """Names, types and words of columns come from files."""
    code = "<img src=x onerror=alert(1)>"
    column = {"name": code, "type": f"struct<{code}: int64>", "unit": code, "description": code, "bounds": [0, 1]}
    described = {
        "name": code,
        "user": ["u"],
        "columns": [column],
        "protects": "presence",
        "description": code,
        "parts": [],
    }
    person = Person(code, code)
    pages = [
        home.home([described], [], [], person),
        asking.ask(described, ["count"], {"table": code, "column": code, "epsilon": code}, person, code),
        keeping.overview(
            [], [], [{"id": code, "name": code, "role": code, "created": code, "expires": code, "revoked": ""}], person
        ),
    ]
    assert not any("<img" in page or "<struct" in page for page in pages)
    assert all("&lt;img" in page for page in pages)
    assert '<a href="/history?before=%3C%22">' in home.history([], person, names=False, earlier='<"')

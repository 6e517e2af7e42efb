"""Who gets which page of a keeper's server, under which headers, how often, and what becomes of what people type."""

from __future__ import annotations

import asyncio
import json
import re
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
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.answers import Desks
from evenhand.service.forecasts import forecast
from evenhand.service.forms import harmless, question_of
from evenhand.service.granted import Analyst, Offered
from evenhand.service.http import application
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
        self, method: str, path: str, form: dict[str, str] | None = None, cookie: str = "", site: str = "same-origin"
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of a response."""
        named = [(b"cookie", cookie.encode()), (b"sec-fetch-site", site.encode())]
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "query_string": query.encode(),
            "headers": named, "scheme": "http", "server": ("keeper", 80), "client": ("10.0.0.1", 1), "root_path": "",
        }  # fmt: skip
        sent: list[dict[str, Any]] = []
        asked = iter([{"type": "http.request", "body": urlencode(form or {}).encode(), "more_body": False}])

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

"""The keeper's page in a real Chromium: the whole story, two analysts at once, bad tokens, code in names, a keyboard, a phone.

``EVENHAND_SCREENSHOTS=docs/pictures`` makes the pictures of the documentation on the way (`make screenshots`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from keeper_people import DESK, PHONE, Visitor, focused

import evenhand as eh
from evenhand.service.accounts import Accounts, Role
from keeper_process import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("keeper page")]

CODE = "<img src=x onerror=alert(1)>"
EVE = '"><script>alert(2)</script>'
MUSEUM = """
deadline = 2

[populations.visitors]
ledger = "visitors.db"
epsilon = 20
delta = 1e-3

[tables.visits]
source = "visits.parquet"
user = "visitor"
population = "visitors"
rows = 10_000
description = "One row per visit to the museum."

[tables.visits.columns.minutes]
bounds = [0, 240]
unit = "minutes"
description = "how long the visit took"

[tables.visits.columns.hall]
keys = ["paintings", "dinosaurs", "minerals", "space"]
description = "where the visit began"

[tables.visits.columns.paid]
bounds = [0, 20]
unit = "euros"

[analysts.ann]
epsilon = 8
delta = 1e-4
per_question = 3
approval_above = 2
immediate = true
tables = ["visits"]

[analysts.bob]
epsilon = 2
"""
ODD = """
[populations.few]
ledger = "few.db"
epsilon = 1
delta = 1e-3

[tables."<b>odd</b>"]
source = "odd.parquet"
user = "u"
population = "few"
rows = 2_000
description = "<script>alert(3)</script>"

[analysts.'"><script>alert(2)</script>']
epsilon = 3
delta = 1e-4
immediate = true
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Accounts]]:
    """A museum, and beside it a table, a column, groups and an analyst whose names are code; not in the pictures."""
    folder = tmp_path_factory.mktemp("museum")
    random = np.random.default_rng(0)
    who = np.repeat(np.arange(4000), random.integers(1, 8, 4000))
    hall = random.choice(["paintings", "dinosaurs", "minerals", "space"], len(who), p=[0.4, 0.35, 0.15, 0.1])
    minutes = random.gamma(4, 20, len(who)).clip(1, 240).round()
    visits = {"visitor": who, "hall": hall, "minutes": minutes, "paid": random.choice([0.0, 8.0, 14.0], len(who))}
    pd.DataFrame(visits).to_parquet(folder / "visits.parquet")
    pd.DataFrame({"u": range(2000), CODE: [CODE, EVE] * 1000}).to_parquet(folder / "odd.parquet")
    (folder / "keeper.toml").write_text(MUSEUM if "EVENHAND_SCREENSHOTS" in os.environ else MUSEUM + ODD)
    server = Server(folder)
    yield server.url, Accounts(folder / "accounts.db")
    server.stop()
    for ledger in folder.glob("[fv]*.db"):  # after all of that
        eh.Ledger(ledger).verify()


Visit = Callable[..., Visitor]


@pytest.fixture(scope="module")
def visitor(chromium: Browser, place: tuple[str, Accounts]) -> Visit:
    """Somebody by name, signed in: one browser for each, which is kept until the end."""
    url, accounts = place
    known: dict[str, Visitor] = {}

    def visit(name: str, size: dict[str, int] = DESK) -> Visitor:
        if name not in known:
            known[name] = Visitor(chromium, url)
            known[name].enter(accounts.issue(name, Role.KEEPER if name == "keeper" else Role.ANALYST))
        known[name].page.set_viewport_size(size)  # type: ignore[arg-type]
        return known[name].go("/")

    return visit


def test_the_whole_story(visitor: Visit) -> None:
    """Ask, be refused, wait for approval, read the answer, take it home; the keeper decides, verifies, hands out.

    It is the first on the server: it counts what is there.
    """
    ann, keeper = visitor("ann"), visitor("keeper")
    ann.says("how long the visit took; from 0 to 240 minutes")
    ann.look()
    ann.ask(ask="users", epsilon="0.1")
    ann.says("Pay ε = 0.1 and ask")
    ann.look()
    ann.press("Pay ε = 0.1")
    ann.says("95% interval")
    ann.look()

    ann.ask(ask="sum", column="minutes", epsilon="0.5", rows="16000")  # people are known by now
    ann.says("The answer is typically off by")
    ann.look("price")
    ann.press("Pay ε = 0.5")
    ann.says("95% interval")
    ann.look()
    ann.ask(ask="mean", column="minutes", by="hall", epsilon="1")
    ann.press("Pay ε = 1")
    ann.page.get_by_role("img", name="mean by group").wait_for()
    ann.look("answer")
    assert ann.download("CSV").splitlines()[0].startswith("hall,mean,mean_low,mean_high")
    assert json.loads(ann.download("JSON"))["guarantee"]["exact"]["epsilon"] == "1"
    assert "paintings" in ann.download("HTML")

    ann.ask(ask="count", epsilon="3.5")  # more than one question may cost
    ann.says("This is more than your budget")
    assert not ann.page.get_by_role("button", name="Pay").count()
    ann.look()
    ann.ask(ask="sum", column="paid", bounds="much", epsilon="0.1")
    ann.says("'much' is not a number")
    assert ann.page.get_by_label("Smallest and largest value").input_value() == "much"
    ann.look("ask")

    query = "SELECT hall, COUNT(*) AS visits FROM table WHERE paid > 0 GROUP BY hall"
    for epsilon in ("2", "2.5"):
        ann.ask("/ask?table=visits&ask=sql", text=query, epsilon=epsilon)
        ann.press("Ask the keeper for approval")
        ann.says("waits for the keeper's approval")
        ann.look()
    waiting = ann.page.url
    keeper.go("/")
    keeper.says("Waiting for your approval (2)")
    keeper.look("keeper")
    keeper.press("Deny")
    keeper.says("Waiting for your approval (1)")
    keeper.press("Approve")
    keeper.says("Waiting for your approval (0)")
    ann.go("/history")
    ann.says("denied")
    ann.look()
    ann.page.goto(waiting)
    ann.page.get_by_role("img", name="visits by group").wait_for()
    ann.says("approved by keeper")

    keeper.go("/ledgers")
    keeper.press("Verify the history")
    keeper.says("4 events agree with the totals")
    keeper.look("ledgers")
    assert "approved by keeper" in keeper.download("Compliance page")
    assert 'privacy_unit: "user, with all rows (visitor)"' in keeper.download("Registry entry")
    assert len(keeper.download("Events as CSV").splitlines()) == 5
    assert len(keeper.download("Events as JSON lines").splitlines()) == 4
    keeper.go("/history").look()
    visitor("ann", PHONE).look("phone")
    ann.press("Sign out")
    ann.page.go_back()
    ann.says("Token")  # nothing of it is kept by the browser
    assert ann.close() + keeper.done() == []


def test_two_analysts_at_once(visitor: Visit) -> None:
    """What both could pay for alone, only one of them can; neither sees what the other asked."""
    two = [visitor(name) for name in ("bob", EVE)]
    for one in two:
        one.ask("/ask?table=%3Cb%3Eodd%3C%2Fb%3E", ask="users", epsilon="0.7")
        one.says("Pay ε = 0.7")
    for one in two:  # sent without waiting for the other
        one.page.locator("form[action='/pay']").evaluate("one => one.submit()")
    for one in two:
        one.page.get_by_text("95% interval").or_(one.page.get_by_text("The answer appears at")).or_(
            one.page.get_by_role("alert")
        ).first.wait_for()
    refused = [one for one in two if one.page.get_by_role("alert").count()]
    assert len(refused) == 1
    (paid,) = (one for one in two if one is not refused[0])
    paid.says("95% interval")  # at its deadline the page shows it by itself
    place_of_answer = paid.page.url.partition("/answers/")[2]
    refused[0].go(f"/answers/{place_of_answer}").says("there is no question")
    refused[0].go("/history").says("Nothing was asked yet.")
    assert [one.done() for one in two] == [[], []]


def test_wrong_expired_and_stolen_tokens(chromium: Browser, place: tuple[str, Accounts], visitor: Visit) -> None:
    """All are refused alike; what a thief does is seen by the owner, and ends when the keeper revokes the token."""
    url, accounts = place
    stranger = Visitor(chromium, url).go("/")
    for token in ("", "wrong", accounts.issue("bob", Role.ANALYST, days=1e-9)):
        stranger.sign_in(token).says("The token is wrong, expired or revoked")
        assert stranger.context.cookies() == []
    stranger.look()
    stranger.go("/ledgers").says("Token")

    token = accounts.issue("bob", Role.ANALYST)
    owner, thief = Visitor(chromium, url).enter(token), Visitor(chromium, url).enter(token)
    thief.ask(ask="users", epsilon="0.01").press("Pay ε = 0.01")
    thief.says("The answer appears at")
    owner.go("/history").says("Number of people")
    (cookie,) = owner.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    thief.go("/ledgers").says("This is for the keeper")
    keeper = visitor("keeper")
    newest = (
        keeper.page.get_by_role("row")
        .filter(has_text="bob")
        .filter(has=keeper.page.get_by_role("button", name="Revoke"))
    )
    keeper.press("Revoke", newest.first)
    for one in (owner, thief):
        one.go("/history").says("Token")

    # A cookie that was copied is worth nothing once its owner has signed out.
    again = Visitor(chromium, url).enter(accounts.issue("bob", Role.ANALYST))
    copied = again.context.cookies()
    again.press("Sign out")
    again.says("Token")
    stranger.context.add_cookies(copied)  # type: ignore[arg-type]
    stranger.go("/history").says("Token")
    assert [one.close() for one in (stranger, owner, thief, again)] + [keeper.done()] == [[]] * 5


def test_another_site_can_send_nothing(place: tuple[str, Accounts], visitor: Visit) -> None:
    """A form of another site neither signs anybody in nor spends anything."""
    url, accounts = place
    bob = visitor("bob")
    token = accounts.issue("bob", Role.ANALYST)
    spent = bob.page.get_by_text("left").all_inner_texts()
    for path, name, value in (("/pay", "question", '{"ask":"users","epsilon":"1"}'), ("/in", "token", token)):
        other = bob.context.new_page()
        other.goto("data:text/html,<title>another site</title>")
        field = (
            f"<input name='{name}' value='{value}'><input name='key' value='forged'><input name='table' value='visits'>"
        )
        other.evaluate(
            f"""() => {{ document.body.innerHTML = `<form method=post action="{url}{path}">{field}</form>`; }}"""
        )
        with other.expect_navigation():
            other.locator("form").evaluate("one => one.submit()")
        assert other.get_by_label("Token").is_visible()
        assert len(bob.context.cookies()) == 1
        other.close()
    bob.go("/")
    assert bob.page.get_by_text("left").all_inner_texts() == spent
    assert bob.done() == []


def test_code_in_names_stays_text(visitor: Visit) -> None:
    """Names of people, tables, columns and groups, and SQL, that are code: shown, never run."""
    eve, keeper = visitor(EVE), visitor("keeper")
    eve.says(CODE)
    eve.says("<script>alert(3)</script>")
    eve.look()
    eve.go("/ask?table=%3Cb%3Eodd%3C%2Fb%3E").look()
    eve.ask("/ask?table=visits&ask=sql", text=f"SELECT COUNT(*) FROM table -- {EVE}", epsilon=EVE)
    eve.page.get_by_role("alert").wait_for()
    eve.look()
    query = f"SELECT hall AS \"{CODE}\", COUNT(*) AS n FROM table WHERE hall <> '{EVE}' GROUP BY hall"
    eve.ask("/ask?table=visits&ask=sql", text=query, epsilon="1")
    eve.press("Pay ε = 1")
    eve.page.get_by_role("img", name="n by group").wait_for()
    eve.says(CODE)
    eve.look()
    eve.ask("/ask?table=%3Cb%3Eodd%3C%2Fb%3E", ask="users", by=CODE, epsilon="0.3", delta="1e-6")
    eve.press("Pay ε = 0.3")
    eve.page.get_by_role("cell", name=EVE).first.wait_for()  # a name of a group, found privately
    eve.look()
    for path in (
        f"/ask?table={EVE}",
        f"/answers/{EVE}",
        "/answers/1/<script>",
        f"/ask?table=visits&epsilon={EVE}&column={EVE}",
    ):
        eve.go(path).look()
    eve.go("/history").look()
    keeper.go("/").says(EVE)
    for path in ("/", "/history", "/ledgers"):
        keeper.go(path).look()
    assert EVE not in keeper.download("Compliance page")
    assert eve.done() + keeper.done() == []


def test_complaints_are_noticed(visitor: Visit) -> None:
    """The broken twin: a page with script, pale text, a nameless field and something too wide is complained about."""
    bob = visitor("bob")
    with bob.page.expect_console_message(lambda said: "Content Security Policy" in said.text):
        bob.page.evaluate(
            """() => { document.querySelector('main').insertAdjacentHTML('beforeend', `<img src="x" onerror="alert(4)"><input name="nameless">
        <h4>deep</h4>`); const pale = document.createElement('p'); pale.textContent = 'pale'; document.querySelector('main').append(pale);
        pale.style.color = '#bbb'; pale.style.width = '3000px'; }"""
        )
    bob.look()
    found = "\n".join(bob.done())
    for said in ("Content Security Policy", "contrast", "no label: nameless", "sideways", "skips a level"):
        assert said in found
    assert "dialog" not in found  # the policy kept the script from running


def test_keyboard_only(chromium: Browser, place: tuple[str, Accounts]) -> None:
    """Sign in, choose, see the price, pay and read, with Tab, arrows and Enter; the focus can always be seen."""
    url, accounts = place
    bob = Visitor(chromium, url).go("/")
    keys = bob.page.keyboard

    def reach(name: str) -> None:
        for _ in range(40):
            keys.press("Tab")
            if focused(bob.page).startswith(name):
                assert bob.page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") == "solid"
                return
        raise AssertionError(f"{name} can't be reached")

    reach("Skip to the content")
    reach("Token")
    keys.type(accounts.issue("bob", Role.ANALYST))
    keys.press("Enter")
    bob.says("Signed in as bob")
    reach("Ask about visits")
    keys.press("Enter")
    bob.says("What to compute")
    reach("What to compute")
    keys.type("Number of people")
    reach("ε")  # past the fields that this choice hides
    keys.press("Control+A")
    keys.type("0.3")
    keys.press("Enter")
    bob.says("Pay ε = 0.3 and ask")
    reach("Pay ε = 0.3")
    keys.press("Enter")
    bob.says("The answer appears at")
    bob.says("95% interval")
    reach("CSV")
    assert bob.close() == []


def test_on_a_phone(visitor: Visit) -> None:
    """No page is wider than a phone, names without a space included."""
    eve, keeper = visitor(EVE, PHONE), visitor("keeper", PHONE)
    eve.look()
    eve.ask(
        "/ask?table=visits&ask=sql", text=f"SELECT hall, COUNT(*) AS {'n' * 80} FROM table GROUP BY hall", epsilon="0.5"
    )
    eve.look()
    eve.press("Pay ε = 0.5")
    eve.page.get_by_role("img", name="by group").wait_for()
    eve.look()
    for path in ("/ask?table=visits", "/history", f"/ask?table={'x' * 300}"):
        eve.go(path).look()
    for path in ("/", "/history", "/ledgers"):
        keeper.go(path).look()
    assert eve.done() + keeper.done() == []

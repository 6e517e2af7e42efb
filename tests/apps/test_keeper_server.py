"""The keeper's server as a real process: asked by clients, refused to strangers."""

from __future__ import annotations

import html
import http.cookiejar
import json
import os
import re
import signal
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.ledger.desk import Desk, Standing
from evenhand.service.accounts import Account, Accounts, Role
from evenhand.service.client import Remote
from keeper_process import Server

pytestmark = pytest.mark.xdist_group("keeper")  # one server for the module

SERVER = Path(__file__).parents[2] / "docs/trust/server.md"
CANARY = "canary-7f3a"
CAP = {"strategy": "TotalCap", "T": 3}  # given: one that is chosen is far off once in 10⁵ times
FILE = """
deadline = {deadline}

[populations.people]
ledger = "budget.db"
epsilon = 20
delta = 1e-3
per_month = {{ epsilon = 19, delta = 1e-3 }}

[tables.visits]
source = "visits.parquet"
user = "u"
population = "people"
rows = 2000
description = "Visits of people."

[tables.visits.columns.v]
bounds = [0, 6]
unit = "points"

[tables.visits.views.high]
where = "v >= 3"
derive = {{ twice = "v * 2" }}

[analysts.ann]
epsilon = 6
delta = 1e-4
per_question = 2
approval_above = 4
immediate = true
tables = ["visits"]

[analysts.bob]
epsilon = 2
tables = ["visits"]

[analysts.pat]
epsilon = 3
immediate = true
tables = ["visits"]

[analysts.vic]
epsilon = 5
immediate = true
tables = ["visits.high"]
"""


def make(folder: Path, deadline: float = 3) -> Accounts:
    rows = [
        {"u": f"{CANARY}-{user}", "v": float(user % 7), "g": "ab"[user % 2]} for user in range(400) for _ in range(3)
    ]
    pd.DataFrame(rows).to_parquet(folder / "visits.parquet")
    (folder / "keeper.toml").write_text(FILE.format(deadline=deadline))
    return Accounts(folder / "accounts.db")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Accounts]]:
    folder = tmp_path_factory.mktemp("keeper")
    accounts = make(folder)
    server = Server(folder)
    yield server, accounts
    bob = eh.connect(server.url, token=accounts.issue("bob", Role.ANALYST))
    for quantile in (0.3, 0.6):
        bob._pay(
            {
                "ask": "quantiles",
                "column": "v",
                "quantiles": [quantile, 0.9],
                "by": "g",
                "keys": ["a", "b"],
                "epsilon": "0.01",
            }
        )
    server.stop()  # once it is answered, though nobody waits for that
    assert server.process.returncode in (0, -signal.SIGTERM)
    assert Desk(eh.Ledger(folder / "budget.db")).asked(standing=Standing.PAID) == []


def remote(place: tuple[Server, Accounts], name: str = "ann") -> Remote:
    server, accounts = place
    return eh.connect(server.url, token=accounts.issue(name, Role.ANALYST))


def keeper_call(place: tuple[Server, Accounts], path: str, data: Any = None) -> Any:
    server, accounts = place
    asked = Remote(server.url, accounts.issue("keeper", Role.KEEPER), None)
    return asked._call("GET" if data is None else "POST", path, data)


def test_questions_of_a_session(place: tuple[Server, Accounts]) -> None:
    ann = remote(place)
    assert abs(ann.count(epsilon=1, bounding=eh.TotalCap(3)).value - 1200) < 200
    table = ann.mean("v", bounds=(0, 6), by="g", keys=["a", "b"], epsilon=1)
    assert list(table.value["g"]) == ["a", "b"]
    both = ann.aggregate(
        rows=eh.count(), mean=eh.mean("v"), by="g", keys=pl.DataFrame({"g": ["a", "b"]}), epsilon="0.01"
    )
    assert list(both.value.columns) == ["g", "rows", "mean"]
    assert table.interval(0.9).shape == (2, 4)
    groups = ann.sql("SELECT g, AVG(v) AS m FROM table WHERE v > 1 AND g IN ('a', 'b') GROUP BY g", epsilon="0.5")
    assert list(groups.value.columns) == ["g", "m"]
    assert ann.preview.count(epsilon=1).affordable
    assert not ann.preview.count(epsilon=3).affordable  # more than one question may cost
    (described,) = ann.tables()
    assert [column["name"] for column in described["columns"]] == ["u", "v", "g"]
    assert ann.budget()["yours"]["spent"] == [{"epsilon": "2.51", "delta": "0"}]
    first = ann.history()[0]
    assert ann.answer(first["id"]).value == ann.answer(first["id"]).value
    with pytest.raises(eh.UsageError, match="intervals at"):
        table.interval(0.77)


def test_a_view_that_the_keeper_offers(place: tuple[Server, Accounts]) -> None:
    vic = remote(place, "vic")
    (described,) = vic.tables()
    assert [column["name"] for column in described["columns"]] == ["u", "v", "g", "twice"]
    assert abs(vic.count(epsilon=2, bounding=eh.TotalCap(3)).value - 684) < 60
    with pytest.raises(eh.UsageError, match="no table 'visits' for you"):
        eh.connect(vic.url, token=vic._token, table="visits").count(epsilon=1)


def test_a_profile_is_its_buyers(place: tuple[Server, Accounts]) -> None:
    pat, bob = remote(place, "pat"), remote(place, "bob")
    assert pat.preview.count(epsilon=1).to_dict()["error"]["noise"] is None
    assert pat.preview.profile(epsilon="0.5").affordable
    profile = pat.profile(epsilon="0.5")
    assert abs(profile.users - 400) < 200
    assert eh.plan("count", profile, epsilon=1).best is not None
    assert pat.preview.count(epsilon=1).to_dict()["error"]["noise"] > 0
    assert bob.preview.count(epsilon=1).to_dict()["error"]["noise"] is None
    assert [one.event for one in pat.count(epsilon=1).guarantee.earlier] == [profile.event]
    prior = eh.Auto(profile=eh.Profile.pareto(1.5, users=400, rows=1200), strategy=eh.TotalCap())
    assert bob.preview.count(epsilon=1, bounding=prior).to_dict()["error"]["noise"] > 0  # as the preview advises
    with pytest.raises(eh.UsageError, match="bought there is used"):
        bob.preview.count(epsilon=1, bounding=eh.Auto(profile=profile))
    (bought,) = (one["id"] for one in pat.history() if one["question"]["ask"] == "profile")
    assert pat.answer(bought).noisy == profile.noisy


def test_a_reader_sees_what_was_released(place: tuple[Server, Accounts]) -> None:
    server, accounts = place
    bob = remote(place, "bob")
    first = bob._call("POST", "/v1/questions", {"key": "r", "question": {"ask": "users", "epsilon": "0.25"}})
    reader = eh.connect(server.url, token=accounts.issue("audit", Role.READER))
    assert "answer" not in reader._call("GET", f"/v1/questions/{first['id']}")
    assert first["id"] in [one["id"] for one in reader.history()]
    assert reader.answer(first["id"]).value == bob.answer(first["id"]).value
    for refused in (lambda: reader.count(epsilon=1), lambda: reader.preview.count(epsilon=1)):
        with pytest.raises(eh.UsageError, match="one of a reader"):
            refused()
    with pytest.raises(eh.UsageError, match="for keeper"):
        reader._call("GET", "/v1/export")


def test_a_client_asks_again_when_the_server_cannot_answer_now(place: tuple[Server, Accounts]) -> None:
    """Tokens can't be looked up for a moment: with the same key nothing is paid twice."""
    ann, folder = remote(place), place[0].folder
    spent = ann.budget()["yours"]["spent"]
    (folder / "accounts.db").rename(folder / "away.db")
    back = threading.Timer(0.5, lambda: (folder / "away.db").rename(folder / "accounts.db"))
    back.start()
    assert ann.budget()["yours"]["spent"] == spent
    back.join()


def test_the_description_is_that_of_the_routes(place: tuple[Server, Accounts]) -> None:
    from evenhand.service.http import application
    from evenhand.service.keeper import Keeper

    with urllib.request.urlopen(place[0].url + "/openapi.json", timeout=20) as response:
        told = json.load(response)
    app = application(Keeper({}, {}), place[1])
    pages = set(re.findall(r"^- `[A-Z]+ (/\S*)`", SERVER.read_text(encoding="utf-8"), re.MULTILINE))
    served = {(route.path, method) for route in app.routes for method in route.methods - {"HEAD"}}  # type: ignore[attr-defined]
    assert {(path, method.upper()) for path, methods in told["paths"].items() for method in methods} == {
        (path, method) for path, method in served if path not in pages
    }
    for path, methods in told["paths"].items():
        for operation in methods.values():
            assert ("security" in operation) == (path.startswith("/v1/") or path == "/metrics")
            assert [one["name"] for one in operation.get("parameters", [])] == re.findall(r"{(\w+)}", path)


def test_an_answer_appears_at_its_deadline(place: tuple[Server, Accounts]) -> None:
    """However quickly it was there: for analysts whom the keeper does not trust with timing."""
    bob, started = remote(place, "bob"), time.monotonic()
    first = bob._call(
        "POST", "/v1/questions", {"key": "k", "question": {"ask": "count", "epsilon": "1", "bounding": CAP}}
    )
    assert "answer" not in first or time.monotonic() - started >= 2.5
    assert first["standing"] == "paid"
    release = bob.answer(first["id"])
    assert time.monotonic() - started >= 2.5
    assert abs(release.value - 1200) < 200


def test_a_key_pays_once(place: tuple[Server, Accounts]) -> None:
    ann = remote(place)
    asked = {"key": "again", "question": {"ask": "users", "epsilon": "0.25"}}
    before = ann.budget()["yours"]["spent"]
    one, two = (ann._call("POST", "/v1/questions", asked) for _ in range(2))
    assert one["answer"] == two["answer"]
    assert Decimal(ann.budget()["yours"]["spent"][0]["epsilon"]) - Decimal(before[0]["epsilon"]) == Decimal("0.25")
    with pytest.raises(eh.UsageError, match="another question"):
        ann._call("POST", "/v1/questions", {"key": "again", "question": {"ask": "users", "epsilon": "0.5"}})


def test_approval(place: tuple[Server, Accounts]) -> None:
    ann = remote(place)
    with pytest.raises(eh.BudgetExceeded, match="waits for the keeper"):
        ann.count(epsilon=2, bounding=eh.TotalCap(3))
    (waiting,) = (one for one in ann.history() if one["standing"] == "waiting")
    with pytest.raises(eh.UsageError, match="for keeper"):
        ann._call("POST", f"/v1/questions/{waiting['id']}/decision", {"approve": True})
    keeper_call(place, f"/v1/questions/{waiting['id']}/decision", {"approve": True})
    assert abs(ann.answer(waiting["id"]).value - 1200) < 100


def test_strangers_are_kept_out(place: tuple[Server, Accounts]) -> None:
    server, accounts = place
    expired = accounts.issue("ann", Role.ANALYST, days=1e-9)
    revoked = accounts.issue("ann", Role.ANALYST)
    accounts.revoke(accounts.listed()[-1]["id"])
    for token in ("wrong", "", expired, revoked):
        with pytest.raises(eh.UsageError, match="missing, wrong, expired or revoked"):
            eh.connect(server.url, token=token).count(epsilon=1)
    with pytest.raises(eh.UsageError, match="is not an analyst"):
        eh.connect(server.url, token=accounts.issue("mallory", Role.ANALYST)).count(epsilon=1)
    bob = remote(place, "bob")
    ann = remote(place)
    ann.users(epsilon="0.01")
    mine = ann.history()[0]["id"]
    with pytest.raises(eh.UsageError, match="no question"):  # another analyst's answer
        bob.answer(mine)
    with pytest.raises(eh.UsageError, match="unencrypted"):
        eh.connect("http://keeper.example", token="x")


NO_PRIORS: list[dict[str, Any]] = [
    {"sizes": [1, 1], "users": [1, 1]}, {"sizes": [], "users": []}, {"sizes": [1], "users": [-1]}, {"sizes": [1]},
    {"sizes": [[1]], "users": [[1]]}, {"sizes": ["a"], "users": [1]},
]  # fmt: skip
BAD: list[Any] = [
    [],
    {"question": 1},
    {"question": {"ask": "__class__"}, "key": "x"},
    {"question": {"ask": "ask", "statistic": {"statistic": "count"}, "epsilon": 1}, "key": "x"},
    {"question": {"ask": "ledger"}, "key": "x"},
    {"question": {"ask": "count", "epsilon": {"strategy": "TotalCap", "T": 1}}, "key": "x"},
    {"question": {"ask": "count", "epsilon": 1, "bounding": {"strategy": "LocatedMean"}}, "key": "x"},
    *(
        {
            "question": {"ask": "count", "epsilon": 1, "bounding": {"auto": {"profile": {"prior": "", **prior}}}},
            "key": "x",
        }
        for prior in NO_PRIORS
    ),
    {"question": {"ask": "mean", "column": {"mapping": {}}, "epsilon": 1}, "key": "x"},
    {"question": {"ask": "count", "epsilon": 1, "by": "g", "keys": {"keys": {"g": 3}}}, "key": "x"},
    {"question": {"ask": "sum", "column": "v", "bounds": [[], []], "epsilon": 1}, "key": "x"},
    {"question": {"ask": "count", "epsilon": 1}, "key": ["x"]},
    {"question": {"ask": "sql", "text": "SELECT COUNT(*) FROM read_parquet('/etc/passwd')", "epsilon": 1}, "key": "x"},
    {"question": {"ask": "sql", "text": "SELECT COUNT(*) FROM table", "tables": {}, "epsilon": 1}, "key": "x"},
    {"question": {"ask": "count", "epsilon": 1}, "key": "x", "table": "../etc"},
    {"question": {"ask": "count", "epsilon": 1}},
    {"question": {"ask": "count", "epsilon": 1}, "key": "\0"},
    {"question": {"ask": "count", "epsilon": 1, "by": "g", "keys": ["\ud800"]}, "key": "x"},
    {"question": {"ask": "count", "epsilon": 1, "keys": json.loads("[" * 400 + "]" * 400)}, "key": "x"},
]


def _nested(depth: int) -> bytes:
    return b'{"key": "x", "question": {"ask": "count", "epsilon": 1, "by": ' + b"[" * depth + b"]" * depth + b"}}"


def test_bad_requests_are_one_error(place: tuple[Server, Accounts]) -> None:
    server, accounts = place
    token = accounts.issue("ann", Role.ANALYST)
    spent = remote(place).budget()
    texts = [json.dumps(bad).encode() for bad in BAD]
    for content in (*texts, b"", b"{", b'{"question": NaN}', _nested(5_000), b"[" * 100_000, b"\xff", b" " * 2_100_000):
        request = urllib.request.Request(
            f"{server.url}/v1/questions",
            content,
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=20)
        assert caught.value.code in (400, 413, 422), (content[:80], caught.value.code)
        assert set(json.load(caught.value)) == {"error", "message"}
    assert remote(place).budget() == spent


class Browser:
    """Somebody who signs in on the page: cookies and forms, no script.

    Args:
        url: of the server.
        token: to sign in with.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))
        self.go("/in", {"token": token})
        (cookie,) = self._jar
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.get_nonstandard_attr("SameSite") == "strict"

    def go(self, path: str, fields: dict[str, str] | None = None) -> tuple[int, str, str]:
        """Status, text and the final path of a page."""
        data = None if fields is None else urllib.parse.urlencode(fields).encode()
        try:
            response = self._opener.open(self._url + path, data, timeout=20)
        except urllib.error.HTTPError as error:
            response = error
        text = response.read().decode()
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        return response.status, text, urllib.parse.urlsplit(response.geturl()).path

    @staticmethod
    def fields(text: str) -> dict[str, str]:
        """What the last form of a page carries."""
        form = text[text.rindex("<form") :]
        return {name: html.unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', form)}


def test_the_page(place: tuple[Server, Accounts]) -> None:
    """Price, pay, read and download; a form without its token, and code in a name, do nothing."""
    server, accounts = place
    bob = Browser(server.url, accounts.issue("bob", Role.ANALYST))
    status, text, _ = bob.go("/ask?table=visits")
    assert status == 200
    assert "from 0 to 6 points" in text
    asked = {**bob.fields(text), "ask": "count", "by": "g", "keys": "a, b", "epsilon": "0.5"}
    status, text, _ = bob.go("/price", asked)
    assert "Pay ε = 0.5 and ask" in text
    pay = bob.fields(text)
    assert bob.go("/pay", {**pay, "csrf": "forged"})[0] == 403
    status, text, path = bob.go("/pay", pay)
    assert status == 200
    assert "The answer appears at" in text
    until = time.monotonic() + 60
    while "95% interval" not in text and time.monotonic() < until:
        time.sleep(0.2)
        status, text, _ = bob.go(path)
    assert "Number of rows by g" in text
    assert "95% interval" in text
    for form in ("csv", "json", "html"):
        status, text, _ = bob.go(f"{path}/{form}")
        assert status == 200
        assert "a" in text
    assert bob.go("/pay", pay)[2] == path  # paid once
    for field in ("column", "by", "bounds", "ask", "table", "epsilon", "quantiles"):
        status, text, _ = bob.go(
            "/price", {**asked, "ask": "quantiles", "column": "v", field: "<script>alert(1)</script>"}
        )
        assert "<script" not in text
    keeper = Browser(server.url, accounts.issue("keeper", Role.KEEPER))
    csrf = keeper.fields(keeper.go("/")[1])["csrf"]
    assert "agree with the totals" in keeper.go("/verify", {"csrf": csrf, "number": "0"})[1]
    assert keeper.go("/price", {**asked, "csrf": csrf})[0] == 403
    assert bob.go("/out", {"csrf": asked["csrf"]})[0] == 200
    assert bob.go(path)[0] == 401


def test_nothing_of_a_row_is_in_logs_or_answers(place: tuple[Server, Accounts]) -> None:
    """Users are called after a canary: it is looked for in responses, headers, logs and what is stored."""
    server, accounts = place
    tokens = [accounts.issue("ann", Role.ANALYST), accounts.issue("keeper", Role.KEEPER), "wrong"]
    sum_of_names = {"ask": "sum", "column": "u", "bounds": [0, 1], "epsilon": "0.01"}
    by_user = {"ask": "count", "by": "u", "epsilon": "0.01", "delta": "1e-6"}
    casts = {"ask": "sql", "text": "SELECT SUM(CAST(u AS INT)) FROM table", "epsilon": "0.01"}
    asked = [
        (path, {"question": question, "key": f"canary{number}"})
        for path in ("/v1/preview", "/v1/questions")
        for number, question in enumerate((sum_of_names, by_user, casts, {"ask": "count", "epsilon": "0.01"}))
    ]
    paths = [
        "/health",
        "/metrics",
        "/openapi.json",
        "/nowhere",
        "/v1/tables",
        "/v1/budget",
        "/v1/questions",
        "/v1/export",
    ]
    seen = 0
    for token in tokens:
        for path, data in [*((path, None) for path in paths), *asked]:
            content = None if data is None else json.dumps(data).encode()
            request = urllib.request.Request(server.url + path, content, {"Authorization": f"Bearer {token}"})
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    headers, text = response.headers, response.read().decode()
            except urllib.error.HTTPError as error:
                headers, text = error.headers, error.read().decode()
            assert headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert CANARY not in text
            assert CANARY not in str(headers)
            seen += len(text)
    assert seen > 10_000
    server.log.flush()
    log = (server.folder / "log.txt").read_text()
    assert '"path": "/v1/questions"' in log
    assert CANARY not in log
    for file in server.folder.iterdir():  # the ledger with the questions and their answers, accounts, journals
        assert file.suffix == ".parquet" or CANARY.encode() not in file.read_bytes()


def test_tokens_on_the_command_line(tmp_path: Path) -> None:
    from evenhand.apps.cli import app

    make(tmp_path)
    file, runner = str(tmp_path / "keeper.toml"), CliRunner()
    token = runner.invoke(app, ["serve", "token", "create", file, "ann"]).output.strip()
    reader = json.loads(
        runner.invoke(app, ["serve", "token", "create", file, "r", "--role", "reader", "--json"]).output
    )
    accounts = Accounts(tmp_path / "accounts.db")
    assert accounts.find(token) == Account("ann", Role.ANALYST)
    assert accounts.find(reader["token"]) == Account("r", Role.READER)
    (first, *_) = json.loads(runner.invoke(app, ["serve", "token", "list", file, "--json"]).output)["tokens"]
    assert token not in str(first)
    assert runner.invoke(app, ["serve", "token", "revoke", file, first["id"]]).exit_code == 0
    assert accounts.find(token) is None
    assert isinstance(runner.invoke(app, ["serve", "token", "create", file, "nobody"]).exception, eh.UsageError)


def test_accounts_on_postgres(postgres_url: str) -> None:
    accounts = Accounts(postgres_url)
    token, short = accounts.issue("ann", Role.ANALYST), accounts.issue("ann", Role.ANALYST, days=1e-9)
    assert Accounts(postgres_url).find(token) == Account("ann", Role.ANALYST)
    assert accounts.find(short) is None
    accounts.revoke(accounts.listed()[0]["id"])
    assert accounts.find(token) is None


WRONG = {
    "epsilon = 6": ("epsilom = 6", "line 26: .* 'epsilom' is not known here.*Did you mean 'epsilon'"),
    "per_question": ("per_question = 'x' #", "line 28: .*per_question"),
    'population = "people"': ('population = "peopel"', "line 13: .*population"),
    'source = "visits.parquet"': ('source = "nothing.parquet"', "line 11: "),
    "[analysts.bob]": ("[analysts.bob", "not TOML"),
    "rows = 2000": ("rows = 0", "line 14: .*how many rows the table may have"),
    "per_question = 2": ("waiting = -1", "line 28: .*how many questions may wait"),
    "epsilon = 20": ("epsilon = -1", "line 6: "),
    "[analysts.pat]": (
        "[limits]\nmemory = '4 gigs'\n[analysts.pat]",
        "line 37: .*limits.*'4 gigs': expected a number of bytes",
    ),
    "[analysts.vic]": ("[limits]\nfolder = 'none'\n[analysts.vic]", "line 43: .*limits.*folder = 'none'"),
    'where = "v >= 3"': ('where = "w >= 3"', "line 22: .*views.high.*'w'"),
    "deadline = 3\n": ("deadline = 1e-9\n", "line 2: deadline = 1e-09: expected seconds, at least 0.01"),
    "approval_above = 4": ("approval_above = 400", "line 29: .*approval_above = 400 is more than epsilon = 6"),
    "{ epsilon = 19,": ("{ epsilon = 1900,", "line 8: .*epsilon = 1900 a month is more than the total of 20"),
    'ledger = "budget.db"': ('ledger = "accounts.db"', "line 5: .*the file of accounts, too"),
    "[tables.visits]\n": (
        '[populations.more]\nledger = "budget.db"\nepsilon = 1\n[tables.visits]\n',
        "the ledger of 'people', too",
    ),
    **{
        f"[populations.people]{line}": (f"{line}\n[populations.people]", message)
        for line, message in {
            "per_minute = 0": "line 4: per_minute = 0: expected 1 to",
            "per_minute = -1": "per_minute = -1: expected 1 to",
            "port = 70000": "port = 70000: expected 0 to 65,535",
            "connections = 0": "connections = 0: expected 10 to",
            "connections_by_address = -1": "connections_by_address = -1: expected 1 to",
            "proxies = ['caddy']": "proxies has 'caddy': expected addresses or networks",
        }.items()
    },
}


def test_a_server_leaves_half_of_the_memory_to_others(tmp_path: Path) -> None:
    from evenhand.service.config import load
    from evenhand.tables.engines.duckdb_limits import machine_memory, watch

    make(tmp_path)
    path = tmp_path / "keeper.toml"
    path.write_text(path.read_text() + "[limits]\ntemporary = '1GiB'\n")
    backend = load(path).keeper.tables["visits"].table.engine.backend
    names = ("memory_limit", "max_temp_directory_size", "temp_directory")
    memory, temporary, folder = (
        backend.con.execute(f"SELECT current_setting('{one}')").fetchall()[0][0] for one in names
    )
    assert float(memory.split()[0]) == pytest.approx(machine_memory() / 2 / 2**30, abs=0.1)
    assert temporary == "1.0 GiB"
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    stopper = watch(backend)
    assert stopper is not None
    assert stopper.seconds == 120, "the longest deadline"


@pytest.mark.parametrize("old", WRONG)
def test_mistakes_in_the_file_are_pointed_at(old: str, tmp_path: Path) -> None:
    from evenhand.service.config import load

    make(tmp_path)
    new, message = WRONG[old]
    path = tmp_path / "keeper.toml"
    if old.startswith("[populations.people]"):
        old = "[populations.people]"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(eh.EvenhandError, match=message):
        load(path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "keeper.example"])
def test_tokens_do_not_travel_unencrypted(host: str, tmp_path: Path) -> None:
    """Other machines are served through a proxy with TLS, or not at all."""
    from evenhand.apps.cli import app
    from evenhand.service.listening import refuse_plain

    make(tmp_path)
    path = tmp_path / "keeper.toml"
    plain = ["serve", str(path), "--host", host, "--port", "0"]
    ended = CliRunner().invoke(app, plain)
    assert isinstance(ended.exception, eh.UsageError)
    assert "proxies" in str(ended.exception)
    path.write_text(f"host = {host!r}\n{path.read_text()}")
    assert isinstance(CliRunner().invoke(app, ["serve", str(path), "--port", "0"]).exception, eh.UsageError)
    refuse_plain(host, ["10.0.0.5/32"])
    refuse_plain("127.0.0.1", [])
    refuse_plain("::1", [])


def test_what_a_keeper_makes_is_private(tmp_path: Path) -> None:
    """Tokens, and answers before their deadline, are for nobody else on the machine; what others may read is said."""
    from evenhand.service.config import load

    before = os.umask(0o022)
    try:
        make(tmp_path)
        (tmp_path / "accounts.db").unlink()
        (tmp_path / "accounts.db-journal").unlink(missing_ok=True)
        found = load(tmp_path / "keeper.toml")
        assert os.umask(0o022) == 0o022  # as it was
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if ".db" in path.name}
    assert {"accounts.db", "budget.db"} <= set(modes)
    assert set(modes.values()) == {0o600}
    assert found.readable == ("keeper.toml",)
    (tmp_path / "keeper.toml").chmod(0o600)
    (tmp_path / "budget.db").chmod(0o640)
    assert load(tmp_path / "keeper.toml").readable == ("budget.db",)


def test_a_keepers_csv_has_declared_types(tmp_path: Path) -> None:
    from evenhand.service.config import load

    make(tmp_path)
    (tmp_path / "log.csv").write_text("person,day,minutes\np1,2026-01-05,3.5\np2,oops,x\n")
    (tmp_path / "sample.csv").write_text("person,day,minutes\nnobody,2020-01-01,1.5\n")
    path = tmp_path / "keeper.toml"
    table = '[tables.log{}]\nsource = "log.csv"\nuser = "person"\npopulation = "people"\ntypes = {}\n'
    given = ('{ day = "date", minutes = "float" }', '"sample.csv"')
    path.write_text(path.read_text() + "".join(table.format(place, types) for place, types in enumerate(given)))
    for name in ("log0", "log1"):
        schema = load(path).keeper.tables[name].table.expression.schema()
        assert (str(schema["day"]), str(schema["minutes"])) == ("date", "float64")

"""A campaign's server as real processes: asked by clients, abused, killed and started again."""

from __future__ import annotations

import http.client
import json
import random
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from typer.testing import CliRunner

from evenhand.apps.recommender_cli import app
from evenhand.guarantee import UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.messages import PublishedModel, Report, Task, Token
from evenhand.service.campaign_config import load

ROOT = Path(__file__).parents[2]
FILMS = ["alien", "brazil", "casablanca", "dune", "elf", "fargo"]
USERS = 240
ADDRESS = "127.7.7.7"  # where the tests' clients call from


class Server:
    """One process of `evenhand recommender serve`, of the campaign in a folder unless other arguments are given."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        command = [sys.executable, "-c", "from evenhand.apps.recommender_cli import app; app()", "serve"]
        given = [str(argument) for argument in arguments or [folder / "campaign.toml"]]
        with (folder / "log.txt").open("a") as log:
            self.process = subprocess.Popen(
                [*command, *given, "--port", "0", "--json"], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        self.said = json.loads(self.process.stdout.readline())
        self.port = urlsplit(self.said["url"]).port

    def connect(self) -> http.client.HTTPConnection:
        assert self.port is not None
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(ADDRESS, 0))

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        with closing(self.connect()) as connection:
            connection.request(method, path, body)
            reply = connection.getresponse()
            assert reply.headers["Access-Control-Allow-Origin"] == "*"
            assert reply.headers["Cache-Control"] == "no-store"
            return reply.status, reply.read()

    def send(self, record: bytes) -> int:
        return self.ask("POST", "/report", record)[0]

    def status(self) -> dict[str, object]:
        return dict(json.loads(self.ask("GET", "/status")[1]))

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


def make(folder: Path, *lines: str) -> Campaign:
    campaign = Campaign(FILMS, rated=3, users=USERS)
    (folder / "task.json").write_text(campaign.task.to_json())
    (folder / "server.secret").write_text(campaign.secret.hex())
    (folder / "campaign.toml").write_text("\n".join(lines))
    return campaign


def record(campaign: Campaign, serial: int, answer: int) -> bytes:
    return Report(campaign.task.short_id, serial, campaign.token(serial).tag, answer).to_bytes()


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_a_campaign_from_its_task_to_its_model(tmp_path: Path) -> None:
    campaign = make(tmp_path)
    server = Server(tmp_path)
    try:
        assert Task.from_json(server.ask("GET", "/task")[1]) == campaign.task
        assert server.send(record(campaign, 0, 1)) == 503  # there is no question yet
        run("task", tmp_path / "task.json", "--open", "--beacon", "lottery")
        opened = Task.from_json(server.ask("GET", "/task")[1])
        assert opened == campaign.open("lottery")
        assert server.status() == {
            "evenhand": "status", "version": 1, "state": "open", "reports": 0, "published": False,
        }  # fmt: skip
        assert [server.send(record(campaign, 0, answer)) for answer in (1, 1, 0)] == [204, 204, 409]
        _abuse(server, record(campaign, 1, 1))
        with ThreadPoolExecutor(8) as senders:
            statuses = senders.map(server.send, [record(campaign, serial, serial % 2) for serial in range(1, 120)])
            assert set(statuses) == {204}
        (tmp_path / "reports.db").rename(tmp_path / "away")  # the disk fails, and is mended
        assert {server.send(record(campaign, 5, 1)), server.send(record(campaign, 150, 1))} == {503}
        (tmp_path / "away").rename(tmp_path / "reports.db")
        assert server.send(record(campaign, 5, 1)) == 204
        assert server.ask("GET", "/model")[0] == 404
        fold, model = tmp_path / "campaign.fold", tmp_path / "model.json"
        common = ("--secret", tmp_path / "server.secret", "--into", fold, "--json")
        counts = json.loads(run("fold", tmp_path / "task.json", tmp_path / "reports.db", *common))
        assert (counts["accepted"], counts["duplicate"], counts["forged"]) == (120, 0, 0)
        model.write_text("{")  # somebody is writing it
        assert server.ask("GET", "/model")[0] == 404
        run("publish", tmp_path / "task.json", fold, "--out", model, "--clusters", 2)
        assert PublishedModel.from_json(server.ask("GET", "/model")[1]).reports == 120
        task = json.loads((tmp_path / "task.json").read_text())
        (tmp_path / "task.json").write_text(json.dumps({**task, "beacon": "00" * 32}))
        assert Task.from_json(server.ask("GET", "/task")[1]) == opened  # a second opening is not served
    finally:
        server.stop()
    said = (tmp_path / "log.txt").read_text()
    assert "another beacon" in said
    assert said.count("store failed") == 1
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    for trace in (ADDRESS.encode(), socket.inet_aton(ADDRESS)):
        assert trace not in kept


def _abuse(server: Server, good: bytes) -> None:
    """One error for everything that is no report, and the server goes on."""
    bad = [b"", good[:-1], good + b"x", b"x" * 1_000_000, bytes(28), good[:4] + bytes(8) + good[12:], b"\xff" * 28]
    assert [server.send(body) for body in bad] == [400] * len(bad)
    assert server.send(good[:16] + bytes(8) + good[24:]) == 403
    replies = {server.ask("POST", "/report", body) for body in bad}
    assert len(replies) == 1
    asked = [("GET", "/report"), ("POST", "/task"), ("OPTIONS", "/report"), ("GET", "/task/"), ("GET", "/../task")]
    assert [server.ask(*some)[0] for some in asked] == [405, 405, 405, 404, 404]
    raw = [b"\0" * 100, b"GET / HTTP/9\r\n\r\n", b"POST /report HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"]
    raw.append(b"POST /report HTTP/1.1\r\nHost: x\r\nContent-Length: 28\r\n\r\nEHR1")  # and then it goes away
    for request in raw:
        assert server.port is not None
        with socket.create_connection(("127.0.0.1", server.port), 10, (ADDRESS, 0)) as connection:
            connection.sendall(request)
    assert server.status()["state"] == "open"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_sigkill_loses_and_doubles_nothing(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Two processes share a store and are killed while people send; then everybody sends again, some of them a lie."""
    place = "reports.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    campaign = make(tmp_path, f'store = "{place}"', "per_second = 100000")
    run("task", tmp_path / "task.json", "--open", "--beacon", "lottery")
    campaign.open("lottery")
    draw = random.Random(5)
    truth = [draw.getrandbits(1) for _ in range(USERS)]
    servers = [Server(tmp_path), Server(tmp_path)]
    acknowledged: set[int] = set()

    def deliver(serials: range) -> None:
        for serial in serials:
            try:
                if servers[serial % 2].send(record(campaign, serial, truth[serial])) == 204:
                    acknowledged.add(serial)
            except (OSError, http.client.HTTPException):
                return  # it was killed
            if len(acknowledged) >= USERS // 4:
                for server in servers:
                    server.process.kill()

    with ThreadPoolExecutor(6) as senders:
        list(senders.map(deliver, [range(first, USERS, 6) for first in range(6)]))
    for server in servers:
        server.stop(signal.SIGKILL)
    assert USERS // 4 <= len(acknowledged) < USERS

    found = load(tmp_path / "campaign.toml")
    stored = {
        int(serial): int(answer)
        for batch in found.store.batches()
        for serial, answer in zip(batch.serials, batch.answers, strict=True)
    }
    assert acknowledged <= stored.keys()
    assert all(truth[serial] == answer for serial, answer in stored.items())

    servers = [Server(tmp_path)]
    try:
        with ThreadPoolExecutor(6) as senders:
            lies = [record(campaign, serial, 1 - truth[serial]) for serial in sorted(stored)[:30]]
            assert set(senders.map(servers[0].send, lies)) == {409}
            if kind == "postgres":
                _drop_connections(place)
            everybody = [record(campaign, serial, truth[serial]) for serial in range(USERS)]
            assert set(senders.map(servers[0].send, everybody)) == {204}
    finally:
        servers[0].stop()
    fold, direct = campaign.fold(), campaign.fold()
    for batch in found.store.batches():
        fold.add(batch)
    direct.add_reports(map(Report.from_bytes, everybody))
    assert fold.to_bytes() == direct.to_bytes()


def _drop_connections(url: str) -> None:
    """As a restart of the database does."""
    with psycopg.connect(url, autocommit=True) as connection:
        mine = "datname = current_database() AND pid <> pg_backend_pid()"
        dropped = connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}").fetchall()
    assert dropped


def test_limits_hold_for_everybody_together(tmp_path: Path) -> None:
    campaign = make(tmp_path, "per_second = 1", "until = 2020-01-01T00:00:00Z")
    run("task", tmp_path / "task.json", "--open")
    server = Server(tmp_path)
    try:
        with ThreadPoolExecutor(8) as senders:
            statuses = list(senders.map(server.send, [record(campaign, serial, 0) for serial in range(24)]))
        assert statuses.count(410) >= 1  # the campaign is over
        assert statuses.count(429) >= 1
        assert set(statuses) == {410, 429}
    finally:
        server.stop()


def _is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.05)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


@pytest.mark.parametrize(
    "sent", [b"GET /status HTTP/1.1\r\nX: ", b"POST /report HTTP/1.1\r\nHost: x\r\nContent-Length: 28\r\n\r\nEHR1"]
)
def test_nobody_keeps_the_others_out(tmp_path: Path, sent: bytes) -> None:
    """More connections than there may be, of which nothing more comes: reports are stored as before."""
    campaign = make(tmp_path, "connections = 20")
    run("task", tmp_path / "task.json", "--open")
    server = Server(tmp_path)
    idle = []
    try:
        for _ in range(60):
            idle.append(socket.create_connection(("127.0.0.1", server.port or 0), timeout=10))
            idle[-1].sendall(sent)
        assert [server.send(record(campaign, serial, 1)) for serial in range(30)] == [204] * 30
        assert sum(map(_is_open, idle)) <= 20
    finally:
        for connection in idle:
            connection.close()
        server.stop()
    assert "defect" not in (tmp_path / "log.txt").read_text()


def test_the_demonstration_has_a_page_a_model_and_tokens(tmp_path: Path) -> None:
    server = Server(tmp_path, "--demo", "--page", ROOT / "web")
    try:
        task, token = Task.from_json(server.ask("GET", "/task")[1]), Token.parse(server.said["tokens"][0])
        assert server.send(Report(task.short_id, token.serial, token.tag, 1).to_bytes()) == 204
        model = PublishedModel.from_json(server.ask("GET", "/model")[1])
        assert any("simulated people" in note for note in model.notes)
        with closing(server.connect()) as connection:
            connection.request("GET", "/")
            assert connection.getresponse().read() == (ROOT / "web/index.html").read_bytes()
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("stoer = 'reports.db'", r"line 2: 'stoer' is not known here.*store"),
        ("task = 'none.json'", "line 2: .*none.json can't be read"),
        ("secret = 'task.json'", "line 2: .*not a server's secret"),
        ("store = 'missing/reports.db'", "line 2: store of reports .* does not exist"),
        ("until = 2027-01-31T23:59:59", "line 2: .*with its zone"),
        ("per_second = 0", "line 2: per_second = 0: expected 1 to"),
        ("port = true", "line 2: port = True: expected a whole number"),
        ("connections = -1", "line 2: connections = -1: expected 10 to"),
    ],
)
def test_a_wrong_file_is_said_by_line_and_nothing_is_served(tmp_path: Path, line: str, said: str) -> None:
    make(tmp_path, "# a campaign", line)
    with pytest.raises(UsageError, match=said):
        load(tmp_path / "campaign.toml")

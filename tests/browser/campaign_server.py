"""Servers for the tests of the recommender's page: one has the page, the other is the campaign's (docs/recommender/http.md).

They write down every request that they get.
"""

from __future__ import annotations

import mimetypes
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import uvicorn

from evenhand.recommender import Campaign
from evenhand.recommender.at_server.store import ReportStore
from evenhand.recommender.messages import PublishedModel
from evenhand.service import campaign_http
from evenhand.service.campaign_config import Configured
from evenhand.service.campaign_http import application

mimetypes.add_type("application/manifest+json", ".webmanifest")


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Message
    body: bytes


@dataclass
class Reply:
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Server:
    """Answers requests on its own port by `reply`, and remembers them."""

    def __init__(self, host: str = "localhost") -> None:
        self.requests: list[Request] = []
        self.headers: dict[str, str] = {}
        """Sent with every reply."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = Request(self.command, self.path.partition("?")[0], self.headers, body)
                server.requests.append(request)
                reply = server.reply(request)
                self.send_response(reply.status)
                for name, value in {**reply.headers, **server.headers, "Content-Length": str(len(reply.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = do_OPTIONS = _any  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        class Threads(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64  # a browser that finds five in the queue tries again a second later

        self._http = Threads(("127.0.0.1", 0), Handler)
        self.origin = f"http://{host}:{self._http.server_port}"
        self.url = f"{self.origin}/"
        Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def reply(self, request: Request) -> Reply:
        raise NotImplementedError

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def file_in(root: Path, path: str) -> Reply:
    found = (root / path.lstrip("/")).resolve()
    if found.is_dir():
        found = found / "index.html"
    if not (found.is_relative_to(root) and found.is_file()):
        return Reply(404)
    kind = "text/javascript" if found.suffix == ".mjs" else mimetypes.guess_type(found.name)[0] or "text/plain"
    return Reply(200, found.read_bytes(), {"Content-Type": kind})


class PageServer(Server):
    """The separately trusted origin: files, and nothing else."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def reply(self, request: Request) -> Reply:
        return file_in(self.root, request.path) if request.method == "GET" else Reply(405)


class CampaignServer(Server):
    """In front of the campaign's real server, to which it passes every request on. With ``demo`` that also has the page."""

    def __init__(self, campaign: Campaign, demo: Path | None = None) -> None:
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        (folder / "task.json").write_text(campaign.task.to_json(), encoding="utf-8")
        self._store, self.model = ReportStore(folder / "reports.db", campaign.task), folder / "model.json"
        found = Configured(folder / "task.json", campaign.issuer, self._store, self.model)
        app = application(campaign_http.CampaignServer(found), demo)
        self._real = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, log_level="error"))
        self._thread = Thread(target=self._real.run, daemon=True)
        self._thread.start()
        while not self._real.started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        self.campaign = campaign
        self.damaged_task: str | None = None
        """Sent instead of the task."""
        self.before_report: Callable[[], None] = lambda: None
        super().__init__("localhost" if demo else "127.0.0.1")

    @property
    def reports(self) -> dict[int, bytes]:
        """What is stored, by serial."""
        head = b"EHR1" + self.campaign.task.short_id
        return {
            int(serial): head + serial.tobytes() + tag.tobytes() + answer.tobytes()
            for batch in self._store.batches()
            if batch.tags is not None
            for serial, tag, answer in zip(batch.serials, batch.tags, batch.answers, strict=True)
        }

    def publish(self, model: PublishedModel) -> None:
        self.model.write_text(model.to_json(), encoding="utf-8")

    def reply(self, request: Request) -> Reply:
        if request.path == "/task" and self.damaged_task is not None:
            return Reply(200, self.damaged_task.encode(), {"Access-Control-Allow-Origin": "*"})
        if request.method == "POST":
            self.before_report()
        host, port = self._real.servers[0].sockets[0].getsockname()[:2]
        with closing(HTTPConnection(host, port, timeout=30)) as connection:
            connection.request(request.method, request.path, request.body)
            reply = connection.getresponse()
            headers = {
                name: value for name, value in reply.getheaders() if name.lower() not in ("date", "content-length")
            }
            return Reply(reply.status, reply.read(), headers)

    def close(self) -> None:
        super().close()
        self._real.should_exit = True
        self._thread.join(10)
        self._folder.cleanup()

"""Small servers for the tests of the recommender's page: one has the page, the other the campaign (docs/recommender/http.md).

They write down every request that they get. The campaign's keeps reports in memory, so it is for tests only.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from evenhand.guarantee import MessageError
from evenhand.recommender import Campaign
from evenhand.recommender.messages import PublishedModel, Report

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

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
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
    """The campaign: GET task, POST report, GET model. With ``demo`` it also has the page, which it should not."""

    def __init__(self, campaign: Campaign, demo: Path | None = None) -> None:
        super().__init__("localhost" if demo else "127.0.0.1")
        self.campaign, self.demo = campaign, demo
        self.reports: dict[int, bytes] = {}
        self.model: PublishedModel | None = None
        self.before_report: Callable[[], None] = lambda: None

    def reply(self, request: Request) -> Reply:
        cors = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store"}
        as_json = {**cors, "Content-Type": "application/json"}
        match request.method, request.path:
            case "GET", "/task":
                return Reply(200, self.campaign.task.to_json().encode(), as_json)
            case "GET", "/model":
                return Reply(200, self.model.to_json().encode(), as_json) if self.model else Reply(404, b"", cors)
            case "POST", "/report":
                self.before_report()
                return Reply(self._take(request.body), b"", cors)
            case "GET", path if self.demo:
                return file_in(self.demo, path)
        return Reply(404, b"", cors)

    def _take(self, body: bytes) -> int:
        task = self.campaign.task
        try:
            report = Report.from_bytes(body)
        except MessageError:
            return 400
        if report.task != task.short_id or report.serial >= task.tokens or report.answer >> task.questions:
            return 400
        if self.campaign.token(report.serial).tag != report.tag:
            return 403
        return 204 if self.reports.setdefault(report.serial, body) == body else 409

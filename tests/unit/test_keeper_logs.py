"""What a server's log holds: one JSON line for each event, whatever somebody sends."""

from __future__ import annotations

import json
import subprocess
import sys

from evenhand.service.logs import Seldom

CANARY = "Jane Doe"
NOISY = """
import asyncio, logging, threading, warnings, sys
from evenhand.service import logs
stray = logging.getLogger("sqlalchemy.engine"); stray.addHandler(logging.StreamHandler()); stray.propagate = False
logs.install()
canary = "Jane Doe\\n{\\"event\\":\\"request\\",\\"who\\":\\"keeper\\"}"
import sqlglot
for _ in range(50): sqlglot.parse_one(f"CALL x('{canary}')")
logging.getLogger("uvicorn.error").warning("Invalid: %s", canary)
stray.error(canary)
warnings.warn(canary)
logging.getLogger("evenhand.http").info("request", extra={"who": canary, "status": 200})
try:
    raise ValueError(canary)
except ValueError:
    logging.getLogger("evenhand.http").error("defect", exc_info=True)
def fails(): raise KeyError(canary)
thread = threading.Thread(target=fails); thread.start(); thread.join()
async def accepting():
    loop = asyncio.get_running_loop(); logs.watch_loop(loop)
    for _ in range(500): loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": OSError(24, canary)})
asyncio.run(accepting())
raise RuntimeError(canary)
"""


def test_every_event_is_one_line_of_json() -> None:
    """Libraries, warnings, threads and uncaught errors too; their texts, which may quote a question, are in none."""
    ended = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, text=True)
    told = [json.loads(line) for line in ended.stderr.splitlines()]
    events = [one["event"] for one in told]
    assert CANARY not in json.dumps([one for one in told if one["event"] != "request"])
    assert [one["who"][: len(CANARY)] for one in told if one["event"] == "request"] == [CANARY]  # a name is a field
    assert {one["logger"] for one in told if one["event"] == "library"} == {
        "sqlglot", "uvicorn.error", "sqlalchemy.engine", "py.warnings",
    }  # fmt: skip
    assert [one["error"] for one in told if "error" in one] == ["ValueError", "KeyError", "OSError", "RuntimeError"]
    assert events.count("connection not accepted") == 1
    assert [one["logger"] for one in told if one["event"] == "library"].count("sqlglot") == 1
    assert ended.stdout == ""


def test_what_happens_often_is_said_seldom() -> None:
    now = [100.0]
    seldom = Seldom(60, clock=lambda: now[0])
    assert [seldom.happened() for _ in range(5)] == [1, 0, 0, 0, 0]
    now[0] += 61
    assert [seldom.happened() for _ in range(2)] == [5, 0]

"""A keeper's server as a process of its own, for tests over HTTP and in a browser."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path


class Server:
    """One process of `evenhand serve`.

    Args:
        folder: with a keeper.toml and its table.
        code: what starts it.
    """

    def __init__(self, folder: Path, code: str = "from evenhand.apps.cli import main; main()") -> None:
        self.folder = folder
        command = [sys.executable, "-c", code, "serve", str(folder / "keeper.toml")]
        self.log = (folder / "log.txt").open("a")
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--json"], stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        assert self.process.stdout is not None
        self.url = str(json.loads(self.process.stdout.readline())["url"])

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(30)
        self.log.close()

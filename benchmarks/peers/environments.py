"""An environment of its own for each library, made on demand in the user's cache folder, never in the project's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PYTHONS = (sys.executable, "python3.11", "python3.12", "python3.10", "python3.9")
"""Interpreters to try, in this order."""


@dataclass(frozen=True)
class Peer:
    """A library, and the module that runs it."""

    name: str
    module: str
    packages: tuple[str, ...]
    needs: str | None = None  # a program


PEERS = (
    Peer("PipelineDP 0.3.1", "pipeline_dp", ("pipeline-dp==0.3.1", "pyarrow")),
    Peer("OpenDP 0.16.0", "opendp", ("opendp[polars]==0.16.0", "pyarrow")),
    Peer("Tumult Analytics 0.21.0", "tumult", ("tmlt.analytics==0.21.0", "pyarrow"), needs="java"),
)


class InstallError(Exception):
    """Why a library could not be installed here."""


def folder() -> Path:
    """Where environments and tables are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "evenhand-peers"


def interpreter(peer: Peer) -> Path:
    """The Python of the library's environment, made if it is missing."""
    if peer.needs and not shutil.which(peer.needs):
        raise InstallError(f"needs {peer.needs}, which is not on this machine")
    place = folder() / peer.module
    python, done = place / "bin" / "python", place / ".installed"
    wanted = " ".join(peer.packages)
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    reason = "no interpreter found"
    for candidate in PYTHONS:
        if not shutil.which(candidate):
            continue
        shutil.rmtree(place, ignore_errors=True)
        made = subprocess.run([candidate, "-m", "venv", str(place)], capture_output=True, text=True, check=False)
        if made.returncode == 0:
            install = [str(python), "-m", "pip", "install", "--quiet", "--prefer-binary", *peer.packages]
            made = subprocess.run(install, capture_output=True, text=True, check=False)
        if made.returncode == 0:
            done.write_text(wanted, encoding="utf-8")
            return python
        reason = _reason(made.stderr)
    raise InstallError(reason)


def _reason(stderr: str) -> str:
    """The last error that pip printed, without addresses."""
    lines = (
        [line for line in stderr.splitlines() if line.startswith("ERROR")] or stderr.splitlines()[-1:] or ["unknown"]
    )
    return re.sub(r"\S+://\S+", "(address)", lines[-1])[:200]

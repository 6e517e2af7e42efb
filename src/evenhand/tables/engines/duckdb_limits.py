"""How much memory, room for temporary files, and time DuckDB may take on the connections that Evenhand opens itself.

A join may need far more than its table. What needs more memory goes on in temporary files, as far as DuckDB can; what needs more room or
time than it may have fails, after the debit, like every failure of an engine. Connections of the caller's own keep their settings.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from dataclasses import dataclass, fields, replace
from pathlib import Path
from weakref import WeakSet, ref

from evenhand.guarantee import UsageError
from evenhand.tables.engines.time_limit import Watch
from evenhand.tables.expressions import Backend

_SMALLEST = 16 * 2**20
"""Bytes. DuckDB needs some to work at all."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """What one DuckDB connection may take; None leaves it as DuckDB has it: 80% of memory, 90% of the disk, any time.

    Args:
        memory: bytes.
        temporary: bytes of temporary files.
        folder: where these are; DuckDB's own choice is ``.tmp`` where the program was started.
        seconds: of one statement.
    """

    memory: int | None = None
    temporary: int | None = None
    folder: str | None = None
    seconds: float | None = None


_SETTINGS = {"memory": "memory_limit", "temporary": "max_temp_directory_size", "folder": "temp_directory"}

_limits = Limits()
_opened: WeakSet[Backend] = WeakSet()


def limit_duckdb(
    memory: int | str | None = None,
    temporary: int | str | None = None,
    folder: str | os.PathLike[str] | None = None,
    seconds: float | None = None,
) -> None:
    """Limit what DuckDB may take for tables that `evenhand.read` opens: files, frames and DuckDB files, those opened already included.

    A release that needs more fails after its debit, with an error that quotes nothing. Each DuckDB file has a connection of its own,
    which may take as much as that of all other tables together. A connection of yours keeps the settings that you gave it.

    Args:
        memory: bytes, or text such as ``"4GB"``. Unless given, four fifths of the machine's memory.
        temporary: room for temporary files, where rows go that don't fit in memory; 0 for none. Unless given, nine tenths of the disk.
        folder: where temporary files are. They hold rows: as sensitive as the table.
        seconds: how long one statement may run.

    Example:
        >>> eh.limit_duckdb(memory="4GB", temporary="20GB", seconds=600)  # doctest: +SKIP
    """
    global _limits
    given = Limits(
        None if memory is None else size(memory, "memory", _SMALLEST),
        None if temporary is None else size(temporary, "temporary"),
        None if folder is None else _folder(folder),
        None if seconds is None else _seconds(seconds),
    )
    changed = {field.name: value for field in fields(given) if (value := getattr(given, field.name)) is not None}
    for backend in list(_opened):
        _apply(backend, replace(Limits(), **changed))
    _limits = replace(_limits, **changed)


def limited(backend: Backend) -> Backend:
    """A connection that Evenhand has opened, with the limits that hold now and those that are set later."""
    _apply(backend, _limits)
    _opened.add(backend)
    return backend


def watch(backend: Backend) -> Watch | None:
    """What stops statements of a connection; None for one that Evenhand can't interrupt."""
    if backend is None:
        return None
    found: Watch | None = backend.__dict__.get("evenhand_watch")
    if found is None:
        here = ref(backend)  # a file is closed when nobody reads it any more
        found = backend.__dict__.setdefault("evenhand_watch", Watch(lambda: _interrupt(here())))
    return found


def _interrupt(backend: Backend | None) -> None:
    if backend is not None:
        backend.con.interrupt()


def _apply(backend: Backend, limits: Limits) -> None:
    # The folder comes first: its size can't be set once DuckDB has written there.
    for name in ("folder", "temporary", "memory"):
        value = getattr(limits, name)
        if value is not None:
            _set(backend, _SETTINGS[name], str(value) if name == "folder" else f"{value}B")
    if limits.seconds is not None:
        stopper = watch(backend)
        assert stopper is not None
        stopper.seconds = limits.seconds


def _set(backend: Backend, setting: str, value: str) -> None:
    quoted = value.replace("'", "''")
    if (
        setting == "temp_directory"
        and value == backend.con.execute(f"SELECT current_setting('{setting}')").fetchall()[0][0]
    ):
        return  # DuckDB refuses to set it once it has written there, another connection of the same database also
    try:
        backend.con.execute(f"SET {setting} = '{quoted}'")
    except Exception as error:
        raise UsageError(
            f"DuckDB refuses {setting} = {value!r} now ({type(error).__name__}). Limits are set before rows are read, and a keeper's server keeps "
            "those of its keeper.toml."
        ) from None


def size(given: int | str, name: str, smallest: int = 0) -> int:
    """A number of bytes from what was given."""
    if isinstance(given, int) and not isinstance(given, bool):
        found: float = given
    else:
        match = _SIZE.fullmatch(given) if isinstance(given, str) else None
        found = math.nan if match is None else float(match[1]) * _UNITS.get(match[2].upper(), math.nan)
    if not smallest <= found <= 10**18:
        least = f" of at least {smallest // 2**20} MiB" if smallest else ""
        raise UsageError(f"{name}={given!r}: expected a number of bytes{least}, or text such as '4GB' or '512MiB'.")
    return int(found)


def _seconds(given: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 10**9:
        raise UsageError(f"seconds={given!r}: expected a number of seconds above 0.")
    return float(given)


def _folder(given: str | os.PathLike[str]) -> str:
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        raise UsageError(f"folder={str(given)!r} is not a directory; create it first, for nobody else to read.")
    return str(path)


def machine_memory() -> int:
    """Bytes of memory that this process may have: those of the machine, or of its container."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # control groups, version 2 and 1
        try:
            found.append(int(Path("/sys/fs/cgroup", name).read_text()))
        except (OSError, ValueError):
            continue
    return min(found, default=4 * 2**30)


def free_disk(folder: str) -> int:
    """Bytes that are free where a folder is."""
    return shutil.disk_usage(folder).free

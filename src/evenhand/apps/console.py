"""What all commands share: errors without stack traces, progress for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from evenhand.guarantee import DataError, EvenhandError, UsageError
from evenhand.pages.progress import shown

End = TypeVar("End")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

# Which extra brings a package. SciPy comes with two; the other one, learning, asks for all of its packages at once.
_EXTRAS = {"evenhand": "learning", "scipy": "recommender", "platformdirs": "recommender"}


def fail(error: BaseException, as_json: bool = False) -> int:
    """Print one helpful line for an error, or one JSON object for a program, and return the exit code."""
    extra = _EXTRAS.get(str(error.name).partition(".")[0]) if isinstance(error, ImportError) else None
    if isinstance(error, EvenhandError):
        message, code = str(error), error.exit_code
    elif extra is not None:
        message, code = f"this command needs packages that are not installed: pip install 'evenhand[{extra}]'.", 2
    elif os.environ.get("EVENHAND_DEBUG"):
        raise error
    else:  # the text of an unforeseen exception might quote rows, so only its kind is shown
        name, code = type(error).__name__, 1
        message = (
            f"unexpected {name}; this is a defect, please report it (EVENHAND_DEBUG=1 shows where, and may show data)."
        )
    if as_json:
        show_json({"error": {"kind": type(error).__name__, "message": message, "exit_code": code}})
    else:
        print(f"evenhand: {message}", file=sys.stderr)
    return code


def show_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object and nothing else."""
    print(json.dumps(data, ensure_ascii=False, default=str), flush=True)


def say(as_json: bool, data: Mapping[str, Any], words: object) -> None:
    """Print the one or the other."""
    if as_json:
        show_json(data)
    else:
        print(words)


def require_server() -> None:
    """Say what to install, if servers can't run here."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise UsageError("the server is not installed. Install it with: pip install 'evenhand[service]'")


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file, in place of what it held."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
    except OSError as error:
        raise DataError(f"{path} can't be written: {error.strerror}.") from None


def check_writable(path: Path, option: str) -> None:
    """Find out before anything is spent that a result can be written."""
    new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if new:
            path.unlink()  # what fails later must not leave an empty file
    except OSError as error:
        raise UsageError(f"--{option} {path} can't be written: {error.strerror}; give a writable path.") from None


@contextmanager
def progress(message: str) -> Iterator[Callable[[str], None]]:
    """A spinner on standard error while a person is watching; silent otherwise. Gives a way to change its message."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(message) as status, shown():
        yield status.update


def parse_pair(text: str | None, option: str) -> tuple[float, float] | None:
    """Read ``LOW:HIGH``."""
    return None if text is None else _ends(text, option, float, "")


def parse_open_pair(text: str | None, option: str) -> tuple[float | None, float | None] | None:
    """Read ``LOW:HIGH``, where either may be left out."""
    if text is None:
        return None
    return _ends(text, option, lambda end: float(end) if end.strip() else None, f", or one of them as in --{option} 0:")


def _ends(text: str, option: str, end: Callable[[str], End], also: str) -> tuple[End, End]:
    low, colon, high = text.rpartition(":")
    try:
        if not colon:
            raise ValueError
        return end(low), end(high)
    except ValueError:
        raise UsageError(
            f"--{option} {text!r} is not LOW:HIGH; expected two numbers such as --{option} 0.5:5{also}."
        ) from None


def parse_list(text: str | None) -> list[str]:
    """Read ``a,b,c``; nothing for nothing."""
    return [item.strip() for item in text.split(",") if item.strip()] if text else []

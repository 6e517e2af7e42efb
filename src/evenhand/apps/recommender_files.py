"""What the recommender's commands share: messages in files, and the options that name them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from evenhand.apps.console import show_json
from evenhand.guarantee import DataError
from evenhand.recommender.messages.exchange import read_message
from evenhand.recommender.messages.wire import read

if TYPE_CHECKING:
    from evenhand.recommender.messages import PublishedModel, Query, Report, Task

__all__ = ["Json", "Message", "TaskFile", "encoded", "read", "read_message", "say", "write"]

Message: TypeAlias = "PublishedModel | Query | Report | Task"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
TaskFile = Annotated[Path, typer.Argument(help="The task, as published by the server.")]


def say(as_json: bool, data: dict[str, Any], words: str) -> None:
    """Print the one or the other."""
    if as_json:
        show_json(data)
    else:
        print(words)


def encoded(message: Message, path: Path) -> bytes:
    """JSON for files that are called so, else binary."""
    return (message.to_json() + "\n").encode() if path.suffix == ".json" else message.to_bytes()


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file, in place of what it held."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
    except OSError as error:
        raise DataError(f"{path} can't be written: {error.strerror}.") from None

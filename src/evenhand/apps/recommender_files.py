"""What the recommender's commands share: messages in files, and the options that name them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.apps.console import show_json
from evenhand.guarantee import DataError

if TYPE_CHECKING:
    from evenhand.recommender.messages import PublishedModel, Query, Report, Task

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
TaskFile = Annotated[Path, typer.Argument(help="The task, as published by the server.")]


def say(as_json: bool, data: dict[str, Any], words: str) -> None:
    """Print the one or the other."""
    if as_json:
        show_json(data)
    else:
        print(words)


def encoded(message: PublishedModel | Query | Report | Task, path: Path) -> bytes:
    """JSON for files that are called so, else binary."""
    return bytes((message.to_json() + "\n").encode() if path.suffix == ".json" else message.to_bytes())


def read(path: Path) -> bytes:
    """All bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}.") from None


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file, in place of what it held."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
    except OSError as error:
        raise DataError(f"{path} can't be written: {error.strerror}.") from None


def read_task(path: Path) -> Task:
    """A task, binary or JSON."""
    from evenhand.recommender.messages import Task

    data = read(path)
    return Task.from_bytes(data) if data[:4] == b"EHT1" else Task.from_json(data)


def read_query(path: Path) -> Query:
    """A query, binary or JSON."""
    from evenhand.recommender.messages import Query

    data = read(path)
    return Query.from_bytes(data) if data[:4] == b"EHQ1" else Query.from_json(data)


def read_model(path: Path) -> PublishedModel:
    """A model, binary or JSON."""
    from evenhand.recommender.messages import PublishedModel

    data = read(path)
    return PublishedModel.from_bytes(data) if data[:4] == b"EHM1" else PublishedModel.from_json(data)

"""Messages in files, binary or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from evenhand.guarantee import DataError
from evenhand.recommender.messages.exchange import Query
from evenhand.recommender.messages.model import PublishedModel
from evenhand.recommender.messages.task import Task

M = TypeVar("M", PublishedModel, Query, Task)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}.") from None


def read_message(kind: type[M], path: Path) -> M:
    """A message of this kind, binary or JSON."""
    data = read(path)
    return kind.from_bytes(data) if data.startswith(b"EH") else kind.from_json(data)

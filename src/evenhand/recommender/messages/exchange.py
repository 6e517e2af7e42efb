"""What passes between one client and the server: a token, a query and a report.

Each reads what it wrote; anything else is a `MessageError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from evenhand.guarantee import MessageError, UsageError
from evenhand.recommender.messages import wire
from evenhand.recommender.messages.model import PublishedModel
from evenhand.recommender.messages.task import MOST_TOKENS, SHORT_ID_SIZE, Task

TAG_SIZE = 8
RECORD_MAGIC = b"EHR1"
RECORD_SIZE = len(RECORD_MAGIC) + SHORT_ID_SIZE + 4 + TAG_SIZE + 4
"""A binary report has this many bytes, always: files of reports are records one after the other."""

_DIGEST_SIZE = 32
_LARGEST_ANSWER = (1 << 32) - 1


class _Record:
    """A message whose bytes are those of its fields in turn; their sizes are the layout, and what has four is a number."""

    kind: ClassVar[str]
    magic: ClassVar[bytes]
    layout: ClassVar[dict[str, int]]

    def to_bytes(self) -> bytes:
        values = [value if type(value) is bytes else wire.u32(value) for value in vars(self).values()]
        return self.magic + b"".join(values)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        reader = wire.ByteReader(data, cls.kind, cls.magic)
        found: list[Any] = [reader.u32() if size == 4 else reader.take(size) for size in cls.layout.values()]
        with wire.receiving(cls.kind):
            message = cls(*found)
        reader.end()
        return message

    def to_json(self) -> str:
        values = {name: value.hex() if type(value) is bytes else value for name, value in vars(self).items()}
        return wire.to_json(self.kind, values)

    @classmethod
    def from_json(cls, data: str | bytes) -> Self:
        found = wire.from_json(data, cls.kind, {name: int if size == 4 else str for name, size in cls.layout.items()})
        for name, size in cls.layout.items():
            found[name] = found[name] if size == 4 else wire.from_hex(found[name], size, cls.kind)
        with wire.receiving(cls.kind):
            return cls(**found)


@dataclass(frozen=True)
class Token:
    """The right to answer a task once: a serial number, and the server's tag that proves it was issued."""

    task: bytes
    serial: int
    tag: bytes

    def __post_init__(self) -> None:
        _check(self.task, self.serial, self.tag, TAG_SIZE)

    def __str__(self) -> str:
        return f"{self.task.hex()}-{self.serial}-{self.tag.hex()}"

    @classmethod
    def parse(cls, given: str) -> Token:
        """Read the text form ``TASK-SERIAL-TAG``."""
        task, _, rest = given.strip().partition("-")
        serial, _, tag = rest.partition("-")
        if not (serial.isascii() and serial.isdigit() and len(serial) <= 10):
            raise MessageError("The token is not of the form TASK-SERIAL-TAG: copy the whole line you were given.")
        with wire.receiving("token"):
            return cls(wire.from_hex(task, SHORT_ID_SIZE, "token"), int(serial), wire.from_hex(tag, TAG_SIZE, "token"))


@dataclass(frozen=True)
class Query(_Record):
    """The server's statement of a token's query: the client derives it too, and compares the digests."""

    kind = "query"
    magic = b"EHQ1"
    layout: ClassVar = {"task": SHORT_ID_SIZE, "serial": 4, "digest": _DIGEST_SIZE}

    task: bytes
    serial: int
    digest: bytes

    def __post_init__(self) -> None:
        _check(self.task, self.serial, self.digest, _DIGEST_SIZE)


@dataclass(frozen=True)
class Report(_Record):
    """One client's randomised answer: question q is bit q of ``answer``.

    Guarantee:
        All that depends on the client's ratings is ``answer``; serial and tag are the token's.
    """

    kind = "report"
    magic = RECORD_MAGIC
    layout: ClassVar = {"task": SHORT_ID_SIZE, "serial": 4, "tag": TAG_SIZE, "answer": 4}

    task: bytes
    serial: int
    tag: bytes
    answer: int

    def __post_init__(self) -> None:
        _check(self.task, self.serial, self.tag, TAG_SIZE)
        if not wire.is_count(self.answer, 0, _LARGEST_ANSWER):
            raise UsageError("The answer is out of range: expected a whole number of at most 32 bits.")


def _check(task: bytes, serial: int, proof: bytes, size: int) -> None:
    """What token, query and report share: a task's short id, a serial that some task could have, and a proof."""
    if not (wire.is_bytes(task, SHORT_ID_SIZE) and wire.is_bytes(proof, size)):
        raise UsageError(f"Expected {SHORT_ID_SIZE} bytes of the task's id, and a tag or digest of {size} bytes.")
    if not wire.is_count(serial, 0, MOST_TOKENS - 1):
        raise UsageError(f"The serial is out of range: expected a whole number from 0 to {MOST_TOKENS - 1}.")


M = TypeVar("M", PublishedModel, Query, Task)


def read_message(kind: type[M], path: Path) -> M:
    """A message of this kind, binary or JSON."""
    data = wire.read(path)
    return kind.from_bytes(data) if data.startswith(b"EH") else kind.from_json(data)

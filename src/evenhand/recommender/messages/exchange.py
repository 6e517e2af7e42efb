"""What passes between one client and the server: a token, a query and a report.

Each reads what it wrote; anything else is a `MessageError`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
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

_SIZES = {"task": SHORT_ID_SIZE, "tag": TAG_SIZE, "digest": 32}
_LARGEST_ANSWER = (1 << 32) - 1


@dataclass(frozen=True)
class _OfOnePerson:
    """A task's short id, a serial that some task could have, and what a subclass adds: bytes of the sizes above, numbers of 32 bits."""

    task: bytes
    serial: int

    def __post_init__(self) -> None:
        sizes = {name: size for name, size in _SIZES.items() if hasattr(self, name)}
        if not all(wire.is_bytes(getattr(self, name), size) for name, size in sizes.items()):
            expected = f"{SHORT_ID_SIZE} bytes of the task's id, and a tag or digest of {max(sizes.values())} bytes"
            raise UsageError(f"Expected {expected}.")
        if not wire.is_count(self.serial, 0, MOST_TOKENS - 1):
            raise UsageError(f"The serial is out of range: expected a whole number from 0 to {MOST_TOKENS - 1}.")


class _Record(_OfOnePerson):
    """A message whose bytes are all fields in turn, each of its own size."""

    kind: ClassVar[str]
    magic: ClassVar[bytes]

    def to_bytes(self) -> bytes:
        values = (value if isinstance(value, bytes) else wire.u32(value) for value in vars(self).values())
        return self.magic + b"".join(values)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        reader = wire.Reader(data, cls.kind, cls.magic)
        found: dict[str, Any] = {}
        for field in fields(cls):
            found[field.name] = reader.take(_SIZES[field.name]) if field.name in _SIZES else reader.u32()
        with wire.receiving(cls.kind):
            message = cls(**found)
        reader.end()
        return message

    def to_json(self) -> str:
        values = {name: value.hex() if isinstance(value, bytes) else value for name, value in vars(self).items()}
        return wire.to_json(self.kind, values)

    @classmethod
    def from_json(cls, data: str | bytes) -> Self:
        types = {field.name: str if field.name in _SIZES else int for field in fields(cls)}
        found = wire.from_json(data, cls.kind, types)
        for name in types.keys() & _SIZES:
            found[name] = wire.from_hex(found[name], _SIZES[name], cls.kind)
        with wire.receiving(cls.kind):
            return cls(**found)


@dataclass(frozen=True)
class Token(_OfOnePerson):
    """The right to answer a task once: a serial number, and the server's tag that proves it was issued."""

    tag: bytes

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

    kind: ClassVar[str] = "query"
    magic: ClassVar[bytes] = b"EHQ1"

    digest: bytes


@dataclass(frozen=True)
class Report(_Record):
    """One client's randomised answer: question q is bit q of ``answer``.

    Guarantee:
        All that depends on the client's ratings is ``answer``; serial and tag are the token's.
    """

    kind: ClassVar[str] = "report"
    magic: ClassVar[bytes] = RECORD_MAGIC

    tag: bytes
    answer: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not wire.is_count(self.answer, 0, _LARGEST_ANSWER):
            raise UsageError("The answer is out of range: expected a whole number of at most 32 bits.")


M = TypeVar("M", PublishedModel, Query, Task)


def read_message(kind: type[M], path: Path) -> M:
    """A message of this kind, binary or JSON."""
    data = wire.read(path)
    return kind.from_bytes(data) if data.startswith(b"EH") else kind.from_json(data)

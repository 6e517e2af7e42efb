"""What passes between one client and the server: a token, a query and a report.

Each reads what it wrote; anything else is a `MessageError`.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.guarantee import MessageError, UsageError
from evenhand.recommender.messages import wire
from evenhand.recommender.messages.task import MOST_TOKENS, SHORT_ID_SIZE

TAG_SIZE = 8
RECORD_MAGIC = b"EHR1"
RECORD_SIZE = len(RECORD_MAGIC) + SHORT_ID_SIZE + 4 + TAG_SIZE + 4
"""A binary report has this many bytes, always: files of reports are records one after the other."""

_QUERY_MAGIC = b"EHQ1"
_DIGEST_SIZE = 32
_LARGEST_ANSWER = (1 << 32) - 1


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
class Query:
    """The server's statement of a token's query: the client derives it too, and compares the digests."""

    task: bytes
    serial: int
    digest: bytes

    def __post_init__(self) -> None:
        _check(self.task, self.serial, self.digest, _DIGEST_SIZE)

    def to_bytes(self) -> bytes:
        return _QUERY_MAGIC + self.task + wire.u32(self.serial) + self.digest

    @classmethod
    def from_bytes(cls, data: bytes) -> Query:
        reader = wire.Reader(data, "query", _QUERY_MAGIC)
        with wire.receiving("query"):
            query = cls(reader.take(SHORT_ID_SIZE), reader.u32(), reader.take(_DIGEST_SIZE))
        reader.end()
        return query

    def to_json(self) -> str:
        return wire.to_json("query", {"task": self.task.hex(), "serial": self.serial, "digest": self.digest.hex()})

    @classmethod
    def from_json(cls, data: str | bytes) -> Query:
        found = wire.from_json(data, "query", {"task": str, "serial": int, "digest": str})
        task = wire.from_hex(found["task"], SHORT_ID_SIZE, "query")
        with wire.receiving("query"):
            return cls(task, found["serial"], wire.from_hex(found["digest"], _DIGEST_SIZE, "query"))


@dataclass(frozen=True)
class Report:
    """One client's randomised answer: question q is bit q of ``answer``.

    Guarantee:
        All that depends on the client's ratings is ``answer``; serial and tag are the token's.
    """

    task: bytes
    serial: int
    tag: bytes
    answer: int

    def __post_init__(self) -> None:
        _check(self.task, self.serial, self.tag, TAG_SIZE)
        if not wire.is_count(self.answer, 0, _LARGEST_ANSWER):
            raise UsageError("The answer is out of range: expected a whole number of at most 32 bits.")

    def to_bytes(self) -> bytes:
        """The report as a record of `RECORD_SIZE` bytes."""
        return RECORD_MAGIC + self.task + wire.u32(self.serial) + self.tag + wire.u32(self.answer)

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        reader = wire.Reader(data, "report", RECORD_MAGIC)
        with wire.receiving("report"):
            report = cls(reader.take(SHORT_ID_SIZE), reader.u32(), reader.take(TAG_SIZE), reader.u32())
        reader.end()
        return report

    def to_json(self) -> str:
        fields = {"task": self.task.hex(), "serial": self.serial, "tag": self.tag.hex(), "answer": self.answer}
        return wire.to_json("report", fields)

    @classmethod
    def from_json(cls, data: str | bytes) -> Report:
        found = wire.from_json(data, "report", {"task": str, "serial": int, "tag": str, "answer": int})
        task, tag = (wire.from_hex(found[name], 8, "report") for name in ("task", "tag"))
        with wire.receiving("report"):
            return cls(task, found["serial"], tag, found["answer"])


def _check(task: bytes, serial: int, proof: bytes, size: int) -> None:
    """What token, query and report share: a task's short id, a serial that some task could have, and a proof."""
    if not (wire.is_bytes(task, SHORT_ID_SIZE) and wire.is_bytes(proof, size)):
        raise UsageError(f"Expected {SHORT_ID_SIZE} bytes of the task's id, and a tag or digest of {size} bytes.")
    if not wire.is_count(serial, 0, MOST_TOKENS - 1):
        raise UsageError(f"The serial is out of range: expected a whole number from 0 to {MOST_TOKENS - 1}.")

"""What passes between one client and the server: a token, a query and a report."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.guarantee import DataError
from evenhand.recommender.messages import wire
from evenhand.recommender.messages.task import MOST_TOKENS, SHORT_ID_SIZE

TAG_SIZE = 8
RECORD_MAGIC = b"EHR1"
RECORD_SIZE = len(RECORD_MAGIC) + SHORT_ID_SIZE + 4 + TAG_SIZE + 4
"""A binary report has this many bytes, always: files of reports are records one after the other."""


@dataclass(frozen=True)
class Token:
    """The right to answer a task once: a serial number, and the server's tag that proves it was issued."""

    task: bytes
    serial: int
    tag: bytes

    def __str__(self) -> str:
        return f"{self.task.hex()}-{self.serial}-{self.tag.hex()}"

    @classmethod
    def parse(cls, given: str) -> Token:
        """Read the text form ``TASK-SERIAL-TAG``."""
        task, _, rest = given.strip().partition("-")
        serial, _, tag = rest.partition("-")
        if not (serial.isascii() and serial.isdigit() and len(serial) <= 10):
            raise DataError("The token is not of the form TASK-SERIAL-TAG: copy the whole line you were given.")
        return cls(wire.from_hex(task, SHORT_ID_SIZE, "token"), int(serial), wire.from_hex(tag, TAG_SIZE, "token"))


@dataclass(frozen=True)
class Query:
    """The server's word on which query a token has: the client derives it too, and compares the digests."""

    task: bytes
    serial: int
    digest: bytes

    def to_bytes(self) -> bytes:
        """The query as bytes."""
        return b"EHQ1" + self.task + wire.u32(self.serial) + self.digest

    @classmethod
    def from_bytes(cls, data: bytes) -> Query:
        """Read what `to_bytes` wrote."""
        reader = wire.Reader(data, "query", b"EHQ1")
        query = cls(reader.take(SHORT_ID_SIZE), reader.u32(), reader.take(32))
        reader.end()
        return query

    def to_json(self) -> str:
        """The query as one line of JSON."""
        return wire.to_json("query", {"task": self.task.hex(), "serial": self.serial, "digest": self.digest.hex()})

    @classmethod
    def from_json(cls, data: str | bytes) -> Query:
        """Read what `to_json` wrote."""
        found = wire.from_json(data, "query", {"task": str, "serial": int, "digest": str})
        task, digest = (wire.from_hex(found[name], size, "query") for name, size in (("task", 8), ("digest", 32)))
        return cls(task, found["serial"], digest)


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

    def to_bytes(self) -> bytes:
        """The report as a record of `RECORD_SIZE` bytes."""
        return RECORD_MAGIC + self.task + wire.u32(self.serial) + self.tag + wire.u32(self.answer)

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        """Read one record."""
        reader = wire.Reader(data, "report", RECORD_MAGIC)
        report = cls(reader.take(SHORT_ID_SIZE), reader.u32(), reader.take(TAG_SIZE), reader.u32())
        reader.end()
        return report

    def to_json(self) -> str:
        """The report as one line of JSON."""
        fields = {
            "task": self.task.hex(),
            "serial": self.serial,
            "tag": self.tag.hex(),
            "answer": self.answer,
        }
        return wire.to_json("report", fields)

    @classmethod
    def from_json(cls, data: str | bytes) -> Report:
        """Read what `to_json` wrote."""
        found = wire.from_json(data, "report", {"task": str, "serial": int, "tag": str, "answer": int})
        if not (0 <= found["serial"] <= MOST_TOKENS and 0 <= found["answer"] < 1 << 32):
            raise DataError("The report's serial or answer is out of range: it is damaged.")
        task = wire.from_hex(found["task"], SHORT_ID_SIZE, "report")
        return cls(task, found["serial"], wire.from_hex(found["tag"], TAG_SIZE, "report"), found["answer"])

"""Reading and writing bytes and JSON objects strictly: what the messages are made of."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.guarantee import DataError

VERSION = 1
"""The version of every message. It changes with any change to the bytes or to the derivation of queries."""


class Reader:
    """Reads a binary message from front to back; whatever does not fit is a `DataError`."""

    def __init__(self, data: bytes, kind: str, magic: bytes) -> None:
        self.data, self.kind, self.at = data, kind, 0
        if self.data[: len(magic)] != magic:
            raise DataError(f"This is not a binary {kind}: expected it to begin with {magic.decode()}.")
        self.at = len(magic)

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise DataError(f"The {self.kind} is cut short: its last bytes are missing. Fetch the file again.")
        self.at += size
        return piece

    def u8(self) -> int:
        return self.take(1)[0]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def text(self) -> str:
        try:
            return self.take(self.u32()).decode()
        except UnicodeDecodeError:
            raise DataError(f"The {self.kind} holds text that is not UTF-8: it is damaged.") from None

    def floats(self, count: int) -> tuple[float, ...]:
        return struct.unpack(f"<{count}f", self.take(4 * count))

    def end(self) -> None:
        if self.at != len(self.data):
            raise DataError(f"The {self.kind} is followed by bytes that do not belong to it.")


def u8(value: int) -> bytes:
    """One byte."""
    return bytes((value,))


def u32(value: int) -> bytes:
    """Four bytes, little endian."""
    return value.to_bytes(4, "little")


def text(value: str) -> bytes:
    """The length in bytes as four bytes, then UTF-8."""
    encoded = value.encode()
    return u32(len(encoded)) + encoded


def floats(values: Sequence[float]) -> bytes:
    """32-bit floats, little endian."""
    return struct.pack(f"<{len(values)}f", *values)


def to_json(kind: str, fields: Mapping[str, Any]) -> str:
    """A message as one line of JSON that says what it is."""
    return json.dumps({"evenhand": kind, "version": VERSION, **fields}, ensure_ascii=False)


def from_json(data: str | bytes, kind: str, expected: Mapping[str, type]) -> dict[str, Any]:
    """The fields of a JSON message, each present and of its type, and none besides."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise DataError(f"The {kind} is neither a binary message nor JSON: it is damaged or another file.") from None
    if not isinstance(found, dict) or found.get("evenhand") != kind:
        raise DataError(f'This is not a {kind}: expected a JSON object with "evenhand": "{kind}".')
    if found.get("version") != VERSION:
        raise DataError(f"The {kind} has a version that this Evenhand does not read; expected {VERSION}.")
    fields = {name: value for name, value in found.items() if name not in ("evenhand", "version")}
    if set(fields) != set(expected):
        raise DataError(f"The {kind} must have exactly the fields {', '.join(expected)}.")
    for name, kind_of in expected.items():
        if type(fields[name]) is not kind_of:  # a bool is no int here
            raise DataError(f"The {kind}'s field {name} is not of the expected type.")
    return fields


def from_hex(value: str, size: int, kind: str) -> bytes:
    """Hexadecimal digits for exactly ``size`` bytes."""
    try:
        found = bytes.fromhex(value)
    except ValueError:
        found = b""
    if len(found) != size:
        raise DataError(f"The {kind} holds a value that is not {2 * size} hexadecimal digits: it is damaged.")
    return found

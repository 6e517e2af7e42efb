"""Reading and writing bytes and JSON objects strictly: what the messages are made of.

Whatever arrives that is not exactly what is expected, be it bytes, JSON or text, ends in a `MessageError`.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from evenhand.guarantee import DataError, MessageError, UsageError

VERSION = 1
"""The version of every message. It changes with any change to the bytes or to the derivation of queries."""

_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,19})(\.[0-9]{0,63}[1-9])?")


class ByteReader:
    """Reads a binary message from front to back; whatever does not fit is a `MessageError`."""

    def __init__(self, data: bytes, kind: str, magic: bytes) -> None:
        self.data, self.kind, self.at = bytes(data), kind, 0
        if self.data[: len(magic)] != magic:
            raise MessageError(f"This is not a binary {kind}: expected it to begin with {magic.decode()}.")
        self.at = len(magic)

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise MessageError(f"The {self.kind} is cut short: its last bytes are missing. Fetch the file again.")
        self.at += size
        return piece

    def flag(self) -> bool:
        byte = self.take(1)[0]
        if byte > 1:
            raise MessageError(f"The {self.kind} has a byte of {byte} where 0 or 1 is expected: it is damaged.")
        return byte == 1

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def text(self) -> str:
        try:
            return self.take(self.u32()).decode()
        except UnicodeDecodeError:
            raise MessageError(f"The {self.kind} holds text that is not UTF-8: it is damaged.") from None

    def floats(self, count: int) -> tuple[float, ...]:
        return struct.unpack(f"<{count}f", self.take(4 * count))

    def end(self) -> None:
        if self.at != len(self.data):
            raise MessageError(f"The {self.kind} is followed by bytes that do not belong to it.")


def read(path: Path) -> bytes:
    """All bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}.") from None


def u8(value: int) -> bytes:
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
    """The fields of a JSON message, each present once and of its type, and none besides."""
    try:
        written = data if isinstance(data, str) else data.decode()
        found = json.loads(written, object_pairs_hook=_each_once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise MessageError(
            f"The {kind} is neither a binary message nor JSON in UTF-8 whose fields come once each: it is damaged "
            "or another file."
        ) from None
    if not isinstance(found, dict) or found.get("evenhand") != kind:
        raise MessageError(f'This is not a {kind}: expected a JSON object with "evenhand": "{kind}".')
    if type(found.get("version")) is not int or found["version"] != VERSION:
        raise MessageError(f"The {kind} has a version that this Evenhand does not read; expected {VERSION}.")
    fields = {name: value for name, value in found.items() if name not in ("evenhand", "version")}
    if set(fields) != set(expected):
        raise MessageError(f"The {kind} must have exactly the fields {', '.join(expected)}.")
    for name, kind_of in expected.items():
        if type(fields[name]) is not kind_of:  # a bool is no int here
            raise MessageError(f"The {kind}'s field {name} is not of the expected type.")
    return fields


def from_hex(value: str, size: int, kind: str) -> bytes:
    """Hexadecimal digits for exactly ``size`` bytes, and nothing between them."""
    if not re.fullmatch(f"[0-9a-fA-F]{{{2 * size}}}", value):
        raise MessageError(f"The {kind} holds a value that is not {2 * size} hexadecimal digits: it is damaged.")
    return bytes.fromhex(value)


def to_decimal(value: Decimal) -> str:
    """A positive number the only way it is written on the wire: no exponent, no trailing zeros."""
    written = f"{value:f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def from_decimal(value: str, kind: str, name: str) -> Decimal:
    """Read what `to_decimal` wrote; any other way to write a number is refused, so that equal numbers are equal bytes."""
    if not _DECIMAL.fullmatch(value):
        raise MessageError(
            f"The {kind}'s {name} is not a plain decimal such as 0.5, without exponent or trailing zeros."
        )
    return Decimal(value)


def is_text(value: object, most: int) -> bool:
    """Whether this is a text that UTF-8 can write, of at most so many characters: half a surrogate pair is none."""
    if not isinstance(value, str) or len(value) > most:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_count(value: object, least: int, most: int) -> bool:
    """Whether this is a whole number in the range; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_bytes(value: object, size: int) -> bool:
    """Whether these are exactly so many bytes."""
    return isinstance(value, bytes) and len(value) == size


@contextmanager
def receiving(kind: str) -> Iterator[None]:
    """What would be a caller's mistake in a message made here is damage in one that was received."""
    try:
        yield
    except UsageError as error:
        raise MessageError(f"The {kind} is not valid: {error}") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field comes twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

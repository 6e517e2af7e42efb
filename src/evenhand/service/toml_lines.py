"""A TOML file whose values know their line, so that a complaint about one can point at it."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.guarantee import DataError, UsageError, suggest

_HEADER = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_ITEM = re.compile(r"^\s*\[\[\s*([^\[\]]+?)\s*\]\]\s*(#.*)?$")
_KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


@dataclass(frozen=True)
class Section:
    """A table of a TOML file: values by name, read one by one; what is left over is an error.

    Args:
        file: its name, for messages.
        path: where the section stands in the file.
        values: what it holds.
        lines: the line of each path.
    """

    file: str
    path: tuple[str, ...]
    values: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def error(self, name: str | None, message: str) -> UsageError:
        """A complaint about one value, or about the whole section."""
        path = self.path if name is None else (*self.path, name)
        while path and path not in self.lines:
            path = path[:-1]
        place = f", line {self.lines[path]}" if path else ""
        where = f"[{'.'.join(self.path)}] " if self.path else ""
        return UsageError(f"{self.file}{place}: {where}{message}")

    def only(self, *names: str) -> None:
        """Refuse names that mean nothing: a misspelt limit would be no limit."""
        for name in self.values:
            if name not in names:
                raise self.error(
                    name, f"{name!r} is not known here; expected {', '.join(names)}.{suggest(name, names)}"
                )

    def get(self, name: str, kind: type | tuple[type, ...], what: str, default: Any = ...) -> Any:  # noqa: ANN401 - values of a file
        """A value of a type; ``default`` where there is none."""
        if name not in self.values:
            if default is ...:
                raise self.error(None, f"{name} is missing; expected {what}.")
            return default
        value = self.values[name]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.error(name, f"{name} = {value!r}: expected {what}.")
        return value

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number between two."""
        given = int(self.get(name, int, "a whole number", default))
        if not least <= given <= most:
            raise self.error(name, f"{name} = {given}: expected {least:,} to {most:,}.")
        return given

    def section(self, name: str) -> Section:
        """A section inside this one; empty where there is none."""
        value = self.get(name, dict, "a section", {})
        return Section(self.file, (*self.path, name), value, self.lines)

    def sections(self, name: str) -> dict[str, Section]:
        """The sections inside a section, by name."""
        outer = self.section(name)
        for key, value in outer.values.items():
            if not isinstance(value, dict):
                raise outer.error(key, f"{key} = {value!r}: expected a section [{name}.{key}].")
        return {key: outer.section(key) for key in outer.values}

    def items(self, name: str) -> list[Section]:
        """The sections of a list, [[name]], in order."""
        given = self.get(name, list, f"sections [[{'.'.join((*self.path, name))}]]", [])
        if not all(isinstance(each, dict) for each in given):
            raise self.error(name, f"{name} = {given!r}: expected sections [[{'.'.join((*self.path, name))}]].")
        return [
            Section(self.file, (*self.path, name, str(place)), each, self.lines) for place, each in enumerate(given)
        ]


def read_toml(path: Path) -> Section:
    """The whole file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; expected a TOML file.") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: this is not TOML: {error}.") from None
    return Section(path.name, (), values, _lines(text))


def _lines(text: str) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header, item, key = _HEADER.match(line), _ITEM.match(line), _KEY.match(line)
        if item:
            listed = _parts(item[1])
            section = next(place for each in itertools.count() if (place := (*listed, str(each))) not in found)
            found[section] = number
        elif header:
            section = _parts(header[1])
            found.setdefault(section, number)
        elif key:
            found.setdefault((*section, *_parts(key[1])), number)
    return found


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))

"""Text for a terminal, and data for JSON."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def hanging(lines: Sequence[tuple[str, str]]) -> str:
    """Named lines, wrapped to the terminal, with the text indented beside the names."""
    indent = " " * 19
    return "\n".join(
        textwrap.fill(text, width(), initial_indent=f"  {name:<16} ", subsequent_indent=indent, break_long_words=False)
        for name, text in lines
    )


def width() -> int:
    """Of the terminal, within what is readable."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))


def in_units(units: Mapping[str, str]) -> str:
    """The units of the columns of a frame, behind its headline; nothing if none has one."""
    named = {name: unit for name, unit in units.items() if unit}
    if len(units) == 1:
        return "".join(f", in {unit}" for unit in named.values())
    return "".join(f", {name} in {unit}" for name, unit in named.items())


def free(name: str, frame: pd.DataFrame) -> str:
    """A name that no column has: a key may be called anything."""
    while name in frame.columns:
        name += "_"
    return name


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as data."""
    return [{str(name): plain_data(value) for name, value in row.items()} for row in frame.to_dict("records")]


def plain_data(value: Any) -> Any:  # noqa: ANN401 - cells of a frame, on their way to JSON
    """A value as JSON has it."""
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)

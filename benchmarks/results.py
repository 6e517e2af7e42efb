"""How a benchmark is kept: a small dated table in ``results/``, all its numbers in ``raw/``, which git ignores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def keep(folder: Path, name: str, text: str, raw: dict[str, Any]) -> None:
    """Write ``results/NAME.md`` and ``raw/NAME.json`` below a folder, and print the table."""
    for place, ending, content in (("results", "md", text), ("raw", "json", json.dumps(raw, indent=1) + "\n")):
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / f"{name}.{ending}").write_text(content, encoding="utf-8")
    print(text)

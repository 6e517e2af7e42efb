"""Run the code on the pages, so that what they show is what happens.

A ``python`` block runs in a folder that holds ``views.parquet``, the table of the quickstart, and whatever else a reader of the
page has already (``brought.py``); the blocks of a page share their names. A ``text`` block right below shows what it prints. In
a ``console`` block the lines after ``$`` are commands; in an ``sh`` block ``evenhand`` commands have to succeed, and nothing is
shown; a block with a title is a file. Printed numbers carry noise, so outputs are compared with all numbers left out, and
``...`` on a page stands for anything.

    python docs/run.py                      # check all pages
    python docs/run.py --update PAGES...    # write what is printed over what no longer agrees
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import random
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import sklearn

from evenhand.bounding import STRATEGIES
from evenhand.noise import seam
from evenhand.statistics import STATISTICS
from evenhand.tables.engines import _ENGINES

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
from brought import brought  # noqa: E402

QUICKSTART = DOCS / "quickstart.md"
# The tutorial of the recommender is a story in shell commands, which a test of its own plays; commands that serve until they
# are stopped, or take a quarter of an hour, do not run here: tests elsewhere run them.
_ELSEWHERE = (DOCS / "recommender" / "tutorial.md",)
_NOT_RUN = ("evenhand serve", "evenhand audit", "evenhand recommender")
PAGES = [
    page
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    if "```python\n" in page.read_text(encoding="utf-8") and page not in _ELSEWHERE
]

_FENCE = re.compile(r"^```(\w*)(?: title=\"(.*?)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"event [0-9a-f]{8}|[-+−]?\d[\d,.]*(e[-+]?\d+)?")
_WIDTH = 118


@dataclass(frozen=True)
class Block:
    """A fenced block and where its text begins in the page."""

    language: str
    text: str
    start: int
    file: str = ""


@dataclass(frozen=True)
class Shown:
    """What a page shows as output, and what was really printed."""

    block: Block
    printed: str

    @property
    def agrees(self) -> bool:
        parts = [re.escape(skeleton(part)) for part in self.block.text.split("...")]
        return re.fullmatch(".*".join(parts), skeleton(self.printed)) is not None


def skeleton(text: str) -> str:
    """A text without its numbers and without the way its lines are broken."""
    return " ".join(_NUMBER.sub("#", text).split())


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    fences = _FENCE.finditer(page.read_text(encoding="utf-8"))
    return [Block(found[1], found[3], found.start(3), found[2] or "") for found in fences]


@contextlib.contextmanager
def workplace() -> Iterator[None]:
    """A fresh folder with the quickstart's table in it; what a page registers or configures is forgotten afterwards."""
    folder, columns = tempfile.TemporaryDirectory(), mock.patch.dict(os.environ, COLUMNS="100", LOGNAME="ana")
    with folder as name, contextlib.chdir(name), columns, mock.patch.dict(STATISTICS), sklearn.config_context():
        strategies, engines = list(STRATEGIES), list(_ENGINES)
        exec(blocks(QUICKSTART)[0].text, {})
        try:
            yield
        finally:
            STRATEGIES[:], _ENGINES[:] = strategies, engines


def run(page: Path, postgres: str = "") -> list[Shown]:
    """Run a page from top to bottom and collect every output that it shows.

    Args:
        page: of the documentation.
        postgres: the URL of an empty database for pages that need one; without it, a server is started for them.
    """
    text, shown = page.read_text(encoding="utf-8"), []
    names: dict[str, Any] = {"__name__": "page"}
    printed, end = "", 0
    with workplace(), brought(page, postgres) as own, seam.replaced(_same_noise()):
        names |= own.names
        for block in blocks(page):
            between = text[end : block.start].removeprefix("```").rpartition("```")[0]
            if block.file:
                Path(block.file).write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                printed = _printed_by(own.read(block.text), names, page)
            elif block.language == "sh":
                for command in re.findall(r"^evenhand (?:.*\\\n)*.*", own.read(block.text), re.MULTILINE):
                    if not command.startswith(_NOT_RUN):
                        run_command(shlex.split(command.replace("\\\n", " "), comments=True))
            elif block.language == "text" and not between.strip():
                shown.append(Shown(block, printed))
            elif block.language == "console" and not block.text.removeprefix("$ ").startswith(_NOT_RUN):
                shown.append(Shown(block, _commands(block)))
            end = block.start + len(block.text)
        names.clear()
        gc.collect()  # connections that the page left open end here, not in somebody else's test
    return shown


def _same_noise() -> seam.Sampler:
    """Noise of the right size, the same in each run: some words (what is corrected, what is too noisy) depend on it."""
    drawn = random.Random(2027)

    def add(name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        size = float(scale)
        if name == "laplace":
            noise = [size * (drawn.expovariate(1) - drawn.expovariate(1)) for _ in values]
        else:
            noise = [drawn.gauss(0, size) for _ in values]
        return [value + round(one) for value, one in zip(values, noise, strict=True)]

    return add


def _printed_by(text: str, names: dict[str, Any], page: Path) -> str:
    output = io.StringIO()
    code = compile(text, f"{page.name}, a block of {text.count(chr(10))} lines", "exec", dont_inherit=True)
    with contextlib.redirect_stdout(output):
        exec(code, names)
    return _portable(output)


def _commands(block: Block) -> str:
    """The same block with what its commands really print."""
    printed = ""
    for command in re.findall(r"^\$ ((?:.*\\\n)*.*)", block.text, re.MULTILINE):
        printed += f"$ {command}\n{run_command(shlex.split(command.replace(chr(92) + chr(10), ' ')))}"
    return printed


def run_command(words: list[str]) -> str:
    """Run a command line through the real entry point, in this process; it must succeed."""
    from evenhand.apps.cli import main

    if words[0] != "evenhand":
        raise ValueError(f"only evenhand commands run here, not {words[0]}")
    output = io.StringIO()
    with contextlib.redirect_stdout(output), mock.patch.object(sys, "argv", words):
        try:
            main()
        except SystemExit as exit:
            if exit.code:
                raise RuntimeError(f"`{shlex.join(words)}` ended with exit code {exit.code}") from None
    return _portable(output)


def _portable(output: io.StringIO) -> str:
    """What was printed, without the path of the temporary folder."""
    return output.getvalue().replace(os.getcwd() + os.sep, "")


def update(page: Path, shown: list[Shown]) -> None:
    """Write what was printed over what no longer agrees, long lines wrapped for reading."""
    text = page.read_text(encoding="utf-8")
    stale = [one for one in shown if not one.agrees]
    for one in sorted(stale, key=lambda one: -one.block.start):
        end = one.block.start + len(one.block.text)
        text = text[: one.block.start] + _wrapped(one.printed) + text[end:]
    page.write_text(text, encoding="utf-8")


def _wrapped(printed: str) -> str:
    lines = []
    for line in printed.splitlines():
        indent = " " * 19 if line.startswith("  ") else ""  # under the text of a release, beside its names
        wrapped = textwrap.fill(line, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
        lines.append(line if line.startswith("$") else wrapped)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def main() -> int:
    """Check or update the given pages."""
    given = [Path(name).resolve() for name in sys.argv[1:] if name != "--update"] or PAGES
    wrong = 0
    for page in given:
        shown = run(page)
        if "--update" in sys.argv:
            update(page, shown)
            continue
        for one in shown:
            if not one.agrees:
                wrong += 1
                print(f"{page.name} shows\n{one.block.text}\nbut this is printed\n{one.printed}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())

"""Everything that somebody who holds the results can see of a session, so that two neighbouring tables can be compared.

`look` opens a source, asks a list of questions in one session on a ledger of its own, and notes for each what came of it: the value with
its types, the error and its text, warnings, what was printed or logged, events, previews. The noise is recorded, or played back
from another run: then whatever is seen must be the same on both tables.
"""

from __future__ import annotations

import decimal
import io
import logging
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import evenhand as eh
from evenhand.noise import NoisyMax, seam
from evenhand.release import Noisy, Receipt
from hidden_names import hidden_names, names_of
from reachable import carried

Question = Callable[[Any], Any]  # of a session, or of its previews
Questions = dict[str, Question]

NOISE: dict[str, Callable[[int, int], int]] = {
    "none": lambda place, scale: 0,
    "low": lambda place, scale: -40 * scale,
    "high": lambda place, scale: 40 * scale,
    "mixed": lambda place, scale: (-3, 1, 0, 2)[place % 4] * scale,
}
"""What is added instead of noise, given the position and the scale; results must look alike, and nothing may fail, under each."""


@dataclass
class Tape:
    """The noisy numbers of a session, in order; with ``played`` those of another one instead.

    What secret keys are shown is not played back: positions mean nothing on another table. There the noise is 0, so the two
    tables must agree by the threshold alone. Numbers that are shown with them are played back by name.
    """

    noise: str = "none"
    played: Tape | None = None
    outputs: list[Any] = field(default_factory=list)
    _selecting: int = 0

    def draw(self, name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        if self._selecting:
            return list(values)
        whole = max(1, int(scale))
        return self._next([value + NOISE[self.noise](place, whole) for place, value in enumerate(values)])

    def choose(self, chooser: NoisyMax, scores: Sequence[int]) -> int:
        if self._selecting:
            return max(range(len(scores)), key=lambda index: scores[index])
        return self._next(max(range(len(scores)), key=lambda index: scores[index]))

    def _next(self, output: Any) -> Any:
        if self.played is not None and len(self.outputs) < len(self.played.outputs):
            theirs = self.played.outputs[len(self.outputs)]
            if not isinstance(output, list) or len(output) == len(theirs):
                output = theirs
        self.outputs.append(output)
        return list(output) if isinstance(output, list) else output

    @contextmanager
    def playing(self) -> Iterator[None]:
        """All noise comes from this tape."""
        honest = Receipt.selected

        def selected(receipt: Receipt, way: Any) -> Any:
            passing = honest(receipt, way)

            def look(measurement: Any) -> Any:
                self._selecting += 1
                try:
                    return passing(measurement)
                finally:
                    self._selecting -= 1

            return look

        largest = Receipt.largest

        def found(receipt: Receipt, scores: Any, top: Any, delta: Any = Decimal(0)) -> Any:
            self._selecting += bool(delta)
            try:
                return largest(receipt, scores, top, delta)
            finally:
                self._selecting -= bool(delta)

        answering = Receipt.supporters

        def supporters(receipt: Receipt, way: Any, measurement: Any) -> Any:
            self._selecting += 1
            try:
                shown, noisy = answering(receipt, way, measurement)
            finally:
                self._selecting -= 1
            names = names_of(measurement) or ()
            told = dict(self._next([(names[place], value) for place, value in zip(shown, noisy.values, strict=True)]))
            values = [told.get(names[place], value) for place, value in zip(shown, noisy.values, strict=True)]
            return shown, Noisy(values, noisy.noise)

        with ExitStack() as stack:
            stack.enter_context(hidden_names())
            stack.enter_context(mock.patch.object(Receipt, "supporters", supporters))
            stack.enter_context(seam.replaced(self.draw))
            stack.enter_context(mock.patch.object(Receipt, "largest", found))
            stack.enter_context(mock.patch.object(Receipt, "selected", selected))
            stack.enter_context(
                mock.patch.object(NoisyMax, "choose", lambda chooser, scores: self.choose(chooser, scores))
            )
            yield


@dataclass
class Seen:
    """What a session showed: one entry for opening the table, one a question, one for the ledger."""

    entries: dict[str, dict[str, Any]]
    tape: Tape

    def failures(self) -> list[str]:
        """Questions that were paid for and raised all the same."""
        return [name for name, entry in self.entries.items() if entry.get("raised") and entry.get("paid")]


def look(open_table: Callable[[], eh.Table], questions: Questions, tape: Tape) -> Seen:
    """Ask the questions in one session, in order, previews first.

    Args:
        open_table: calls ``eh.read``.
        questions: what is asked, by name.
        tape: where noise comes from.
    """
    entries: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        plain = _Plain(folder)
        opened: list[eh.Table] = []
        entries["open"] = _watched(lambda: opened.append(open_table()), plain)
        if opened:
            table = opened[0]
            entries["table"] = _watched(lambda: (repr(table), table.columns, table.user, table.public), plain)
            ledger = eh.Ledger(Path(folder) / "b.db", epsilon=10**6, delta="0.5")
            session = eh.Session(table, ledger)
            with tape.playing():
                for name, question in questions.items():
                    events = len(ledger.events)
                    entries[f"preview of {name}"] = _watched(partial(question, session.preview), plain)
                    entries[name] = _watched(partial(question, session), plain)
                    entries[name]["paid"] = len(ledger.events) - events
            entries["session"] = _watched(lambda: repr(session), plain)
            entries["ledger"] = _watched(lambda: _events(ledger), plain)
    return Seen(entries, tape)


def assert_alike(one: Seen, other: Seen) -> None:
    """Fail at the first thing that looks different, and at anything that raised although it was paid for."""
    for name, entry in one.entries.items():
        theirs = other.entries.get(name, {})
        for part in sorted({*entry, *theirs}):
            same = entry.get(part) == theirs.get(part)
            assert same, (
                f"{part} of {name!r} depends on the rows: {entry.get(part)!r:.400} or {theirs.get(part)!r:.400}"
            )
    assert len(one.entries) == len(other.entries)
    assert not one.failures(), (
        f"raised after the debit: {[(name, one.entries[name]['raised']) for name in one.failures()]}"
    )


def compare(
    one: Callable[[], eh.Table], other: Callable[[], eh.Table], questions: Questions, noise: str = "none"
) -> Seen:
    """Look at two neighbouring tables under the same noisy numbers."""
    first = look(one, questions, Tape(noise))
    assert_alike(first, look(other, questions, Tape(noise, first.tape)))
    return first


def _watched(work: Callable[[], Any], plain: _Plain) -> dict[str, Any]:
    """Run something and note all that can be seen of it."""
    entry: dict[str, Any] = {}
    held: object = None
    said, logged = io.StringIO(), _Log()
    logging.getLogger().addHandler(logged)
    try:
        with warnings.catch_warnings(record=True) as warned, redirect_stdout(said), redirect_stderr(said):
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)  # of what earlier tests left to the garbage collector
            warnings.simplefilter("ignore", ResourceWarning)  # whatever the garbage collector happens to find now
            try:
                held = work()
                entry["shown"] = plain(_shown(held))
            except Exception as error:
                held = error
                entry["raised"] = [plain(f"{type(link).__name__}: {link}") for link in _chain(error)]
    finally:
        logging.getLogger().removeHandler(logged)
    entry["what it carries"] = plain(carried(held))
    entry["warned"] = [plain(f"{warning.category.__name__}: {warning.message}") for warning in warned]
    entry["printed"], entry["logged"] = plain(said.getvalue()), plain(logged.lines)
    return entry


def _shown(result: Any) -> Any:
    """A result with everything that can be made of it."""
    if isinstance(result, eh.Release):
        facts = {"value": _exactly(result.value), "interval": _exactly(result.interval(0.9)), "fields": repr(result)}
        facts |= {"data": result.to_dict(), "page": result.to_html(), "text": str(result)}
        return facts | {"guarantee": result.guarantee.words(), "details": result.details}
    if hasattr(result, "to_dict"):
        return {"data": result.to_dict(), "text": str(result), "repr": repr(result)}
    return result


def _exactly(value: Any) -> Any:
    """A value with its types: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if hasattr(value, "dtypes"):
        cells = [[f"{type(cell).__name__} {cell!r}" for cell in value[column].tolist()] for column in value.columns]
        return {"columns": list(value.columns), "types": [str(dtype) for dtype in value.dtypes], "cells": cells}
    return f"{type(value).__name__} {value!r}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that a traceback would print with it."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _events(ledger: eh.Ledger) -> Any:
    """The ledger's events, but for what differs between any two runs, such as what two sources are called."""
    plain = [replace(event, id="", time="", asked=replace(event.asked, table=None)) for event in ledger.events]
    said = [str(ledger.spent), str(ledger.remaining), str(ledger.unit), str(ledger.relation)]
    return [event.to_dict() for event in plain], plain, said


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class _Plain:
    """Data as text, without what differs between any two runs: places, random names, addresses."""

    def __init__(self, folder: str) -> None:
        self._patterns = [
            (re.escape(folder), "<folder>"),
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
            (r"event(\s|\\n)+[0-9a-f]{8}", "event <id>"),
            (r"evenhand_\d+_\d+", "<name>"),
            (r"0x[0-9a-f]{6,}", "<address>"),
        ]

    def __call__(self, data: Any) -> str:
        with decimal.localcontext(decimal.Context(capitals=1)):  # decides how a Decimal is written: 1E-7 or 1e-7
            text = data if isinstance(data, str) else repr(data)
        for pattern, name in self._patterns:
            text = re.sub(pattern, name, text)
        return text

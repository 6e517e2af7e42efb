"""Reading reports from files, bytes and Arrow batches into arrays, dropping and counting what is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, MessageError
from evenhand.recommender.at_server.stream import Words
from evenhand.recommender.messages import RECORD_SIZE, Report, Task
from evenhand.recommender.messages.exchange import RECORD_MAGIC

if TYPE_CHECKING:
    import pyarrow as pa

RECORD = np.dtype([("magic", "S4"), ("task", "V8"), ("serial", "<u4"), ("tag", "<u8"), ("answer", "<u4")])
_CHUNK = RECORD_SIZE << 17  # bytes read at a time

_LONGEST_LINE = 4096


@dataclass(frozen=True)
class Batch:
    """Reports as columns; ``tags`` is None where an earlier gate has checked and removed them.

    Args:
        malformed: stretches of input that were no report and were skipped.
        foreign: reports for another task, left out of the columns.
    """

    serials: Words
    answers: Words
    tags: NDArray[np.uint64] | None
    malformed: int = 0
    foreign: int = 0


def fits(task: Task, serials: Words, answers: Words) -> NDArray[np.bool_]:
    """Which of these answers have a serial of the task, and no bits beyond its questions."""
    return np.asarray((serials < task.tokens) & (answers >> np.uint32(task.questions - 1) <= 1))


def from_reports(reports: Iterable[Report], task: bytes) -> Iterator[Batch]:
    """Batches from single reports."""
    records = (report.to_bytes() for report in reports)
    while taken := list(islice(records, 1 << 16)):
        yield from_records(b"".join(taken), task)


def from_file(path: str | PathLike[str], task: bytes) -> Iterator[Batch]:
    """Batches from a file of binary records, or of JSON reports, one per line, in constant memory."""
    try:
        with open(path, "rb") as file:
            first = file.read(1)
            file.seek(0)
            yield from _from_lines(file, task) if first == b"{" else _from_binary(file, task)
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}.") from None


def from_arrow(batch: pa.RecordBatch | pa.Table) -> Batch:
    """A batch from an Arrow record batch or table with columns ``serial`` and ``answer``, and perhaps ``tag``.

    All hold whole numbers; a tag's eight bytes are one little-endian number, signed where an engine knows no
    other. All rows are taken to be for the task at hand.
    """
    names = set(batch.schema.names)
    if not {"serial", "answer"} <= names:
        raise DataError(f"The Arrow batch has the columns {sorted(names)}; expected serial, answer and perhaps tag.")

    def column(name: str) -> NDArray[Any]:
        values = batch.column(name)
        if values.null_count:
            raise DataError(f"The column {name} of the Arrow batch has nulls; expected a number in every row.")
        found = np.asarray(values)
        if found.dtype.kind not in "iu":
            raise DataError(f"The column {name} of the Arrow batch does not hold whole numbers.")
        return found

    tags = column("tag").astype(np.uint64) if "tag" in names else None
    return Batch(_fitting(column("serial")), _fitting(column("answer")), tags)


def _fitting(values: NDArray[Any]) -> Words:
    """Numbers that do not fit into 32 bits become the largest that does, which no task accepts."""
    top = np.iinfo(np.uint32).max
    return np.where((values < 0) | (values > top), top, values).astype(np.uint32)


def from_records(data: bytes, task: bytes) -> Batch:
    """The records in some bytes; where a record is damaged, reading goes on at the next one that can be found."""
    malformed = 0
    records = np.frombuffer(data, RECORD, len(data) // RECORD_SIZE)
    sound = records["magic"] == RECORD_MAGIC
    if len(data) % RECORD_SIZE or not sound.all():
        pieces, malformed = _resynchronise(data)
        records = np.frombuffer(pieces, RECORD)
    ours = records["task"] == np.void(task)
    if not ours.all():
        records = records[ours]
    serials, answers = (records[name].astype(np.uint32) for name in ("serial", "answer"))
    return Batch(serials, answers, records["tag"].astype(np.uint64), malformed, int(len(ours) - ours.sum()))


def _resynchronise(data: bytes) -> tuple[bytes, int]:
    """All whole records in ``data``, and the number of stretches between them."""
    kept, skipped, at = [], 0, 0
    while at < len(data):
        found = data.find(RECORD_MAGIC, at)
        if found < 0 or found + RECORD_SIZE > len(data):
            skipped += 1
            break
        skipped += found > at
        kept.append(data[found : found + RECORD_SIZE])
        at = found + RECORD_SIZE
    return b"".join(kept), skipped


def _from_binary(file: BinaryIO, task: bytes) -> Iterator[Batch]:
    left = b""
    while chunk := file.read(_CHUNK):
        data = left + chunk
        cut = len(data)
        if len(data) % RECORD_SIZE or not data[-RECORD_SIZE:].startswith(RECORD_MAGIC):
            # After damage a record may straddle two chunks: leave its beginning for the next one.
            start = data.find(RECORD_MAGIC, max(0, len(data) - RECORD_SIZE + 1))
            cut = start if start >= 0 else len(data)
        left = data[cut:]
        if cut:
            yield from_records(data[:cut], task)
    if left:
        yield from_records(left, task)


def _from_lines(file: BinaryIO, task: bytes) -> Iterator[Batch]:
    malformed = 0

    def readable() -> Iterator[Report]:
        nonlocal malformed
        while line := file.readline(_LONGEST_LINE):
            try:
                if line.strip():
                    yield Report.from_json(line)
            except MessageError:
                malformed += 1

    yield from from_reports(readable(), task)
    if malformed:
        none = np.zeros(0, np.uint32)
        yield Batch(none, none, None, malformed)

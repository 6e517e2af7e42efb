"""The fold: a running total over reports, in memory that does not grow with them."""

from __future__ import annotations

import io
import operator
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.at_server import reports
from evenhand.recommender.at_server.reports import Batch, fits
from evenhand.recommender.at_server.sketches import RatedSets, Sums, sketch_for
from evenhand.recommender.at_server.tokens import Issuer, Serials
from evenhand.recommender.messages import Report, Task

if TYPE_CHECKING:
    import pyarrow as pa

Columns = tuple[Any, ...]


@dataclass
class Counts:
    """What became of the reports: how many were accepted, and why the others were dropped."""

    accepted: int = 0
    duplicate: int = 0
    forged: int = 0
    foreign: int = 0
    malformed: int = 0

    def __str__(self) -> str:
        dropped = ", ".join(f"{count} {name}" for name, count in asdict(self).items() if name != "accepted" and count)
        return f"{self.accepted} reports accepted" + (f"; dropped: {dropped}" if dropped else "")


class Fold:
    """Adds up reports of one task. Each token counts once; what does not belong is counted and dropped.

    Guarantee:
        Reads only reports that are private already. Folds of disjoint sets of reports `merge` into exactly the
        fold of all of them, in any order, so that the work can be shared among machines.

    Edge cases:
        A report that comes again is a duplicate, however often, also after `save` and `load`: folding a file
        twice changes nothing. Answers with bits beyond the task's questions, and serials beyond its tokens, are
        malformed.

    Args:
        task: an open task.
        issuer: recognises the task's tokens; None if something upstream has done so.
        rated: the public rated items of each token, for tasks with ``public_rated``.
    """

    def __init__(self, task: Task, issuer: Issuer | None = None, rated: RatedSets | None = None) -> None:
        if issuer is not None and issuer.task.id != task.id:
            raise UsageError("The issuer is another task's: use the secret that this task's tokens were made with.")
        _ = task.query_key  # a task that is not open yet has no queries to fold answers to
        self.task, self.issuer = task, issuer
        self.sketch = sketch_for(task, rated)
        self.counts = Counts()
        self._pooled = task.pool < task.tokens
        self._seen = Seen(task.tokens)
        if self._pooled:
            ones = np.zeros((task.pool, task.questions), np.int64)
            self._sums: Sums = {"asked": np.zeros(task.pool, np.int64), "ones": ones}
        else:
            self._sums = self.sketch.zeros()

    def add(self, batch: Batch) -> None:
        columns: Columns = (batch.serials, batch.answers, batch.tags)
        malformed, (serials, answers, tags) = _kept(fits(self.task, batch.serials, batch.answers), columns)
        forged = 0
        if self.issuer is not None:
            genuine = np.zeros(len(serials), bool) if tags is None else self.issuer.tags(serials) == tags
            forged, (serials, answers) = _kept(genuine, (serials, answers))
        duplicate, (serials, answers) = _kept(self._seen.claim(serials), (serials, answers))
        self.counts.malformed += batch.malformed + malformed
        self.counts.foreign += batch.foreign
        self.counts.forged += forged
        self.counts.duplicate += duplicate
        self.counts.accepted += len(serials)
        self._add_up(serials, answers)

    def _add_up(self, serials: Serials, answers: Serials) -> None:
        numbers = serials.astype(np.int64) % self.task.pool
        bits = answers[:, None] >> np.arange(self.task.questions, dtype=np.uint32) & np.uint32(1)
        if self._pooled:
            self._sums["asked"] += np.bincount(numbers, minlength=self.task.pool)
            for question in range(self.task.questions):
                ones = np.bincount(numbers[bits[:, question] == 1], minlength=self.task.pool)
                self._sums["ones"][:, question] += ones
        else:
            self.sketch.add(self._sums, numbers, np.ones(len(numbers), np.int64), bits.astype(np.int64))

    def add_reports(self, reports_: Iterable[Report]) -> None:
        for batch in reports.from_reports(reports_, self.task.short_id):
            self.add(batch)

    def add_file(self, path: str | PathLike[str]) -> None:
        """Add a file of binary records, or of JSON reports, one per line."""
        for batch in reports.from_file(path, self.task.short_id):
            self.add(batch)

    def add_arrow(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add an Arrow record batch or table with columns serial, answer and, with an issuer, tag."""
        self.add(reports.from_arrow(batch))

    def merge(self, other: Fold) -> None:
        """Add another fold of the same task, of other reports."""
        if other.task.id != self.task.id or other.task.beacon != self.task.beacon:
            raise UsageError("The two folds are of different tasks: merge folds of one task only.")
        shared = self._seen.overlap(other._seen)
        if shared:
            raise DataError(
                f"The two folds share {shared} reports, which would count twice: give each machine its own range "
                "of serials, and fold again."
            )
        self._seen.bits |= other._seen.bits
        for name, total in other._sums.items():
            self._sums[name] += total
        self.counts = Counts(*map(operator.add, astuple(self.counts), astuple(other.counts)))

    def sums(self) -> Sums:
        """The sketch's totals over all reports so far."""
        if not self._pooled:
            return self._sums
        sums = self.sketch.zeros()
        used = np.flatnonzero(self._sums["asked"])
        self.sketch.add(sums, used, self._sums["asked"][used], self._sums["ones"][used])
        return sums

    def to_bytes(self) -> bytes:
        """The fold's state, without the issuer's secret."""
        return _pack(self._parts())

    def _parts(self) -> Sums:
        identity = np.frombuffer(self.task.id + (self.task.beacon or b""), np.uint8)
        counts = np.array(astuple(self.counts), np.int64)
        sums = {f"sum_{name}": total for name, total in self._sums.items()}
        return {"identity": identity, "counts": counts, "seen": self._seen.bits, **sums}

    def restore(self, data: bytes) -> None:
        """Take over the state that `to_bytes` gave; this fold must still be empty."""
        if self.counts != Counts():
            raise UsageError("A fold that has begun can't be restored: restore into a new one, then merge.")
        ours = self._parts()
        # Before anything else, as the sizes of the rest follow from the task.
        if _unpack(data, {"identity": ours["identity"]})["identity"].tobytes() != ours["identity"].tobytes():
            raise DataError("The fold is of another task, or of another beacon: begin a new one.")
        stored = _unpack(data, ours)
        other = Fold(self.task, rated=self.sketch.rated)
        other._seen.bits, other.counts = stored["seen"], Counts(*stored["counts"].tolist())
        other._sums = {name: stored[f"sum_{name}"] for name in self._sums}
        self.merge(other)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to a file, all or nothing."""
        target = Path(path)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with open(partial, "wb") as file:
                file.write(self.to_bytes())
                os.fsync(file.fileno())
            os.replace(partial, target)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise DataError(f"{target} can't be written: {error.strerror}.") from None

    def load(self, path: str | PathLike[str]) -> None:
        """Take over the state saved in a file; this fold must still be empty."""
        try:
            self.restore(Path(path).read_bytes())
        except OSError as error:
            raise DataError(f"{path} can't be read: {error.strerror}.") from None


def _kept(mask: NDArray[np.bool_], columns: Columns) -> tuple[int, Columns]:
    """How many rows the mask leaves out, and the columns without them; no copy where it leaves out none."""
    if mask.all():
        return 0, columns
    return len(mask) - int(mask.sum()), tuple(None if column is None else column[mask] for column in columns)


class Seen:
    """A set of serials below ``tokens``, one bit each: its size is fixed when the tokens are issued."""

    def __init__(self, tokens: int) -> None:
        self.bits = np.zeros((tokens + 7) // 8, np.uint8)

    def claim(self, serials: Serials) -> NDArray[np.bool_]:
        """Mark serials as seen; True for each that comes for the first time, here or in an earlier call."""
        order = _sorted(serials)
        ascending = serials if order is None else serials[order]
        first = np.ones(len(serials), bool)
        first[1:] = ascending[1:] != ascending[:-1]
        place, mask = ascending >> 3, (1 << (ascending & 7)).astype(np.uint8)
        first &= (self.bits[place] & mask) == 0
        place, mask = place[first], mask[first]
        if len(place):
            starts = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
            self.bits[place[starts]] |= np.bitwise_or.reduceat(mask, starts)
        if order is None:
            return first
        fresh = np.empty_like(first)
        fresh[order] = first
        return fresh

    def overlap(self, other: Seen) -> int:
        return int(np.bitwise_count(self.bits & other.bits).sum())


def _sorted(serials: Serials) -> NDArray[np.intp] | None:
    """The order that sorts serials, equal ones as they came; None if they ascend already."""
    if np.all(serials[1:] >= serials[:-1]):
        return None
    # Sorting serial and place as one number is much faster than a stable argsort.
    packed = serials.astype(np.uint64) << np.uint64(32) | np.arange(len(serials), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.intp)


Arrays = dict[str, NDArray[Any]]

_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(KeyError, ValueError, OSError, NotImplementedError, RuntimeError, OverflowError),
)
"""What the zip module raises for bytes that are no archive, or not one that was written here."""


def _pack(arrays: Arrays) -> bytes:
    """All arrays by name as a zip file, as `numpy.load` reads them."""
    file = io.BytesIO()
    # As np.savez_compressed does, at the level that is ten times faster: sums of noise hardly shrink.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return file.getvalue()


def _unpack(data: bytes, like: Arrays) -> Arrays:
    """The arrays that `_pack` was given, if they have the names, types and shapes of those in ``like``.

    Their headers are compared and never obeyed, and no more is read than is expected: a forged archive can claim
    no type, no shape and no size.
    """
    found: Arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name, expected in like.items():
                header = _header(expected)
                with archive.open(f"{name}.npy") as member:
                    raw = member.read(len(header) + expected.nbytes + 1)
                if len(raw) != len(header) + expected.nbytes or not raw.startswith(header):
                    raise DataError("The fold is damaged, or of another task: begin a new one.")
                found[name] = np.frombuffer(raw, expected.dtype, offset=len(header)).reshape(expected.shape).copy()
    except _DAMAGE:
        raise DataError("The fold is damaged, or is no fold: fold the reports again.") from None
    return found


def _header(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    return file.getvalue()

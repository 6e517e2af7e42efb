"""Text files as lines, one record per line, so that no line can change what another becomes.

A line ends with a line feed and nothing else; a carriage return before it is left out. Bytes that are not UTF-8
are left out. Of a line, the first `MOST_BYTES` count. Every file has such lines: nothing here can fail because
of what a line holds. Spark follows the same rules (``spark_text.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from evenhand.tables.expressions import ArrowBatch, ArrowSchema

MOST_BYTES = 2**20
"""The bytes of a line that count; the rest of a longer line is left out."""

_BLOCK = 2**20  # bytes read at a time: engines work on one block while the next is read
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def readable(text: bytes) -> str:
    """Bytes as text, without those that are not UTF-8."""
    return text.decode("utf-8", "ignore")


def first_line(path: str) -> bytes | None:
    """The first line of a file, without a byte-order mark; None if it is longer than a line may be."""
    import pyarrow as pa

    with pa.input_stream(path) as file:  # unpacks by the ending of the name
        line = b""
        while b"\n" not in line and len(line) <= MOST_BYTES and (more := file.read(_BLOCK)):
            line += more
    line, end, _ = line.removeprefix(_BYTE_ORDER_MARK).partition(b"\n")
    return line.removesuffix(b"\r") if end or len(line) <= MOST_BYTES else None


def blocks(path: str) -> Iterator[bytes]:
    """The lines of a file in blocks of whole lines: UTF-8, each line ended by one line feed and at most `MOST_BYTES` long."""
    import pyarrow as pa

    with pa.input_stream(path) as file:
        rest = file.read(_BLOCK).removeprefix(_BYTE_ORDER_MARK)
        while True:
            end = rest.rfind(b"\n") + 1
            if end:
                yield _mended(rest[:end])
            # A line under way: one byte more than the most is enough to know that it is too long, whatever ends it.
            rest = rest[end:][: MOST_BYTES + 2]
            more = file.read(_BLOCK)
            if not more:
                break
            rest += more
        if rest:
            yield _mended(rest + b"\n")


def _mended(block: bytes) -> bytes:
    block = block.replace(b"\r\n", b"\n")
    if _too_long(block):
        block = b"\n".join(line[:MOST_BYTES] for line in block.split(b"\n"))
    try:
        block.decode()
    except UnicodeDecodeError:
        return readable(block).encode()
    return block


def _too_long(block: bytes) -> bool:
    if len(block) <= MOST_BYTES:
        return False
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    return bool(np.diff(ends, prepend=-1).max() > MOST_BYTES + 1)


def line_batches(paths: Sequence[str]) -> Iterator[ArrowBatch]:
    """The lines of files as Arrow batches with one column of text, ``line``."""
    import pyarrow as pa

    for path in paths:
        for block in blocks(path):
            characters = np.frombuffer(block, np.uint8)
            feeds = characters == ord("\n")
            ends = np.flatnonzero(feeds)
            offsets = np.zeros(len(ends) + 1, np.int32)
            offsets[1:] = ends - np.arange(len(ends))
            texts = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(characters[~feeds]))
            yield pa.record_batch([texts], names=["line"])


class Stream:
    """Arrow batches that are made anew each time an engine scans them.

    Args:
        schema: of all batches.
        batches: starts reading.
    """

    def __init__(self, schema: ArrowSchema, batches: Callable[[], Iterator[ArrowBatch]]) -> None:
        self._schema, self._batches = schema, batches

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._schema, self._batches()).__arrow_c_stream__(requested_schema)

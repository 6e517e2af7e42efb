"""Arrays of known shapes as bytes: a zip file of NumPy arrays, read back strictly."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError

Arrays = dict[str, NDArray[Any]]

_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(KeyError, ValueError, OSError, NotImplementedError, RuntimeError, OverflowError),
)
"""What the zip module raises for bytes that are no archive, or not one that was written here."""


def pack(arrays: Arrays) -> bytes:
    """All arrays by name, as `numpy.load` reads them."""
    file = io.BytesIO()
    # As np.savez_compressed does, at the level that is ten times faster: sums of noise hardly shrink.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return file.getvalue()


def unpack(data: bytes, like: Arrays) -> Arrays:
    """The arrays that `pack` was given, if they have the names, types and shapes of those in ``like``.

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

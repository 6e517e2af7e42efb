"""What carries the guarantee of weights: that they are integers, small enough, and what one user can do with them.

Weights may come from a file that somebody else wrote. Everything is recomputed from the very integers that will be used, in
arithmetic that can't wrap.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from evenhand.guarantee import UsageError
from evenhand.learning.weights.problem import Integers

LABEL_BITS = 20
"""Labels span at most 2^20 steps."""

_LARGEST_SUM = 2**62  # Σ|c|·|y| over a column
_LARGEST_EXPONENT = 1000  # the unit of the grid is a double


def check_integers(matrix: sparse.csr_matrix, exponent: int, label_bits: int, shape: tuple[int, ...]) -> None:
    """Refuse a matrix whose products with labels are not exact in 64 bits; sums of magnitudes are taken in exact integers."""
    problem = None
    if not sparse.issparse(matrix) or matrix.format != "csr" or matrix.dtype != np.int64:
        problem = "the matrix is not a sparse matrix (CSR) of 64-bit integers"
    elif matrix.shape != tuple(shape):
        problem = f"the matrix has the shape {matrix.shape}, not {tuple(shape)}"
    elif not _well_formed(matrix):
        problem = "the matrix is malformed"
    elif not 1 <= label_bits <= LABEL_BITS or not -_LARGEST_EXPONENT <= exponent <= _LARGEST_EXPONENT:
        problem = f"label_bits={label_bits} or exponent={exponent} is out of range"
    elif max(_magnitudes(matrix.data, matrix.indices, shape[1]), default=0) << label_bits > _LARGEST_SUM:
        problem = "the integers are too large for exact 64-bit sums"
    if problem:
        raise UsageError(f"weights=: {problem}. Expected weights as fit made or `save` wrote them; compute them anew.")


def _well_formed(matrix: sparse.csr_matrix) -> bool:
    """Whether places are in range, sorted and not repeated."""
    try:
        matrix.check_format(full_check=True)
    except (ValueError, TypeError):
        return False
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    place = rows * matrix.shape[1] + matrix.indices
    return bool((np.diff(place) > 0).all())


def _magnitudes(data: Integers, place: Integers, size: int) -> list[int]:
    """Sums of |data| by place, exactly: halves of 32 bits are summed apart, so nothing wraps below 2^31 entries."""
    bits = np.where(data < 0, -(data + 1), data).astype(np.uint64)  # |x| for x ≥ 0 and |x| − 1 for x < 0: no overflow
    sums = [np.zeros(size, dtype=np.uint64) for _ in range(2)]
    np.add.at(sums[0], place, bits >> np.uint64(32))
    np.add.at(sums[1], place, (bits & np.uint64(2**32 - 1)) + (data < 0).astype(np.uint64))
    return [(int(high) << 32) + int(low) for high, low in zip(*sums, strict=True)]


def heaviest(matrix: sparse.csr_matrix, users: Integers) -> int:
    """The largest Σ|entry| over the rows of any one user, in exact integers."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return max(_magnitudes(matrix.data, users[rows], int(users.max(initial=0)) + 1))

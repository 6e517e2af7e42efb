"""Leading eigenvectors of a symmetric matrix of sums, and how many of them stand out of the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError
from evenhand.recommender.at_server.reading import Reading

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_DIMENSIONS = 16
_MARGIN = 1.64  # the largest eigenvalue of noise exceeds edge (1 + 1.64 N^(-2/3)) once in a thousand times
_DENSE_UP_TO = 64


def read_spectrum(matrix: NDArray[np.float64] | csr_array, noise: float, edge: float, clusters: int | None) -> Reading:
    """The items' rows projected on the leading eigenvectors.

    An eigenvalue above the edge, by the margin of the Tracy-Widom law, is signal. Where noise has independent entries of standard
    deviation σ the edge is 2 σ sqrt(N); a signal of s times σ sqrt(N) shows as an eigenvalue of s + 1/s times that,
    and its coordinates carry noise of σ (1 + 1/s²): the rows are scaled to σ again, and inner products of the
    embedding undo what noise added to the eigenvalues.

    Args:
        matrix: symmetric, dense or sparse.
        noise: the standard deviation of an off-diagonal entry.
        edge: the largest eigenvalue that noise alone would give.
        clusters: how many clusters will be asked for; None for as many as stand out.

    Reference: banerjee, figure 1; for the edge and the shrinkage, Benaych-Georges and Nadakuditi (2011), and
    Gavish and Donoho (2017).
    """
    size = matrix.shape[0]
    values, vectors = _leading(matrix, min(size, max(MOST_DIMENSIONS, clusters or 0)))
    signals = int((values > edge * (1 + _MARGIN * size ** (-2 / 3))).sum())
    kept = max(1, signals if clusters is None else min(signals, clusters))
    values, vectors = values[:kept], vectors[:, :kept]
    excess = np.sqrt(np.maximum(values**2 - edge**2, 1e-12))
    signal = (np.maximum(values, edge) + excess) / max(edge, 1e-12)
    embedding = vectors * np.sqrt(excess)
    embedding /= max(float(np.abs(embedding).max()), 1e-12)
    return Reading(vectors * values / (1 + signal**-2), noise, embedding, None, signals)


def _leading(matrix: NDArray[np.float64] | csr_array, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The algebraically largest eigenvalues, largest first, with eigenvectors whose sign is fixed."""
    size = matrix.shape[0]
    if size <= _DENSE_UP_TO or count >= size - 1:
        dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        values, vectors = np.linalg.eigh(np.asarray(dense, np.float64))
    else:
        from scipy.sparse.linalg import ArpackError, eigsh

        try:
            values, vectors = eigsh(matrix, count, which="LA", v0=np.linspace(1, 2, size))
        except ArpackError:
            raise DataError("The eigenvectors could not be computed: the sums are damaged, or all zero.") from None
    order = np.argsort(-values)[:count]
    values, vectors = values[order].astype(np.float64), vectors[:, order].astype(np.float64)
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.where(vectors[largest, np.arange(len(order))] < 0, -1.0, 1.0)

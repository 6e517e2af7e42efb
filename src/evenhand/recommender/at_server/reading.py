"""What the sums of many reports say about the items, which is the input to clustering: eigenvectors of a matrix of sums, where it is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.guarantee import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """What the sums say about each item.

    Args:
        profile: a row per item; items of one cluster have the same expected row.
        noise: the standard deviation of each entry of a row around its expectation.
        embedding: a vector per item whose inner products say who is liked together; None if there is none.
        popularity: the estimated share of raters who like each item; None if the sketch is blind to it.
        signals: how many directions stand out of the noise.
    """

    profile: Floats
    noise: float
    embedding: Floats | None
    popularity: Floats | None
    signals: int


Matrix: TypeAlias = "NDArray[np.float32] | csr_array"

MOST_DIMENSIONS = 16
_MARGIN = 1.64  # the largest eigenvalue of noise exceeds edge (1 + 1.64 N^(-2/3)) once in a thousand times
_DENSE_UP_TO = 64


def read_spectrum(matrix: Matrix, noise: float, edge: float, clusters: int | None) -> Reading:
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


def places_on_spectrum(signal: Floats, noise: float, shares: Floats, size: int) -> Floats:
    """Where classes of items are expected on the eigenvectors that stand out, in standard deviations of one item.

    An eigenvalue of s times the noise level gives coordinates that stand sqrt(s² - 1) standard deviations apart, and
    nothing if s <= 1.

    Args:
        signal: the expected entry of the matrix for each pair of classes.
        noise: the standard deviation of an entry.
        shares: the share of items in each class.
        size: the number of items.
    """
    root = np.sqrt(shares)
    values, vectors = np.linalg.eigh(root[:, None] * signal * root * size)
    strengths = np.maximum(values, 0) / (noise * np.sqrt(size))
    return np.asarray(vectors / root[:, None] * np.sqrt(np.maximum(strengths**2 - 1, 0)))


def _leading(matrix: Matrix, count: int) -> tuple[Floats, Floats]:
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

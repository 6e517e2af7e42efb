"""Weights as integers, so that the sensitivity of a release is exact to the last bit.

``C`` is rounded to a public power-of-two grid, labels to another; their product is an integer vector, and one
user can move it by at most ``heaviest · width`` in L1, where ``heaviest`` is the largest Σ|c| of any user,
computed from these very integers. Rounding makes ``C X`` differ from its target by about 10⁻⁶; since features
are public, the release is corrected by the exact inverse afterwards.

Weights may come from a file that somebody else wrote. Everything that carries the guarantee is recomputed from the very integers that will be
used, in arithmetic that can't wrap.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.guarantee import DataError, UsageError
from evenhand.learning.data.private_values import Floats, Integers
from evenhand.learning.data.row_sources import random_ranks
from evenhand.learning.fitting import choice
from evenhand.learning.regression.solver.problem import WeightProblem, build
from evenhand.learning.regression.solver.solve import Optimum, cost, optimise
from evenhand.planning.row_choice import limits_to_try

WEIGHTINGS = ("optimal", "row-limit", "all")
TARGETS = ("auto", "coefficients", "predictions")

COMPARABLE = 10.0
"""With ``target="auto"``, columns whose root mean squares differ by more than this count as differently scaled."""

_DENSE = 0.1  # from this share of nonzero entries on, products are faster without regard to the others
_SUM_BITS = 61  # Σ|c|·|y| stays below, for every possible label
_NOISE_BITS = 55  # the noise scale stays below, in grid units


LABEL_BITS = 20
"""Labels span at most 2^20 steps."""

_LARGEST_SUM = 2**62  # Σ|c|·|y| over a column
_LARGEST_EXPONENT = 1000  # the unit of the grid is a double


@dataclass(frozen=True, eq=False)
class RegressionWeights:
    """Public weights for one table of features and users; they may be saved and reused for other labels.

    Args:
        matrix: n × d integers, sparse; ``C = matrixᵀ · 2^−exponent``.
        exponent: of the grid of ``C``.
        label_bits: labels span 2^label_bits steps.
        heaviest: the largest Σ|matrix| over any one user: exact.
        decode: the d × d matrix that turns ``C y`` into coefficients.
        target: the d × d matrix ``Q`` whose ``Q β`` the weights estimate directly.
        names: of the coefficients.
        weighting: ``"optimal"``, ``"row-limit"`` or ``"all"``.
        row_limit: rows per user, for ``"row-limit"``.
        value: the objective of the weights before rounding: σ²‖C‖² + 2d(B/ε)²·(heaviest Σ|c|)².
        bound: no weights can have a smaller objective.
        fingerprint: of the features and users.
    """

    matrix: Any
    exponent: int
    label_bits: int
    heaviest: int
    decode: Floats
    target: Floats
    names: tuple[str, ...]
    weighting: str
    row_limit: int | None
    value: float
    bound: float
    fingerprint: str

    @property
    def objective(self) -> str:
        """``"coefficients"`` or ``"predictions"``."""
        return "coefficients" if np.array_equal(self.target, np.eye(len(self.target))) else "predictions"

    @property
    def gap(self) -> float:
        """How far the objective may be above the best possible one, relatively."""
        return max(0.0, 1 - self.bound / self.value) if self.value > 0 else 0.0

    @property
    def unit(self) -> Fraction:
        """The value of one step of the grid of ``C``."""
        return Fraction(1, 2**self.exponent) if self.exponent >= 0 else Fraction(2**-self.exponent)

    def apply(self, labels: Integers) -> list[int]:
        """``matrixᵀ · labels``: exact, in 64 bits by construction."""
        return [int(total) for total in self.matrix.T @ labels]

    def covariance(self, noise_sd: float, noise_scale: float = 0.0) -> Floats:
        """Of the coefficients: sampling error of labels with this σ, and Laplace noise of this scale on each released number."""
        released = noise_sd**2 * self._gram + 2 * noise_scale**2 * np.eye(len(self._gram))
        return np.asarray(self.decode @ released @ self.decode.T)

    def spread(self) -> float:
        """‖Q · decode · C‖²: the sampling variance of the target per unit of σ²."""
        maps = self.target @ self.decode
        return float(np.sum((maps @ self._gram) * maps))

    @cached_property
    def _gram(self) -> Floats:
        floats = self.matrix.astype(np.float64)
        dense = floats.nnz > _DENSE * math.prod(floats.shape)
        product = (full := floats.toarray()).T @ full if dense else (floats.T @ floats).toarray()
        return np.asarray(product * float(self.unit) ** 2)

    def check(self, X: Floats, users: Integers) -> None:
        """Refuse weights that can't be used safely, wherever they come from, or that were made for other rows."""
        check_integers(self.matrix, self.exponent, self.label_bits, X.shape)
        for name, matrix in (("decode", self.decode), ("target", self.target)):
            if np.shape(matrix) != (X.shape[1],) * 2 or not np.isfinite(np.asarray(matrix, dtype=np.float64)).all():
                raise UsageError(
                    f"weights=: {name} has the shape {np.shape(matrix)} or holds numbers that are not finite; expected "
                    f"{X.shape[1]} × {X.shape[1]} finite numbers. Compute the weights anew."
                )
        choice("the weighting of weights=", self.weighting, WEIGHTINGS)
        if fingerprint(X, users) != self.fingerprint:
            raise UsageError(
                "weights= were made for other features or users (or another row order); expected the same X and "
                "users. Leave weights= out to compute new ones."
            )

    def save(self, path: str | Path) -> None:
        """Write the weights (public facts only) to a .npz file."""
        fields = {name: getattr(self.matrix, name) for name in ("data", "indices", "indptr")}
        fields |= {name: getattr(self, name) for name in _STORED}
        fields["row_limit"] = -1 if self.row_limit is None else self.row_limit
        np.savez_compressed(path, **{name: np.asarray(value) for name, value in fields.items()})  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> RegressionWeights:
        """Read weights that `save` wrote. Nothing in the file is trusted: integers and ranges are checked here, the rest and
        the sensitivity when the weights are used (`check`, `heaviest_user`)."""
        try:
            with np.load(path, allow_pickle=False) as file:
                stored = dict(file)
            shape = (len(stored["indptr"]) - 1, len(stored["decode"]))
            matrix = sparse.csr_array((stored["data"], stored["indices"], stored["indptr"]), shape=shape)
            loaded = cls(matrix=matrix, **{name: read(stored[name]) for name, read in _STORED.items()})
        except (
            OSError,
            EOFError,
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            BadZipFile,
            zlib.error,
        ) as error:
            raise DataError(f"{path} can't be read as saved weights ({type(error).__name__}).") from None
        check_integers(loaded.matrix, loaded.exponent, loaded.label_bits, shape)
        return loaded

    def heaviest_user(self, users: Integers) -> int:
        """The largest Σ|matrix| over the users, recomputed: a release never relies on a stored number."""
        return heaviest(self.matrix, users)


_STORED: dict[str, Callable[[NDArray[Any]], Any]] = {
    **dict.fromkeys(("exponent", "label_bits", "heaviest"), int),
    **dict.fromkeys(("decode", "target"), np.asarray),
    **dict.fromkeys(("weighting", "fingerprint"), str),
    **dict.fromkeys(("value", "bound"), float),
    "names": lambda names: tuple(str(name) for name in names),
    "row_limit": lambda limit: None if int(limit) < 0 else int(limit),
}


def fingerprint(X: Floats, users: Integers) -> str:
    """A hash of features and users, row by row."""
    digest = hashlib.sha256(repr(X.shape).encode())
    digest.update(np.ascontiguousarray(X).data)
    digest.update(np.ascontiguousarray(users, dtype=np.int64).data)
    return digest.hexdigest()


def resolve_target(X: Floats, target: str) -> str:
    """``"auto"``: coefficients while the columns are on one scale, else predictions, which no rescaling changes.

    Every coefficient gets the same noise, so a column a thousand times larger than another would turn noise that
    is harmless in its coefficient's neighbour into a thousandfold error of predictions.
    """
    if target != "auto":
        return target
    size = np.sqrt(np.einsum("ij,ij->j", X, X))
    return "coefficients" if size.max() <= COMPARABLE * size.min() else "predictions"


def compute(
    X: Floats,
    users: Integers,
    *,
    names: Sequence[str],
    epsilon: Decimal,
    width: float,
    noise_sd: float,
    weighting: str,
    target: str,
    row_limit: int | None,
    tolerance: float,
) -> RegressionWeights:
    """Choose weights for features ``X`` (with the intercept as a column) and users; reads no label.

    Args:
        users: codes 0 .. m−1.
        epsilon, width: the ε that the release will have, and the width of the label bounds.
        noise_sd, weighting, target, row_limit: as in `LabelPrivateRegression`.
        tolerance: relative gap at which the optimiser stops.
    """
    order = np.argsort(users, kind="stable")
    sorted_already = bool((np.diff(users) >= 0).all())
    rows = X if sorted_already else X[order]
    d = X.shape[1]
    noise = 2 * d * (width / float(epsilon)) ** 2
    problem = build(rows, np.bincount(users), noise_sd**2, noise, names)
    Q: Floats = np.eye(d)
    if resolve_target(X, target) == "predictions":
        # ‖Q(β̂ − β)‖² is the mean squared error of predictions when QᵀQ = XᵀX/n.
        Q = np.asarray(np.linalg.inv(problem.T))
        problem = replace(problem, T=np.eye(d))
    if weighting == "optimal":
        found = optimise(problem, tolerance)
    else:
        found = all_rows(problem) if weighting == "all" else best_row_limit(problem, row_limit)
    label_bits, exponent = _grids(found.C, problem.offsets, float(epsilon))
    integers = np.rint(np.ldexp(found.C, exponent)).astype(np.int64)
    if not sorted_already:
        unsorted = np.empty_like(integers)
        unsorted[order] = integers
        integers = unsorted
    matrix = sparse.csr_array(integers)
    achieved = np.ldexp((matrix.T @ X).astype(np.float64), -exponent)
    return RegressionWeights(
        matrix=matrix,
        exponent=exponent,
        label_bits=label_bits,
        heaviest=heaviest(matrix, users),
        decode=np.linalg.inv(achieved),
        target=Q,
        names=tuple(names),
        weighting=weighting,
        row_limit=found.limit,
        value=found.value,
        bound=found.bound,
        fingerprint=fingerprint(X, users),
    )


def _grids(C: Floats, offsets: Integers, epsilon: float) -> tuple[int, int]:
    """Bits for labels and the exponent for ``C``: as fine as sums and noise in 64-bit integers allow."""
    size = np.abs(C)
    column = math.log2(size.sum(axis=0).max())
    user = math.log2(np.add.reduceat(size.sum(axis=1), offsets).max())
    room = _NOISE_BITS + math.log2(epsilon)  # for log2(heaviest Σ|c|) + label bits
    label_bits = int(min(LABEL_BITS, room // 2))
    return label_bits, math.floor(min(_SUM_BITS - label_bits - column, room - label_bits - user - 1))


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


def all_rows(problem: WeightProblem) -> Optimum:
    """Ordinary least squares."""
    C = problem.Z @ problem.T.T / problem.size[0]
    return Optimum(C, cost(problem, C), 0.0)


def best_row_limit(problem: WeightProblem, limit: int | None = None) -> Optimum:
    """Least squares on at most ``limit`` random rows per user; the limit with the best forecast if none is given.

    Choosing it reads features, users and public parameters only. Limits are tried in steps of a quarter.
    """
    rank = random_ranks(problem.users, problem.counts)
    tried = limits_to_try(float(problem.counts.max())) if limit is None else [limit]
    limited = (_limited(problem, rank < size, int(size)) for size in tried)
    best = min((one for one in limited if one is not None), key=lambda one: one.value, default=None)
    if best is None:
        raise UsageError(
            f"row_limit={limit}: the rows kept don't determine all coefficients; raise it or leave it out."
        )
    return best


def _limited(problem: WeightProblem, kept: np.ndarray[tuple[int], np.dtype[np.bool_]], limit: int) -> Optimum | None:
    part = problem.Z[kept]
    gram = part.T @ part
    if np.linalg.eigvalsh(gram)[0] <= 1e-10 * np.trace(gram):
        return None
    C = np.zeros(problem.size)
    C[kept] = part @ np.linalg.solve(gram, problem.T.T)
    return Optimum(C, cost(problem, C), 0.0, limit)

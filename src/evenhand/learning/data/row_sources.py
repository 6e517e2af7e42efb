"""From what the caller gives to rows of users: two ways to compute the few sums that learning needs, in memory and in an engine.

`MemoryRows` here, `engine_rows.EngineRows` there; estimators can't tell them apart. And how many rows users have, from which bounds are chosen:
given, public, or bought with a share of ε.
"""

from __future__ import annotations

import math
import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from evenhand.guarantee import Guarantee, Reach, Relation, UsageError, split
from evenhand.learning.data.features import STEPS, Categories, Encoding, FeatureMap
from evenhand.learning.data.inputs import (
    Features,
    Frame,
    PerRow,
    encoding_of,
    label_column,
    private_feature_matrix,
    require_no_population,
    take_apart,
    user_codes,
)
from evenhand.learning.data.private_values import Floats, Integers
from evenhand.learning.data.public_rows import column_names
from evenhand.learning.data.targets import Classes, Targets
from evenhand.learning.data.user_rows import UserRows, box_steps
from evenhand.learning.fitting import is_auto, is_worst_case, whole_number
from evenhand.learning.losses import MarginLoss
from evenhand.learning.slopes import target_steps
from evenhand.planning.checking import WORST_CASE
from evenhand.planning.row_choice import LARGEST_TAU
from evenhand.planning.worth import AgainstConstant
from evenhand.profiles import About, Buckets, Profile, Support, Wanted, row_buckets, support_of_counts
from evenhand.release import Measurement, Opener, Receipt
from evenhand.tables import Secret, Table

FINE_BITS = 46
"""A row's slope, in units of the steepest, is rounded to 46 bits before it is summed; times features of 15 bits and a
sign it fits 64-bit integers."""

_CHUNK = 4096  # rows that fit a processor's cache; partial sums of their integers stay far below 2^53


FINENESS = 80
"""Coefficients are multiples of 2^−80. Doubles are too coarse: beside a coefficient of 10⁸ their spacing of 10⁻⁸, times
a billion rows, is a gradient of 10."""

_EXACT_BITS = 36  # of the leading parts, relative to the norm: times features of 15 bits and √2, sums stay below 2^53


PROFILE_SHARE = Decimal("0.1")
"""The part of ε that a profile of rows per user takes when their number is secret."""


@dataclass(frozen=True)
class Coefficients:
    """A vector of multiples of 2^−FINENESS, exactly."""

    steps: tuple[int, ...]

    @classmethod
    def zero(cls, size: int) -> Coefficients:
        """Where minimisation starts."""
        return cls((0,) * size)

    def moved(self, by: Floats) -> Coefficients:
        """This vector plus another."""
        scaled = (round(math.ldexp(float(value), FINENESS)) for value in by)
        return Coefficients(tuple(step + more for step, more in zip(self.steps, scaled, strict=True)))

    @property
    def floats(self) -> Floats:
        """Rounded to doubles."""
        return np.array([step / 2**FINENESS for step in self.steps])

    def parts(self) -> list[Floats]:
        """Three vectors of doubles that add up to this one, each smaller than the one before by about 2^36.

        Sums of products of the first two with integer features are exact, in any order; what is left of the third is too
        small for its rounding to matter.
        """
        found: list[Floats] = []
        rest = self.steps
        for _ in range(2):
            longest = max((abs(step).bit_length() for step in rest), default=0)
            # The norm is at most √d times longest.
            cut = max(longest + (len(rest).bit_length() + 1) // 2 - _EXACT_BITS, 0)
            leading = tuple((step + (1 << cut >> 1)) >> cut << cut for step in rest)
            rest = tuple(step - part for step, part in zip(rest, leading, strict=True))
            found.append(Coefficients(leading).floats)
        return [*found, Coefficients(rest).floats]


class KeptRows(ABC):
    """At most τ rows of each user: the sums that full-batch minimisation needs."""

    rows: int

    def gradient(self, f: Coefficients, loss: MarginLoss) -> Floats:
        """``Σ ℓ'(⟨f, x⟩, t)·x``, to within 2^−46 of its largest possible value.

        Margins are exact up to one rounding, slopes are rounded to integers, and integers are summed: the error grows with
        the rows, not with their square, and does not depend on their order.
        """
        unit = loss.steepest / STEPS / 2.0**FINE_BITS
        return np.array([float(total) * unit for total in self.integer_gradient(f, loss)])

    @abstractmethod
    def integer_gradient(self, f: Coefficients, loss: MarginLoss) -> list[int]:
        """The same in units of 2^−46 of the steepest slope and of steps of the features, exactly."""

    @abstractmethod
    def hessian(self, f: Coefficients, loss: MarginLoss) -> Floats:
        """``Σ ℓ''(⟨f, x⟩, t)·x xᵀ``, roughly: it only leads the way."""


class RowSource(ABC):
    """Rows of users, with targets, on a public grid."""

    relation: Relation
    unit: tuple[str, ...]
    public: tuple[str, ...]
    user: tuple[str, ...] = ()
    parts: tuple[Reach, ...] = ()

    def guarantee(self, epsilon: Decimal, delta: Decimal = Decimal(0), profile: Profile | None = None) -> Guarantee:
        """The guarantee of a model learned from these rows, with bounds chosen from ``profile`` if one was given."""
        promise = Guarantee(epsilon, delta, self.relation, self.unit, self.public, user=self.user, parts=self.parts)
        return promise if profile is None else promise.resting_on(*profile.purchases(self.relation))

    @contextmanager
    def reading(self, copied: bool = True) -> Iterator[None]:
        """One reading of the rows, for everything that a fit does with them after the debit.

        Not ``copied``: the fit asks the source a single question.
        """
        yield

    @abstractmethod
    def histogram(self, buckets: Buckets) -> Measurement:
        """Users by number of rows; one user moves it by 1 (presence)."""

    @abstractmethod
    def public_support(self) -> Secret[Support]:
        """The exact number of users with each number of rows, where that is public."""

    @abstractmethod
    def sample(self, tau: int) -> Secret[tuple[Floats, Floats]]:
        """Features as they came (NaN where missing) and targets of at most ``tau`` random rows of each user, in memory."""

    @abstractmethod
    def fetched(self) -> Secret[MemoryRows]:
        """All rows in memory, for computations whose results get noise before anybody sees them."""

    @abstractmethod
    @contextmanager
    def limited(self, features: FeatureMap, tau: int, opener: Opener) -> Iterator[KeptRows]:
        """At most ``tau`` random rows of each user, for a while; their exact sums are opened with ``opener``."""

    @abstractmethod
    def boxed(self, box: FeatureMap, targets: Targets) -> Secret[UserRows]:
        """All rows as small integers, a user's rows together."""


@dataclass(eq=False)
class MemoryRows(RowSource):
    """Arrays: features as they came, targets, and users as codes sorted so that a user's rows are together."""

    X: Floats
    targets: Floats
    users: Integers
    relation: Relation
    unit: tuple[str, ...]
    public: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        order = np.argsort(self.users, kind="stable")
        if not np.array_equal(order, np.arange(len(order))):
            self.X, self.targets, self.users = self.X[order], self.targets[order], self.users[order]
        self.counts = np.bincount(self.users)

    def histogram(self, buckets: Buckets) -> Measurement:
        return Measurement(lambda: Secret([int(k) for k in buckets.histogram(self.counts)]), l1=1, l2_squared=1)

    def public_support(self) -> Secret[Support]:
        return Secret(support_of_counts(self.counts if len(self.counts) else [1]))  # an empty table: any bound will do

    def sample(self, tau: int) -> Secret[tuple[Floats, Floats]]:
        kept = random_ranks(self.users, self.counts) < tau
        return Secret((self.X[kept], self.targets[kept]))

    def fetched(self) -> Secret[MemoryRows]:
        return Secret(self)

    @contextmanager
    def limited(self, features: FeatureMap, tau: int, opener: Opener) -> Iterator[KeptRows]:
        kept = random_ranks(self.users, self.counts) < tau
        yield _KeptArrays(features.integers(self.X[kept]), self.targets[kept])

    def boxed(self, box: FeatureMap, targets: Targets) -> Secret[UserRows]:
        return Secret(UserRows(box_steps(self.X, box), target_steps(self.targets, targets), self.counts))


class _KeptArrays(KeptRows):
    def __init__(self, X: Floats, targets: Floats) -> None:
        self._X, self._targets, self.rows = X, targets, len(targets)

    def integer_gradient(self, f: Coefficients, loss: MarginLoss) -> list[int]:
        total = np.zeros(self._X.shape[1], dtype=object)
        parts = np.stack(f.parts(), axis=1) / STEPS
        scale, half = 2.0**FINE_BITS / loss.steepest, 2 ** (FINE_BITS // 2)
        for start in range(0, len(self._X), _CHUNK):
            X, targets = (values[start : start + _CHUNK] for values in (self._X, self._targets))
            first, second, third = (X @ parts).T
            slopes = np.floor(loss.slope(first + second + third, targets) * scale + 0.5)
            slopes = np.clip(slopes, -(2.0**FINE_BITS), 2.0**FINE_BITS)
            # In two halves: 4096 · 2^23 · 2^15 = 2^50, so integers held as doubles are summed exactly in any order.
            upper = np.floor(slopes / half)
            sums = np.stack([upper, slopes - upper * half]) @ X
            total += sums[0].astype(np.int64).astype(object) * half + sums[1].astype(np.int64)
        return [int(value) for value in total]

    def hessian(self, f: Coefficients, loss: MarginLoss) -> Floats:
        weights = loss.curvature(self._X @ (f.floats / STEPS), self._targets)
        return np.asarray(self._X.T @ (self._X * weights[:, None])) / STEPS**2


def random_ranks(users: Integers, counts: Integers) -> Integers:
    """The place of each row in a fresh random order of its user's rows; users are sorted codes."""
    order = np.lexsort((draws(len(users)), users))
    ranks = np.empty(len(users), dtype=np.int64)
    ranks[order] = np.arange(len(users)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ranks


def draws(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Uniform 64-bit integers from the system's secure source, for sampling rows and users."""
    return np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)


def open_rows(
    X: Features,
    y: PerRow,
    users: PerRow,
    *,
    features: Sequence[str] | None,
    targets: Targets,
    protects: str,
    population: str | None = None,
    categories: Categories | None = None,
) -> tuple[RowSource, Encoding, Any]:
    """The rows, which features their columns become, and the features for scikit-learn's own notes (None for a table).

    Nulls follow the same rule as in statistics: under presence a row with a missing feature, label or user is dropped; under
    values a missing feature counts as 0 and a missing label as the middle, and missing users are refused.
    """
    if isinstance(X, Table):
        require_no_population(population)
        X.engine.require_tested("a fit")
        return _open_table(X, y, features, targets, categories)
    relation = Relation.parse(protects)
    if relation is Relation.LABELS:
        raise UsageError(
            "protects='labels' treats features as public: use LabelPrivateRegression, or protects='values'."
        )
    given = take_apart(X, y, users, features, population)
    encoding = encoding_of(given.X, categories)
    matrix = private_feature_matrix(given.X, encoding)
    labels = targets.targets(label_column(given.y, len(matrix), targets.require_kind))
    codes = user_codes(given.users, len(matrix), drop_null=relation is Relation.PRESENCE)
    if relation is Relation.PRESENCE:
        kept = (codes >= 0) & ~np.isnan(labels) & ~np.isnan(matrix).any(axis=1)
        rows, labels = (matrix, labels) if kept.all() else (matrix[kept], labels[kept])
        codes = user_codes(codes[kept], len(labels))
    else:
        rows, labels = matrix, np.where(np.isnan(labels), targets.middle, labels)
    noted = matrix if given.names is None else with_names(matrix, encoding) if encoding.levels else given.X
    return MemoryRows(rows, labels, codes, relation, given.unit), encoding, noted


def with_names(matrix: Floats, encoding: Encoding) -> Frame:
    """Encoded features as a frame, as scikit-learn keeps and compares names."""
    import pandas as pd

    return pd.DataFrame(matrix, columns=list(encoding.names))


def _open_table(
    table: Table, label: PerRow, features: Sequence[str] | None, targets: Targets, categories: Categories | None
) -> tuple[RowSource, Encoding, Any]:
    from evenhand.learning.data.engine_rows import EngineRows

    label, names = column_names(table, label, features)
    table.engine.require_unchanged()
    if table.relation is Relation.LABELS:
        raise UsageError("the table protects labels only: use LabelPrivateRegression, or read it otherwise.")
    if isinstance(targets, Classes):
        kind = table.expression.schema()[label]
        targets.require_kind("numbers" if kind.is_numeric() else "others", str(kind))
    encoding = Encoding.parse(names, categories, named=True)
    return EngineRows(table, label, names, targets, encoding), encoding, None


def rows_per_user(given: int | str) -> int | None:
    """τ as an analyst set it; None if it is left to a forecast, or to what is proved."""
    if is_auto("rows_per_user", given, WORST_CASE) or is_worst_case(given):
        return None
    return whole_number("rows_per_user", given, LARGEST_TAU)


def require_public(profile: Profile | None) -> None:
    """Refuse the exact profile of a table."""
    if profile is not None and profile.mark:
        raise UsageError(
            "profile= is the exact profile of a table, which is not private; expected a public prior or a bought one."
        )


def profile_price(source: RowSource, profile: Profile | None, epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """What a profile of rows per user takes of ε, and what it leaves."""
    bought = profile is None and not source.relation.counts_are_public
    return split(epsilon, PROFILE_SHARE) if bought else (Decimal(0), epsilon)


def rows_support(source: RowSource, profile: Profile | None, epsilon: Decimal, receipt: Receipt) -> Support:
    """Users by number of rows; what has to be bought costs `profile_price`."""
    if profile is not None:
        require_public(profile)
        return profile.support
    if source.relation.counts_are_public:
        return receipt.public(source.public_support(), source.relation)
    buckets = row_buckets()
    paid, _ = profile_price(source, profile, epsilon)
    return Wanted(About("rows")).get(receipt, buckets, source.histogram(buckets), paid).support


def known_profile(profile: Profile) -> Profile:
    """What it says of rows and users, whatever it was bought under: a fit adds what it cost to its own guarantee."""
    return replace(profile, guarantee=None)


def warn_of(plan: AgainstConstant) -> None:
    """Say, while nothing has been paid or read, that a model is not worth its price."""
    if not plan.usable:
        warnings.warn(f"the model is not likely to be worth its ε: {plan.why}.", UserWarning, stacklevel=6)

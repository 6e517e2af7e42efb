"""What an audit is about: a mechanism with its claim, and a pair of neighbouring tables.

A mechanism is a black box. It is asked for many independent outputs on a table and reveals nothing else, so an auditor need not trust its author.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

AnyTable: TypeAlias = Any
"""A table in whatever form a mechanism takes it: one of Evenhand's, arrays, scores."""

Outputs = npt.NDArray[np.float64]
"""Independent outputs, one per row; what is not a number has been turned into one, NaN for "not there"."""

Law = Mapping[Hashable, Fraction | float]
"""The exact probability of every output."""


@dataclass(frozen=True)
class Claim:
    """The (ε, δ) that a mechanism promises for every pair of neighbouring tables."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Pair:
    """Two tables that differ in one user, in whatever form the mechanism takes tables."""

    name: str
    one: AnyTable
    other: AnyTable


class Claimant(Protocol):
    """Something random that claims to be differentially private."""

    @property
    def name(self) -> str:
        """How it appears in the results."""

    @property
    def claim(self) -> Claim:
        """What it promises."""


class Mechanism(Claimant, Protocol):
    """A black box."""

    def sample(self, table: AnyTable, count: int) -> Outputs:
        """``count`` independent outputs on this table, with fresh secret randomness each."""


class Enumerable(Claimant, Protocol):
    """A mechanism with so few outputs that their probabilities can be told exactly."""

    def law(self, table: AnyTable) -> Law:
        """The exact distribution of the output on this table."""


@dataclass(frozen=True)
class BlackBox:
    """Any function of a table as a mechanism; ``run`` gives one output, a number or several.

    Example:
        >>> BlackBox("noisy count", Claim(1.0), lambda rows: len(rows) + rng.laplace())  # doctest: +SKIP
    """

    name: str
    claim: Claim
    run: Callable[[AnyTable], float | Sequence[float]]

    def sample(self, table: AnyTable, count: int) -> Outputs:
        return np.array([np.atleast_1d(np.asarray(self.run(table), dtype=np.float64)) for _ in range(count)])


@dataclass(frozen=True)
class KnownLaw:
    """A mechanism given by its exact distribution on each table."""

    name: str
    claim: Claim
    of: Callable[[AnyTable], Law]

    def law(self, table: AnyTable) -> Law:
        return self.of(table)

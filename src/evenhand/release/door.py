"""The only door out: debit, then measure, then noise.

`Receipt` is what a committed debit hands back. Exact integers can be turned into noisy ones only through it, and
it counts down what was paid for: code that forgets to split its ε can't draw noise twice with all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from evenhand.guarantee import EvenhandError, Guarantee, Relation, divide, exact_difference
from evenhand.ledger import Cost, Ledger
from evenhand.noise import Gaussian, IntegerNoise, Laplace, opendp, rho_for
from evenhand.tables import Secret

T = TypeVar("T")

SATURATION = 2**62
"""Totals are clamped here before noise; a clamp is 1-Lipschitz, so the declared sensitivity still holds."""


@dataclass(frozen=True)
class Measurement:
    """Integers to be released, and how far one user can move them.

    Args:
        integers: runs the query in the engine.
        l1: declared L1 sensitivity of the vector.
        l2_squared: declared squared L2 sensitivity.
    """

    integers: Callable[[], Secret[list[int]]]
    l1: int
    l2_squared: int


@dataclass(frozen=True)
class Noisy:
    """Integers that may leave, and the noise that is in them."""

    values: list[int]
    noise: IntegerNoise


class Receipt:
    """A committed debit, and how much of it has not been used yet."""

    def __init__(self, epsilon: Decimal, delta: Decimal, event: str) -> None:
        self.event = event
        self._epsilon = epsilon
        self._delta = delta

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Noisy:
        """Measure and add the noise that (ε, δ) calls for: Gaussian if δ is given, else Laplace."""
        noise = noise_for(measurement.l1, measurement.l2_squared, epsilon, delta)
        self.use(epsilon, delta)
        return Noisy(noise.add(_exact(measurement)), noise)

    def numbers_of_all(
        self, measurements: Sequence[Measurement], epsilon: Decimal, delta: Decimal = Decimal(0)
    ) -> list[Noisy]:
        """Release several measurements with equal shares: of ε for Laplace, of ρ for Gaussian noise, which is better."""
        if not delta:
            share = divide(epsilon, max(len(measurements), 1))
            return [self.numbers(measurement, share) for measurement in measurements]
        self.use(epsilon, delta)
        rho = rho_for(epsilon, delta) / max(len(measurements), 1)
        noises = [Gaussian.calibrated(measurement.l2_squared, rho) for measurement in measurements]
        return [Noisy(noise.add(_exact(one)), noise) for one, noise in zip(measurements, noises, strict=True)]

    def passing(self, measurement: Measurement, threshold: int, epsilon: Decimal, delta: Decimal) -> list[int]:
        """Which integers reach the threshold with Laplace noise, by position; δ pays for those that only one user made.

        How many integers there are depends on the table, so not even noisy ones leave.
        """
        noise = noise_for(measurement.l1, measurement.l2_squared, epsilon)
        self.use(epsilon, delta)
        return [place for place, value in enumerate(noise.add(_exact(measurement))) if value >= threshold]

    def passed(self, names: Secret[T]) -> T:
        """The names of groups that `passing` let through, as they are."""
        return names.reveal()

    def public(self, fact: Secret[T], relation: Relation) -> T:
        """A function of public columns and row counts, as it is: nothing is hidden where the relation leaves them public."""
        if not relation.counts_are_public:
            raise EvenhandError(
                f"a release tried to show exact counts under protects={relation.value!r}; this is a defect in Evenhand, please report it."
            )
        return fact.reveal()

    def use(self, epsilon: Decimal, delta: Decimal = Decimal(0)) -> None:
        """Take a part of what was paid for; a selection mechanism calls this before it draws."""
        if epsilon > self._epsilon or delta > self._delta:
            raise EvenhandError(
                "a release tried to use more privacy budget than it was debited; this is a defect in Evenhand, please report it."
            )
        self._epsilon = exact_difference(self._epsilon, epsilon)
        self._delta = exact_difference(self._delta, delta)


def _exact(measurement: Measurement) -> list[int]:
    return [max(-SATURATION, min(SATURATION, value)) for value in measurement.integers().reveal()]


def noise_for(l1: int, l2_squared: int, epsilon: Decimal, delta: Decimal = Decimal(0)) -> IntegerNoise:
    """The noise that protects the declared sensitivity."""
    return Gaussian.calibrated(l2_squared, rho_for(epsilon, delta)) if delta else Laplace.calibrated(l1, epsilon)


def debit(ledger: Ledger, guarantee: Guarantee, cost: Cost, query: Mapping[str, Any]) -> Receipt:
    """Commit the debit durably; only then is there a receipt to draw noise with."""
    opendp()  # load the sampler first: a process killed while importing it would have paid for nothing
    event = ledger.debit(cost, query=query, guarantee=guarantee)
    return Receipt(cost.epsilon, cost.delta, event.id)

"""The only door out: debit, then measure, then noise.

`Receipt` is what a committed debit hands back. It has a method for each way out: numbers, vectors, choices, selected keys
and public facts. Nothing else opens a `Secret` or draws noise, and a receipt counts down what was paid for: code that
forgets to split its ε can't draw noise twice with all of it.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

from evenhand.guarantee import EvenhandError, Guarantee, Relation, exact_difference, split
from evenhand.ledger import Cost, Ledger
from evenhand.noise import Gaussian, IntegerNoise, Laplace, NoisyMax, Normal, ShownCounts, TopK, Way, opendp, rho_for
from evenhand.noise.linear_term import LinearTerm
from evenhand.noise.steps import noise_multiplier
from evenhand.noise.vectors import add_normal, add_spherical
from evenhand.tables import Secret

T = TypeVar("T")

SATURATION = 2**62
"""Totals and scores are clamped here before noise; a clamp is 1-Lipschitz, so the declared sensitivity still holds."""

_OVERSPENT = (
    "a release tried to use more privacy budget than it was debited; this is a defect in Evenhand, please report it."
)


class Opener(Protocol):
    """Opens secrets, for a computation whose result gets noise before anybody sees it."""

    def __call__(self, secret: Secret[T], /) -> T: ...


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


@dataclass(frozen=True)
class Choices:
    """The candidates that were chosen, by position, and the largest scale of the noise in their scores."""

    places: list[int]
    scale: Fraction


class Receipt:
    """A committed debit, and how much of it has not been used yet.

    Threads that share it draw once. It has no copies: not in a forked process, and not by pickling.
    """

    keeps: ClassVar[bool] = True
    """Whether what is drawn may be kept for later releases."""

    def __init__(self, epsilon: Decimal, delta: Decimal, event: str) -> None:
        self.event = event
        self._epsilon = epsilon
        self._delta = delta
        self._selected = False
        self._rho = Fraction(0)
        self._turn, self._process = threading.Lock(), os.getpid()

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Noisy:
        """Measure and add the noise that (ε, δ) calls for: Gaussian if δ is given, else Laplace."""
        noise = noise_for(measurement.l1, measurement.l2_squared, epsilon, delta)
        self._use(epsilon, delta)
        return self._drawn(measurement, noise)

    def numbers_by_share(
        self, epsilon: Decimal, delta: Decimal = Decimal(0)
    ) -> Callable[[Measurement, Fraction], Noisy]:
        """What releases measurements one after the other, each with a share, and each chosen in view of those before.

        Shares are parts of ε with Laplace noise and, if δ is given, parts of ρ with Gaussian noise; together at most 1.
        """
        if not delta:
            return lambda measurement, share: self.numbers(measurement, split(epsilon, share)[0])
        self._use(epsilon, delta)
        rho, left = rho_for(epsilon, delta), [Fraction(1)]

        def noisy(measurement: Measurement, share: Fraction) -> Noisy:
            if not 0 < share <= left[0]:
                raise EvenhandError(_OVERSPENT)
            left[0] -= share
            return self._drawn(measurement, Gaussian.calibrated(measurement.l2_squared, rho * share))

        return noisy

    def numbers_of_all(
        self,
        measurements: Sequence[Measurement],
        epsilon: Decimal,
        delta: Decimal = Decimal(0),
        shares: Sequence[Fraction] | None = None,
    ) -> list[Noisy]:
        """Release several measurements with shares of ε for Laplace, of ρ for Gaussian noise, which is better; equal ones if none are given."""
        shares = [Fraction(1, len(measurements))] * len(measurements) if shares is None else shares
        if len(shares) != len(measurements) or sum(shares) > 1 or not all(share > 0 for share in shares):
            raise EvenhandError(_OVERSPENT)
        if not delta:
            parts = [split(epsilon, share)[0] for share in shares]
            return [self.numbers(one, part) for one, part in zip(measurements, parts, strict=True)]
        self._use(epsilon, delta)
        rho = rho_for(epsilon, delta)
        noises = [
            Gaussian.calibrated(one.l2_squared, rho * share) for one, share in zip(measurements, shares, strict=True)
        ]
        return [self._drawn(one, noise) for one, noise in zip(measurements, noises, strict=True)]

    def selected(self, way: Way) -> Callable[[Measurement], list[int]]:
        """What tells which supports pass, by position, in one round of ``way`` after the other; all are paid for at once.

        How many supports there are depends on the table, so not even noisy ones leave. What the way leaves for numbers, `numbers_beside` draws.
        """
        self._use(way.epsilon, way.delta)
        self._selected = True
        self._rho = way.rho
        left = iter(way.rounds)

        def passing(measurement: Measurement) -> list[int]:
            look = next(left, None)
            if look is None or measurement.l2_squared > look.l2_squared:
                raise EvenhandError(_OVERSPENT)
            return look.passing(_exact(measurement))

        return passing

    def supporters(self, way: Way, measurement: Measurement) -> tuple[list[int], Noisy]:
        """The positions of the supports that are shown, and their noisy numbers: one mechanism for both."""
        self._use(way.epsilon, way.delta)
        self._selected = True
        (look,) = way.rounds
        if not isinstance(look, ShownCounts) or measurement.l1 > look.l2_squared:
            raise EvenhandError(_OVERSPENT)
        shown = look.counts(_exact(measurement))
        return list(shown), Noisy(list(shown.values()), look.noise)

    def numbers_beside(self, measurements: Sequence[Measurement], shares: Sequence[Fraction]) -> list[Noisy]:
        """Release measurements with normal noise, in shares of the ρ that `selected` has left for them; once."""
        with self._turn:
            rho, self._rho = self._rho, Fraction(0)
        if not rho or len(shares) != len(measurements) or sum(shares) > 1 or not all(share > 0 for share in shares):
            raise EvenhandError(_OVERSPENT)
        noises = [
            Normal.calibrated(one.l2_squared, rho * share) for one, share in zip(measurements, shares, strict=True)
        ]
        return [self._drawn(one, noise) for one, noise in zip(measurements, noises, strict=True)]

    def choices(
        self,
        scores: Secret[list[list[int]]],
        sensitivity: int | Sequence[int],
        epsilon: Decimal,
        monotone: bool = False,
    ) -> Choices:
        """A candidate with a high score from each list, by permute-and-flip.

        Args:
            scores: one list of integers for each choice.
            sensitivity: how far one user moves any score; for several choices, the largest move in each, summed. Or one
                number for each choice: what a user moves in each, divided by its number, adds up to at most 1.
            epsilon: for all of the choices together.
            monotone: adding a user moves no score up, or none down.
        """
        several = [sensitivity] if isinstance(sensitivity, int) else sensitivity
        noises = [NoisyMax.calibrated(size, epsilon, monotone) for size in several]
        self._use(epsilon)
        lists = scores.reveal()
        if isinstance(sensitivity, int):
            noises *= len(lists)
        places = [noise.choose(saturated(given)) for noise, given in zip(noises, lists, strict=True)]
        return Choices(places, max((noise.scale for noise in noises), default=Fraction(0)))

    def largest(self, scores: Secret[list[int]], top: TopK, delta: Decimal = Decimal(0)) -> list[int]:
        """The positions of high scores, the highest first; with δ, of candidates whose names are hidden, and `passed` shows them."""
        self._use(top.epsilon, delta)
        self._selected |= bool(delta)
        return top.choose_top(saturated(scores.reveal()), delta)

    def vector(self, integers: Callable[[Opener], list[int]], l2: Fraction, epsilon: Decimal) -> list[int]:
        """An integer vector with spherical noise: purely ε-private if one user moves it by at most ``l2`` in L2 norm.

        ``integers`` is handed the means to open secrets: an optimiser has to look at exact sums again and again.
        """
        self._use(epsilon)
        return add_spherical(integers(Secret.reveal), l2 / Fraction(epsilon))

    def minimiser(
        self, integers: Callable[[Opener, list[int]], list[int]], linear: LinearTerm, l2: Fraction, epsilon: Decimal
    ) -> list[int]:
        """An approximate minimiser of an objective with a random linear term, as integers with spherical noise.

        Args:
            integers, linear: what finds it, given the means to open secrets and what is drawn for the linear term.
            l2, epsilon: how far the integers are from a neighbour's if the exact minimisers are the same, and what covers that.
        """
        for part in (linear.epsilon, linear.curvature, epsilon):
            self._use(part)
        return add_spherical(integers(Secret.reveal, linear.drawn()), l2 / Fraction(epsilon))

    def vectors(
        self, shares: Sequence[Fraction], relation: Relation, epsilon: Decimal, delta: Decimal
    ) -> Callable[[Secret[list[int]], int], list[int]]:
        """What adds normal noise to integer vectors, one after the other, each chosen in view of those before.

        With each vector goes ``l2_squared``: the largest squared L2 norm of what one user adds to it.

        Args:
            shares: a part of μ² for each vector, together at most 1; after so many vectors nothing is left.
            relation: whether neighbours differ by a user added or by a user replaced.
            epsilon, delta: for all vectors together.
        """
        if sum(shares) > 1 or not all(share > 0 for share in shares):
            raise EvenhandError(_OVERSPENT)
        multipliers = {share: noise_multiplier(epsilon, delta, relation, share) for share in shares}
        self._use(epsilon, delta)
        left = iter(shares)

        def noisy(integers: Secret[list[int]], l2_squared: int) -> list[int]:
            share = next(left, None)
            if share is None:
                raise EvenhandError(_OVERSPENT)
            return add_normal(integers.reveal(), multipliers[share] * (math.isqrt(l2_squared - 1) + 1))

        return noisy

    def passed(self, names: Secret[T]) -> T:
        """The names of groups that `selected` let through, as they are."""
        if not self._selected:
            raise EvenhandError(_OVERSPENT)
        return names.reveal()

    def public(self, fact: Secret[T], relation: Relation) -> T:
        """As the function `public`."""
        return public(fact, relation)

    def _drawn(self, measurement: Measurement, noise: IntegerNoise) -> Noisy:
        return Noisy(noise.add_to(_exact(measurement)), noise)

    def _use(self, epsilon: Decimal, delta: Decimal = Decimal(0)) -> None:
        """Take a part of what was paid for; each way out does so before it draws."""
        with self._turn:
            if epsilon > self._epsilon or delta > self._delta or self._process != os.getpid():
                raise EvenhandError(_OVERSPENT)
            self._epsilon = exact_difference(self._epsilon, epsilon)
            self._delta = exact_difference(self._delta, delta)

    def __reduce__(self) -> NoReturn:
        raise EvenhandError("a receipt can't be copied or pickled: the copy would draw again for the same debit.")


def public(fact: Secret[T], relation: Relation) -> T:
    """A function of public columns and row counts, as it is: nothing is hidden where the relation leaves them public."""
    if not relation.counts_are_public:
        raise EvenhandError(
            f"a release tried to show exact counts under protects={relation.value!r}; this is a defect in Evenhand, please report it."
        )
    return fact.reveal()


def not_private(fact: Secret[T]) -> T:
    """The exact value, without any guarantee: for the data holder's own eyes, and for audits of tables that hold nobody."""
    return fact.reveal()


def _exact(measurement: Measurement) -> list[int]:
    return saturated(measurement.integers().reveal())


def saturated(values: Sequence[int]) -> list[int]:
    """Integers that 64 bits hold, whatever the table: noise and choices never raise."""
    return [max(-SATURATION, min(SATURATION, value)) for value in values]


def noise_for(l1: int, l2_squared: int, epsilon: Decimal, delta: Decimal = Decimal(0)) -> IntegerNoise:
    """The noise that protects the declared sensitivity."""
    return Gaussian.calibrated(l2_squared, rho_for(epsilon, delta)) if delta else Laplace.calibrated(l1, epsilon)


def debit(
    ledger: Ledger, guarantee: Guarantee, cost: Cost, query: Mapping[str, Any], table: str | None = None
) -> Receipt:
    """Commit the debit durably; only then is there a receipt to draw noise with."""
    opendp()  # load the sampler first: a process killed while importing it would have paid for nothing
    event = ledger.debit(cost, query, guarantee, table)
    return Receipt(cost.epsilon, cost.delta, event.id)

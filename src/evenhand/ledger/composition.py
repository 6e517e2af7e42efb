"""What a release costs, and how costs add up to one (ε, δ) that an adaptive analyst can't exceed.

Two rules, proved together in docs/proofs/composition.md:

*sum*    ε and δ simply add up. Exact decimals, the only rule of a ledger with δ = 0.
*Rényi*  each release costs its Rényi divergence at one order α, fixed when the ledger is created; the sum is
         turned into ε at δ/10, and δ that no ρ covers (thresholds) adds up as before (Feldman and Zrnic 2021; Canonne, Kamath and Steinke 2020). Better for many
         small releases, with Gaussian or Laplace noise.

The sum rule holds until a release no longer fits it; from then on the Rényi rule decides. An analyst who sees
results before asking again could steer each outcome to the rule that suits it, so the two rules must not each
spend all of δ: nine tenths pay for what releases declare, one tenth is kept for the Rényi rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Number

from evenhand.guarantee import Amount, UsageError, fixed_context, plain, told

_SUMS = fixed_context(160, exact=True)  # sums never round: a silent rounding would be a drift
_LOGS, _UP = fixed_context(60), fixed_context(60, ROUND_CEILING)
_DECIMALS = fixed_context(160, ROUND_CEILING)
_MARGIN = Decimal("1e-40")  # far above the error of 60-digit logarithms, far below any cost that matters

_DECLARED = Decimal("0.9")  # of the ledger's δ: for the δ that releases declare
_CONVERTED = Decimal("0.1")  # of the ledger's δ: for the Rényi rule

_ZERO = Decimal(0)


def mechanism_delta(granted: Decimal) -> Decimal:
    """The δ that a mechanism may use when the analyst grants it ``granted``: nine tenths.

    Guarantee: a ledger with total δ takes releases whose grants add up to δ, as one would expect, because the
    tenth that each mechanism leaves unused is the tenth that the ledger keeps for the Rényi rule. A mechanism
    that uses its whole grant is still safe: the ledger refuses it when the δ no longer fits.
    """
    return _SUMS.multiply(granted, _DECLARED)


def rho_with_pure(rho: Fraction, epsilon: Decimal) -> Decimal:
    """The ρ of a ρ-zCDP mechanism and a purely ε-private one together, rounded up at the fortieth decimal.

    A pure ε is ε²/2-zCDP (Bun and Steinke 2016, Proposition 1.4), and ρ adds up.
    """
    total = rho + Fraction(epsilon) ** 2 / 2
    return Decimal(
        f"{math.ceil(total * 10**40)}e-40"
    )  # from text: arithmetic would round to the program's own precision


@dataclass(frozen=True)
class Budget:
    """An amount of privacy loss (ε, δ), as exact decimals."""

    epsilon: Decimal
    delta: Decimal = _ZERO

    def __str__(self) -> str:
        return f"ε = {plain(self.epsilon)}" + (f", δ = {plain(self.delta)}" if self.delta else "")


@dataclass(frozen=True)
class Cost:
    """What one release costs: it is (ε, δ)-differentially private and, if ``rho`` is given, also ρ-zCDP.

    Both statements must hold for the mechanism by itself; the ledger uses whichever serves. A mechanism with a threshold
    (the selection of hidden group names) is ρ-zCDP only outside an event of probability ``beyond``, such as "a group that nobody
    else is in passes"; outside that event it is also (ε, δ − ``beyond``)-private. No ρ covers ``beyond``: it is charged
    for itself under every rule.

    Args:
        epsilon: of the (ε, δ) statement.
        delta: of the (ε, δ) statement, ``beyond`` included.
        rho: of the zCDP statement; None if there is none, and then all of δ is charged under every rule.
        beyond: the part of δ that ρ does not cover.

    Example:
        >>> Cost.pure("0.1")
        Cost(epsilon=Decimal('0.1'), delta=Decimal('0'), rho=None, beyond=Decimal('0'))
    """

    epsilon: Decimal
    delta: Decimal = _ZERO
    rho: Decimal | None = None
    beyond: Decimal = _ZERO

    def __post_init__(self) -> None:
        amounts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho or _ZERO, "beyond": self.beyond}
        for name, amount in amounts.items():
            _exact(amount, name)  # a negative cost would be a refund
        if self.beyond > self.delta or (self.beyond and self.rho is None):
            raise UsageError(
                f"beyond={plain(self.beyond)} with delta={plain(self.delta)} and rho={self.rho}: expected the part of "
                "delta that rho does not cover, so at most delta, and only together with a rho."
            )

    @classmethod
    def pure(cls, epsilon: Amount) -> Cost:
        """The cost of an ε-differentially private mechanism, such as Laplace noise."""
        return cls(_exact(epsilon, "epsilon"))

    @classmethod
    def approximate(cls, epsilon: Amount, delta: Amount) -> Cost:
        """The cost of an (ε, δ)-differentially private mechanism, such as private key selection."""
        return cls(_exact(epsilon, "epsilon"), _exact(delta, "delta"))

    @classmethod
    def zcdp(cls, rho: Amount, *, epsilon: Amount, delta: Amount, beyond: Amount = 0) -> Cost:
        """The cost of a ρ-zCDP mechanism, such as Gaussian noise, that is also (ε, δ)-differentially private.

        Args:
            rho: Δ²/(2σ²) for Gaussian noise of standard deviation σ and L2 sensitivity Δ.
            epsilon: together with ``delta``, what the analyst asked for and the noise was calibrated to.
            delta: must be positive; Gaussian noise is never purely private. It includes ``beyond``.
            beyond: the δ of thresholds, all of them added up; 0 for Gaussian noise alone.
        """
        cost = cls(_exact(epsilon, "epsilon"), _exact(delta, "delta"), _exact(rho, "rho"), _exact(beyond, "beyond"))
        if not cost.delta:
            raise UsageError("delta=0 with a zCDP cost: expected the positive delta its epsilon was computed for.")
        return cost

    @property
    def uncovered(self) -> Decimal:
        """The δ that no ρ covers: it adds up under every rule."""
        return self.delta if self.rho is None else self.beyond

    def for_group(self, steps: int) -> Cost:
        """The cost between tables that are ``steps`` neighbours apart (group privacy).

        ε grows to kε, δ to δ·(1 + e^ε + … + e^((k−1)ε)), rounded up, and ρ to k²ρ (Bun and Steinke 2016,
        Proposition 1.9). That proposition is about ρ without exceptions, so a cost with ``beyond`` loses its ρ.
        """
        if steps == 1:
            return self
        factor = _ZERO
        if self.delta:
            for step in range(steps):
                factor = _UP.add(factor, _UP.add(_LOGS.exp(_LOGS.multiply(self.epsilon, step)), _MARGIN))
        delta = min(Decimal(1), _decimals(_UP.multiply(self.delta, factor)))
        return Cost(
            _SUMS.multiply(self.epsilon, Decimal(steps)),
            delta,
            None if self.rho is None or self.beyond else _SUMS.multiply(self.rho, Decimal(steps * steps)),
        )

    def __str__(self) -> str:
        return str(Budget(self.epsilon, self.delta))


@dataclass(frozen=True)
class Account:
    """The running totals of a ledger: a privacy filter for releases chosen one after the other.

    Guarantee: whatever an analyst asks for, in view of all earlier results, as long as every debit goes
    through ``after``, all results together are ``total``-differentially private (docs/proofs/composition.md).

    Args:
        total: the (ε, δ) that must hold in the end.
        order: the Rényi order α; None for a ledger with δ = 0.
        epsilon: sum of all ε.
        delta: δ used so far: all declared δ while the sum rule held, then what no ρ covers.
        renyi: sum of Rényi divergences at ``order``.
        summing: whether the sum rule still holds.
    """

    total: Budget
    order: Decimal | None
    epsilon: Decimal = _ZERO
    delta: Decimal = _ZERO
    renyi: Decimal = _ZERO
    summing: bool = True

    @classmethod
    def open(cls, total: Budget) -> Account:
        """A new account; the Rényi order is the one that allows most Gaussian noise within the total."""
        return cls(total, _best_order(total) if total.delta else None)

    @property
    def spent(self) -> Budget:
        """The (ε, δ) spent so far, never more than the total; rounded up where it is not exact."""
        if self.summing:
            return Budget(self.epsilon, _decimals(_UP.divide(self.delta, _DECLARED)))
        return Budget(
            _decimals(_SUMS.add(self.renyi, self._conversion), 18),
            _SUMS.add(self.delta, _SUMS.multiply(self.total.delta, _CONVERTED)),
        )

    @property
    def remaining(self) -> Budget:
        """Total minus spent."""
        spent = self.spent
        return Budget(
            max(_ZERO, _SUMS.subtract(self.total.epsilon, spent.epsilon)),
            max(_ZERO, _SUMS.subtract(self.total.delta, spent.delta)),
        )

    def price(self, cost: Cost) -> Budget:
        """What one more release would add to ``spent`` under the rule in force."""
        if self.summing or self.order is None:
            return Budget(cost.epsilon, _decimals(_UP.divide(cost.delta, _DECLARED)))
        return Budget(renyi_cost(cost, self.order), cost.uncovered)

    def after(self, cost: Cost) -> Account | None:
        """The account after one more release, or None if the total would not hold."""
        declared = _SUMS.multiply(self.total.delta, _DECLARED)
        epsilon = _SUMS.add(self.epsilon, cost.epsilon)
        delta = _SUMS.add(self.delta, cost.delta)
        renyi = self.renyi
        if self.order is not None:
            renyi = _SUMS.add(renyi, renyi_cost(cost, self.order))
        grown = replace(self, epsilon=epsilon, renyi=renyi)
        if self.summing and epsilon <= self.total.epsilon and delta <= declared:
            return replace(grown, delta=delta)
        if self.order is None:
            return None
        delta = _SUMS.add(self.delta, cost.uncovered)  # the δ of a ρ is in the conversion; that of a threshold is not
        if delta <= declared and _SUMS.add(renyi, self._conversion) <= self.total.epsilon:
            return replace(grown, delta=delta, summing=False)
        return None

    @property
    def _conversion(self) -> Decimal:
        assert self.order is not None
        return _conversion(self.order, _SUMS.multiply(self.total.delta, _CONVERTED))


@lru_cache(maxsize=4096)
def renyi_cost(cost: Cost, order: Decimal) -> Decimal:
    """A bound on the Rényi divergence of order α between the results of a release on neighbouring tables.

    αρ for a ρ-zCDP release. Otherwise that of randomised response, ln((e^(αε) + e^((1−α)ε))/(1 + e^ε))/(α−1),
    because every ε-differentially private pair is a post-processing of it (Kairouz, Oh and Viswanath 2015);
    it is below both ε and αε²/2. Where some δ is uncovered, the same holds outside an event of that probability, which
    is charged as δ.
    """
    if cost.rho is not None:
        return _decimals(_UP.multiply(order, cost.rho))
    epsilon = cost.epsilon
    if (
        _LOGS.multiply(order, epsilon) > 10_000
    ):  # the divergence is ε up to ε/(α−1) or so: not worth the huge exponentials
        return epsilon
    log = _LOGS
    moment = log.add(log.exp(log.multiply(order, epsilon)), log.exp(log.multiply(log.subtract(1, order), epsilon)))
    divergence = log.ln(log.divide(moment, log.add(1, log.exp(epsilon))))
    return min(epsilon, _decimals(_UP.divide(_UP.add(divergence, _MARGIN), log.subtract(order, 1))))


@lru_cache(maxsize=256)
def _conversion(order: Decimal, delta: Decimal) -> Decimal:
    """What must be added to a Rényi divergence of order α for the ε that holds with δ, rounded up.

    (ln(1/δ) + (α−1)·ln(1−1/α) − ln α)/(α−1): Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    log = _LOGS
    above = log.subtract(order, 1)
    inner = log.subtract(log.multiply(above, log.ln(log.divide(above, order))), log.ln(log.multiply(order, delta)))
    return max(_ZERO, _decimals(_UP.divide(_UP.add(inner, _MARGIN), above)))


def _best_order(total: Budget) -> Decimal:
    """The order α on a fixed geometric grid that leaves room for the largest ρ. Any order is valid."""
    epsilon, delta = float(total.epsilon), float(_LOGS.multiply(total.delta, _CONVERTED))

    def room(order: float) -> float:
        inner = (order - 1) * math.log1p(-1 / order) - math.log(order) - math.log(delta)
        return (epsilon - max(0.0, inner / (order - 1))) / order

    best = max((1 + 2 ** (step / 4) for step in range(-80, 161)), key=room)
    return Decimal(f"{best:.12g}")


def _decimals(value: Decimal, places: int = 40) -> Decimal:
    """Round up to a number of decimals that sums can carry exactly."""
    return _DECIMALS.quantize(value, Decimal(f"1e-{places}")).normalize(_DECIMALS)


def _exact(given: Amount, name: str) -> Decimal:
    """Read a nonnegative amount; unlike ``parse_epsilon`` a share may be 0 or arbitrarily small."""
    expected = f"expected a finite number >= 0 with at most 60 decimals, such as {name}=0.1"
    try:
        value = Decimal(str(given) if isinstance(given, str | Number) else told(given))
    except ArithmeticError:
        raise UsageError(f"{name}={told(given)} is not a number; {expected}.") from None
    if not value.is_finite() or value < 0 or value.adjusted() > 12:
        raise UsageError(f"{name}={given} is out of range; {expected}.")
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -60:
        raise UsageError(f"{name}={given} has too many decimals; {expected}.")
    return value

"""How large each of many equal releases may be, for a job that recurs."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal

from evenhand.guarantee import UsageError, fixed_context
from evenhand.ledger.composition import Account, Cost, renyi_cost

_MOST = 1_000_000
_DIGITS = 3
_SUMS = fixed_context(200, ROUND_FLOOR)


def largest_epsilon(account: Account, times: int) -> Decimal:
    """The largest ε, to three digits, such that ``times`` equal releases without δ fit into what the account has left.

    Found by trying: the account itself says what fits.
    """
    if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= _MOST:
        raise UsageError(f"times={times!r}: expected how many releases are to come, from 1 to {_MOST:,}.")
    least = _SUMS.divide(account.remaining.epsilon, times)  # adding up always fits
    if not least:
        return Decimal(0)
    step = _digit(least)
    low, high = int(_SUMS.divide(least, step)), int(_SUMS.divide(account.total.epsilon, step)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fit(account, _SUMS.multiply(step, middle), times) else (low, middle)
    found = _SUMS.multiply(step, low)
    return _SUMS.quantize(found, _digit(found)) if low else Decimal(0)


def _digit(amount: Decimal) -> Decimal:
    """One in the last digit that is kept of an amount."""
    return Decimal(f"1e{amount.adjusted() - _DIGITS + 1}")


def _fit(account: Account, epsilon: Decimal, times: int) -> bool:
    """Whether so many releases fit: the last one does, and sums only grow, so those before it did."""
    cost, before = Cost.pure(epsilon), times - 1
    spent = _SUMS.add(account.epsilon, _SUMS.multiply(epsilon, before))
    renyi = Decimal(0) if account.order is None else _SUMS.multiply(renyi_cost(cost, account.order), before)
    return (
        replace(
            account,
            epsilon=spent,
            renyi=_SUMS.add(account.renyi, renyi),
            summing=account.summing and spent <= account.total.epsilon,
        ).after(cost)
        is not None
    )

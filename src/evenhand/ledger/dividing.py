"""How large each of many equal releases may be, for a job that recurs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal

from evenhand.guarantee import UsageError
from evenhand.ledger.composition import Account, Cost, renyi_cost

_MOST = 1_000_000
_DIGITS = 3
_SUMS = Context(prec=200)


def largest_epsilon(account: Account, times: int) -> Decimal:
    """The largest ε, to three digits, such that ``times`` equal releases without δ fit into what the account has left.

    Found by trying: the account itself says what fits.
    """
    if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= _MOST:
        raise UsageError(f"times={times!r}: expected how many releases are to come, from 1 to {_MOST:,}.")
    least = account.remaining.epsilon / times  # adding up always fits
    if not least:
        return Decimal(0)
    step = Decimal(1).scaleb(least.adjusted() - _DIGITS + 1)
    low, high = int(least / step), int(account.total.epsilon / step) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fit(account, step * middle, times) else (low, middle)
    found = step * low
    return (
        found.quantize(Decimal(1).scaleb(found.adjusted() - _DIGITS + 1), rounding="ROUND_DOWN") if low else Decimal(0)
    )


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

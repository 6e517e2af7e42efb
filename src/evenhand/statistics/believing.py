"""A total with what its bound probably cut off: the correction, the interval that holds the truth, and when nothing can be told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenhand.pages.numbers import rounded
from evenhand.profiles import Cut
from evenhand.release import Additive, Believed, Interval, Unknown
from evenhand.release.verdicts import PART

COVERS = "covers the noise and, if the number of heavy users falls off smoothly, what the bound cuts off; {} far above all others could be missed"
UNKNOWN = "covers the noise; how much the bound cuts off is not known, so the truth may lie beyond"
_LIKELY = 0.975  # the upper end of a 95% interval
_UNTOLD = 3.0  # times what is kept, from which on not even the magnitude is known if it may be cut off
_NOTICED = 0.05  # standard deviations of the noise from which a correction is worth making


@dataclass(frozen=True)
class Corrected:
    """A value, its interval, and how it was corrected."""

    value: float
    interval: Interval
    details: dict[str, Any]


def corrected(measured: Additive, cut: Cut, whole: bool) -> Corrected:
    """Add back what was surely cut off, and say how far off that may be.

    Args:
        measured: the bounded total with its noise.
        cut: what the bound probably took from it.
        whole: whether the value is a whole number.
    """
    noise = measured.noise.variance**0.5 * measured.unit
    amount = cut.sure if abs(cut.sure) > _NOTICED * noise else 0.0
    amount = round(amount) if whole else amount
    kept, beyond = abs(measured.value), max(cut.quantile(_LIKELY), -cut.quantile(1 - _LIKELY))
    why = ""
    if beyond > _UNTOLD * kept:
        why = (
            f"what the bound cuts off (up to about {rounded(float(f'{beyond:.2g}'))}) may be far more than what it keeps: too few users, or too "
            "little ε, to see the heavy ones"
        )
    elif cut.crowd > 1 - _LIKELY and beyond > 2 * PART * kept:
        why = (
            "there may be users far above all others, or it may be the noise: what the bound cuts off (up to about "
            f"{rounded(float(f'{beyond:.2g}'))}) depends on it, and more ε would tell"
        )
    few = f"up to about {float(f'{cut.hidden:.1g}'):,.0f} users" if cut.hidden >= 2 else "one user"
    interval = Believed(measured, cut.amounts, cut.weights, COVERS.format(few), why)
    words = (
        f"{rounded(float(amount), noise)} added to the measured {rounded(float(measured.value), noise)}, for what the bound probably "
        "cut off"
    )
    details = {"correction": {"amount": amount, "measured": measured.value, "words": words}} if amount else {}
    return Corrected(measured.value + amount, interval, details)


def uncorrected(measured: Additive, negative: bool, positive: bool) -> Unknown:
    """A bound that nothing is known about: cutting moves a total towards 0.

    Args:
        measured: the bounded total with its noise.
        negative: whether totals may be negative.
        positive: whether totals may be positive.
    """
    return Unknown(measured, UNKNOWN, -math.inf if negative else None, math.inf if positive else None)

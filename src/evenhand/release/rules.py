"""How far from a number its interval may reach if the number is to be used: one rule for each kind of number.

The rules read released numbers and public facts only, so a verdict (`verdicts.py`) costs nothing and may be published with the number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from evenhand.pages.numbers import rounded, three_digits

PART = 0.25
"""How far the interval may reach, as a part of what matters: the value of a count, the spread of what is averaged.

Laplace noise of scale b has a 95% interval of ± 3b. A group that holds nobody then looks usable only from 12b on, with
probability 3e-6: public keys that don't occur are not called usable by chance, even where there are tens of thousands. And of
two usable groups it is visible which is larger, if one is half as large again.
"""

NEGLIGIBLE = 1 / 800
"""How far the interval of a mean or quantile may reach in any case, as a part of its bounds: 0.0002 ± 0.0012 is known well where values lie between 0 and 1, whatever part
of itself it is. Of long tails (spending, visits) this is a few percent of the mean, so that bounds a few times too wide call nothing usable that is not.
"""

SPREAD = 0.25
"""Standard deviation of a single value, as a part of its bounds: a public guess, the same as in plans."""


class Rule(Protocol):
    """How far an interval may reach from a value that is to be used."""

    def allowed(self, value: float) -> float:
        """How far, at most."""

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        """Below which size groups are too noisy, given how far the interval of one of them reaches; in words."""


@dataclass(frozen=True)
class OfSize:
    """For counts, sums, and all that is large or small by itself: a quarter of the value.

    Args:
        unit: what it counts.
    """

    unit: str = ""

    def allowed(self, value: float) -> float:
        return PART * abs(value)

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        return f"below about {about(reach / PART)} {self.unit}".rstrip()


@dataclass(frozen=True)
class OfSpread:
    """For means and quantiles: a quarter of the standard deviation of a single value, which is taken to be a quarter of the range.

    Where all values have one sign, at most a quarter of the value too, or next to nothing (`NEGLIGIBLE`): bounds that are far too wide
    would make everything usable.

    Args:
        low: the smallest value.
        high: the largest.
    """

    low: float
    high: float

    def allowed(self, value: float) -> float:
        width = self.high - self.low
        spread = PART * SPREAD * width
        return spread if self.low < 0 < self.high else max(min(spread, PART * abs(value)), NEGLIGIBLE * width)

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        allowed = self.allowed(value)
        if rows is None or not rows > 0 or not allowed > 0:
            return f"wider than ± {rounded(allowed)}"
        return (
            f"below about {about(reach / allowed * rows)} weighted rows"  # the noise of a mean falls with their number
        )


@dataclass(frozen=True)
class OfQuantiles(OfSpread):
    """For quantiles: a small one beside large ones, often 0, is compared with the largest.

    Args:
        low: the smallest value.
        high: the largest.
        largest: of the quantiles that were asked together.
        same: how far apart values are that are the same for a reader.
    """

    largest: float = 0.0
    same: float = 0.0

    def allowed(self, value: float) -> float:
        return max(super().allowed(max(abs(value), self.largest)), self.same)

    @staticmethod
    def beside(rules: Mapping[str, Rule], values: Mapping[str, float], same: float = 0.0) -> dict[str, Rule]:
        """The rules for quantiles that were released together."""
        largest = max((abs(values[name]) for name, rule in rules.items() if isinstance(rule, OfQuantiles)), default=0.0)
        return {
            name: replace(rule, largest=largest, same=same) if isinstance(rule, OfQuantiles) else rule
            for name, rule in rules.items()
        }


@dataclass(frozen=True)
class OfDeviation(OfSize):
    """For variances and standard deviations: a quarter of the value. One that may be 0 is not called small beside the bounds: a few users
    who differ from all others would not show, and a few flags in a column of zeros are most of its variance."""


@dataclass(frozen=True)
class OfComputed(OfSize):
    """For computed numbers: a quarter of the value, or what the numbers that it was computed from allow.

    Args:
        reach: that.
    """

    reach: float = 0.0

    def allowed(self, value: float) -> float:
        return max(super().allowed(value), self.reach)

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        return f"wider than ± {rounded(self.allowed(value))}"


_NO_BOUNDS = "no bounds"


@dataclass(frozen=True)
class NothingFound:
    """For numbers whose bounds could not be found, or only far too wide ones: whatever they are, they say nothing.

    Args:
        what: what could be found.
        why: why no more.
        help: what to do.
    """

    what: str = _NO_BOUNDS
    why: str = "too few people for this ε"
    help: str = "give bounds=(low, high), or more ε"

    @property
    def says_nothing(self) -> bool:
        """Whether the number is noise over all that a column may hold, so that no number is shown."""
        return self.what == _NO_BOUNDS

    def allowed(self, value: float) -> float:
        return -1.0

    def needed(self, reach: float, value: float, rows: float | None) -> str:
        return f"{self.what} could be found: {self.why}; {self.help}"


def about(size: float) -> str:
    """A size with two digits: it is a rough one."""
    size = float(f"{size:.2g}")
    return f"{size:,.0f}" if 1000 <= size < 1e15 else three_digits(size)

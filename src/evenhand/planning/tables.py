"""One line of a plan, and the lines of a plan as a table for a terminal, a page or a data frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from evenhand.bounding import Curve
from evenhand.pages.numbers import three_digits
from evenhand.planning.checking import EXPECTED

_COLUMNS = ("strategy", "bound", "users cut", "noise", "sampling", "bias", "error")
_KINDS = {"exact": "", "bound": "≤ ", "assumed": "~ ", "seen": "~ "}


@dataclass(frozen=True)
class Forecast:
    """What one strategy with one bound is forecast to cost.

    ``noise``, ``sampling`` and ``bias`` are in the unit of the statistic; ``kind`` says how the bias is known ("exact",
    "bound", "assumed", or "seen" in a noisy profile); ``error`` is their root sum of squares, ``error_bound`` holds whatever
    the values are, if the profile is exact. ``worst_case`` is the mean absolute error at most, under the same condition.
    """

    strategy: str
    bound: float
    noise: float
    sampling: float
    bias: float
    kind: str
    error: float
    error_bound: float
    worst_case: float
    users_cut: float
    rows_cut: float

    @classmethod
    def at(cls, curve: Curve, k: int) -> Forecast:
        """What a curve says at its k-th bound."""
        names = ("noise", "sampling", "bias", "error", "error_bound", "worst_case", "users_cut", "rows_cut")
        numbers = {name: float(getattr(curve, name)[k]) for name in names}
        return cls(strategy=curve.strategy, bound=float(curve.bounds[k]), kind=curve.kind, **numbers)

    @classmethod
    def best(cls, curve: Curve, objective: str = EXPECTED) -> Forecast:
        """What a curve says at its best bound."""
        return cls.at(curve, int((curve.error if objective == EXPECTED else curve.worst_case).argmin()))

    def by(self, objective: str) -> float:
        """The error that is to be small."""
        return self.error if objective == EXPECTED else self.worst_case

    def to_dict(self) -> dict[str, Any]:
        """The forecast as data."""
        return asdict(self)

    def cells(self) -> tuple[str, ...]:
        """The forecast as text, one cell per column."""
        return (
            self.strategy,
            three_digits(self.bound),
            f"{self.users_cut:,.0f}",
            three_digits(self.noise),
            three_digits(self.sampling),
            _KINDS[self.kind] + three_digits(self.bias if self.bias > 1e-9 * self.error else 0.0),  # less is rounding
            _KINDS[self.kind] + three_digits(self.error),
        )


@dataclass(frozen=True)
class ForecastTable:
    """Forecasts as a table: ``print`` it, iterate over it, or make a data frame of it."""

    rows: tuple[Forecast, ...]
    best: Forecast
    mark: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings."""
        return _COLUMNS

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per row, for a data frame of any kind."""
        return [forecast.to_dict() for forecast in self.rows]

    def __iter__(self) -> Iterator[Forecast]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        lines = [_COLUMNS, *(forecast.cells() for forecast in self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(_COLUMNS))]
        marks = ["  ", *("* " if forecast == self.best else "  " for forecast in self.rows)]
        text = [
            marks[i]
            + "  ".join(
                cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for i, line in enumerate(lines)
        ]
        note = "* best   ≤ a proven bound   ~ under the stated assumptions, or from a noisy profile"
        return "\n".join([*([self.mark] if self.mark else []), *text, note])

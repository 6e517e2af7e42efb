"""What every reproduction hands back: checked numbers, the rows behind the picture, and the files written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenhand.noise import seam

Size = Literal["small", "full"]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Check:
    """One number of the reproduction, the range in which it must lie, and, of a median of runs, where the true median lies (95% or more)."""

    name: str
    found: float
    low: float
    high: float
    interval: tuple[float, float] | None = None

    @property
    def holds(self) -> bool:
        """Whether the number lies in its range."""
        return self.low <= self.found <= self.high


def near(name: str, found: float, expected: float, tolerance: float) -> Check:
    """A check that a number is what the paper says, up to a relative tolerance."""
    return Check(name, found, expected * (1 - tolerance), expected * (1 + tolerance))


@dataclass
class Outcome:
    """What a reproduction found, and where its pictures are."""

    title: str
    checks: list[Check]
    rows: Rows
    files: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether all numbers are as expected."""
        return all(check.holds for check in self.checks)

    def write(self, out: Path, name: str, chart: Any) -> Outcome:
        """Write numbers and picture to a folder."""
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        self.files = [str(out / f"{name}{kind}") for kind in (".json", ".png", ".html")]
        for path in self.files[1:]:
            chart.save(path)
        return self


@contextmanager
def seeded_noise(seed: int) -> Iterator[None]:
    """Noise from a seed instead of the secure source, so that figures on generated tables can be had again."""
    rng = np.random.default_rng(seed)

    def draw(name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        noise = {"laplace": rng.laplace, "gaussian": rng.normal, "normal": rng.normal}[name](
            0.0, float(scale), len(values)
        )
        return [int(value) + round(off) for value, off in zip(values, noise.tolist(), strict=True)]

    with seam.replaced(draw):
        yield


def median_interval(runs: Sequence[float], miss: float = 0.05) -> tuple[float, float, float]:
    """The median of runs, and two order statistics that hold the true median with probability 1 − ``miss`` or more, whatever the distribution is."""
    ordered, n = sorted(float(run) for run in runs), len(runs)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    below, rank = 0.0, 0  # P(Binomial(n, ½) < rank), the probability that the rank-th smallest is above the median
    while below + math.comb(n, rank) / 2**n <= miss / 2:
        below, rank = below + math.comb(n, rank) / 2**n, rank + 1
    return middle, ordered[max(rank - 1, 0)], ordered[min(n - rank, n - 1)]


def bars(rows: Rows, x: str, y: str, by: str, title: str) -> Any:
    """Bars side by side, with what lies between ``low`` and ``high`` of each row as a line."""
    import altair as alt

    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X(f"{x}:N", title=None), xOffset=f"{by}:N")
    bar = base.mark_bar(opacity=0.7).encode(y=f"{y}:Q", color=alt.Color(f"{by}:N", title=None))
    span = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q")
    return (bar + span).properties(title=title, width=240, height=300)


def lines(rows: Rows, x: str, y: str, by: str, title: str, log_y: bool = True) -> Any:
    """Lines over a logarithmic horizontal axis."""
    import altair as alt

    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(f"{x}:Q", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y(f"{y}:Q", scale=alt.Scale(type="log" if log_y else "linear")),
            color=alt.Color(f"{by}:N", title=None),
        )
        .properties(title=title, width=440, height=300)
    )

"""What every reproduction hands back: checked numbers, the rows behind the picture, and the files written."""

from __future__ import annotations

import json
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
    """One number of the reproduction, and the range in which it must lie."""

    name: str
    found: float
    low: float
    high: float

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

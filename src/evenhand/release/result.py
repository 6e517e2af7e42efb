"""`Release`: what leaves, with its guarantee, its bound and its error."""

from __future__ import annotations

import functools
import json
import math
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import Guarantee, UsageError, plain
from evenhand.pages.numbers import ends_in_words, meaningful, rounded
from evenhand.pages.release import release_chart, release_fragment, release_page
from evenhand.pages.style import written
from evenhand.release.arithmetic import Arithmetic
from evenhand.release.described import Bounding, Error
from evenhand.release.intervals import Ends, Interval, check_confidence, covers, judged, noise_only
from evenhand.release.verdicts import Rule, Verdict, verdict_of

if TYPE_CHECKING:
    import os

    import pandas as pd

    from evenhand.pages.charts import Chart


_USUAL = 0.95
"""The confidence of what is shown and judged."""


@dataclass(frozen=True, repr=False)
class Release(Arithmetic):
    """A released statistic. Everything in it is safe to publish, up to its guarantee.

    Args:
        statistic: what was asked for, such as ``"mean of rating"``.
        value: a number, or a pandas frame with one row per group.
        guarantee: who is protected from what.
        bounding: what was done to heavy users.
        error: the forecast error.
        event: the identifier of the debit in the ledger; a public fact has one too, with ε = 0.
        cells: the groups are the cells of a histogram; the last two columns of their keys are the edges.
        rules: by column, when a number is precise enough to be used.
        units: by column, the unit of the numbers; empty if none has one.
        additive: the columns whose groups add up to a total.
    """

    statistic: str
    value: Any
    guarantee: Guarantee
    bounding: Bounding
    error: Error
    event: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    cells: bool = field(default=False, repr=False)
    rules: Mapping[str, Rule] = field(default_factory=dict, repr=False)
    units: Mapping[str, str] = field(default_factory=dict, repr=False)
    additive: tuple[str, ...] = field(default=(), repr=False)
    _interval: Interval | None = field(default=None, repr=False)
    _left: str = field(default="", repr=False, compare=False)

    def interval(self, confidence: float = 0.95) -> Ends:
        """The interval that holds the truth with this probability, on the model that ``.covers`` names; a frame when grouped.

        It covers the noise and what bounding did. ``noise_interval`` is the exact one, of the noise alone.
        """
        assert self._interval is not None
        if confidence != _USUAL:
            return self._interval.at(check_confidence(confidence))
        return self._ends.copy() if self.grouped else self._ends

    def noise_interval(self, confidence: float = 0.95) -> Ends:
        """The interval that holds the *bounded* value, the one after heavy users were cut, with at least this probability.

        No model is in it. It lies around what was measured, before any correction.
        """
        assert self._interval is not None
        return noise_only(self._interval).at(check_confidence(confidence))

    @functools.cached_property
    def _ends(self) -> Ends:
        assert self._interval is not None
        return self._interval.at(_USUAL)

    @functools.cached_property
    def verdict(self) -> Verdict:
        """Whether the numbers are precise enough to be used, each by the rule of its kind (`release/verdicts.py`)."""
        assert self._interval is not None
        read = judged(self._interval)
        return verdict_of(self, self._ends if read is self._interval else read.at(_USUAL), self._interval)

    @property
    def usable(self) -> bool:
        """Whether the answer can be used; by group, whether most of the groups can. What is not is said by ``.why``."""
        return self.verdict.usable

    @property
    def why(self) -> str:
        """What is too noisy to use, and what it would take, in one sentence; empty if nothing is."""
        return self.verdict.why

    def verdicts(self) -> pd.DataFrame:
        """The frame of a grouped release with one more column, ``usable``; of several statistics, also one for each."""
        if not self.grouped:
            raise UsageError(f"{self.statistic} has no groups; ask for .usable and .why.")
        frame: pd.DataFrame = self.value.copy()
        if len(self.verdict.flags) > 1:
            for name, flags in self.verdict.flags.items():
                frame[free(f"{name}_usable", frame)] = flags
        frame[free("usable", frame)] = self.verdict.rows
        return frame

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the values with their 95% intervals, each with the digits that its interval leaves meaningful, and whether they can be used."""
        import pandas as pd

        if self.grouped:
            frame = self.interval(_USUAL)
        else:
            ends = self.interval(_USUAL)
            several = isinstance(ends, list)
            rows = zip(self.value if several else [self.value], ends if several else [ends], strict=True)
            frame = pd.DataFrame([(self.statistic, value, *pair) for value, pair in rows])
            frame.columns = pd.Index(["statistic", "value", "low", "high"])
        for name in self.value_columns if self.grouped else ["value"]:
            names = (name, f"{name}_low", f"{name}_high") if self.grouped else ("value", "low", "high")
            shown = [meaningful(*row) for row in frame[[*names]].itertuples(index=False, name=None)]
            frame[[*names]] = pd.DataFrame(shown, columns=[*names], index=frame.index, dtype=object)
        flags = self.verdict.rows if self.grouped else [flag for each in self.verdict.flags.values() for flag in each]
        frame[free("usable", frame)] = flags
        frame.to_csv(path, index=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        interval, noise = self.interval(_USUAL), self.noise_interval(_USUAL)
        return {
            "statistic": self.statistic,
            "usable": self.usable,
            "why": self.why,
            "value": records(self.value) if self.grouped else plain_data(self.value),
            "interval": {
                "confidence": 0.95,
                "covers": self.covers,
                "bounds": records(interval) if self.grouped else plain_data(list(interval)),
            },
            "noise_interval": {
                "confidence": 0.95,
                "bounds": records(noise) if self.grouped else plain_data(list(noise)),
            },
            "guarantee": self.guarantee.to_dict(),
            "bounding": self.bounding.to_dict(),
            "error": self.error.to_dict(),
            "event": self.event,
            **({"units": dict(self.units)} if self.units else {}),
            **({"details": self.details} if self.details else {}),
            **({"verdicts": self.verdict.flags} if self.grouped else {}),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """One self-contained page. Written to ``path`` if given."""
        return written(release_page(self), path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release as JSON, to be read back by ``eh.load(path)``, with intervals at 50, 80, 90, 95 and 99%."""
        from evenhand.release.written import write

        Path(path).write_text(json.dumps(write(self), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    def plot(self) -> Chart:
        """A bar for each group with its 95% interval, as an Altair chart (``.save("release.png")``)."""
        return release_chart(self)

    def _repr_html_(self) -> str:
        return release_fragment(self)

    def __repr__(self) -> str:
        return str(self)

    @property
    def grouped(self) -> bool:
        """Whether the value is a frame."""
        return hasattr(self.value, "columns")

    @property
    def value_columns(self) -> list[str]:
        """The columns of a frame that hold released numbers, each with an interval; the others are keys."""
        given, frame = list(self.value.columns), self._ends
        return [name for name in given if f"{name}_low" in frame.columns and f"{name}_low" not in given]

    @property
    def covers(self) -> str:
        """What the interval covers, in words."""
        assert self._interval is not None
        return covers(self._interval)

    def headline(self) -> str:
        """The statistic and its value in one line."""
        if self.grouped:
            return f"{self.statistic}: {len(self.value)} {'cells' if self.cells else 'groups'}{in_units(self.units)}"
        shown = zip(self._values(), self._units(), strict=True)
        return f"{self.statistic}: {', '.join(_shown(value, noise) + unit for (value, noise), unit in shown)}"

    def _units(self) -> list[str]:
        """What stands behind each of the values."""
        count = len(self._values())
        units = list(self.units.values()) or [""]
        return [f" {unit}" if unit else "" for unit in (units if len(units) == count else units[:1] * count)]

    def _values(self) -> list[tuple[Any, float | None]]:
        """The value, or values, each with its noise."""
        if not isinstance(self.value, list | tuple):
            return [(self.value, self.error.noise)]
        noises = list(self.error.parts.values()) or [self.error.noise] * len(self.value)
        return list(zip(self.value, noises, strict=True))

    def brief(self) -> list[tuple[str, str]]:
        """What stands below the headline, by name: the interval, whether to use it, the cost."""
        lines = [] if self.grouped else [("95% interval", self._in_words(self.interval(_USUAL)))]
        return [*lines, *([("usable", self._usable())] if self.usable else []), ("cost", self._cost())]

    def _cost(self) -> str:
        promise, computed = self.guarantee, self.details.get("computed")
        epsilon, delta = promise.epsilon, promise.delta
        cost = f"ε = {plain(epsilon)}{f', δ = {plain(delta)}' if delta else ''}" if epsilon else "nothing"
        if computed and self.event is None:
            return f"nothing more: {computed['words']} ({cost})"
        return f"{cost}{f'; {self._left} is left' if self._left else ''}"

    def lines(self) -> list[tuple[str, str]]:
        """The same, then how the answer was made."""
        lines: list[tuple[str, str]] = []
        if not self.grouped or len(self.value):
            lines.append(("the interval", self._meaning()))
        lines += [
            (name, self.details[name]["words"])
            for name in ("correction", "finding", "facts", "values")
            if name in self.details
        ]
        if "selection" in self.details:
            lines.append(("groups", self.details["selection"]["words"]))
        if not self.grouped or len(self.value):
            lines += [("bound on a user", str(self.bounding)), ("error", str(self.error))]
        return [*self.brief(), *lines, ("guarantee", self.guarantee.words())]

    def _usable(self) -> str:
        assert self._interval is not None
        known = self.grouped or judged(self._interval).at(_USUAL) == self._ends
        return self.verdict.words if known else f"{self.verdict.words}, noise alone; what the bound did is not known"

    def _in_words(self, interval: Ends) -> str:
        several = interval if isinstance(interval, list) else [interval]
        shown = zip(several, self._values(), self._units(), strict=True)
        return ", ".join(ends_in_words(low, high, noise) + unit for (low, high), (_, noise), unit in shown)

    def _meaning(self) -> str:
        """What the interval covers, and the exact one of the noise alone where that is another."""
        if self.grouped or self.noise_interval(_USUAL) == self._ends:
            return self.covers
        return f"{self.covers}; the noise alone: {self._in_words(self.noise_interval(_USUAL))}"

    def table(self) -> pd.DataFrame:
        """The frame with its 95% intervals, rounded to what the noise leaves meaningful, and what is too noisy to use."""
        frame: pd.DataFrame = self.interval(_USUAL)
        for name, noise in self.error.parts.items():
            if noise is not None and math.isnan(noise):
                continue  # the error of a quantile is one of ranks
            digits = 0 if not noise else max(0, 1 - math.floor(math.log10(noise)))
            for column in (name, f"{name}_low", f"{name}_high"):
                if column in frame.columns:
                    frame[column] = frame[column].astype(float).round(digits).map(f"{{:,.{digits}f}}".format)
        if not all(self.verdict.rows):
            frame[free("usable", frame)] = self._marks()
        return frame

    def _marks(self) -> list[str]:
        """By group, whether it can be used; where some of its numbers can, which can't."""
        flags = self.verdict.flags
        marks = []
        for row in zip(*flags.values(), strict=True):
            noisy = [name for name, usable in zip(flags, row, strict=True) if not usable]
            named = f" ({', '.join(noisy)})" if len(noisy) < len(row) else ""
            marks.append(f"too noisy{named}" if noisy else "yes")
        return marks

    def __str__(self) -> str:
        return self.text(".explain()")

    def text(self, more: str) -> str:
        """A few lines for a terminal; the last says where there is more."""
        return f"{self._text(self.brief())}\n  {more} says how it was made"

    def explain(self) -> str:
        """The answer, and how it was made: what the interval covers, how users were bounded, the error, the guarantee."""
        return self._text(self.lines())

    def _text(self, lines: list[tuple[str, str]]) -> str:
        table = f"\n{self.table().to_string(index=False)}\n" if self.grouped and len(self.value) else "\n"
        return f"{self.warning()}{self.headline()}{table}{hanging(lines)}"

    def warning(self) -> str:
        """What a reader has to know first; empty if the answer can be used."""
        return "" if self.usable else f"{textwrap.fill(f'NOT USABLE: {self.why}.', width())}\n"


def _shown(value: Any, noise: float | None) -> str:  # noqa: ANN401 - a number, or a time
    return "no answer" if isinstance(value, float) and math.isnan(value) else rounded(value, noise)


def hanging(lines: Sequence[tuple[str, str]]) -> str:
    """Named lines, wrapped to the terminal, with the text indented beside the names."""
    indent = " " * 19
    return "\n".join(
        textwrap.fill(text, width(), initial_indent=f"  {name:<16} ", subsequent_indent=indent, break_long_words=False)
        for name, text in lines
    )


def width() -> int:
    """Of the terminal, within what is readable."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))


def in_units(units: Mapping[str, str]) -> str:
    """The units of the columns of a frame, behind its headline; nothing if none has one."""
    named = {name: unit for name, unit in units.items() if unit}
    if len(units) == 1:
        return "".join(f", in {unit}" for unit in named.values())
    return "".join(f", {name} in {unit}" for name, unit in named.items())


def free(name: str, frame: pd.DataFrame) -> str:
    """A name that no column has: a key may be called anything."""
    while name in frame.columns:
        name += "_"
    return name


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as data."""
    return [{str(name): plain_data(value) for name, value in row.items()} for row in frame.to_dict("records")]


def plain_data(value: Any) -> Any:  # noqa: ANN401 - cells of a frame, on their way to JSON
    """A value as JSON has it."""
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)

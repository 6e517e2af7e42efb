"""A release as JSON and back: what a keeper's server stores and sends, and what its client shows.

`Release.to_dict` is for readers of JSON. This form is for Evenhand itself: everything that print, HTML, charts and CSV need, with
the intervals at a few confidences, because the model behind them stays on the server.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import DataError, Guarantee, Purchase, Reach, Relation, UsageError, exact_text
from evenhand.release.described import Bounding, Error
from evenhand.release.intervals import Ends, Interval, judged
from evenhand.release.result import Release
from evenhand.release.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)
"""At which a written release states its intervals."""

FORMAT = 1


def write(release: Release) -> dict[str, Any]:
    """The release as data for JSON."""
    assert release._interval is not None
    verdict = release.verdict
    read = judged(release._interval)
    known = release.interval(0.95) if read is release._interval else read.at(0.95)
    return {
        "format": FORMAT,
        "statistic": release.statistic,
        "value": plain_value(release.value),
        "intervals": {str(level): plain_value(release.interval(level)) for level in CONFIDENCES},
        "noise_intervals": {str(level): plain_value(release.noise_interval(level)) for level in CONFIDENCES},
        "judged": plain_value(known),
        "covers": release.covers,
        "verdict": {"flags": verdict.flags, "usable": verdict.usable, "why": verdict.why, "words": verdict.words},
        "guarantee": write_guarantee(release.guarantee),
        "bounding": {name: plain_value(value) for name, value in vars(release.bounding).items()},
        "error": {
            "noise": plain_value(release.error.noise),
            "bias": plain_value(release.error.bias),
            "basis": release.error.basis,
            "parts": {name: plain_value(part) for name, part in release.error.parts.items()},
            "words": str(release.error),
        },
        "event": release.event,
        "details": plain_value(release.details),
        "cells": release.cells,
        "units": dict(release.units),
        "additive": list(release.additive),
        "left": release._left,
    }


def load(path: str | os.PathLike[str]) -> Release:
    """Read a release that ``release.save(path)`` wrote.

    Example:
        >>> eh.load("january.json").interval(0.9)  # doctest: +SKIP
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError
        return read(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"can't read a release from {path}; expected a JSON file written by release.save(path)."
        ) from error


def read(data: Mapping[str, Any]) -> Release:
    """The release that was written."""
    if data.get("format") != FORMAT:
        raise UsageError(
            f"this answer has format {data.get('format')!r}, this version of Evenhand reads {FORMAT}: upgrade the older side."
        )
    verdict, error = data["verdict"], data["error"]
    parts = {name: read_value(part) for name, part in error["parts"].items()}
    forecast = _Forecast(
        read_value(error["noise"]), read_value(error["bias"]), error["basis"], parts, words=error["words"]
    )
    interval = _Stated(data["intervals"], data["noise_intervals"], data["judged"], data["covers"])
    release = Release(
        data["statistic"],
        read_value(data["value"]),
        read_guarantee(data["guarantee"]),
        Bounding(**{name: read_value(value) for name, value in data["bounding"].items()}),
        forecast,
        data["event"],
        read_value(data["details"]),
        data["cells"],
        units=data.get("units", {}),
        additive=tuple(data.get("additive", ())),
        _left=data.get("left", ""),
        _interval=interval,
    )
    # A verdict is worked out once and kept: here it is the one that was stated.
    release.__dict__["verdict"] = _Given({}, stated=verdict)
    return release


def write_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as data for JSON."""
    return {
        "epsilon": exact_text(guarantee.epsilon),
        "delta": exact_text(guarantee.delta),
        "protects": guarantee.relation.value,
        "unit": list(guarantee.unit),
        "public": list(guarantee.public),
        "earlier": [[each.event, exact_text(each.epsilon), exact_text(each.delta)] for each in guarantee.earlier],
        "user": list(guarantee.user),
        **({"parts": [each.data for each in guarantee.parts]} if guarantee.parts else {}),
    }


def read_guarantee(promise: Mapping[str, Any]) -> Guarantee:
    """The guarantee that was written."""
    return Guarantee(
        Decimal(promise["epsilon"]),
        Decimal(promise["delta"]),
        Relation(promise["protects"]),
        tuple(promise["unit"]),
        tuple(promise["public"]),
        tuple(Purchase(event, Decimal(epsilon), Decimal(delta)) for event, epsilon, delta in promise["earlier"]),
        tuple(promise["user"]),
        tuple(Reach.read(each) for each in promise.get("parts", ())),
    )


@dataclass(frozen=True)
class _Stated:
    """Intervals at the confidences that were written."""

    intervals: Mapping[str, Any]
    noise: Mapping[str, Any]
    verdict: Any
    covers: str

    def at(self, confidence: float) -> Ends:
        return _at(self.intervals, confidence)

    @property
    def confidences(self) -> list[float]:
        """At which it was stated."""
        return [float(level) for level in self.intervals]

    @property
    def noise_only(self) -> Interval:
        """The noise alone."""
        return _Levels(self.noise)

    @property
    def judged(self) -> Interval:
        """What the verdict read."""
        return _Levels({str(level): self.verdict for level in CONFIDENCES})


@dataclass(frozen=True)
class _Levels:
    intervals: Mapping[str, Any]

    def at(self, confidence: float) -> Ends:
        return _at(self.intervals, confidence)


def _at(intervals: Mapping[str, Any], confidence: float) -> Ends:
    if str(confidence) not in intervals:
        raise UsageError(
            f"interval({confidence:g}): this answer came from a server with intervals at {', '.join(intervals)}; expected one of "
            "these."
        )
    ends = read_value(intervals[str(confidence)])
    if isinstance(ends, list):
        return [tuple(pair) for pair in ends] if ends and isinstance(ends[0], list) else tuple(ends)
    return ends


@dataclass(frozen=True)
class _Forecast(Error):  # noqa: N818 - a forecast, not an exception
    """An error that was put in words where it was worked out."""

    words: str = ""

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class _Given(Verdict):
    """A verdict as it was stated."""

    stated: Mapping[str, Any] | None = None

    @property
    def flags(self) -> dict[str, list[bool]]:
        return dict(self.stated["flags"]) if self.stated else {}

    @property
    def usable(self) -> bool:
        return bool(self.stated and self.stated["usable"])

    @property
    def words(self) -> str:
        return str(self.stated["words"]) if self.stated else ""

    @property
    def why(self) -> str:
        return str(self.stated["why"]) if self.stated else ""


_TIMES: dict[str, type[datetime] | type[date] | type[time]] = {"datetime": datetime, "date": date, "time": time}
_TEXTS: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "number": float,
    **{name: kind.fromisoformat for name, kind in _TIMES.items()},
}


def plain_value(value: Any) -> Any:  # noqa: ANN401 - whatever a release holds
    """A value as JSON has it; what JSON can't hold is an object with one key, its type."""
    if hasattr(value, "columns"):
        frame: pd.DataFrame = value
        rows = [[plain_value(cell) for cell in row] for row in frame.itertuples(index=False, name=None)]
        return {"frame": {"columns": [str(name) for name in frame.columns], "rows": rows}}
    if isinstance(value, Mapping):
        return {"mapping": {str(name): plain_value(item) for name, item in value.items()}}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return {"decimal": exact_text(value)}
    for name, kind in _TIMES.items():  # a datetime is a date too, and comes first
        if isinstance(value, kind):
            return {name: value.isoformat()}
    return str(value)


def read_value(data: Any) -> Any:  # noqa: ANN401 - whatever a release holds
    """What `plain_value` wrote."""
    if isinstance(data, list):
        return [read_value(item) for item in data]
    if not isinstance(data, Mapping):
        return data
    ((kind, content),) = data.items()
    if kind == "mapping":
        return {name: read_value(item) for name, item in content.items()}
    if kind == "frame":
        import pandas as pd

        rows = [[read_value(cell) for cell in row] for row in content["rows"]]
        return pd.DataFrame(rows, columns=content["columns"])
    return _TEXTS[kind](content)

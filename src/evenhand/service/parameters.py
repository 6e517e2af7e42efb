"""Parameters of questions as JSON, and back.

The server builds statistics and strategies from the lists by their names and fields; nothing else of what it receives becomes an
object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any

from evenhand.bounding import Strategy, named
from evenhand.bounding.listing import same_name
from evenhand.guarantee import UsageError, suggest
from evenhand.statistics import STATISTICS, Statistic


def as_data(value: Any) -> Any:  # noqa: ANN401 - parameters of any question
    """A parameter as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, type) and issubclass(value, Strategy):
        return {"strategy": value.title}
    if isinstance(value, Statistic | Strategy) and is_dataclass(value):
        kind = {"statistic": value.name} if isinstance(value, Statistic) else {"strategy": value.title}
        return kind | {field.name: as_data(getattr(value, field.name)) for field in fields(value) if field.init}
    if hasattr(value, "columns") and hasattr(value, "to_dict"):  # a frame of public keys
        return {"keys": {str(name): [as_data(cell) for cell in value[name].tolist()] for name in value.columns}}
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value):
            return {"mapping": {name: as_data(item) for name, item in value.items()}}
        return {"pairs": [[as_data(name), as_data(item)] for name, item in value.items()]}
    if hasattr(value, "tolist"):  # an array, or one number of NumPy's
        return as_data(value.tolist())
    if isinstance(value, list | tuple | set | frozenset | range):
        return [as_data(item) for item in value]
    if isinstance(value, date | time):
        return value.isoformat()
    raise UsageError(
        f"a {type(value).__name__} can't be sent to a server; expected text, numbers, lists, statistics or strategies."
    )


def from_data(data: Any) -> Any:  # noqa: ANN401 - parameters of any question
    """The parameter that `as_data` wrote."""
    if isinstance(data, list):
        return [from_data(item) for item in data]
    if not isinstance(data, Mapping):
        return data
    rest = dict(data)
    if "statistic" in rest:
        name = rest.pop("statistic")
        if name not in STATISTICS:
            raise UsageError(f"there is no statistic {name!r}; expected one of {list(STATISTICS)}.")
        return _made(STATISTICS[name], rest)
    if "strategy" in rest:
        return _made(_strategy(str(rest.pop("strategy"))), rest)
    if set(rest) == {"mapping"} and isinstance(rest["mapping"], Mapping):
        return {str(name): from_data(item) for name, item in rest["mapping"].items()}
    if set(rest) == {"pairs"}:
        return {from_data(name): from_data(item) for name, item in rest["pairs"]}
    if set(rest) == {"keys"} and isinstance(rest["keys"], Mapping):
        columns = {str(name): from_data(cells) for name, cells in rest["keys"].items()}
        return [list(row) if len(columns) > 1 else row[0] for row in zip(*columns.values(), strict=True)]
    raise UsageError(
        f"a parameter with the parts {sorted(map(str, rest))} is not known; expected a statistic, a strategy, or plain values."
    )


def _strategy(name: str) -> type[Strategy]:
    found = named(name)
    assert same_name(found.title, name)
    return found


def _made(kind: Any, parts: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a statistic or a strategy
    known = [field.name for field in fields(kind) if field.init]
    for name in parts:
        if name not in known:
            raise UsageError(f"{kind.__name__} has no part {name!r}; expected {known}.{suggest(name, known)}")
    try:
        return kind(**{name: from_data(value) for name, value in parts.items()})
    except TypeError as error:
        raise UsageError(f"{kind.__name__}: {error}.") from None

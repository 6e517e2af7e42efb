"""A question as JSON: the name of a question of `Session`, and its parameters.

Both sides read the signatures of `Session` itself, so a statistic on the list can be asked at once. The server builds
statistics and strategies from the lists by their names and fields; nothing else of what it receives becomes an object.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any

from evenhand.bounding import Strategy, named
from evenhand.bounding.listing import same_name
from evenhand.guarantee import EvenhandError, UsageError, suggest
from evenhand.service.profile_draft import profile_draft
from evenhand.session import Drafts, Questions, Session
from evenhand.statistics import STATISTICS, Draft, Statistic

LARGEST = 1_000_000
"""Characters of a question, public keys included."""


def names() -> list[str]:
    """What can be asked."""
    return [*STATISTICS, "aggregate", "sql", "profile"]


def write(name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a session's method as data."""
    if name not in names():
        raise UsageError(f"there is no question {name!r}; expected one of {names()}.{suggest(name, names())}")
    try:
        bound = _signature(name).bind(*arguments, **options)
    except TypeError as error:
        raise UsageError(f"{name}(...): {error}.") from None
    given = {key: value for key, value in bound.arguments.items() if key != "statistics"}
    given |= bound.arguments.get("statistics", {})
    return {"ask": name, **{key: _plain(value) for key, value in given.items()}}


def normalised(question: Mapping[str, Any]) -> str:
    """The same text for the same question."""
    try:
        text = json.dumps(question, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        raise UsageError("the question is not plain JSON: expected text, finite numbers, lists and objects.") from None
    if len(text) > LARGEST:
        raise UsageError(f"the question has {len(text)} characters; expected at most {LARGEST}.")
    return text


def ask(session: Drafts, question: Mapping[str, Any]) -> Draft:
    """The draft of the question that was written."""
    rest = dict(question)
    name = rest.pop("ask", None)
    if not isinstance(name, str) or name not in names():
        raise UsageError(f"ask={name!r}: expected one of {names()}.")
    try:
        options = {key: _value(value) for key, value in rest.items()}
        _signature(name).bind(**options)
        if name == "profile":
            return profile_draft(session.table, **options)
        draft: Draft = getattr(session, name)(**options)
        return draft
    except EvenhandError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):
        # Drafts read no row: what fails is a public parameter of a wrong type.
        raise UsageError(
            f"{name}(...): a parameter is unknown, or has a wrong type or form; see session.{name}."
        ) from None


def _signature(name: str) -> inspect.Signature:
    method = Session.profile if name == "profile" else getattr(Questions, name, None)
    if method is None:  # a statistic from outside: its own fields, and what every question takes
        kind: Any = STATISTICS[name]
        own = [inspect.Parameter(field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for field in fields(kind)]
        asked = [one for one in inspect.signature(Questions.ask).parameters.values() if one.kind is one.KEYWORD_ONLY]
        return inspect.Signature([*own, *asked])
    signature = inspect.signature(method)
    # A table of one's own can't be sent: what may be joined is the keeper's to offer.
    left_out = ("self", "tables") if name == "sql" else ("self",)
    return signature.replace(parameters=[one for one in signature.parameters.values() if one.name not in left_out])


def _plain(value: Any) -> Any:  # noqa: ANN401 - parameters of any question
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, type) and issubclass(value, Strategy):
        return {"strategy": value.title}
    if isinstance(value, Statistic | Strategy) and is_dataclass(value):
        kind = {"statistic": value.name} if isinstance(value, Statistic) else {"strategy": value.title}
        return kind | {field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.init}
    if hasattr(value, "columns") and hasattr(value, "to_dict"):  # a frame of public keys
        return {"keys": {str(name): [_plain(cell) for cell in value[name].tolist()] for name in value.columns}}
    if isinstance(value, Mapping):
        return {"mapping": {str(name): _plain(item) for name, item in value.items()}}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset | range):
        return [_plain(item) for item in value]
    if isinstance(value, date | time):
        return value.isoformat()
    raise UsageError(
        f"a {type(value).__name__} can't be sent to a server; expected text, numbers, lists, statistics or strategies."
    )


def _value(data: Any) -> Any:  # noqa: ANN401 - parameters of any question
    if isinstance(data, list):
        return [_value(item) for item in data]
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
        return {str(name): _value(item) for name, item in rest["mapping"].items()}
    if set(rest) == {"keys"} and isinstance(rest["keys"], Mapping):
        columns = {str(name): _value(cells) for name, cells in rest["keys"].items()}
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
        return kind(**{name: _value(value) for name, value in parts.items()})
    except TypeError as error:
        raise UsageError(f"{kind.__name__}: {error}.") from None

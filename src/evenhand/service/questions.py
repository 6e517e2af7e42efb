"""A question as JSON: the name of a question of `Session`, and its parameters.

Both sides read the signatures of `Session` itself, so a statistic on the list can be asked at once.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from evenhand.guarantee import EvenhandError, UsageError, suggest
from evenhand.profiles import About
from evenhand.service.fits import fit_draft, write_fit
from evenhand.service.parameters import as_data, from_data
from evenhand.service.profile_draft import profile_draft
from evenhand.session import Drafts, Questions, Session
from evenhand.statistics import STATISTICS, Draft

LARGEST = 1_000_000
"""Characters of a question, public keys included."""


def names() -> list[str]:
    """What can be asked."""
    return [*STATISTICS, "aggregate", "sql", "profile", "fit"]


def write(name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a session's method as data."""
    if name not in names():
        raise UsageError(f"there is no question {name!r}; expected one of {names()}.{suggest(name, names())}")
    try:
        bound = signature(name).bind(*arguments, **options)
    except TypeError as error:
        raise UsageError(f"{name}(...): {error}.") from None
    if name == "fit":
        return write_fit(**bound.arguments)
    given = {key: value for key, value in bound.arguments.items() if key != "statistics"}
    given |= bound.arguments.get("statistics", {})
    return {"ask": name, **{key: as_data(value) for key, value in given.items()}}


def normalised(question: Mapping[str, Any]) -> str:
    """The same text for the same question; the order of its parts is one of columns, so it stays."""
    try:
        text = json.dumps(question, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError, RecursionError):
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
        if name == "fit":
            return fit_draft(session.table, session._shelf.find(session.table, About("rows")), question)
        options = {key: from_data(value) for key, value in rest.items()}
        signature(name).bind(**options)
        if name == "profile":
            return profile_draft(session.table, **options)
        draft: Draft = getattr(session, name)(**options)
        return draft
    except EvenhandError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError):
        # Drafts read no row: what fails is a public parameter of a wrong type.
        raise UsageError(
            f"{name}(...): a parameter is unknown, or has a wrong type or form; see {'the estimator' if name == 'fit' else f'session.{name}'}."
        ) from None


def signature(name: str) -> inspect.Signature:
    """The parameters of a question."""
    apart: dict[str, Callable[..., Any]] = {"profile": Session.profile, "fit": write_fit}
    method = apart.get(name) or getattr(Questions, name, None)
    if method is None:  # a statistic from outside: its own fields, and what every question takes
        kind: Any = STATISTICS[name]
        own = [inspect.Parameter(field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for field in fields(kind)]
        asked = [one for one in inspect.signature(Questions.ask).parameters.values() if one.kind is one.KEYWORD_ONLY]
        return inspect.Signature([*own, *asked])
    found = inspect.signature(method)
    # A table of one's own can't be sent: what may be joined is the keeper's to offer.
    left_out = ("self", "tables") if name == "sql" else ("self",)
    return found.replace(parameters=[one for one in found.parameters.values() if one.name not in left_out])

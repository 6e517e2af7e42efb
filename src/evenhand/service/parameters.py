"""Parameters of questions as JSON, and back.

The server builds statistics and strategies from the lists by their names and fields, `Auto`, and public priors; nothing else of
what it receives becomes an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np

from evenhand.bounding import Auto, Strategy, named
from evenhand.bounding.listing import same_name
from evenhand.bounding.strategy import UNSET
from evenhand.guarantee import UsageError, exact_text, suggest
from evenhand.profiles import Basis, Profile, Support
from evenhand.statistics import STATISTICS, Statistic
from evenhand.statistics.formula import Formula

MOST_SIZES = 100_000
"""Different numbers of rows that a prior may name."""


def as_data(value: Any) -> Any:  # noqa: ANN401 - parameters of any question
    """A parameter as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return exact_text(value)
    if value is Auto or type(value) is Auto:  # the choice, left to Evenhand
        given = {field.name: getattr(value, field.name, None) for field in fields(Auto)}
        return {"auto": {name: as_data(part) for name, part in given.items() if part is not None}}
    if isinstance(value, Profile):
        return _prior_data(value)
    if isinstance(value, Formula):
        return {"formula": value.symbol, "left": as_data(value.left), "right": as_data(value.right)}
    if isinstance(value, type) and issubclass(value, Strategy):
        return {"strategy": value.title}
    if isinstance(value, Statistic | Strategy) and is_dataclass(value):
        kind = {"statistic": value.name} if isinstance(value, Statistic) else {"strategy": value.title}
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return kind | {name: as_data(part) for name, part in parts.items() if part is not UNSET}
    if hasattr(value, "columns") and hasattr(value, "to_dict"):  # a frame of public keys
        return {"keys": {str(name): [as_data(cell) for cell in value[name]] for name in value.columns}}
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
    if set(rest) == {"formula", "left", "right"}:
        return Formula.of(rest["formula"], from_data(rest["left"]), from_data(rest["right"]))
    if "strategy" in rest:
        return _made(_strategy(str(rest.pop("strategy"))), rest)
    if set(rest) == {"mapping"} and isinstance(rest["mapping"], Mapping):
        return {str(name): from_data(item) for name, item in rest["mapping"].items()}
    if set(rest) == {"auto"}:
        return _made(Auto, rest["auto"])
    if set(rest) == {"prior", "sizes", "users"}:
        return _prior(rest)
    if set(rest) == {"pairs"}:
        return {from_data(name): from_data(item) for name, item in rest["pairs"]}
    if set(rest) == {"keys"} and isinstance(rest["keys"], Mapping):
        columns = {str(name): from_data(cells) for name, cells in rest["keys"].items()}
        return [list(row) if len(columns) > 1 else row[0] for row in zip(*columns.values(), strict=True)]
    raise UsageError(
        f"a parameter with the parts {sorted(map(str, rest))} is not known; expected a statistic, a strategy, or plain values."
    )


def _prior_data(profile: Profile) -> dict[str, Any]:
    if profile.basis is not Basis.PRIOR:
        raise UsageError(
            f"a profile from {profile.basis} can't be sent to a server; expected a public prior, such as eh.Profile.pareto(...). One that "
            "you bought there is used for your questions by itself."
        )
    support = profile.support
    return {"prior": profile.words, "sizes": support.sizes.tolist(), "users": support.users.tolist()}


def _prior(given: Mapping[str, Any]) -> Profile:
    """A public prior of an analyst's: it may say anything, but it must be one."""
    sizes, users = (np.array(given[name], dtype=np.float64) for name in ("sizes", "users"))
    sound = sizes.ndim == 1 and sizes.shape == users.shape and 0 < len(sizes) <= MOST_SIZES
    if not sound or not (np.isfinite(users).all() and np.isfinite(sizes).all() and sizes[0] > 0):
        raise UsageError(
            f"a prior holds up to {MOST_SIZES} sizes and users, as finite numbers; make one with eh.Profile."
        )
    if (np.diff(sizes) <= 0).any() or (users < 0).any() or not users.sum() > 0:
        raise UsageError("the sizes of a prior increase, and some users have one; make one with eh.Profile.")
    return Profile(Support(sizes, users), Basis.PRIOR, str(given["prior"])[:200])


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

"""The list of strategies: what people may name in ``bounding=`` and on the command line, and what plans compare."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import TypeVar

from evenhand.bounding.auto import Auto
from evenhand.bounding.centred_interval import CentredInterval
from evenhand.bounding.located_mean import LocatedMean
from evenhand.bounding.norm_clip import NormClip
from evenhand.bounding.row_limit import RowLimit
from evenhand.bounding.smooth_weights import SmoothWeights
from evenhand.bounding.strategy import Strategy
from evenhand.bounding.total_cap import TotalCap
from evenhand.guarantee import UsageError, suggest

STRATEGIES: list[type[Strategy]] = [TotalCap, SmoothWeights, RowLimit, CentredInterval, NormClip, LocatedMean]
"""All of them, in the order in which plans show them."""

_MADE = (LocatedMean,)  # by Auto only

S = TypeVar("S", bound=type[Strategy])


def register(strategy: S) -> S:
    """Put a strategy from outside on the list; usable as a class decorator."""
    if not (is_dataclass(strategy) and issubclass(strategy, Strategy) and fields(strategy)):
        raise UsageError(
            f"register({strategy!r}): expected a dataclass below evenhand.bounding.Strategy whose first field is the bound."
        )
    if same_name(strategy.title, "auto") or any(same_name(strategy.title, known.title) for known in STRATEGIES):
        raise UsageError(f"there is a strategy named {strategy.title} already; give yours another name.")
    STRATEGIES.append(strategy)
    return strategy


def named(text: str) -> type[Strategy]:
    """The strategy with this name; hyphens, spaces and capitals don't matter: smooth-weights is SmoothWeights."""
    for strategy in STRATEGIES:
        if strategy not in _MADE and same_name(strategy.title, text):
            return strategy
    names = offered_names()
    raise UsageError(f"{text!r} is not a strategy; expected one of {', '.join(names)}.{suggest(text, names)}")


def offered_names() -> list[str]:
    """The names as people type them on a command line."""
    return [re.sub("(?<!^)([A-Z])", r"-\1", strategy.title).lower() for strategy in STRATEGIES if strategy not in _MADE]


def parse_bounding(given: object) -> tuple[Strategy | None, Auto]:
    """Read ``bounding=``: a strategy with its bound, or None and what may be chosen."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return None, Auto()
    if isinstance(given, Auto):
        return None, given
    if isinstance(given, Strategy):
        return (given, Auto()) if given.is_set else (None, Auto(strategy=given))
    if isinstance(given, type) and issubclass(given, Strategy | Auto) and given not in _MADE:
        return parse_bounding(given())
    raise UsageError(
        f"bounding={given!r} is not a strategy; expected 'auto' or one of eh.TotalCap(T), eh.SmoothWeights(h), eh.RowLimit(h), "
        "eh.CentredInterval(T), eh.NormClip(T), eh.Auto(share=...)."
    )


def same_name(one: str, other: str) -> bool:
    """Whether both name the same strategy."""
    first, second = (re.sub("[-_ ]", "", name).lower() for name in (one, other))
    return first == second

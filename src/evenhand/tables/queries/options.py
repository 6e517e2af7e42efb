"""BigQuery's words for differential privacy, taken out of a query before it is parsed; places in the text stay as they are.

``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, privacy_unit_column = id) ...`` and, in a function,
``contribution_bounds_per_row => (0, 100)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from evenhand.guarantee import UsageError, suggest
from evenhand.tables.grid import Bounds, parse_bounds

Token: TypeAlias = Any
"""A token of sqlglot's."""

_CLAUSE = ("SELECT", "WITH", "DIFFERENTIAL_PRIVACY", "OPTIONS", "(")
_PER_ROW, _PER_GROUP = "CONTRIBUTION_BOUNDS_PER_ROW", "CONTRIBUTION_BOUNDS_PER_GROUP"
_KNOWN = ("epsilon", "delta", "privacy_unit_column", "max_groups_contributed")


@dataclass(frozen=True)
class Options:
    """What a query says about its own price.

    Args:
        epsilon: as written; None if it does not say.
        delta: as written.
        user: the privacy unit column.
        groups_per_user: ``max_groups_contributed``.
        bounds: of one value, by the part of the text that is the call of the function.
    """

    epsilon: str | None = None
    delta: str | None = None
    user: str | None = None
    groups_per_user: int | None = None
    bounds: Mapping[tuple[int, int], Bounds] = field(default_factory=dict)


def place(text: str, offset: int) -> str:
    """Where something stands in a text, for people."""
    line, start = text.count("\n", 0, offset) + 1, text.rfind("\n", 0, offset)
    return f"line {line}, column {offset - start}"


def read_options(text: str, dialect: str) -> tuple[str, Options]:
    """The text with spaces in place of these words, and what they say."""
    import sqlglot

    try:
        tokens: list[Token] = list(sqlglot.tokenize(text, dialect=dialect))
    except sqlglot.errors.SqlglotError:
        raise UsageError("the query can't be read as SQL: a quote or a comment is not closed.") from None
    words = [token.text.upper() for token in tokens]
    cut, given = _clause(text, tokens, words)
    bounds, more = _bounds(text, tokens, words)
    blank = list(text)
    for first, last in (*cut, *more):
        blank[first : last + 1] = ["\n" if letter == "\n" else " " for letter in text[first : last + 1]]
    groups = given.get("max_groups_contributed")
    if groups is not None and not groups.isdigit():
        raise UsageError(f"max_groups_contributed = {groups}: expected a whole number.")
    return "".join(blank), Options(
        given.get("epsilon"),
        given.get("delta"),
        given.get("privacy_unit_column"),
        None if groups is None else int(groups),
        bounds,
    )


def _clause(text: str, tokens: list[Token], words: list[str]) -> tuple[list[tuple[int, int]], dict[str, str]]:
    """The clause after SELECT: which part of the text it is, and its options."""
    found = [at for at in range(len(words)) if tuple(words[at : at + len(_CLAUSE)]) == _CLAUSE]
    if not found:
        return [], {}
    start = found[0] + len(_CLAUSE)
    end = next((at for at in range(start, len(words)) if words[at] == ")"), len(words))
    if len(found) > 1 or end == len(words):
        raise UsageError(
            f"WITH DIFFERENTIAL_PRIVACY ({place(text, tokens[found[-1]].start)}): expected it once, with OPTIONS (epsilon = 1, ...)."
        )
    given: dict[str, str] = {}
    inner = tokens[start:end]
    while inner:
        part = [token.text for token in inner]
        comma = part.index(",") if "," in part else len(part)
        name = part[0].lower()
        fraction = (
            comma == 4 and part[2] == "." and part[3].isdigit()
        )  # .01, as BigQuery's documentation writes it, is two tokens
        if not (comma == 3 or fraction) or part[1] != "=" or name not in _KNOWN or name in given:
            raise UsageError(
                f"OPTIONS ({place(text, inner[0].start)}): {''.join(part[:comma])!r} can't be used; expected {', '.join(_KNOWN)}, each "
                f"once, as in epsilon = 1.{suggest(name, _KNOWN)}"
            )
        given[name] = "".join(part[2:comma])
        inner = inner[comma + 1 :]
    return [(tokens[found[0] + 1].start, tokens[end].end)], given


def _bounds(
    text: str, tokens: list[Token], words: list[str]
) -> tuple[dict[tuple[int, int], Bounds], list[tuple[int, int]]]:
    """``contribution_bounds_per_row => (low, high)``, by the call that it stands in, and which parts of the text these are."""
    found: dict[tuple[int, int], Bounds] = {}
    cut = []
    for at, word in enumerate(words):
        if word == _PER_GROUP:
            raise UsageError(
                f"contribution_bounds_per_group ({place(text, tokens[at].start)}): here bounds are of one value, and how much a user may "
                "add is chosen. Write contribution_bounds_per_row => (low, high), or leave it out."
            )
        if word != _PER_ROW:
            continue
        end = next((close for close in range(at, len(words)) if words[close] == ")"), None)
        inside = "".join(token.text for token in tokens[at + 3 : end])
        if end is None or words[at - 1] != "," or words[at + 1 : at + 3] != ["=>", "("]:
            raise UsageError(
                f"contribution_bounds_per_row ({place(text, tokens[at].start)}): expected AVG(x, contribution_bounds_per_row => (0, 100))."
            )
        try:
            pair = parse_bounds([float(number) for number in inside.split(",")], "contribution_bounds_per_row")
        except ValueError as error:
            raise UsageError(f"contribution_bounds_per_row ({place(text, tokens[at].start)}): {error}") from None
        opened = _opening(words, at)
        closed = next((close for close in range(end + 1, len(words)) if words[close] == ")"), end)
        found[tokens[opened - 1].start, tokens[closed].end] = pair
        cut.append((tokens[at - 1].start, tokens[end].end))
    return found, cut


def _opening(words: list[str], at: int) -> int:
    """The place of the parenthesis that is open at a place."""
    depth = 0
    for back in range(at - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(words[back], 0)
        if depth < 0:
            return back
    return 1

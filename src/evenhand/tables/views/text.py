"""Functions of text whose result is never much longer than what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evenhand.guarantee import UsageError
from evenhand.tables.engines.dialect import recast
from evenhand.tables.expressions import Column, Operation
from evenhand.tables.views.operand import Kind, Operand, Range, null

if TYPE_CHECKING:
    from evenhand.tables.views.guard import Guard

LONGEST = 1_000_000
"""Characters: operations that may make text longer give null for longer text, so that no engine meets its limit."""
_MOST_JOKERS = 4

_TEXT = Range(Kind.TEXT)


def text(guard: Guard, node: Operation, role: str = "this function") -> Column:
    """An operand that is text."""
    operand = guard.operand(node)
    if operand.kind is not Kind.TEXT:
        raise UsageError(f"{role} takes text, and {operand.kind.value} was given; expected a column of text.")
    return operand.value


def _short(value: Column) -> Column:
    return (value.length() <= LONGEST).ifelse(value, null(Kind.TEXT))


def constant(guard: Guard, node: Operation, role: str) -> str:
    """A text that was given: patterns from the rows could take any time."""
    literal = guard.operand(node).literal
    if not isinstance(literal, str):
        raise UsageError(f"{role} takes a constant text: one that comes from the rows could take any time and memory.")
    return literal


def _count(guard: Guard, node: Operation, role: str) -> int:
    literal = guard.operand(node).literal
    if not isinstance(literal, int) or not 0 <= literal <= LONGEST:
        raise UsageError(f"{role} takes a constant number of characters, between 0 and {LONGEST}.")
    return literal


def changes(change: Callable[[Column], Column], grows: bool = False) -> Callable[[Guard, Operation], Operand]:
    """The rule for a function of one text."""

    def rule(guard: Guard, node: Operation) -> Operand:
        value = text(guard, node.arg)
        return Operand(change(_short(value) if grows else value), _TEXT)

    return rule


def length(guard: Guard, node: Operation) -> Operand:
    return Operand(text(guard, node.arg, "length()").length().cast("int64"), Range(Kind.WHOLE, 31))


def contains(guard: Guard, node: Operation) -> Operand:
    return _found(guard, node.haystack, node.needle, "contains")


def starts_with(guard: Guard, node: Operation) -> Operand:
    return _found(guard, node.arg, node.start, "startswith")


def ends_with(guard: Guard, node: Operation) -> Operand:
    return _found(guard, node.arg, node.end, "endswith")


def _found(guard: Guard, node: Operation, needle: Operation, name: str) -> Operand:
    given = constant(guard, needle, f"{name}(...)")
    return Operand(getattr(text(guard, node, f"{name}(...)"), name)(given), Range(Kind.TRUTH))


def like(guard: Guard, node: Operation) -> Operand:
    pattern = constant(guard, node.pattern, "like(...)")
    if "\\" in pattern or node.escape is not None or pattern.count("%") > _MOST_JOKERS:
        raise UsageError(
            f"the pattern {pattern!r} can't be used: engines differ in escapes, and many % take long. Expected a pattern with at most "
            f"{_MOST_JOKERS} signs % and no backslash."
        )
    return Operand(text(guard, node.arg, "like(...)").like(pattern), Range(Kind.TRUTH))


def replaced(guard: Guard, node: Operation) -> Operand:
    pattern = constant(guard, node.pattern, "replace(...)")
    replacement = constant(guard, node.replacement, "replace(...)")
    if not pattern or len(replacement.encode()) > len(pattern.encode()):
        raise UsageError(
            f"replace({pattern!r}, {replacement!r}) could make a text of any length; expected a pattern that is not empty, and a replacement "
            "that is no longer than it."
        )
    return Operand(text(guard, node.arg, "replace(...)").replace(pattern, replacement), _TEXT)


def substring(guard: Guard, node: Operation) -> Operand:
    start = _count(guard, node.start, "substr(start, length)")
    many = LONGEST if node.length is None else _count(guard, node.length, "substr(start, length)")
    return Operand(text(guard, node.arg, "substr(...)").substr(start, many), _TEXT)


def sliced(guard: Guard, node: Operation) -> Operand:
    start = 0 if node.start is None else _count(guard, node.start, "a slice")
    end = LONGEST if node.end is None else _count(guard, node.end, "a slice")
    return Operand(text(guard, node.arg, "a slice").substr(start, max(end - start, 0)), _TEXT)


def position(guard: Guard, node: Operation) -> Operand:
    """Where a constant text begins, from 0; -1 where it is not found."""
    given = constant(guard, node.substr, "find(...)")
    if node.start is not None or node.end is not None or not given:
        raise UsageError("find(...) takes one constant text that is not empty, and looks from the beginning.")
    found = text(guard, node.arg, "find(...)").find(given)
    return Operand(recast(found, "int64"), Range(Kind.WHOLE, 31))


def part_between(guard: Guard, node: Operation) -> Operand:
    """One of the parts between separators; empty where there are not so many."""
    if type(node.arg).__name__ != "StringSplit":
        raise UsageError("the elements of lists can't be used; expected a part of a text: _.name.split('-')[0].")
    separator = constant(guard, node.arg.delimiter, "split(...)")
    place = _count(guard, node.index, "split(...)[place]")
    if not separator:
        raise UsageError("split('') has no separator; expected a constant text that is not empty.")
    value = text(guard, node.arg.arg, "split(...)")
    return Operand(guard.engine.split_part(value, separator, place + 1), _TEXT)


def right(guard: Guard, node: Operation) -> Operand:
    return Operand(text(guard, node.arg, "right(...)").right(_count(guard, node.nchars, "right(...)")), _TEXT)


def concatenated(guard: Guard, node: Operation) -> Operand:
    """Null where one of the texts is."""
    first, *others = (_short(text(guard, part, "joining texts with +")) for part in node.arg)
    for other in others:
        first = first + other
    return Operand(first, _TEXT)

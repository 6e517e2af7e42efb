"""Everything that can be reached from a result, so that two neighbouring tables can be compared in all that their releases carry.

What a `repr`, a documented output or a search for single values leaves out is in here: fields with ``repr=False``, slots, caches,
closures, default arguments, bound methods, what arrays are views of, and all of it again in what a pickle brings back.
"""

from __future__ import annotations

import datetime
import enum
import functools
import gc
import hashlib
import pickle
import re
import sys
import types
from collections.abc import Iterator, Mapping, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

Facts = list[tuple[str, str]]
"""What is reachable, in order: by which way, and what it is."""

_PLAIN = (type(None), bool, int, float, complex, str, bytes, Decimal, Fraction, datetime.date, datetime.time,
          datetime.timedelta, datetime.tzinfo, enum.Enum, type, re.Pattern)  # fmt: skip
_CODE = (types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
         types.GetSetDescriptorType, types.MemberDescriptorType, property, staticmethod, classmethod)  # fmt: skip
_PRIVATE = ("ibis", "duckdb", "_duckdb", "pyarrow", "sqlglot", "psycopg", "pyspark", "polars", "sqlite3", "sqlalchemy")
"""Packages whose objects hold rows, or lead to them."""

_ARROWS = (
    pa.ChunkedArray,
    pa.DataType,
    *(kind for kind in vars(pa).values() if isinstance(kind, type) and issubclass(kind, pa.Array)),
)
"""Arrow's arrays, in which pandas keeps text: data like any other, but one that is a slice keeps all that it was cut from."""


def private(thing: object) -> bool:
    """Whether a thing is, or leads to, what is not released: an engine, a table, an expression over one, an exact number."""
    kind = type(thing)
    if kind in _ARROWS:
        return False
    if kind.__module__.partition(".")[0] in _PRIVATE:
        return True
    own = kind.__module__.startswith("evenhand.")
    names = {f"{base.__module__}.{base.__name__}" for base in kind.__mro__}
    return own and bool(
        names & {"evenhand.tables.table.Table", "evenhand.tables.secret.Secret", "evenhand.tables.engines.base.Engine"}
    )


def reachable(thing: object) -> Facts:
    """All that can be reached from a thing, with the way to it; fails at anything that is not for release."""
    facts: Facts = []
    seen: dict[int, str] = {}
    kept: list[object] = []  # so that no address is used twice
    left: list[tuple[str, object]] = [("", thing)]
    while left:
        way, one = left.pop()
        if isinstance(one, _PLAIN):  # how a Decimal is written depends on the context of the thread
            facts.append((way, f"{type(one).__name__} {one.as_tuple() if isinstance(one, Decimal) else one!r}"))
            continue
        if isinstance(one, _CODE):
            facts.append((way, f"{type(one).__name__} {getattr(one, '__name__', '')}"))
            continue
        assert not private(one), f"{way or 'it'} is a {type(one).__module__}.{type(one).__qualname__}: not for release"
        if id(one) in seen:
            facts.append((way, f"as {seen[id(one)]}"))
            continue
        seen[id(one)] = way
        kept.append(one)
        said, parts = _parts(one)
        facts.append((way, said))
        left.extend((way + step, part) for step, part in reversed(parts))
    return facts


def _parts(one: Any) -> tuple[str, list[tuple[str, object]]]:
    """What a thing says of itself, and what it consists of."""
    name = f"{type(one).__module__}.{type(one).__qualname__}"
    if isinstance(one, np.generic):
        return f"{name} {one!r}", []
    if isinstance(one, np.ndarray):
        return f"array {one.dtype} {one.shape} {_digest(one)}", _array(one)
    if isinstance(one, pa.ChunkedArray):
        return f"{name} {one.type}", [(f"[{place}]", part) for place, part in enumerate(one.chunks)]
    if isinstance(one, pa.Array):
        whole = [None if buffer is None else buffer.to_pybytes() for buffer in one.buffers()]
        return f"{name} {one.type} {one.offset} {len(one)}", [
            (f".buffer[{place}]", part) for place, part in enumerate(whole)
        ]
    if isinstance(one, Mapping):
        return f"{name} of {len(one)}", [*_items(one), *_fields(one)]
    if isinstance(one, Set):
        return f"{name} of {len(one)}", [("{}", part) for part in sorted(one, key=repr)]
    if isinstance(one, list | tuple):
        return f"{name} of {len(one)}", [*((f"[{place}]", part) for place, part in enumerate(one)), *_fields(one)]
    if isinstance(one, types.FunctionType):
        return f"function {one.__module__}.{one.__qualname__}", list(_function(one))
    if isinstance(one, types.MethodType):
        return f"method {one.__func__.__qualname__}", [(".__self__", one.__self__)]
    if isinstance(one, functools.partial):
        return name, [(".func", one.func), (".args", one.args), (".keywords", one.keywords), *_fields(one)]
    if hasattr(one, "dtypes") and hasattr(one, "to_numpy"):  # a frame of pandas: types and cells besides its blocks
        return f"{name} {one.dtypes!r} {one.to_dict()!r}", [*_fields(one), *_blocks(one)]
    if isinstance(one, functools._lru_cache_wrapper):
        shared = getattr(sys.modules.get(one.__module__), one.__name__, None) is one  # its entries are the process's
        return name, [("<wrapped>", one.__wrapped__)] if shared else [
            ("<kept>", part) for part in gc.get_referents(one)
        ]
    if isinstance(one, BaseException):
        # Not the traceback, nor what Python keeps of a failed lookup: these are the caller's own, who holds the table.
        held = [(f".{name}", getattr(one, name)) for name in ("args", "__cause__", "__context__")]
        return name, [*held, *_fields(one)]
    fields = _fields(one)
    known = {id(part) for _, part in fields} | {id(type(one)), id(getattr(one, "__dict__", None))}
    # What is held in C, such as the blocks of a frame, only the garbage collector finds.
    rest = [(f"<{place}>", part) for place, part in enumerate(gc.get_referents(one)) if id(part) not in known]
    return name, [*fields, *rest]


def _digest(array: np.ndarray) -> str:
    if array.dtype == object or array.size <= 8:
        return repr(array.tolist())
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def _array(array: np.ndarray) -> list[tuple[str, object]]:
    """The objects of an array, and what it is a view of: a slice keeps all of it."""
    parts: list[tuple[str, object]] = [] if array.base is None else [(".base", array.base)]
    if array.dtype == object:
        parts += [(f"[{place}]", part) for place, part in enumerate(array.ravel().tolist())]
    return parts


def _blocks(frame: Any) -> Iterator[tuple[str, object]]:
    for place, block in enumerate(frame._mgr.blocks):
        yield f".block[{place}]", block.values


def _items(mapping: Mapping[Any, Any]) -> Iterator[tuple[str, object]]:
    for key, value in mapping.items():
        short = f"{key!r:.40}"
        yield f"[key {short}]", key
        yield f"[{short}]", value


def _function(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f".<{name}>", cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield ".__defaults__", function.__defaults__
    yield ".__kwdefaults__", function.__kwdefaults__
    yield ".__dict__", function.__dict__


def _fields(one: Any) -> list[tuple[str, object]]:
    """Fields in a dictionary and in slots, by name."""
    fields: dict[str, object] = dict(getattr(one, "__dict__", {}))
    for base in type(one).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(one, slot):
                fields[slot] = getattr(one, slot)
    return [(f".{name}", value) for name, value in sorted(fields.items())]


def carried(thing: object) -> dict[str, Facts]:
    """All that a result carries: what is reachable from it, its pickle, and what is reachable from what that brings back."""
    facts = reachable(thing)
    try:
        packed = pickle.dumps(thing)
    except Exception as error:  # what refuses to be pickled gives nothing away
        return {"object": facts, "pickle": [("", f"{type(error).__name__}: {error}")]}
    return {"object": facts, "pickle": [("", f"{len(packed)} bytes"), *reachable(pickle.loads(packed))]}


def difference(one: Facts, other: Facts) -> str:
    """The first thing in which two results differ; empty if there is none."""
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return f"{mine[0] or 'it'} is {mine[1]:.200}, or {theirs[0]} is {theirs[1]:.200}"
    return "" if len(one) == len(other) else f"{len(one)} or {len(other)} things can be reached"

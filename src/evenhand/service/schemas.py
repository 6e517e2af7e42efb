"""Questions as JSON schemas: one for each that can be asked, made from the signatures and types that ask it."""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

from evenhand.bounding import Auto, Strategy, listing
from evenhand.bounding.strategy import Unset
from evenhand.guarantee import UsageError
from evenhand.guarantee.amounts import LARGEST_EPSILON, SMALLEST_EPSILON
from evenhand.profiles import Profile
from evenhand.release.operands import SYMBOLS
from evenhand.service import questions
from evenhand.service.fits import KEEPERS, NUMBERS, kind_of
from evenhand.service.parameters import MOST_SIZES
from evenhand.service.searches import SAID, SEARCH
from evenhand.session import Questions
from evenhand.statistics import STATISTICS, Statistic

Schema: TypeAlias = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBERS: Schema = {"type": "array", "items": {"type": "number"}, "maxItems": MOST_SIZES}
_CELL: Schema = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}
_CELLS: Schema = {"type": "array", "items": _CELL}
_OF_COLUMN: Schema = {"type": "object", "additionalProperties": _CELLS}
_DECIMAL: Schema = {"type": "string", "pattern": r"^[0-9]{1,4}(\.[0-9]{1,9})?(e-[0-9]{1,2})?$"}
_PART: Schema = {
    "Epsilon": {
        "description": "an exact decimal, as a number or as text",
        "anyOf": [{"type": "number", "minimum": float(SMALLEST_EPSILON), "maximum": float(LARGEST_EPSILON)}, _DECIMAL],
        "examples": [0.1, "0.5", 2],
    },
    "Delta": {
        "description": "an exact decimal, as a number or as text",
        "anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, _DECIMAL],
        "examples": [0, 1e-6, "1e-5"],
    },
    "Amount": {
        "description": "an exact decimal, as a number or as text",
        "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^[0-9]{1,9}(\.[0-9]{1,9})?(e-?[0-9]{1,2})?$"}],
    },
    "Keys": {
        "description": "public groups: keys, keys of several columns each, or lists by column of which all combinations are meant",
        "anyOf": [
            _CELLS,
            {"type": "array", "items": _CELLS},
            *({"type": "object", "properties": {name: _OF_COLUMN}, "required": [name], "additionalProperties": False}
              for name in ("mapping", "keys")),
        ],
    },
    "Prior": {
        "description": "a public prior: how many users have how many rows",
        "type": "object",
        "properties": {"prior": _TEXT, "sizes": _NUMBERS, "users": _NUMBERS},
        "required": ["prior", "sizes", "users"],
        "additionalProperties": False,
    },
    "Constraint": {
        "description": "where the coefficients of a model lie",
        "anyOf": [
            {"type": "object", "properties": {name: {"type": "object", "additionalProperties": {"type": "number"}}},
             "required": [name], "additionalProperties": False}
            for name in ("Ball", "Box")
        ],
    },
    "Value": {"description": "a value of a setting", "anyOf": [*_CELL["anyOf"], {"type": "null"}, _CELLS]},
}  # fmt: skip
_COLUMNS = ("column", "by", "label", "features")
"""Parameters whose texts are names of columns."""
_NAMED = {"epsilon": "Epsilon", "delta": "Delta", "keys": "Keys"}
"""Parameters that mean the same in every question."""
_EXAMPLES = {"text": ["SELECT COUNT(*) FROM table"]}


def question_schemas() -> dict[str, Schema]:
    """All schemas that questions need, by name; `Question` is that of any question."""
    named = dict(_PART)
    strategies = [listing.named(name) for name in listing.offered_names()]
    named |= _one_of("Strategy", "strategy", {one.title: one for one in strategies})
    auto = {field.name: _typed(hint) for field, hint in _fields(Auto)}
    named["Auto"] = _object({"auto": {"type": "object", "properties": auto, "additionalProperties": False}}, ["auto"])
    named |= _one_of("Statistic", "statistic", STATISTICS)
    part: Schema = {"anyOf": [_ref("Statistic"), _ref("Formula"), {"type": "number"}]}
    formula: dict[str, Schema] = {"formula": {"enum": list(SYMBOLS)}, "left": part, "right": part}
    named["Formula"] = _object(formula, list(formula)) | {"description": "what is computed from released numbers"}
    asked = {name: _question(name) for name in questions.names() if name != "fit"}
    models = _models()
    if models:
        named |= {f"fit.{name}": schema for name, schema in models.items()}
        asked["fit"] = {"type": "object", **_refs([f"fit.{name}" for name in models], "estimator", models)}
    named |= {f"ask.{name}": schema for name, schema in asked.items()}
    named["Question"] = {"type": "object", **_refs([f"ask.{name}" for name in asked], "ask", asked)}
    return named


def _question(name: str) -> Schema:
    """A question of a session by its signature."""
    signature, hints = questions.signature(name), _hints(getattr(Questions, name, None) or Questions.ask)
    if name in STATISTICS:
        hints = {**{field.name: hint for field, hint in _fields(STATISTICS[name])}, **hints}
    found = _parameters(signature.parameters.values(), hints)
    schema = _object({"ask": {"const": name}, **found}, ["ask", *_needed(signature)])
    if name != "sql":  # its OPTIONS may say it
        schema["required"].append("epsilon")
    if name == "aggregate":
        schema["additionalProperties"] = {"anyOf": [_ref("Statistic"), _ref("Formula")]}
        schema["minProperties"] = len(schema["required"]) + 1
    return schema


def _models() -> dict[str, Schema]:
    """The estimators that a server fits; none where the packages for learning are not installed."""
    try:
        kinds = {name: kind_of(name) for name in NUMBERS}
        search = kind_of(SEARCH)
    except UsageError:
        return {}
    found = {}
    for name, kind in kinds.items():
        signature = inspect.signature(kind)
        given = [one for one in signature.parameters.values() if one.name not in (*KEEPERS, "protects")]
        parts = _parameters(given, _made_of(kind))
        if "constraint" in parts:
            parts["constraint"] = {"anyOf": [_ref("Constraint"), {"type": "null"}]}
        whole = {
            "ask": {"const": "fit"},
            "estimator": {"const": name},
            "label": {**_TEXT, "x-names": "column"},
            **parts,
        }
        found[name] = _object(whole, ["ask", "estimator", "label", "features"])
    asked = {one.name: one for one in inspect.signature(search).parameters.values()}
    parts = _parameters([asked[name] for name in SAID], _made_of(search))
    inner = [{**_ref(f"fit.{name}")} for name in kinds]
    whole = {"ask": {"const": "fit"}, "estimator": {"const": SEARCH}, "label": {**_TEXT, "x-names": "column"}}
    found[SEARCH] = _object({**whole, **parts, "of": {"oneOf": inner}}, ["ask", "estimator", "label", *SAID, "of"])
    return found


def _dataclass(kind: type, tag: str, name: str) -> Schema:
    """A statistic or a strategy by its fields."""
    signature = inspect.signature(kind)
    hints = {field.name: hint for field, hint in _fields(kind)}
    return _object(
        {tag: {"const": name}, **_parameters(signature.parameters.values(), hints)}, [tag, *_needed(signature)]
    )


def _parameters(given: Iterable[inspect.Parameter], hints: Mapping[str, Any]) -> dict[str, Schema]:
    found = {}
    for one in given:
        if one.kind is one.VAR_KEYWORD:
            continue
        named = _NAMED.get(one.name)
        schema = _typed(hints.get(one.name, Any)) if named is None else _ref(named)
        if named is not None and one.default is None and one.name != "epsilon":
            schema = {"anyOf": [schema, {"type": "null"}]}
        if one.name in _COLUMNS:
            schema = _naming_columns(schema)
        if isinstance(one.default, str | int | float | bool | NoneType) and (one.name, one.default) != (
            "epsilon",
            None,
        ):
            schema = {**schema, "default": one.default}
        if one.name in _EXAMPLES:
            schema = {**schema, "examples": _EXAMPLES[one.name]}
        found[one.name] = schema
    return found


def _needed(signature: inspect.Signature) -> list[str]:
    return [
        one.name
        for one in signature.parameters.values()
        if one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]


def _typed(hint: Any) -> Schema:  # noqa: ANN401 - a type
    """The schema of a type; what can't be sent has none, and is left out where something else can be."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _any_of(inner)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is tuple:
        ends = [_typed(one) for one in inner if one is not Ellipsis]
        exact = {} if Ellipsis in inner else {"minItems": len(ends), "maxItems": len(ends)}
        return {"type": "array", "items": ends[0], **exact}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _object({"mapping": {"type": "object", "additionalProperties": _typed(inner[1])}}, ["mapping"])
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": _typed(inner[0])}
    plain = {NoneType: "null", str: "string", bool: "boolean", int: "integer", float: "number"}
    if hint in plain:
        return {"type": plain[hint]}
    kind = (inner[0] if origin is type else hint) if isinstance(hint, type) or origin is type else None
    known = {Decimal: "Amount", Statistic: "Statistic", Strategy: "Strategy", Auto: "Auto", Profile: "Prior"}
    return _ref(known.get(kind, "Value") if kind is not None else "Value")


def _any_of(parts: Iterable[Any]) -> Schema:
    """One of several types. A type that allows an exact decimal takes its numbers as such."""
    kinds = [one for one in parts if one is not Unset]
    if Decimal in kinds:
        kinds = [Decimal, *(one for one in kinds if one in (NoneType,) or get_origin(one) is not None)]
    sent = []
    for one in kinds:
        schema = _typed(one)
        known = one is Any or one is object
        if schema not in sent and (known or schema != _ref("Value")):
            sent.append(schema)
    return sent[0] if len(sent) == 1 else {"anyOf": sent}


def _naming_columns(schema: Schema) -> Schema:
    """The same, where a text is the name of a column of the table."""
    if schema.get("type") == "string":
        return {**schema, "x-names": "column"}
    inner = {name: [_naming_columns(one) for one in schema[name]] for name in ("anyOf",) if name in schema}
    items = {"items": _naming_columns(schema["items"])} if "items" in schema else {}
    return {**schema, **inner, **items}


def _fields(kind: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401 - a dataclass
    """The fields that make it, each with its type."""
    where = {name: one for one in reversed(kind.__mro__) for name in vars(one).get("__annotations__", ())}
    return [(field, _evaluated(field.type, where[field.name])) for field in fields(kind) if field.init]


def _made_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a class
    """The types of what makes it."""
    return {field.name: hint for field, hint in _fields(kind)} if is_dataclass(kind) else _hints(kind.__init__)


def _hints(function: Any) -> dict[str, Any]:  # noqa: ANN401 - a method
    """The types of its parameters."""
    return {one.name: _evaluated(one.annotation, function) for one in inspect.signature(function).parameters.values()}


class _NotSent:
    """A type that only type checkers know where it is used, such as a frame: nothing of it can be sent."""

    def __class_getitem__(cls, _: object) -> type[_NotSent]:
        return cls


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - a type
        return getattr(builtins, name, _NotSent)


def _evaluated(written: Any, where: Any) -> Any:  # noqa: ANN401 - a type, as its module writes it
    return eval(written, _Names(vars(sys.modules[where.__module__]))) if isinstance(written, str) else written


def _object(properties: Mapping[str, Schema], required: Sequence[str]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required), "additionalProperties": False}


def _one_of(whole: str, tag: str, kinds: Mapping[str, type]) -> dict[str, Schema]:
    """Statistics or strategies, each by itself, and any of them."""
    each = {f"{tag}.{name}": _dataclass(kind, tag, name) for name, kind in kinds.items()}
    return {**each, whole: {"type": "object", **_refs(list(each), tag, kinds)}}


def _refs(names: Sequence[str], tag: str, tags: Iterable[str]) -> Schema:
    references = [_ref(name) for name in names]
    told = {one: reference["$ref"] for one, reference in zip(tags, references, strict=True)}
    return {"oneOf": references, "discriminator": {"propertyName": tag, "mapping": told}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}

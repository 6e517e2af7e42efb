"""The description of the JSON interface, made from the list of its routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import evenhand
from evenhand.service.routes import Endpoint
from evenhand.service.schemas import question_schemas

_TEXT: dict[str, Any] = {"type": "string"}
_ERROR = {"type": "object", "required": ["error", "message"], "properties": {"error": _TEXT, "message": _TEXT}}
_QUESTION = {"$ref": "#/components/schemas/Question"}
_BODIES: dict[str, dict[str, Any]] = {
    "preview": {"required": ["question"], "properties": {"table": _TEXT, "question": _QUESTION}},
    "question": {
        "required": ["question", "key"],
        "properties": {
            "table": _TEXT,
            "question": _QUESTION,
            "key": {**_TEXT, "description": "one for each question: asked again with it, nothing is paid again"},
        },
    },
    "decision": {"required": ["approve"], "properties": {"approve": {"type": "boolean"}}},
}
_REFUSALS = {
    "400": "the question is wrong",
    "401": "the token is missing, wrong, expired or revoked",
    "402": "the budget does not allow it",
    "403": "the token's role does not allow it",
    "408": "the request took too long to arrive",
    "409": "the question waits for the keeper's approval",
    "413": "the request is too large",
    "422": "the table can't answer it",
    "429": "too many requests, or no room for the question now: Retry-After says when to ask again",
    "503": "the server can't do it now",
}


def description(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """An OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Evenhand, the keeper's server", "version": evenhand.__version__},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR, **question_schemas()},
        },
    }


def _operation(one: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": one.summary,
        "responses": {"200": {"description": "done", "content": {one.media: {"schema": {}}}}},
    }
    if one.roles:
        refused = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        found["responses"] |= {code: {"description": why, "content": refused} for code, why in _REFUSALS.items()}
        found["security"] = [{"token": []}]
        found["description"] = f"For: {', '.join(one.roles)}."
    if "{id}" in one.path:
        found["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": _TEXT}]
    if one.body:
        schema = {"type": "object", **_BODIES[one.body]}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found

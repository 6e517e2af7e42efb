"""The routes of the JSON interface: one list, for the server and for its description."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.service.accounts import Role

EVERYBODY = (Role.ANALYST, Role.READER, Role.KEEPER)


@dataclass(frozen=True)
class Endpoint:
    """One route.

    Args:
        method: of HTTP.
        path: with the parts that are parameters in braces.
        work: the method of `Desks` that answers; empty for what the server answers itself.
        summary: in one sentence.
        roles: who may; nobody has to say who they are if empty.
        body: which body it takes, by name.
        media: what it answers with.
    """

    method: str
    path: str
    work: str
    summary: str
    roles: tuple[Role, ...] = ()
    body: str = ""
    media: str = "application/json"


ENDPOINTS = (
    Endpoint("GET", "/health", "", "Whether the server is up.", media="text/plain"),
    Endpoint("GET", "/metrics", "", "Numbers of requests, for Prometheus.", (Role.KEEPER,), media="text/plain"),
    Endpoint("GET", "/openapi.json", "", "This description."),
    Endpoint("GET", "/v1/tables", "tables", "The tables that may be asked about.", EVERYBODY),
    Endpoint("GET", "/v1/budget", "budget", "What is left.", EVERYBODY),
    Endpoint(
        "POST", "/v1/preview", "preview", "The price of a question; nothing is spent.", (Role.ANALYST,), "preview"
    ),
    Endpoint("POST", "/v1/questions", "ask", "Pay for a question.", (Role.ANALYST,), "question"),
    Endpoint("GET", "/v1/questions", "history", "What was asked.", EVERYBODY),
    Endpoint("GET", "/v1/questions/{id}", "shown", "A question, with its answer once that may be seen.", EVERYBODY),
    Endpoint(
        "POST", "/v1/questions/{id}/decision", "decide", "Approve or deny a question.", (Role.KEEPER,), "decision"
    ),
    Endpoint("GET", "/v1/export", "export", "Everything that was promised, paid and answered.", (Role.KEEPER,)),
)

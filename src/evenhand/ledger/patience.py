"""Connections to Postgres that don't wait for ever: a server that is frozen, or a network that swallows packets, ends a request.

The server ends its own statements (``statement_timeout``); one that does not run can't, so the client counts too and gives the
connection up. Whether a commit was done is then not known, as with any lost connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from sqlalchemy import event

if TYPE_CHECKING:
    from sqlalchemy import Engine

STATEMENT = 20.0
"""Seconds that a statement may take, waiting for locks included: a transaction here takes milliseconds."""
ANSWER = STATEMENT + 2.0
"""Seconds after which a server that has not ended a statement by itself is taken for lost."""


class Limited(psycopg.Connection[Any]):
    """A connection that is given up when its server does not answer."""

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - what psycopg waits for
        try:
            return super().wait(gen, *args, **{**options, "timeout": options.get("timeout") or ANSWER})
        except errors._WaitTimeout:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server did not answer for {ANSWER:g} seconds") from None


def limit(engine: Engine) -> Engine:
    """The same engine, with connections that don't wait for ever."""

    @event.listens_for(engine, "do_connect")
    def connect(dialect: object, record: object, arguments: list[Any], options: dict[str, Any]) -> Limited:
        connection = Limited.connect(*arguments, **options)
        connection.execute(f"SET statement_timeout = {int(STATEMENT * 1000)}")
        connection.commit()
        return connection

    return engine

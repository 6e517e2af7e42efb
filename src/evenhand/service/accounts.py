"""Who may ask: tokens, of which only hashes are kept.

A token is 32 random bytes, so a plain SHA-256 of it can't be searched; it is compared in constant time by looking up its hash.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, MetaData, Table, Text, bindparam, inspect, select

from evenhand.guarantee import DataError, UsageError
from evenhand.ledger.batches import Batches
from evenhand.ledger.failures import Kept
from evenhand.ledger.store import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

tokens = Table(
    "evenhand_token",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("expires", Text, nullable=False),
    Column("revoked", Text),
)

_BY_HASH = select(tokens).where(tokens.c.hash == bindparam("presented"))


class Role(StrEnum):
    """What a token allows."""

    KEEPER = "keeper"
    """Sees budgets, decides approvals, makes tokens; asks nothing."""
    ANALYST = "analyst"
    """Asks, within limits."""
    READER = "reader"
    """Sees what was asked and released, once its deadline is over; asks nothing."""


@dataclass(frozen=True)
class Account:
    """Whoever presented a valid token."""

    name: str
    role: Role


_TOKENS = Kept(
    "file of accounts",
    DataError,
    undone="",
    lost="",
    restored="; tokens revoked since then are valid again: revoke them once more",
)


class Accounts:
    """Tokens in a SQLite file or a Postgres database.

    Args:
        location: as for a ledger.
    """

    def __init__(self, location: str | os.PathLike[str]) -> None:
        store = Store(location, _TOKENS)
        store.run(_create, write=True, create=True)
        self.location = store.name
        self._store = Batches(store)  # who asks at the same time is looked up in one transaction

    def issue(self, name: str, role: Role, days: float = 90) -> str:
        """A new token, shown this once."""
        if not name or len(name) > 200 or not 0 < days <= 3660:
            raise UsageError(f"a token for {name[:40]!r} over {days:g} days: expected a name, and at most ten years.")
        token, now = secrets.token_urlsafe(32), datetime.now(UTC)
        row = {
            "id": secrets.token_hex(4), "hash": _hash(token), "name": name, "role": role.value,
            "created": now.isoformat(), "expires": (now + timedelta(days=days)).isoformat(),
        }  # fmt: skip
        self._store.run(lambda connection: connection.execute(tokens.insert().values(**row)), write=True)
        return token

    def find(self, token: str) -> Account | None:
        """Whose token it is; None if it is unknown, expired or revoked: which of these is not said."""
        row = self._store.run(
            lambda connection: connection.execute(_BY_HASH, {"presented": _hash(token)}).one_or_none()
        )
        if row is None or row.revoked is not None or datetime.fromisoformat(row.expires) <= datetime.now(UTC):
            return None
        return Account(row.name, Role(row.role))

    def revoke(self, id: str) -> None:
        """End a token at once."""
        now = datetime.now(UTC).isoformat()
        change = tokens.update().where(tokens.c.id == id, tokens.c.revoked.is_(None)).values(revoked=now)
        if not self._store.run(lambda connection: connection.execute(change).rowcount, write=True):
            raise UsageError(f"there is no valid token {id!r}; `evenhand serve token list keeper.toml` shows them.")

    def listed(self) -> list[dict[str, Any]]:
        """All tokens, without what would let anybody in."""
        query = select(*(column for column in tokens.c if column.name != "hash")).order_by(tokens.c.created)
        return [dict(row._mapping) for row in self._store.run(lambda connection: list(connection.execute(query)))]


def _create(connection: Connection) -> None:
    if not inspect(connection).has_table("evenhand_token"):
        metadata.create_all(connection)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()

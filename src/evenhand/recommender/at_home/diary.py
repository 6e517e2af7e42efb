"""The diary: what this person has answered, what it has cost them, and what they are willing to spend."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Context, Decimal
from os import PathLike

from evenhand.guarantee import Amount, BudgetExceeded, DataError, UsageError, parse_epsilon, plain
from evenhand.recommender.at_home.answering import answer
from evenhand.recommender.at_home.coins import Coins, SecureCoins
from evenhand.recommender.messages import Report, Task, Token

_EXACT = Context(prec=80)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS limits (ceiling TEXT NOT NULL, lifetime TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (task BLOB PRIMARY KEY, epsilon TEXT NOT NULL, report BLOB);
"""
_DEFAULTS = {"ceiling": Decimal(1), "lifetime": Decimal(4)}


class Diary:
    """Answers each task once, ever, and stays within a ceiling per task and a lifetime budget.

    Guarantee:
        Everything this diary ever lets out is ``lifetime``-private. The cost is written down before a coin is
        tossed, and the answer before it is sent; a retry sends the same bytes again, never a fresh coin.
        Whether it answers depends on the task and the budget, not on the ratings: who has none answers too.

    Edge cases:
        A crash between cost and answer costs nothing more: no answer had left, and the next try draws it.
        A second token for a task already answered gets the first answer, under the first token's serial.

    Args:
        path: an SQLite file, created if missing. The limits are kept in it.
        ceiling: the largest ε accepted from one task; 1 for a new diary.
        lifetime: the largest sum of ε over all tasks; 4 for a new diary.

    Example:
        >>> diary = Diary("diary.db", ceiling=1, lifetime=4)                # doctest: +SKIP
        >>> diary.answer(task, token, {0: True, 7: False}).to_bytes()       # doctest: +SKIP
    """

    _coins: Coins = SecureCoins()

    def __init__(
        self, path: str | PathLike[str], ceiling: Amount | None = None, lifetime: Amount | None = None
    ) -> None:
        self._path = path
        given = {"ceiling": ceiling, "lifetime": lifetime}
        wanted = {name: None if value is None else parse_epsilon(value, name) for name, value in given.items()}
        with self._writing() as database:
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
            kept = database.execute("SELECT ceiling, lifetime FROM limits").fetchone()
            if kept is None:
                limits = {name: wanted[name] or default for name, default in _DEFAULTS.items()}
                database.execute("INSERT INTO limits VALUES (?, ?)", [str(limits[name]) for name in _DEFAULTS])
            else:
                limits = dict(zip(_DEFAULTS, map(Decimal, kept), strict=True))
        for name, value in wanted.items():
            if value is not None and value != limits[name]:
                raise UsageError(
                    f"{name}={plain(value)}, but this diary was begun with {name}={plain(limits[name])}: "
                    "leave it out. Beginning a new diary means spending again."
                )
        self.ceiling, self.lifetime = limits["ceiling"], limits["lifetime"]

    @property
    def spent(self) -> Decimal:
        """The ε of all tasks answered so far."""
        with self._writing() as database:
            return _spent(database)

    def answer(self, task: Task, token: Token, ratings: Mapping[int, bool]) -> Report:
        """The report for this task: drawn and remembered the first time, and the same ever after."""
        if token.task != task.short_id:
            raise UsageError("The token is for another task: use the task that it came with.")
        if token.serial >= task.tokens:
            raise UsageError("The token's serial is beyond the task's tokens: it is damaged.")
        _ = task.query_key  # refuses a task whose beacon is not out yet, before anything is spent
        self._debit(task)
        with self._writing() as database:
            (stored,) = database.execute("SELECT report FROM answers WHERE task = ?", [task.id]).fetchone()
            if stored is None:
                stored = answer(task, token, ratings, self._coins).to_bytes()
                database.execute("UPDATE answers SET report = ? WHERE task = ?", [stored, task.id])
        return Report.from_bytes(stored)

    def _debit(self, task: Task) -> None:
        with self._writing() as database:
            if database.execute("SELECT 1 FROM answers WHERE task = ?", [task.id]).fetchone():
                return
            if task.epsilon > self.ceiling:
                raise BudgetExceeded(
                    f"The task asks for ε = {plain(task.epsilon)}, above your ceiling of "
                    f"{plain(self.ceiling)} per task. Nothing was answered or spent."
                )
            spent = _spent(database)
            if _EXACT.add(spent, task.epsilon) > self.lifetime:
                raise BudgetExceeded(
                    f"The task asks for ε = {plain(task.epsilon)}, but you have spent {plain(spent)} of your "
                    f"lifetime budget of {plain(self.lifetime)}. Nothing was answered or spent."
                )
            database.execute("INSERT INTO answers VALUES (?, ?, NULL)", [task.id, str(task.epsilon)])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction, alone: two processes can neither overspend nor draw two coins."""
        try:
            database = sqlite3.connect(self._path, timeout=30, isolation_level=None)
            try:
                database.execute("PRAGMA synchronous = FULL")
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
            finally:
                database.close()  # rolls back what was not committed
        except sqlite3.Error:
            raise DataError(
                f"The diary {self._path} can't be read or written: it is not a diary, is damaged, or its "
                "folder is missing or read-only."
            ) from None


def _spent(database: sqlite3.Connection) -> Decimal:
    total = Decimal(0)
    for (epsilon,) in database.execute("SELECT epsilon FROM answers"):
        total = _EXACT.add(total, Decimal(epsilon))
    return total

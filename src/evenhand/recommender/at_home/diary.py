"""The diary: what this person has answered, what it has cost them, and what they are willing to spend."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from os import PathLike
from pathlib import Path

from evenhand.guarantee import (
    Amount,
    BudgetExceeded,
    DataError,
    UsageError,
    exact_sum,
    exact_text,
    parse_epsilon,
    plain,
)
from evenhand.recommender.at_home.answering import answer
from evenhand.recommender.at_home.coins import Coins, SecureCoins
from evenhand.recommender.messages import Report, Task, Token

_SCHEMA = """
CREATE TABLE IF NOT EXISTS limits (ceiling TEXT NOT NULL, lifetime TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS choices (public_rated INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS answers (task BLOB PRIMARY KEY, epsilon TEXT NOT NULL, report BLOB);
"""
_DEFAULTS = {"ceiling": Decimal(1), "lifetime": Decimal(4)}
_JOURNAL = "persist"
"""A transaction is committed by overwriting the journal's header, which is synced before COMMIT returns. Were the
journal deleted instead, a power cut could bring it back, and with it the state before the answer."""


class Diary:
    """Answers each task once, ever, and stays within a ceiling per task and a lifetime budget.

    Guarantee:
        Everything this diary ever lets out is ``lifetime``-private. The cost is on disk before a coin is
        tossed, and the answer before it is returned, so that neither a crash nor a power cut is followed by a
        fresh coin; a retry returns the same bytes again.
        Whether it answers depends on the task, the limits and the choice below, not on the ratings: who has none
        answers too, and ratings that can't be used are left out.
        The lifetime holds per diary: a second diary, or a restored copy of this one, spends again.

    Edge cases:
        A crash between cost and answer costs nothing more: no answer had left, and the next try draws it.
        A second token for a task already answered gets the first answer, under the first token's serial.

    Args:
        path: an SQLite file, created if missing; None for the one diary of whoever runs this, wherever they are.
        ceiling: the largest ε accepted from one task; 1 for a new diary.
        lifetime: the largest sum of ε over all tasks; 4 for a new diary.
        public_rated: whether it may be public which items this person rated. Said once, for all tasks, and kept
            in the diary; while it is None, or False, tasks that treat rated items as public are declined.

    Example:
        >>> diary = Diary("diary.db", ceiling=1, lifetime=4)                # doctest: +SKIP
        >>> diary.answer(task, token, {0: True, 7: False}).to_bytes()       # doctest: +SKIP
    """

    _coins: Coins = SecureCoins()

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        ceiling: Amount | None = None,
        lifetime: Amount | None = None,
        public_rated: bool | None = None,
    ) -> None:
        given = {"ceiling": ceiling, "lifetime": lifetime}
        wanted = {name: None if value is None else parse_epsilon(value, name) for name, value in given.items()}
        if not (public_rated is None or isinstance(public_rated, bool)):
            raise UsageError(f"public_rated={public_rated!r} is neither True nor False.")
        # Absolute, so that a later change of folder is no change of diary.
        self.path = home_diary() if path is None else Path(path).absolute()
        with self._writing() as database:
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
            limits = self._limits(database, wanted)
            self.ceiling, self.lifetime = limits["ceiling"], limits["lifetime"]
            self.public_rated = self._choice(database, public_rated)
            """Whether rated items may be public; None while this has not been decided, which counts as no."""
        sync_folder(self.path.parent)

    def _limits(self, database: sqlite3.Connection, wanted: Mapping[str, Decimal | None]) -> dict[str, Decimal]:
        """The limits that the diary was begun with; a new diary begins with those wanted."""
        kept = database.execute("SELECT ceiling, lifetime FROM limits").fetchone()
        if kept is None:
            limits = {name: wanted[name] or default for name, default in _DEFAULTS.items()}
            database.execute("INSERT INTO limits VALUES (?, ?)", [exact_text(limits[name]) for name in _DEFAULTS])
            return limits
        limits = dict(zip(_DEFAULTS, map(self._amount, kept), strict=True))
        for name, value in wanted.items():
            if value is not None and value != limits[name]:
                raise UsageError(
                    f"{name}={plain(value)}, but this diary was begun with {name}={plain(limits[name])}: "
                    "leave it out. Beginning a new diary means spending again."
                )
        return limits

    def _choice(self, database: sqlite3.Connection, wanted: bool | None) -> bool | None:
        """What was decided about rated items; the first decision is kept."""
        kept = database.execute("SELECT public_rated FROM choices").fetchone()
        if kept is None:
            if wanted is not None:
                database.execute("INSERT INTO choices VALUES (?)", [wanted])
            return wanted
        if wanted is not None and wanted != bool(kept[0]):
            raise UsageError(
                f"public_rated={wanted}, but {bool(kept[0])} was decided earlier, and it is decided once: leave it out."
            )
        return bool(kept[0])

    @property
    def spent(self) -> Decimal:
        """The ε of all tasks answered so far."""
        with self._writing() as database:
            return self._spent(database)

    def answer(self, task: Task, token: Token, ratings: Mapping[int, bool]) -> Report:
        """The report for this task: drawn and remembered the first time, and the same ever after."""
        if token.task != task.short_id:
            raise UsageError("The token is for another task: use the task that it came with.")
        if token.serial >= task.tokens:
            raise UsageError("The token's serial is beyond the task's tokens: it is damaged.")
        if not isinstance(ratings, Mapping):
            raise UsageError("ratings must map each rated item's number to True or False.")
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
            if task.public_rated and not self.public_rated:
                raise UsageError(
                    "The task treats as public which items you rated, and your diary does not say that they may be. "
                    "Nothing was answered or spent. That is for you to decide, once and for all tasks, and not for a "
                    "task: Diary(public_rated=True), or evenhand recommender diary --public-rated."
                )
            if task.epsilon > self.ceiling:
                raise BudgetExceeded(
                    f"The task asks for ε = {plain(task.epsilon)}, above your ceiling of "
                    f"{plain(self.ceiling)} per task. Nothing was answered or spent."
                )
            spent = self._spent(database)
            if exact_sum([spent, task.epsilon]) > self.lifetime:
                raise BudgetExceeded(
                    f"The task asks for ε = {plain(task.epsilon)}, but you have spent {plain(spent)} of your "
                    f"lifetime budget of {plain(self.lifetime)}. Nothing was answered or spent."
                )
            database.execute("INSERT INTO answers VALUES (?, ?, NULL)", [task.id, exact_text(task.epsilon)])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction, alone: two processes can neither overspend nor draw two coins."""
        try:
            database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            try:
                database.execute("PRAGMA synchronous = EXTRA")
                database.execute("PRAGMA fullfsync = ON")  # on macOS syncing stops at the drive's cache otherwise
                if database.execute(f"PRAGMA journal_mode = {_JOURNAL}").fetchone() != (_JOURNAL,):
                    raise sqlite3.OperationalError("the journal is of another kind")
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
            finally:
                database.close()  # rolls back what was not committed
        except sqlite3.Error:
            raise self._unusable() from None

    def _spent(self, database: sqlite3.Connection) -> Decimal:
        return exact_sum(self._amount(epsilon) for (epsilon,) in database.execute("SELECT epsilon FROM answers"))

    def _amount(self, kept: str) -> Decimal:
        try:
            return parse_epsilon(kept)
        except UsageError:
            raise self._unusable() from None

    def _unusable(self) -> DataError:
        return DataError(
            f"The diary {self.path} can't be read or written: it is not a diary, is damaged, or its folder is missing "
            "or read-only."
        )


def home_diary() -> Path:
    """The diary of whoever runs this, whatever folder they are in: where the operating system keeps a person's data.

    Its folder is made if it is missing, readable by its owner only.
    """
    try:
        from platformdirs import user_data_path
    except ImportError:
        raise UsageError(
            "platformdirs, which knows where your diary lives, is not installed: pip install 'evenhand[recommender]', "
            "or name a diary file yourself."
        ) from None
    folder = user_data_path("evenhand", appauthor=False)
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        try:
            place.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"The folder {place} for your diary can't be made: {error.strerror}. Name a diary file elsewhere."
            ) from None
        sync_folder(place.parent)
    return folder / "diary.db"


def sync_folder(folder: Path) -> None:
    """Have the folder's list of files on disk before going on, so that a power cut forgets none of them."""
    if os.name == "nt":  # Windows neither needs nor allows it
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise DataError(
            f"The folder {folder} can't be synced to disk ({error.strerror}), so that a diary in it might be lost in a "
            "power cut. Name a diary file elsewhere."
        ) from None

"""The front door: a table and a ledger, one method a statistic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenhand.guarantee import Amount, UsageError
from evenhand.ledger import Ledger
from evenhand.release import Release
from evenhand.statistics import Draft, Preview, Request, draft_count, draft_mean, draft_sum, draft_users
from evenhand.tables import Table


class _Questions:
    """The questions that a session and its preview both answer; ``_answer`` says how."""

    table: Table
    _shelf: dict[Any, Any]
    _answer: Callable[[Draft], Any]

    def _request(self, epsilon: Amount | None, delta: Amount, bounding: Any) -> Request:
        return Request.parse(self.table, epsilon, delta, bounding, self._shelf)

    def count(self, *, epsilon: Amount | None = None, delta: Amount = 0, bounding: Any = "auto") -> Any:
        """The number of rows.

        Args:
            epsilon: how much of the budget to spend.
            bounding: how heavy users are bounded; chosen unless given.

        Example:
            >>> session.count(epsilon=0.1)
        """
        return self._answer(draft_count(self._request(epsilon, delta, bounding)))

    def users(self, *, epsilon: Amount | None = None, delta: Amount = 0) -> Any:
        """The number of distinct users."""
        return self._answer(draft_users(self._request(epsilon, delta, "auto")))

    def sum(
        self,
        column: str,
        *,
        bounds: Any = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
    ) -> Any:
        """The sum of a column.

        Args:
            column: a numeric column.
            bounds: (low, high) for one value, chosen without looking at the data; values outside are clamped.
            epsilon: how much of the budget to spend.
            bounding: how heavy users are bounded; chosen unless given.
        """
        return self._answer(draft_sum(self._request(epsilon, delta, bounding), column, bounds))

    def mean(
        self,
        column: str,
        *,
        bounds: Any = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
    ) -> Any:
        """The mean of a column over all rows.

        Args:
            column: a numeric column.
            bounds: (low, high) for one value, chosen without looking at the data; values outside are clamped.
            epsilon: how much of the budget to spend.
            bounding: how heavy users are bounded; chosen unless given.
        """
        return self._answer(draft_mean(self._request(epsilon, delta, bounding), column, bounds))


class Session(_Questions):
    """A table and the ledger that pays for what is asked about it.

    Guarantee: every release is debited before its noise is drawn; all releases together stay within the ledger's total.

    Args:
        table: from :func:`evenhand.read`.
        ledger: from :class:`evenhand.Ledger`.

    Example:
        >>> session = eh.Session(eh.read("ratings.parquet", user="userId"), eh.Ledger("budget.db", epsilon=1))
        >>> session.mean("rating", bounds=(0.5, 5), epsilon=0.2)
    """

    def __init__(self, table: Table, ledger: Ledger) -> None:
        if not isinstance(table, Table):
            raise UsageError(
                f"Session({type(table).__name__}, ...): expected a table from eh.read(source, user='...') first."
            )
        if not isinstance(ledger, Ledger):
            raise UsageError(
                f"Session(..., {type(ledger).__name__}): expected a ledger from eh.Ledger('budget.db', epsilon=1) second."
            )
        self.table = table
        self.ledger = ledger
        self._shelf: dict[Any, Any] = {}

    def _answer(self, draft: Draft) -> Release:
        return draft.release(self.ledger)

    @property
    def preview(self) -> Previews:
        """The same questions without spending: ``session.preview.mean(...)`` tells cost and forecast."""
        return Previews(self)

    def __repr__(self) -> str:
        return f"Session({self.table!r}, {self.ledger!r})"


class Previews(_Questions):
    """Answers each question with its cost and forecast, from public facts only. Nothing is spent."""

    def __init__(self, session: Session) -> None:
        self.table = session.table
        self._ledger = session.ledger
        self._shelf = session._shelf

    def _answer(self, draft: Draft) -> Preview:
        return draft.preview(self._ledger)


class Drafts(_Questions):
    """Answers each question with a checked draft, for callers that open their ledger afterwards."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._shelf = {}

    def _answer(self, draft: Draft) -> Draft:
        return draft

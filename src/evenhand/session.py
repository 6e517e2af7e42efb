"""The front door: a table and a ledger, one method a statistic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evenhand.guarantee import Amount, UsageError
from evenhand.ledger import Ledger
from evenhand.planning import Profile
from evenhand.release import Release
from evenhand.statistics import (
    UNGROUPED,
    CellCount,
    CountPart,
    Draft,
    Grouped,
    Keys,
    Preview,
    Request,
    UsersPart,
    column_parts,
    draft_columns,
    draft_count,
    draft_grouped,
    draft_mean,
    draft_quantiles,
    draft_sum,
    draft_users,
    edge_cells,
    parse_by,
    parse_groups_per_user,
    parse_keys,
    parse_specs,
)
from evenhand.statistics.parts import Part
from evenhand.statistics.profiles import buy_profile
from evenhand.statistics.shelf import EVERY_ROW, Shelf
from evenhand.tables import Table

By = str | Sequence[str] | None


class _Questions:
    """The questions that a session and its preview both answer; ``_answer`` says how.

    Every question takes ``epsilon``, how much of the budget to spend, and ``bounding``, how heavy users are bounded: chosen
    unless given. Grouped questions take

    - ``by``: one or several columns;
    - ``keys``: the public groups (a list, a list of tuples, a frame, or a mapping from column to list: their product). Rows
      with other keys are dropped; groups without rows are released as noise around zero. Without ``keys`` the groups are
      selected privately, which needs ``delta``;
    - ``other``: a label for one more group that holds all other rows;
    - ``groups_per_user``: with selected keys, how many groups one user may support; chosen unless given.
    """

    table: Table
    _shelf: Shelf
    _answer: Callable[[Draft], Any]

    def count(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
        by: By = None,
        keys: Any = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> Any:
        """The number of rows.

        Example:
            >>> session.count(epsilon=0.1)
            >>> session.count(by="genre", keys=["drama", "comedy"], epsilon=0.1)
        """
        request = self._request(epsilon, delta, bounding)
        if by is None and keys is None:
            return self._answer(draft_count(request))
        return self._grouped(request, (CountPart("count"),), by, keys, other, groups_per_user)

    def users(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
        by: By = None,
        keys: Any = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> Any:
        """The number of distinct users.

        Example:
            >>> session.users(epsilon=0.1)
        """
        request = self._request(epsilon, delta, bounding)
        if by is None and keys is None:
            if bounding != "auto":
                raise UsageError("users() counts each user once, so there is nothing to bound; leave bounding out.")
            return self._answer(draft_users(request))
        return self._grouped(request, (UsersPart("users"),), by, keys, other, groups_per_user)

    def sum(
        self,
        column: str | Sequence[str],
        *,
        bounds: Any = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
        by: By = None,
        keys: Any = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> Any:
        """The sum of a column, or of several.

        Args:
            column: a numeric column; a list releases one sum for each, ε shared equally.
            bounds: (low, high) for one value, chosen without looking at the data; values outside are clamped.

        Example:
            >>> session.sum("minutes", bounds=(0, 240), epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        if by is None and keys is None:
            return self._answer(draft_columns(request, draft_sum, column, bounds))
        return self._columns(request, "sum", column, bounds, by, keys, other, groups_per_user)

    def mean(
        self,
        column: str | Sequence[str],
        *,
        bounds: Any = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
        by: By = None,
        keys: Any = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> Any:
        """The mean of a column over all rows, or of several columns.

        Args:
            column: a numeric column; a list releases one mean for each, ε shared equally.
            bounds: (low, high) for one value, chosen without looking at the data; values outside are clamped.

        Example:
            >>> session.mean("rating", bounds=(0.5, 5), epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        if by is None and keys is None:
            return self._answer(draft_columns(request, draft_mean, column, bounds))
        return self._columns(request, "mean", column, bounds, by, keys, other, groups_per_user)

    def variance(
        self,
        column: str | Sequence[str],
        *,
        bounds: Any = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
        by: By = None,
        keys: Any = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> Any:
        """The variance of a column over all rows.

        Example:
            >>> session.variance("rating", bounds=(0.5, 5), epsilon=0.5)
        """
        request = self._request(epsilon, delta, bounding)
        return self._columns(request, "variance", column, bounds, by, keys, other, groups_per_user)

    def quantiles(
        self,
        column: str,
        quantiles: Any = (0.5,),
        *,
        bounds: Any = None,
        epsilon: Amount | None = None,
        bounding: Any = "auto",
        by: By = None,
        keys: Any = None,
        other: str | None = None,
    ) -> Any:
        """Quantiles of a column, ε shared equally among them.

        Args:
            column: a numeric column.
            quantiles: numbers strictly between 0 and 1.
            bounds: (low, high); the answers lie on a public grid of about 4,000 points between them.

        Example:
            >>> session.quantiles("rating", [0.5, 0.9], bounds=(0.5, 5), epsilon=0.2)
        """
        request = self._request(epsilon, 0, bounding)
        return self._answer(draft_quantiles(request, column, quantiles, bounds, self._public_keys(by, keys, other)))

    def histogram(
        self,
        column: str,
        edges: Any,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
        by: By = None,
        keys: Any = None,
        other: str | None = None,
    ) -> Any:
        """How many rows lie between given edges; values beyond the ends count in the first and last cell.

        Example:
            >>> session.histogram("rating", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5], epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        cells = edge_cells(self._public_keys(by, keys, other), self.table, column, edges)
        grouped = Grouped(request, (CellCount("count", column),), cells.columns[:-2], cells)
        return self._answer(draft_grouped(grouped))

    def aggregate(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Any = "auto",
        by: By = None,
        keys: Any = None,
        other: str | None = None,
        groups_per_user: int | None = None,
        **statistics: Any,
    ) -> Any:
        """Several statistics in one pass, ε shared equally among them; the value is a frame.

        Example:
            >>> session.aggregate(by="genre", keys=["drama", "comedy"], epsilon=0.5,
            ...                   n=eh.count(), average=eh.mean("rating", bounds=(0.5, 5)))
        """
        request = self._request(epsilon, delta, bounding)
        return self._grouped(request, parse_specs(self.table, statistics), by, keys, other, groups_per_user)

    def _request(self, epsilon: Amount | None, delta: Amount, bounding: Any) -> Request:
        return Request.parse(self.table, epsilon, delta, bounding, self._shelf)

    def _public_keys(self, by: By, keys: Any, other: str | None) -> Keys:
        columns = parse_by(self.table, by)
        if not columns:
            if keys is not None:
                raise UsageError("keys= without by=: which column are these the keys of? For example by='genre'.")
            return UNGROUPED
        if keys is None:
            raise UsageError(
                f"by={list(columns)} needs public keys here: give keys=[...]. Keys can be selected privately by count, users, "
                "sum, mean, variance and aggregate; release those keys first, then use them."
            )
        return parse_keys(self.table, columns, keys, other)

    def _columns(
        self,
        request: Request,
        kind: str,
        column: str | Sequence[str],
        bounds: Any,
        by: By,
        keys: Any,
        other: str | None,
        groups_per_user: int | None,
    ) -> Any:
        """One statistic of one or several columns; a plain number or list when there are no groups."""
        parts = column_parts(self.table, kind, column, bounds)
        return self._grouped(request, parts, by, keys, other, groups_per_user, listed=by is None)

    def _grouped(
        self,
        request: Request,
        parts: tuple[Part, ...],
        by: By,
        keys: Any,
        other: str | None,
        groups_per_user: int | None,
        listed: bool = False,
    ) -> Any:
        columns = parse_by(self.table, by)
        limit = parse_groups_per_user(groups_per_user)
        public = None if columns and keys is None else self._public_keys(by, keys, other)
        return self._answer(draft_grouped(Grouped(request, parts, columns, public, other, limit, listed)))


class Session(_Questions):
    """A table and the ledger that pays for what is asked about it.

    Guarantee: every release, public facts included, is recorded in the ledger before a row is read; all releases together
    stay within the ledger's total.

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
        self._shelf = Shelf()

    def _answer(self, draft: Draft) -> Release:
        return draft.release(self.ledger)

    def profile(self, *, epsilon: Amount | None = None) -> Profile:
        """Buy a private histogram of users by number of rows; everything made from it costs nothing more.

        The session keeps it, so that bounds chosen later on the same table, for releases without groups, cost nothing; such
        a release names this purchase in its guarantee, with what both are together.
        ``profile.save(path)`` keeps it for another day. Under ``protects="values"`` row counts are public: use
        ``eh.Profile.exact(table)`` for planning.

        Example:
            >>> eh.plan("mean", session.profile(epsilon=0.05), bounds=(0.5, 5), epsilon=0.2).best
        """
        request = self._request(epsilon, 0, "auto")
        if request.relation.counts_are_public:
            raise UsageError(
                "with protects='values' the number of rows of each user is public, so there is nothing to buy: "
                "bounds are chosen from it for free, and eh.Profile.exact(table) shows it."
            )
        profile = buy_profile(request, self.ledger)
        self._shelf.put(self.table, EVERY_ROW, profile)
        return profile

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
        self._shelf = Shelf()

    def _answer(self, draft: Draft) -> Draft:
        return draft

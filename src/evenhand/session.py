"""The front door: a table and a ledger, one method per statistic."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from evenhand.bounding import Auto, Strategy
from evenhand.guarantee import Amount, UsageError, suggest
from evenhand.ledger import Ledger
from evenhand.profiles import EVERY_ROW, Profile, Shelf, buy
from evenhand.release import Release
from evenhand.sql import ask_sql
from evenhand.statistics import (
    STATISTICS,
    BallMean,
    By,
    Count,
    Distinct,
    Draft,
    Histogram,
    Mean,
    Median,
    OfColumn,
    PerUserMean,
    Preview,
    Quantiles,
    RatioOf,
    Request,
    Share,
    Statistic,
    Std,
    Sum,
    Top,
    Users,
    Variance,
    ask_columns,
    ask_one,
    ask_together,
    of_columns,
)
from evenhand.statistics.formula import Formula
from evenhand.tables import OpenBounds, Part, PublicTable, Table
from evenhand.tables.views.joins import LARGEST_FAN_OUT

if TYPE_CHECKING:
    import pandas as pd

A = TypeVar("A")
Bounding: TypeAlias = Strategy | Auto | type[Strategy] | type[Auto] | Literal["auto"] | None


class Questions(ABC, Generic[A]):
    """The questions that a session and its preview both answer; ``_answer`` says how.

    Every question takes ``epsilon``, how much of the budget to spend, and ``bounding``, how heavy users are bounded: chosen
    unless given. Grouped questions take

    - ``by``: one or several columns;
    - ``keys``: the public groups (a list, a list of tuples, a frame, or a mapping from column to list: their product). Rows
      with other keys are dropped; groups without rows are released as noise around zero. Without ``keys`` the groups are
      selected privately, which needs ``delta``;
    - ``other``: a label for one more group that holds all other rows;
    - ``groups_per_user``: with selected keys, in how many groups one user may count; chosen unless given.
    """

    table: Table
    _shelf: Shelf

    @abstractmethod
    def _answer(self, draft: Draft) -> A:
        """Make of a draft what this session answers with."""

    def ask(
        self,
        statistic: Statistic,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> A:
        """Any statistic: one of Evenhand's, or one from outside.

        Example:
            >>> session.ask(eh.mean("rating", bounds=(0.5, 5)), epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, statistic, by, keys, other, groups_per_user))

    def count(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
        totals: bool = False,
    ) -> A:
        """The number of rows.

        Args:
            totals: with groups, also their total, measured and fitted to them: what no group holds is in one for the rest, and of several
                columns there is a total for each.

        Example:
            >>> session.count(epsilon=0.1)
            >>> session.count(by="genre", keys=["drama", "comedy"], epsilon=0.1)
            >>> session.count(by=["month", "shop"], keys={"month": [1, 2], "shop": ["a", "b"]}, totals=True, epsilon=0.5)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, Count(), by, keys, other, groups_per_user, totals=totals))

    def users(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> A:
        """The number of distinct users.

        Example:
            >>> session.users(epsilon=0.1)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, Users(), by, keys, other, groups_per_user))

    def sum(
        self,
        column: str | Sequence[str],
        *,
        bounds: OpenBounds | Sequence[object] | None = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
        totals: bool = False,
    ) -> A:
        """The sum of a column, or of several.

        Args:
            column: a numeric column; a list releases one sum for each, ε shared equally.
            bounds: (low, high) for one value, chosen without looking at the data; values outside are clamped. Left out, or one of them
                None: found privately, for 15% of ε, and shown.
            totals: as in `count`.

        Example:
            >>> session.sum("minutes", bounds=(0, 240), epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        if totals:
            return self._answer(ask_one(request, Sum(column, bounds), by, keys, other, groups_per_user, totals=True))  # type: ignore[arg-type]
        return self._of_column(request, Sum, column, bounds, by, keys, other, groups_per_user)

    def mean(
        self,
        column: str | Sequence[str],
        *,
        bounds: OpenBounds | Sequence[object] | None = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
        ball: float | None = None,
    ) -> A:
        """The mean of a column over all rows, or of several columns.

        Args:
            column: a numeric column; a list releases one mean for each, ε shared equally.
            bounds: (low, high) for one value, chosen without looking at the data; values outside are clamped. Left out, or one of them
                None: found privately, for 15% of ε, and shown.
            ball: instead of bounds, under ``protects="values"``: the largest Σ|x| of a row over the columns. They share one noise that does
                not grow with their number.

        Example:
            >>> session.mean("rating", bounds=(0.5, 5), epsilon=0.2)
            >>> session.mean("price", bounds=(0, None), epsilon=0.2)
            >>> session.mean(["rent", "food", "travel"], ball=1, epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        if ball is not None:
            return self._answer(
                BallMean.parse(request, column, ball, (bounds, by, keys, other, groups_per_user)).draft()
            )
        return self._of_column(request, Mean, column, bounds, by, keys, other, groups_per_user)

    def share(
        self,
        condition: object,
        *,
        of: Literal["rows", "users"] = "rows",
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> A:
        """The share of rows for which a condition is true, or of users who have such a row; a condition that is null counts as false.

        By group it is the share of the group's rows, or of the users who have rows in the group.

        Args:
            condition: an expression in ``eh._``, or SQL text.
            of: ``"rows"`` or ``"users"``.

        Example:
            >>> session.share(eh._.product == "soda", epsilon=0.2)
            >>> session.share("amount > 100", of="users", by="shop", keys=["a", "b"], epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, Share(condition, of), by, keys, other, groups_per_user))

    def variance(
        self,
        column: str | Sequence[str],
        *,
        bounds: OpenBounds | Sequence[object] | None = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> A:
        """The variance of a column over all rows.

        Example:
            >>> session.variance("rating", bounds=(0.5, 5), epsilon=0.5)
        """
        request = self._request(epsilon, delta, bounding)
        return self._of_column(request, Variance, column, bounds, by, keys, other, groups_per_user)

    def std(
        self,
        column: str | Sequence[str],
        *,
        bounds: OpenBounds | Sequence[object] | None = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> A:
        """The standard deviation of a column over all rows: the root of the variance.

        Example:
            >>> session.std("rating", bounds=(0.5, 5), epsilon=0.5)
        """
        request = self._request(epsilon, delta, bounding)
        return self._of_column(request, Std, column, bounds, by, keys, other, groups_per_user)

    def per_user_mean(
        self,
        column: str,
        *,
        bounds: OpenBounds | None = None,
        of: Literal["mean", "total"] = "mean",
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> A:
        """The average over users of their own mean, or of their own total; each user counts once, in each of their groups.

        Args:
            column: a numeric column.
            bounds: (low, high), chosen without looking at the data. With ``of="mean"`` for one value, as elsewhere; with
                ``of="total"`` for the total of one user (by group: of one user in one group). What lies outside is clamped.
                Found privately where left out.
            of: ``"mean"``, or ``"total"`` as in spending per customer.

        Example:
            >>> session.per_user_mean("rating", bounds=(0.5, 5), epsilon=0.2)
            >>> session.per_user_mean("price", bounds=(0, 1000), of="total", epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, PerUserMean(column, bounds, of), by, keys, other, groups_per_user))

    def ratio(
        self,
        numerator: Statistic,
        denominator: Statistic,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
    ) -> A:
        """One statistic over another, each a count, a number of users or a sum, with an interval that covers the noise of both.

        The value is NaN, and the interval has no upper end, where the denominator does not stand out from its noise.

        Args:
            numerator: ``eh.count()``, ``eh.users()`` or ``eh.sum(...)``.
            denominator: the same, possibly of another column.

        Example:
            >>> session.ratio(eh.sum("clicks", bounds=(0, 50)), eh.sum("views", bounds=(0, 500)), epsilon=0.5)
            >>> session.ratio(eh.sum("price", bounds=(0, 200)), eh.users(), by="shop", keys=["a", "b"], epsilon=0.5)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, RatioOf(numerator, denominator), by, keys, other, groups_per_user))

    def median(
        self,
        column: str,
        *,
        bounds: OpenBounds | None = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
    ) -> A:
        """The median of a column over all rows, as one number; by group, a frame.

        Args:
            column: a numeric column.
            bounds: (low, high); the answer lies on a public grid of about 4,000 points between them. Found privately where left out.

        Example:
            >>> session.median("rating", bounds=(0.5, 5), epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, Median(column, bounds), by, keys, other, None))

    def quantiles(
        self,
        column: str,
        quantiles: float | Sequence[float] = (0.5,),
        *,
        bounds: OpenBounds | None = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
    ) -> A:
        """Quantiles of a column over all rows, found together.

        Args:
            column: a numeric column.
            quantiles: numbers strictly between 0 and 1.
            bounds: (low, high); the answers lie on a public grid of about 4,000 points between them. Found privately where left out.

        Example:
            >>> session.quantiles("rating", [0.5, 0.9], bounds=(0.5, 5), epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, Quantiles(column, quantiles, bounds), by, keys, other, None))

    def histogram(
        self,
        column: str,
        edges: Sequence[float] | None = None,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
    ) -> A:
        """How many rows lie between given edges; values beyond the ends count in the first and last cell.

        Args:
            column: a numeric column.
            edges: increasing numbers; if left out, round ones between bounds that are found privately, for 15% of ε.

        Example:
            >>> session.histogram("rating", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5], epsilon=0.2)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, Histogram(column, edges), by, keys, other, None))

    def top(
        self,
        column: str | Sequence[str],
        k: int = 10,
        *,
        of: Literal["users", "rows"] = "users",
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        keys: object = None,
        groups_per_user: int | None = None,
    ) -> A:
        """The k groups with the most users, or rows, with their numbers; fewer where hidden names don't stand out enough.

        Args:
            column: the column that names the groups, or several.
            k: how many groups.
            of: what is counted in a group.
            keys: the public names among which to look; without them names are hidden, which needs ``delta``.
            groups_per_user: in how many groups one user may count; for tables where everybody is in few. Chosen unless given.

        Example:
            >>> session.top("movie", 10, epsilon=0.5, delta=1e-6)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, Top(column, k, of), None, keys, None, groups_per_user))

    def distinct(
        self,
        column: str,
        *,
        values_per_user: int | None = None,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
    ) -> A:
        """How many different values a column holds, as far as users may support them; of any type, without nulls.

        Args:
            column: its name.
            values_per_user: how many values one user may support; chosen privately unless given.

        Example:
            >>> session.distinct("movie", epsilon=0.5)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_one(request, Distinct(column, values_per_user), by, keys, other, None))

    def aggregate(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount = 0,
        bounding: Bounding = "auto",
        by: By = None,
        keys: object = None,
        other: str | None = None,
        groups_per_user: int | None = None,
        weights: Mapping[str, float] | None = None,
        **statistics: Statistic | Formula,
    ) -> A:
        """Several statistics about one reading of the table; the value is a frame.

        Args:
            weights: how ε is shared, such as ``{"n": 1, "average": 3}``; equally unless given.

        Example:
            >>> session.aggregate(by="genre", keys=["drama", "comedy"], epsilon=0.5,
            ...                   n=eh.count(), average=eh.mean("rating", bounds=(0.5, 5)))
            >>> session.aggregate(spend_per_visit=eh.sum("spend", bounds=(0, 500)) / eh.count(), epsilon=0.5)
        """
        request = self._request(epsilon, delta, bounding)
        return self._answer(ask_together(request, statistics, by, keys, other, groups_per_user, weights))

    def sql(
        self,
        text: str,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        bounding: Bounding = "auto",
        keys: object = None,
        other: str | None = None,
        tables: Mapping[str, Table | Part | PublicTable] | None = None,
        fan_out: int = LARGEST_FAN_OUT,
    ) -> A:
        """A question in SQL: one SELECT with aggregates, JOIN, WHERE, GROUP BY, and ORDER BY and LIMIT on what is released.

        All aggregates share ε, one reading and one debit. Bounds come from what was stated with the table, or are found privately;
        group names from there, from ``WHERE name IN (...)``, or are selected privately, which needs δ. BigQuery's ``SELECT WITH
        DIFFERENTIAL_PRIVACY OPTIONS (epsilon = ..., delta = ..., privacy_unit_column = ...)`` is understood.

        Args:
            text: the query; its table is called ``table``, or as its file or database calls it.
            tables: others that it may join, by name: public ones (`evenhand.read_public`), parts (`evenhand.read_part`), or of the same people.
            fan_out: how many rows one row may meet in each JOIN, which may together make at most 1,000 of one; of a part it always meets its first 1,000.

        Example:
            >>> session.sql("SELECT genre, AVG(rating) FROM table WHERE rating > 0 GROUP BY genre", epsilon=0.5, delta=1e-6)
        """
        return self._answer(
            ask_sql(self.table, text, epsilon, delta, bounding, self._shelf, keys, other, tables, fan_out)
        )

    def _request(self, epsilon: Amount | None, delta: Amount, bounding: Bounding) -> Request:
        return Request.parse(self.table, epsilon, delta, bounding, self._shelf)

    def _of_column(
        self,
        request: Request,
        kind: type[OfColumn],
        column: str | Sequence[str],
        bounds: OpenBounds | Sequence[object] | None,
        by: By,
        keys: object,
        other: str | None,
        groups_per_user: int | None,
    ) -> A:
        """One statistic of one column, or of several."""
        if isinstance(column, str) or not isinstance(column, Sequence):  # a wrong type is refused when it is looked up
            return self._answer(ask_one(request, kind(column, bounds), by, keys, other, groups_per_user))  # type: ignore[arg-type]
        columns = of_columns(kind, column, bounds)
        return self._answer(ask_columns(request, columns, by, keys, other, groups_per_user))

    if not TYPE_CHECKING:  # type checkers know the methods above; a statistic from outside is found by its name

        def __getattr__(self, name: str) -> Callable[..., A]:
            if name not in STATISTICS:
                raise AttributeError(f"{type(self).__name__!r} has no question {name!r}{suggest(name, STATISTICS)}")
            return functools.partial(self._named, STATISTICS[name])

    def _named(self, kind: type[Statistic], *arguments: object, **options: Any) -> A:  # noqa: ANN401 - keywords of any question
        """A statistic from the list, with its own parameters and those of every question."""
        own = {field.name: options.pop(field.name) for field in fields(kind) if field.name in options}  # type: ignore[arg-type]
        return self.ask(kind(*arguments, **own), **options)


class Session(Questions[Release]):
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
                f"Session({type(table).__name__}, ...): expected a table from eh.read(source, user='...') first"
                + (
                    ": join the part to it, since nobody is bounded in a part by itself."
                    if isinstance(table, Part)
                    else "."
                )
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

    def describe(self) -> pd.DataFrame:
        """The columns of the table with their types and what was stated about them: bounds, keys, units. Costs nothing.

        Example:
            >>> eh.Session(eh.read("ratings.parquet", user="userId", columns="ratings.toml"), ledger).describe()
        """
        return self.table.describe()

    def profile(self, *, epsilon: Amount | None = None) -> Profile:
        """Buy a private histogram of users by number of rows; everything made from it costs nothing more.

        The session keeps it, so that bounds chosen later on the same table, for releases without groups, cost nothing; such
        a release names this purchase in its guarantee, with the guarantee of both together.
        ``profile.save(path)`` keeps it for another day. Under ``protects="values"`` row counts are public: use
        ``eh.Profile.exact(table)`` for planning.

        Example:
            >>> eh.plan("mean", session.profile(epsilon=0.05), bounds=(0.5, 5), epsilon=0.2).best
        """
        request = self._request(epsilon, 0, "auto")
        if self.table.relation.counts_are_public:
            raise UsageError(
                "with protects='values' the number of rows of each user is public, so there is nothing to buy: "
                "bounds are chosen from it for free, and eh.Profile.exact(table) shows it."
            )
        profile = buy(self.table, request.epsilon, self.ledger)
        self._shelf.put(self.table, EVERY_ROW, profile)
        return profile

    @property
    def preview(self) -> Previews:
        """The same questions without spending: ``session.preview.mean(...)`` shows cost and forecast."""
        return Previews(self)

    def _repr_html_(self) -> str:
        return self.ledger._repr_html_() + self.table._repr_html_()

    def __repr__(self) -> str:
        return f"Session({self.table!r}, {self.ledger!r})"


class Previews(Questions[Preview]):
    """Answers each question with its cost and forecast, from public facts only. Nothing is spent."""

    def __init__(self, session: Session) -> None:
        self.table = session.table
        self._ledger = session.ledger
        self._shelf = session._shelf

    def _answer(self, draft: Draft) -> Preview:
        return draft.preview(self._ledger)


class Drafts(Questions[Draft]):
    """Answers each question with a checked draft, for callers that open their ledger afterwards."""

    def __init__(self, table: Table, shelf: Shelf | None = None) -> None:
        self.table = table
        self._shelf = shelf or Shelf()

    def _answer(self, draft: Draft) -> Draft:
        return draft

"""How many rows the users have: a public prior, a private histogram bought with budget, or the exact counts.

A trade-off curve drawn from the exact data would reveal private facts, so everything made from a profile states its basis.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import DataError, Guarantee, Purchase, Reach, Relation, UsageError, exact_sum, plain
from evenhand.pages.notebook import Card, InNotebooks, bars
from evenhand.population.buckets import Buckets
from evenhand.population.support import Support, support_of_counts, support_of_histogram
from evenhand.profiles import priors
from evenhand.profiles.counting import exact_sizes
from evenhand.release import not_private
from evenhand.tables import Table
from evenhand.tables.summaries import per_user

NOT_PRIVATE = "NOT PRIVATE: drawn from the exact table, for the data holder only"


class Basis(StrEnum):
    """Where a profile comes from, and hence who may see what is made from it."""

    PRIOR = "a public prior"
    BOUGHT = "a private profile, bought with budget"
    EXACT = "the exact table"


@dataclass(frozen=True, repr=False)
class Profile(InNotebooks):
    """Users by number of rows, with its basis.

    Guarantee: a prior reads no table; a bought profile carries the guarantee it was bought with and everything made from it
    costs nothing more; an exact profile has none, and every print, plot, page and JSON made from it says so.

    Args:
        support: users by number of rows.
        basis: where it comes from.
        words: the source in words.
        guarantee: of a bought profile.
        buckets: of a bought profile: the public buckets.
        noisy: of a bought profile: the noisy histogram.
        event: of a bought profile: the debit that paid for it, so that releases that use it can name it.

    Example:
        >>> Profile.counts([1, 1, 2, 40]).rows
        44.0
    """

    support: Support
    basis: Basis
    words: str
    guarantee: Guarantee | None = None
    buckets: Buckets | None = None
    noisy: tuple[int, ...] | None = None
    event: str | None = None

    @classmethod
    def counts(cls, counts: Sequence[int] | npt.ArrayLike) -> Profile:
        """A public prior: the rows of each user, one number per user, known from elsewhere."""
        return cls(_support(counts), Basis.PRIOR, "row counts given as public")

    @classmethod
    def pareto(cls, alpha: float, users: int, rows: float) -> Profile:
        """A public prior: P(more than t rows) falls like t^-alpha; alpha above 1."""
        return cls(priors.pareto(alpha, users, rows), Basis.PRIOR, f"Pareto, α = {alpha:g}")

    @classmethod
    def zipf(cls, exponent: float, users: int, rows: float) -> Profile:
        """A public prior: the j-th most active user has rows in proportion to j^-exponent."""
        return cls(priors.zipf(exponent, users, rows), Basis.PRIOR, f"Zipf, exponent {exponent:g}")

    @classmethod
    def lognormal(cls, sigma: float, users: int, rows: float) -> Profile:
        """A public prior: the logarithm of a user's rows is normal with standard deviation ``sigma``."""
        return cls(priors.lognormal(sigma, users, rows), Basis.PRIOR, f"log-normal, σ = {sigma:g}")

    @classmethod
    def bought(cls, buckets: Buckets, noisy: Sequence[int], guarantee: Guarantee, event: str | None = None) -> Profile:
        """A profile read from a noisy histogram over ``buckets``, bought with ``guarantee`` by the debit ``event``."""
        counts = tuple(int(count) for count in noisy)
        if len(counts) != buckets.size:
            raise UsageError(
                f"the histogram has {len(counts)} counts; expected one for each of {buckets.size} buckets."
            )
        support = support_of_histogram(buckets, counts, guarantee.relation.moves / float(guarantee.epsilon))
        words = f"a noisy histogram of users by rows (ε = {plain(guarantee.epsilon)})"
        return cls(support, Basis.BOUGHT, words, guarantee, buckets, counts, event)

    @classmethod
    def exact(cls, table: Table) -> Profile:
        """The exact profile of a table from ``eh.read``: for the data holder only, marked NOT PRIVATE everywhere."""
        support = not_private(exact_sizes(table, per_user(table)))
        return cls.of_table(support.sizes, support.users)

    @classmethod
    def of_table(cls, sizes: npt.ArrayLike, users: npt.ArrayLike) -> Profile:
        """The exact profile of a table: ``users[k]`` users have ``sizes[k]`` rows. Marked NOT PRIVATE everywhere."""
        given = np.asarray(sizes, dtype=np.float64), np.asarray(users, dtype=np.float64)
        keep = (given[0] > 0) & (given[1] > 0)
        order = np.argsort(given[0][keep])
        if not keep.any():
            raise UsageError("the table has no rows, so it has no profile.")
        return cls(
            Support(given[0][keep][order], given[1][keep][order]), Basis.EXACT, "the exact number of rows of each user"
        )

    @property
    def users(self) -> float:
        """The number of users, as far as the profile shows them."""
        return self.support.people

    @property
    def rows(self) -> float:
        """The number of rows, as far as the profile shows them."""
        return self.support.rows

    @property
    def mark(self) -> str:
        """What everything made from this profile must be marked with; empty if it may be shown."""
        return NOT_PRIVATE if self.basis is Basis.EXACT else ""

    def scaled(self, factor: float) -> Profile:
        """The same shape with ``factor`` times as many users: a prior made from this profile."""
        support = Support(self.support.sizes, self.support.users * factor, self.support.lowest)
        words = f"{self.words}, {factor:.3g} times as many users"
        return Profile(support, self.basis, words, self.guarantee, event=self.event)

    def purchases(self, relation: Relation) -> tuple[Purchase, ...]:
        """What a release under ``relation`` must name if this profile decides about it: nothing for a public prior."""
        if self.guarantee is None:
            return ()
        steps = self.guarantee.relation.cost_under(relation)
        if steps is None or (steps > 1 and self.guarantee.delta):
            self.for_relation(relation)  # refuses
        return (Purchase(self.event, exact_sum([self.guarantee.epsilon] * (steps or 1)), self.guarantee.delta),)

    def for_relation(self, relation: Relation) -> None:
        """Raise unless this profile may be used for a table that protects ``relation``."""
        if self.guarantee is not None and self.guarantee.relation is not relation:
            raise UsageError(
                f"this profile was bought under protects={self.guarantee.relation.value!r}, but protects={relation.value!r} was "
                "asked for. Buy a profile under the same protects=, or plan from a public prior such as Profile.counts(...)."
            )

    def to_dict(self) -> dict[str, Any]:
        """The profile as data: what `from_dict` reads."""
        data: dict[str, Any] = {"kind": "evenhand profile", "basis": self.basis.name.lower(), "words": self.words}
        if self.mark:
            data["mark"] = self.mark
        if self.guarantee is not None and self.buckets is not None and self.noisy is not None:
            data |= {
                "guarantee": self.guarantee.to_dict(),
                "event": self.event,
                "edges": list(self.buckets.edges),
                "unit": self.buckets.unit,
            }
            return data | {"noisy_counts": list(self.noisy)}
        return data | {"sizes": self.support.sizes.tolist(), "users": self.support.users.tolist()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Profile:
        """Read what `to_dict` wrote."""
        try:
            basis = Basis[data["basis"].upper()]
            if basis is Basis.BOUGHT:
                buckets = Buckets(tuple(int(edge) for edge in data["edges"]), int(data["unit"]))
                return cls.bought(buckets, data["noisy_counts"], _guarantee(data["guarantee"]), data.get("event"))
            support = Support(np.array(data["sizes"], dtype=np.float64), np.array(data["users"], dtype=np.float64))
            return cls(support, basis, str(data["words"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                "this is not a profile saved by Evenhand (an entry is missing or malformed); expected what profile.save(path) wrote."
            ) from error

    def save(self, path: str | Path) -> None:
        """Write the profile as JSON, with its guarantee, or with its mark."""
        Path(path).write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a profile written by `save`."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(
                f"can't read a profile from {path}; expected a JSON file written by profile.save(path)."
            ) from error
        if not isinstance(data, dict):
            raise DataError(f"{path} holds no profile; expected a JSON file written by profile.save(path).")
        return cls.from_dict(data)

    def card(self) -> Card:
        """What a notebook shows: how many users have how many rows."""
        named = [
            ("from", f"{self.basis}: {self.words}"),
            ("in all", f"about {self.users:,.0f} users with {self.rows:,.0f} rows"),
        ]
        if self.guarantee is not None:
            named.append(("guarantee", self.guarantee.words()))
        users, edges = self._by_size()
        rows = [(edge, f"{count:,.0f}", bar) for edge, count, bar in zip(edges, users, bars(users), strict=True)]
        return Card("Rows per user", named, ("rows", "users", ""), rows, self.mark)

    def _by_size(self) -> tuple[list[float], list[str]]:
        """Users by number of rows, in the buckets that were bought, or between powers of two."""
        if self.support.lowest is not None:
            low = self.support.lowest.astype(int)
            ends = [*(low[1:] - 1), 0]
            names = [
                f"{a:,}" if a == b else f"{a:,} to {b:,}" if b else f"{a:,} or more"
                for a, b in zip(low, ends, strict=True)
            ]
            return self.support.users.tolist(), names
        power = np.floor(np.log2(np.maximum(self.support.sizes, 1))).astype(int)
        users = [float(self.support.users[power == k].sum()) for k in range(power.max() + 1)]
        return users, ["1" if k == 0 else f"{2**k:,} to {2 ** (k + 1) - 1:,}" for k in range(len(users))]

    def __str__(self) -> str:
        text = (
            f"Profile from {self.basis}: {self.words}.\n"
            f"About {self.users:,.0f} users with {self.rows:,.0f} rows; half of the users have at most "
            f"{self.support.largest(self.users / 2):,.0f}, the largest {self.support.sizes[-1]:,.0f}."
        )
        if self.guarantee is not None:
            text += f"\n{self.guarantee}"
        return f"{self.mark}\n{text}" if self.mark else text


ONE_ROW_EACH = Profile(
    Support(np.array([1.0]), np.array([1e6])), Basis.PRIOR, "the view, which makes one row of each user"
)
"""What is public where a view makes one row of each user; how many users there are is not, and decides about nothing."""


def _support(counts: npt.ArrayLike) -> Support:
    try:
        given = np.asarray(counts, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise UsageError("counts must be numbers, one per user: the number of rows of each.") from None
    if given.size == 0:
        raise UsageError("counts is empty; expected the number of rows of each user, one number per user.")
    if not np.isfinite(given).all() or (given < 0).any():
        raise UsageError(
            "counts holds a negative or infinite number; expected the number of rows of each user, 0 or more."
        )
    support = support_of_counts(given)
    if support.people == 0:
        raise UsageError("counts holds only zeros; expected at least one user with rows.")
    return support


def _guarantee(data: dict[str, Any]) -> Guarantee:
    exact = data["exact"]
    return Guarantee(
        Decimal(exact["epsilon"]),
        Decimal(exact["delta"]),
        Relation.parse(data["protects"]),
        tuple(data["user"]),
        tuple(data["public"]),
        parts=tuple(Reach.read(each) for each in data.get("parts", ())),
    )

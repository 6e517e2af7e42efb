"""Neighbour relations: which two tables an observer must not be able to tell apart."""

from __future__ import annotations

from enum import StrEnum

from evenhand.guarantee.errors import UsageError, suggest


class Relation(StrEnum):
    """What changes between neighbouring tables, for one user.

    ``PRESENCE``: one user is added or removed with all rows; nothing is public.
    ``VALUES``: the values of one user change; who is there, rows per user and public columns are public.
    ``LABELS``: the labels of one user change; rows per user and all features are public.
    """

    PRESENCE = "presence"
    VALUES = "values"
    LABELS = "labels"

    @classmethod
    def parse(cls, given: Relation | str) -> Relation:
        """Read ``protects=`` as a relation, with a helpful error."""
        try:
            return cls(given)
        except ValueError:
            names = [relation.value for relation in cls]
            raise UsageError(
                f"protects={given!r} is not a neighbour relation; expected one of {names}.{suggest(str(given), names)}"
            ) from None

    @property
    def counts_are_public(self) -> bool:
        """Whether the number of rows of each user may be used for free."""
        return self is not Relation.PRESENCE

    @property
    def moves(self) -> int:
        """How many counts of a histogram of users one user changes by one: 1 who comes or goes, 2 who changes place."""
        return 1 if self is Relation.PRESENCE else 2

    def cost_under(self, other: Relation) -> int | None:
        """How many times its ε a guarantee for this relation costs under ``other``; None if it implies nothing.

        Replacing a user's values is removing the user and adding another one: two steps of presence. What
        hides all values hides the labels too. Hiding values says nothing about presence.
        """
        if self is other:
            return 1
        if self is Relation.PRESENCE:
            return 2
        if self is Relation.VALUES and other is Relation.LABELS:
            return 1
        return None

"""The guarantee of local differential privacy: nobody but the user ever holds the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from evenhand.guarantee import exact_text, plain


@dataclass(frozen=True)
class LocalGuarantee:
    """An ε-local differential-privacy guarantee for all ratings of one person, against everybody else.

    Guarantee:
        For any two sets of ratings x, x' a person might have, and any report y:
        P(y | x) <= e^ε P(y | x'). With ``public_rated`` x and x' rate the same items.

    Args:
        epsilon: the privacy-loss bound ε, an exact decimal.
        public_rated: whether which items a person rated is treated as public.
    """

    epsilon: Decimal
    public_rated: bool = False

    @property
    def odds(self) -> float:
        """The factor e^ε by which an observer's odds about any one person can change."""
        return math.exp(min(float(self.epsilon), 700.0))

    def words(self) -> str:
        """The guarantee as sentences that a manager can read."""
        hidden, known = "all ratings of any one person", ""
        if self.public_rated:
            hidden, known = "what any one person thinks of the items they rated", ", and which items they rated,"
        odds = f"{self.odds:.3g}" if self.odds < 1000 else f"{self.odds:.1e}"
        return (
            f"Protects {hidden} from everyone, the server included (ε = {plain(self.epsilon)}): whatever "
            f"an observer believed before, seeing this person's report changes their odds by at most a factor of "
            f"{odds}. That a person took part{known} is not hidden."
        )

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as data; ε as a number and as exact text."""
        return {
            "epsilon": float(self.epsilon),
            "delta": 0.0,
            "exact": {"epsilon": exact_text(self.epsilon), "delta": "0"},
            "protects": "ratings, locally",
            "public": ["participation", "rated items"] if self.public_rated else ["participation"],
            "words": self.words(),
        }

    def __str__(self) -> str:
        return self.words()

"""The exact law of code that tosses few coins, by trying every outcome."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction


class ScriptedCoins:
    """Coins that follow a path of outcomes, then take the first branch, and note how likely each branch was."""

    def __init__(self, path: Sequence[int], bits: int = 64) -> None:
        self._path = path
        self._bits = bits
        self.taken: list[tuple[int, list[Fraction]]] = []

    def below(self, n: int) -> int:
        """A whole number from 0 to n−1."""
        return self._branch([Fraction(1, n)] * n)

    def chance(self, threshold: int) -> bool:
        """True with probability threshold / 2^bits."""
        likely = Fraction(threshold, 1 << self._bits)
        return self._branch([1 - likely, likely]) == 1

    def _branch(self, chances: list[Fraction]) -> int:
        place = len(self.taken)
        outcome = self._path[place] if place < len(self._path) else 0
        self.taken.append((outcome, chances))
        return outcome


def law_of(experiment: Callable[[ScriptedCoins], Hashable]) -> dict[Hashable, Fraction]:
    """The exact distribution of what ``experiment`` returns: it runs once under every outcome of its coins."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    path: list[int] | None = []
    while path is not None:
        coins = ScriptedCoins(path)
        outcome = experiment(coins)
        law[outcome] += math.prod((chances[branch] for branch, chances in coins.taken), start=Fraction(1))
        path = _next(coins.taken)
    return dict(law)


def _next(taken: Sequence[tuple[int, list[Fraction]]]) -> list[int] | None:
    """The path after this one, in order; None after the last."""
    for place in range(len(taken) - 1, -1, -1):
        branch, chances = taken[place]
        if branch + 1 < len(chances):
            return [*(outcome for outcome, _ in taken[:place]), branch + 1]
    return None

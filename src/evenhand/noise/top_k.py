"""Choosing several candidates with high integer scores, privately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from evenhand.noise.integers import Laplace, round_up
from evenhand.noise.noisy_max import NoisyMax

CANDIDATES = 1000
"""Of candidates with hidden names only so many with the highest scores take part, unless few scores per user can move."""


@dataclass(frozen=True)
class TopK:
    """The positions of up to ``count`` high scores, where adding a user moves scores up only, each by at most ``moves``.

    Guarantee: ε, and (ε, δ) with hidden names (docs/proofs/top.md). If a user moves fewer than ``count`` scores, all scores
    get Laplace noise once; otherwise one candidate after the other is chosen by permute-and-flip, each with ε/count.

    Args:
        count: how many are wanted.
        moves: how far one user moves one score.
        groups: how many scores one user moves at most; None if that is not bounded.
        epsilon: for all choices together.

    Reference: Durfee and Rogers 2019, for hidden names when the number of scores that a user moves is not bounded.
    """

    count: int
    moves: int
    groups: int | None
    epsilon: Decimal

    @property
    def at_once(self) -> bool:
        """Whether all scores get their noise together."""
        return self.groups is not None and self.groups < self.count

    @property
    def scores(self) -> int:
        """How many scores the noise has to be scaled for."""
        return self.count if self.groups is None else min(self.groups, self.count)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise in each score."""
        return round_up(Fraction(self.scores * self.moves) / Fraction(self.epsilon))

    @property
    def candidates(self) -> int:
        """With hidden names, one choice after the other: how many candidates take part."""
        return max(CANDIDATES, 4 * self.count)

    def margin(self, delta: Decimal) -> int:
        """With hidden names: how far a score must lie above what only one user can have made."""
        scale, epsilon = float(self.scale), float(self.epsilon)
        if self.at_once:
            leaks = self.scores / (float(delta) * (1 + math.exp(-1 / scale)))
        else:
            # Each of the candidates may pass in each choice, with probability e^(−margin/scale)/2; on both tables.
            leaks = self.candidates * self.count / (2 * float(delta))
        both = 0.0 if self.at_once else epsilon + math.log1p(math.exp(-epsilon))  # ln(1 + e^ε)
        return max(1, math.ceil(scale * (math.log(leaks) + both) * (1 + 1e-12)))

    def choose_top(self, scores: Sequence[int], delta: Decimal = Decimal(0)) -> list[int]:
        """Positions, the highest first. With δ, names are hidden and there may be fewer.

        With hidden names and one choice after the other, the scores are those of all candidates that take part in
        falling order and, where there is one, the next score.
        """
        if self.at_once:
            noisy = Laplace(self.scale).add_to(scores)
            least = self.moves + self.margin(delta) if delta else -math.inf
            high = [place for place, value in enumerate(noisy) if value >= least]
            return sorted(high, key=lambda place: (-noisy[place], place))[: self.count]
        left = dict(enumerate(scores))
        stop = None
        if delta:
            below = left.pop(self.candidates, 0)
            stop = -1
            left[stop] = below + self.moves + self.margin(delta)
        chosen: list[int] = []
        chooser = NoisyMax(self.scale)
        while len(chosen) < self.count and left:
            places = list(left)
            place = places[chooser.choose([left[place] for place in places])]
            if place == stop:
                break
            chosen.append(place)
            del left[place]
        return chosen

"""Pairwise-Preference on the server: how often two items were rated alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.recommender.at_server.reading import Floats, Reading, places_on_spectrum, read_spectrum
from evenhand.recommender.at_server.sketches import Bits, Ints, Population, ServerSketch, Sums, remembers_last
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import Setting, strength


class Pairwise(ServerSketch):
    """Counts, for each pair of items, how often it was asked about and how often the answer was 1."""

    batch = 1 << 16

    def zeros(self) -> Sums:
        """No pair asked about yet; a pair i < j has place j(j-1)/2 + i."""
        pairs = self.size * (self.size - 1) // 2
        return {"asked": np.zeros(pairs, np.int32), "ones": np.zeros(pairs, np.int32)}

    @remembers_last
    def pairs(self, numbers: NDArray[Any]) -> tuple[Ints, Ints, Bits]:
        """The two items of each query, the smaller number first, and whether there are two to ask about."""
        words = np.ascontiguousarray(self.stream(numbers, 8)).view("<u4").astype(np.int64)
        if self.rated is None:
            choices: Any = self.size
            start: Any = 0
        else:
            choices, start = self.rated.sizes[numbers], self.rated.starts[numbers]
        first, second = words[:, 0] * choices >> 32, words[:, 1] * (choices - 1) >> 32
        second += second >= first
        low, high = np.minimum(first, second), np.maximum(first, second)
        can_ask = np.broadcast_to(np.asarray(choices) >= 2, low.shape)
        if self.rated is not None:
            low, high = (self.rated.items[np.where(can_ask, start + place, 0)] for place in (low, high))
        return low, high, can_ask

    def encode(self, number: int) -> bytes:
        """The two items as four bytes each, the smaller number first; nothing where nothing is asked."""
        low, high, can_ask = self.pairs(np.array([number]))
        return np.concatenate((low, high)).astype("<u4").tobytes() if can_ask[0] else b""

    def add_batch(self, sums: Sums, numbers: Ints, asked: Ints, ones: Ints) -> None:
        low, high, can_ask = self.pairs(numbers)
        place = (high * (high - 1) // 2 + low)[can_ask]
        np.add.at(sums["asked"], place, asked[can_ask].astype(np.int32))
        np.add.at(sums["ones"], place, ones[can_ask, 0].astype(np.int32))

    def reading(self, sums: Sums, clusters: int | None) -> Reading:
        """The leading eigenvectors of the matrix of ones in excess of their average.

        Taking the average out removes the constant eigenvector, which says nothing about clusters.
        """
        from scipy.sparse import coo_array

        asked, ones = sums["asked"], sums["ones"]
        share = ones.sum() / max(1, asked.sum())
        place = np.flatnonzero(asked)
        excess = ones[place] - share * asked[place]
        high = ((1 + np.sqrt(1 + 8 * place.astype(np.float64))) / 2).astype(np.int64)
        high -= high * (high - 1) // 2 > place  # where the square root was rounded up
        low = place - high * (high - 1) // 2
        both = (np.concatenate((excess, excess)), (np.concatenate((low, high)), np.concatenate((high, low))))
        matrix = coo_array(both, shape=(self.size, self.size)).tocsr()
        noise = float(np.sqrt(max(share * (1 - share), 1e-12) * asked.mean()))
        power = np.bincount(np.concatenate((low, high)), np.tile(excess**2, 2), self.size)
        edge = self._edge(float(power.mean()), float(power.max()), 2 * len(place) / self.size)
        return read_spectrum(matrix, noise, edge, clusters)

    @staticmethod
    def _edge(average: float, most: float, degree: float) -> float:
        """The largest eigenvalue that noise alone would give, from the sums of squares of the matrix' rows.

        That of the semicircle, but for two things where an item meets few others (``degree`` on average): the edge
        of a sparse matrix lies higher by about one in ``degree``, and an item asked about more than twice as often as
        the average has an eigenvalue of its own, as the centre of a star has.
        """
        star = most / np.sqrt(most - average) if most > 2 * average else 0.0
        return float(max(2 * np.sqrt(average), star, 1e-12) * (1 + 1 / max(degree, 1e-12)))

    @classmethod
    def places(cls, setting: Setting, tastes: Tastes, users: float) -> Floats:
        contrast, shares, moment = strength(float(setting.epsilon)), np.array(tastes.items), tastes.second_moment
        asked = 2 * users / (setting.items * (setting.items - 1))
        average = shares @ moment @ shares
        signal = asked * contrast * setting.both_rated * (moment - average) / 2
        ones = 0.5 + contrast * (setting.both_rated * (1 + average) / 2 - 0.5)
        return places_on_spectrum(signal, math.sqrt(asked * ones * (1 - ones)), shares, setting.items)

    def truths(self, numbers: Ints, people: Population) -> Bits:
        low, high, _ = self.pairs(numbers)
        return people.rate_alike(low, high, self.rated is not None)[:, None]

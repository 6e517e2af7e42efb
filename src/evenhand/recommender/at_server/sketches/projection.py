"""Projection on the server: the sum of answers times h1 h2ᵀ estimates who is liked together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.recommender.at_server.reading import Floats, Reading, places_on_spectrum, read_spectrum
from evenhand.recommender.at_server.sketches import Bits, Bytes, Ints, Population, ServerSketch, Sums, remembers_last
from evenhand.recommender.tastes import Tastes
from evenhand.recommender.tuning import Setting, strength

_EXACT_IN_FLOAT32 = 1 << 24


class Projection(ServerSketch):
    """Sums y h1 h2ᵀ over reports, y being 1 for equal signs and -1 for opposite ones.

    For a person with ratings x, w of them, E[sign(h·x) h] = κ x with κ about sqrt(2/(πw)), so that the sum's
    expectation is proportional to the average of x xᵀ over people: their second moment.
    """

    def zeros(self) -> Sums:
        """No report yet; ``powers`` are the sums of squares and of fourth powers of what was added up."""
        return {"product": np.zeros((self.size, self.size), np.int32), "powers": np.zeros(2)}

    @remembers_last
    def signs(self, numbers: NDArray[Any]) -> tuple[Bytes, Bytes]:
        """The two vectors of each query, one bit per item."""
        width = (self.size + 7) // 8
        taken = self.stream(numbers, 2 * width)
        first, second = taken[:, :width].copy(), taken[:, width:].copy()
        for vectors in (first, second):
            vectors[:, -1] &= 0xFF >> (-self.size % 8)
        return first, second

    def encode(self, number: int) -> bytes:
        """The two vectors' bytes, unused bits cleared."""
        return b"".join(vector.tobytes() for vector in self.signs(np.array([number])))

    def add_batch(self, sums: Sums, numbers: Ints, asked: Ints, ones: Ints) -> None:
        net = 2 * ones[:, 0] - asked
        kind = np.float32 if np.abs(net).sum() < _EXACT_IN_FLOAT32 else np.float64
        first, second = (
            np.unpackbits(vectors, axis=1, count=self.size, bitorder="little").astype(kind)
            for vectors in self.signs(numbers)
        )
        # With h = 2b - 1 the product splits into one over bits and three cheap terms.
        weighted = second * net[:, None].astype(kind)
        product = first.T @ weighted  # the only large array here: everything below works in place
        product *= 4
        product -= 2 * (first.T @ net.astype(kind))[:, None]
        product -= 2 * weighted.sum(axis=0)
        product += net.sum()
        np.add(sums["product"], product, out=sums["product"], casting="unsafe")
        sums["powers"] += [(net.astype(np.float64) ** power).sum() for power in (2, 4)]

    def reading(self, sums: Sums, clusters: int | None) -> Reading:
        """The leading eigenvectors of the symmetric part; its diagonal says nothing and is left out."""
        product = sums["product"].astype(np.float32)
        product += sums["product"].T
        product /= 2
        np.fill_diagonal(product, 0)
        squares, fourths = sums["powers"]
        return read_spectrum(product, float(np.sqrt(squares / 2)), self._edge(squares, fourths), clusters)

    def _edge(self, squares: float, fourths: float) -> float:
        """The largest eigenvalue that noise alone would give.

        A symmetrised y h1 h2ᵀ is (c cᵀ - d dᵀ)/2 with c, d = (h1 ± h2)/√2 and |c|, |d| about √N. Over λN queries of
        equal weight the eigenvalues, in units of N/2, follow the free compound Poisson law with jumps ±1, whose
        inverse Cauchy transform is 1/g + 2λg/(1 - g²); the edge is its least value over 0 < g < 1. With many queries
        this is the semicircle's edge, 2 sqrt(N squares/2); with few, more.
        """
        rate = squares**2 / max(fourths, 1e-12) / self.size
        g = np.linspace(1e-4, 1 - 1e-4, 20_000)
        return float(np.sqrt(fourths / squares) * self.size / 2 * (1 / g + 2 * rate * g / (1 - g**2)).min())

    @classmethod
    def places(cls, setting: Setting, tastes: Tastes, users: float) -> Floats:
        w, contrast = setting.rated, strength(float(setting.epsilon))
        alignment = math.comb(w - 1, (w - 1) // 2) / 2 ** (w - 1) if w < 1000 else math.sqrt(2 / (math.pi * w))
        signal = users * contrast * alignment**2 * setting.both_rated * tastes.second_moment
        return places_on_spectrum(signal, math.sqrt(users / 2), np.array(tastes.items), setting.items)

    def truths(self, numbers: Ints, people: Population) -> Bits:
        return people.lean_alike(*self.signs(numbers), self.task.rated)[:, None]

"""Receipts that add less noise than was called for, each in one way: for the broken twins (`twins.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from evenhand.audit.releases import Transcript
from evenhand.guarantee import exact_product
from evenhand.noise import NormalThreshold, Round, TopK, TruncatedGeometric, Way
from evenhand.release import Measurement, Noisy
from evenhand.tables import Secret


class Unsplit(Transcript):
    """Forgets that ε has to be shared: the profile and the release each get all of it."""

    def __init__(self, epsilon: Decimal, delta: Decimal, event: str) -> None:
        super().__init__(exact_product(epsilon, 1000), delta, event)
        self._whole = epsilon

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Noisy:
        return super().numbers(measurement, self._whole)


class CountsOfARow(Transcript):
    """Declares what a row adds to the weights of cells, where a user has a hundred."""

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Noisy:
        return super().numbers(replace(measurement, l1=measurement.l1 // 100), epsilon, delta)


class AnyGroup(Transcript):
    """Shows every group whose noisy number of supporters is positive: most that a user alone has made."""

    def selected(self, way: Way) -> Callable[[Measurement], list[int]]:
        return super().selected(replace(way, rounds=tuple(_lowered(look) for look in way.rounds)))


def _lowered(look: Round) -> Round:
    if isinstance(look, NormalThreshold):
        return replace(look, threshold=1)
    return replace(look, step=2**320) if isinstance(look, TruncatedGeometric) else look


class OneValue(Transcript):
    """Declares that a user adds one value, however many they may support."""

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Noisy:
        return super().numbers(replace(measurement, l1=1, l2_squared=1), epsilon, delta)


class NoMargin(TopK):
    """Chooses among hidden names as if they were public: also those that only one user has made."""

    def margin(self, delta: Decimal) -> int:
        return -self.moves


class AnyName(Transcript):
    """Chooses by `NoMargin`."""

    def largest(self, scores: Secret[list[int]], top: TopK, delta: Decimal = Decimal(0)) -> list[int]:
        return super().largest(scores, NoMargin(top.count, top.moves, top.groups, top.epsilon), delta)

"""What an engine can't evaluate is found out before the debit: a release is run on its empty table first.

Statements come in steps: what a step asks for depends on what those before it released, such as a bound on what a profile says. So the
run is repeated with released numbers that lead different ways, which a `Rehearsal` makes up. Nothing that it makes up is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from evenhand.guarantee import EngineError, UsageError
from evenhand.noise import IntegerNoise
from evenhand.release.door import Choices, Measurement, Noisy, Receipt
from evenhand.tables import Secret
from evenhand.tables.engines import GIVE_THE_ROWS, Engine, emptied, one_reading

_MANY = 1_000_000

WAYS: dict[str, Callable[[int], int]] = {
    "nobody": lambda place: 0,
    "a crowd with few rows each": lambda place: _MANY >> min(2 * place, 62),
    "as many with many rows": lambda place: _MANY,
    "somebody far away": lambda place: _MANY * (place % 7 == 6),
}
"""What is released at each place: of a histogram by number of rows, a profile that calls for other bounds and other noise."""


class Rehearsal(Receipt):
    """Runs every measurement, and makes up what is released.

    Args:
        epsilon, delta: as they will be debited.
        way: the number at each place.
    """

    keeps = False

    def __init__(self, epsilon: Decimal, delta: Decimal, way: Callable[[int], int]) -> None:
        super().__init__(epsilon, delta, "rehearsal")
        self._way = way

    def _drawn(self, measurement: Measurement, noise: IntegerNoise) -> Noisy:
        return Noisy([self._way(place) for place, _ in enumerate(measurement.integers().reveal())], noise)

    def choices(
        self,
        scores: Secret[list[list[int]]],
        sensitivity: int | Sequence[int],
        epsilon: Decimal,
        monotone: bool = False,
    ) -> Choices:
        chosen = super().choices(scores, sensitivity, epsilon, monotone)
        places = [self._way(index) % len(given) for index, given in enumerate(scores.reveal())]
        return replace(chosen, places=places)


def rehearse(engine: Engine, run: Callable[[Receipt], object], epsilon: Decimal, delta: Decimal) -> None:
    """Run a release on the empty table, unless this package's own tests hold the engine to it; refuse what the engine can't do.

    Guarantee: no row is read, and nothing that leaves here depends on one.
    """
    if engine.tested:
        return
    for way in WAYS.values():
        try:
            with emptied(), one_reading():
                run(Rehearsal(epsilon, delta, way))
        except EngineError as failed:
            raise UsageError(
                f"this can't be asked where the table is: {failed} Nothing was read or spent. {GIVE_THE_ROWS}"
            ) from None

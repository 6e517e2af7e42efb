"""Looking at a release from inside: which integers were handed to the noise, and what was declared about them.

`watch` runs a draft with a receipt that records instead of drawing. Given the transcript of an earlier run it plays that
one's outputs back, whatever the integers are now: so two neighbouring tables can be compared step by step under the same
outputs, as the adaptive composition theorem does, and everything that follows from equal outputs must be equal.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from evenhand.noise import IntegerNoise, Laplace, NoisyMax, TopK, TruncatedGeometric, Way, seam
from evenhand.release import Choices, Measurement, Noisy, Receipt, noise_for
from evenhand.release.door import saturated
from evenhand.session import Drafts
from evenhand.statistics import Draft, Outcome
from evenhand.tables import Secret, Table

Ask = Callable[[Drafts], Draft]


@dataclass(frozen=True)
class Step:
    """One use of noise: the exact integers, what was declared about them, and what was let out.

    Args:
        kind: ``"sum"`` for integers that get noise, ``"choice"`` for scores of which the best is chosen, ``"support"`` for the
            numbers of supporters of secret keys: how many there are depends on the table, and none of them leaves; ``"ranked"`` for
            scores of which the highest are chosen one after the other.
        integers: before noise.
        l1: declared: the L1 norm by which one user moves the integers; for scores, the largest move of any one, summed over
            the choices of one payment; for ranked ones, the largest move of any one.
        l2_squared: declared: the squared L2 norm.
        output: what the rest of the run sees.
        payment: which use of budget paid for it.
    """

    kind: str
    integers: list[int]
    l1: int | None
    l2_squared: int | None
    output: Any
    payment: int

    def change(self, other: Step) -> tuple[int, int]:
        """How far another table's integers are from these: L1 (for scores, the maximum) and squared L2.

        Supporters come without their keys. Sorted, and a key that is not there as 0, they are at most as far apart as key by key.
        """
        mine, theirs = self.integers, other.integers
        if self.kind in ("support", "ranked"):
            length = max(len(mine), len(theirs))
            mine, theirs = (sorted([*numbers, *[0] * (length - len(numbers))]) for numbers in (mine, theirs))
        assert len(mine) == len(theirs), "the number of released integers depends on the table"
        moves = [abs(a - b) for a, b in zip(mine, theirs, strict=True)]
        return max(moves, default=0) if self.kind in ("choice", "ranked") else sum(moves), sum(
            move**2 for move in moves
        )


@dataclass
class Watched:
    """A run of a draft."""

    draft: Draft
    steps: list[Step]
    outcome: Outcome

    @property
    def seen(self) -> dict[str, Any]:
        """Everything that a release says."""
        return {
            "value": repr(self.outcome.value),
            "interval": repr(self.outcome.interval.at(0.95)),
            "bounding": self.outcome.bounding.to_dict(),
            "error": self.outcome.error.to_dict(),
            "details": repr(self.outcome.details),
        }


def watch(table: Table, ask: Ask, replay: Sequence[Step] | None = None, seed: int | None = None) -> Watched:
    """Run a draft, recording every step.

    Args:
        table: where from.
        ask: the question, such as ``lambda drafts: drafts.count(epsilon=1)``.
        replay: outputs to play back.
        seed: let pseudo-random noise of the right size out, instead of none.
    """
    draft = ask(Drafts(table))
    receipt = _Watching(draft, replay, None if seed is None else random.Random(seed))
    return Watched(draft, receipt.steps, draft.measure(receipt))


class _Watching(Receipt):
    """A receipt that records. What was paid for still counts down, so overspending is noticed."""

    def __init__(self, draft: Draft, replay: Sequence[Step] | None, noise: random.Random | None) -> None:
        cost = draft.cost
        super().__init__(cost.epsilon if cost else Decimal(0), cost.delta if cost else Decimal(0), "test")
        self.steps: list[Step] = []
        self._payments = 0
        self._replay = replay
        self._noise = noise

    def _use(self, epsilon: Decimal, delta: Decimal = Decimal(0)) -> None:
        super()._use(epsilon, delta)
        self._payments += 1

    def numbers(self, measurement: Measurement, epsilon: Decimal, delta: Decimal = Decimal(0)) -> Noisy:
        self._use(epsilon, delta)
        return self._measure(measurement, epsilon, delta)

    def numbers_of_all(
        self,
        measurements: Sequence[Measurement],
        epsilon: Decimal,
        delta: Decimal = Decimal(0),
        shares: Sequence[Fraction] | None = None,
    ) -> list[Noisy]:
        self._use(epsilon, delta)
        return [self._measure(measurement, epsilon, delta) for measurement in measurements]

    def _measure(self, measurement: Measurement, epsilon: Decimal, delta: Decimal) -> Noisy:
        return self._drawn(measurement, noise_for(measurement.l1, measurement.l2_squared, epsilon, delta))

    def _drawn(self, measurement: Measurement, noise: IntegerNoise) -> Noisy:
        exact = saturated(measurement.integers().reveal())
        output = [value + self._pretend(float(noise.scale)) for value in exact]
        l1 = measurement.l1 if isinstance(noise, Laplace) else None  # Gaussian noise protects the L2 norm only
        step = self._record(Step("sum", exact, l1, measurement.l2_squared, output, self._payments))
        return Noisy(list(step.output), noise)

    def selected(self, way: Way) -> Callable[[Measurement], list[int]]:
        """Without noise, and not played back: positions mean nothing on another table, so the tables must agree on what is shown."""
        self._use(way.epsilon, way.delta)
        self._selected = True
        self._rho = way.rho
        payment, looks = self._payments, iter(way.rounds)

        def passing(measurement: Measurement) -> list[int]:
            look = next(looks)
            exact = measurement.integers().reveal()
            with seam.replaced(seam.silent):
                shown = look.passing(exact)
            l1 = measurement.l1 if isinstance(look, TruncatedGeometric) else None
            self.steps.append(Step("support", exact, l1, measurement.l2_squared, len(shown), payment))
            return shown

        return passing

    def supporters(self, way: Way, measurement: Measurement) -> tuple[list[int], Noisy]:
        """Without noise, and not played back, as `selected`; the numbers are what is shown."""
        with seam.replaced(seam.silent):
            shown, noisy = super().supporters(way, measurement)
        exact = measurement.integers().reveal()
        self.steps.append(Step("support", exact, measurement.l1, measurement.l2_squared, len(shown), self._payments))
        return shown, noisy

    def largest(self, scores: Secret[list[int]], top: TopK, delta: Decimal = Decimal(0)) -> list[int]:
        """Without noise. Positions of hidden names are not played back, as for `selected`; and their number depends on the table."""
        self._use(top.epsilon, delta)
        self._selected |= bool(delta)
        exact = saturated(scores.reveal())
        with seam.replaced(seam.silent):
            shown = top.choose_top(exact, delta)
        kind, moves = ("support" if delta else "sum", top.scores * top.moves) if top.at_once else ("ranked", top.moves)
        step = Step(kind, exact, moves, None, shown, self._payments)
        if delta:
            self.steps.append(step)
            return shown
        return list(self._record(step).output)

    def choices(
        self,
        scores: Secret[list[list[int]]],
        sensitivity: int | Sequence[int],
        epsilon: Decimal,
        monotone: bool = False,
    ) -> Choices:
        self._use(epsilon)
        lists = scores.reveal()
        sizes = [sensitivity] * len(lists) if isinstance(sensitivity, int) else sensitivity
        scales = [NoisyMax.calibrated(size, epsilon, monotone).scale for size in sizes]
        places = [
            self._choose(saturated(one), size, float(scale))
            for one, size, scale in zip(lists, sizes, scales, strict=True)
        ]
        return Choices(places, max(scales, default=Fraction(0)))

    def _choose(self, scores: Sequence[int], sensitivity: int, scale: float) -> int:
        noisy = [score + self._pretend(scale) for score in scores]
        best = max(range(len(scores)), key=lambda index: noisy[index])
        return int(self._record(Step("choice", list(scores), sensitivity, None, best, self._payments)).output)

    def _pretend(self, scale: float) -> int:
        return 0 if self._noise is None else round(self._noise.choice((-1, 1)) * self._noise.expovariate(1) * scale)

    def _record(self, step: Step) -> Step:
        if self._replay is not None:
            step = replace(step, output=self._replay[len(self.steps)].output)
        self.steps.append(step)
        return step


def integers(table: Table, ask: Ask) -> list[list[int]]:
    """The integers before noise, step by step, when no noise is added."""
    return [step.integers for step in watch(table, ask).steps]

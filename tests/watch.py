"""Looking at a release from inside: which integers were handed to the noise, and what was declared about them.

`watch` runs a draft with a receipt that records instead of drawing. Given the transcript of an earlier run it plays that
one's outputs back, whatever the integers are now: so two neighbouring tables can be compared step by step under the same
outputs, as the adaptive composition theorem does, and everything that follows from equal outputs must be equal. `choices`
records what whole fits choose, in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias
from unittest import mock

from evenhand.noise import (
    IntegerNoise,
    Laplace,
    NoisyMax,
    NormalThreshold,
    ShownCounts,
    TopK,
    TruncatedGeometric,
    Way,
    rho_for,
    seam,
)
from evenhand.release import Choices, Measurement, Noisy, Receipt
from evenhand.release.door import saturated
from evenhand.session import Drafts
from evenhand.statistics import Draft, Outcome
from evenhand.tables import Secret, Table
from hidden_names import Names, hidden_names, names_of
from reachable import Facts, reachable

Ask = Callable[[Drafts], Draft]
Lost: TypeAlias = tuple[Fraction, Fraction]
"""Privacy loss: of ε, and of the ρ of zero-concentrated differential privacy."""


@dataclass(frozen=True)
class Payment:
    """What one use of budget paid: ε, and the ρ that (ε, δ) buys for Gaussian noise."""

    epsilon: Fraction
    rho: Fraction

    @classmethod
    def of(cls, epsilon: Decimal, delta: Decimal) -> Payment:
        return cls(Fraction(epsilon), rho_for(epsilon, delta) if delta and epsilon else Fraction(0))


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
        paid: how much that was.
        scale: of the noise, as it was calibrated.
        gaussian: whether the noise protects the L2 norm.
        monotone: declared: one user more moves no score up, or none down.
        times: how often a choice is made among these scores.
        most: of supports, how many one user may move.
        names: where groups have hidden names, those of the integers: their number and order depend on the table.
    """

    kind: str
    integers: list[int]
    l1: int | None
    l2_squared: int | None
    output: Any
    payment: int
    paid: Payment = field(default_factory=lambda: Payment(Fraction(0), Fraction(0)))
    scale: Fraction | None = None
    gaussian: bool = False
    monotone: bool = False
    times: int = 1
    most: int | None = None
    names: Names | None = None

    def moves(self, other: Step) -> list[int]:
        """How far another table's integers are from these, one by one: by name where names are hidden; one that is not there has none."""
        assert (self.names is None) == (other.names is None)
        if self.names is not None and other.names is not None:
            mine, theirs = (dict(zip(one.names or (), one.integers, strict=True)) for one in (self, other))
            assert (len(mine), len(theirs)) == (len(self.integers), len(other.integers)), "a hidden name stands twice"
            return [theirs.get(name, 0) - mine.get(name, 0) for name in sorted({*mine, *theirs}, key=repr)]
        assert self.kind != "support", (
            "supports of hidden groups are compared by name: teach tests/hidden_names.py theirs"
        )
        assert len(self.integers) == len(other.integers), "the number of released integers depends on the table"
        return [b - a for a, b in zip(self.integers, other.integers, strict=True)]

    def change(self, other: Step) -> tuple[int, int]:
        """How far another table's integers are from these: L1 (for scores, the maximum) and squared L2."""
        moves = [abs(move) for move in self.moves(other)]
        l1 = max(moves, default=0) if self.kind in ("choice", "ranked") else sum(moves)
        return l1, sum(move**2 for move in moves)

    def lost(self, other: Step) -> Lost:
        """How much privacy the noise lost on another table, exactly, from the integers alone: what was declared is not looked at."""
        if self.scale is None:
            return Fraction(0), Fraction(0)
        moves = self.moves(other)
        if self.kind in ("choice", "ranked"):
            # Scores that all move by the same change no choice, so only how far their moves lie apart counts.
            return self.times * Fraction(max(moves, default=0) - min(moves, default=0)) / self.scale, Fraction(0)
        if self.gaussian:
            return Fraction(0), Fraction(sum(move**2 for move in moves)) / (2 * self.scale**2)
        return Fraction(sum(map(abs, moves))) / self.scale, Fraction(0)


@dataclass
class Watched:
    """A run of a draft."""

    draft: Draft
    steps: list[Step]
    outcome: Outcome

    @property
    def seen(self) -> Facts:
        """Everything that a release holds."""
        return reachable(self.outcome)


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
    with hidden_names():
        return Watched(draft, receipt.steps, draft.measure(receipt))


class _Watching(Receipt):
    """A receipt that records. What was paid for still counts down, so overspending is noticed."""

    def __init__(self, draft: Draft, replay: Sequence[Step] | None, noise: random.Random | None) -> None:
        cost = draft.cost
        super().__init__(cost.epsilon if cost else Decimal(0), cost.delta if cost else Decimal(0), "test")
        self.steps: list[Step] = []
        self._payments: list[Payment] = []
        self._paying = 0
        self._selecting = 0
        self._replay = replay
        self._noise = noise

    def _use(self, epsilon: Decimal, delta: Decimal = Decimal(0)) -> None:
        super()._use(epsilon, delta)
        self._payments.append(Payment.of(epsilon, delta))
        self._paying = len(self._payments)

    def numbers_by_share(
        self, epsilon: Decimal, delta: Decimal = Decimal(0)
    ) -> Callable[[Measurement, Fraction], Noisy]:
        noisy = super().numbers_by_share(epsilon, delta)
        payment = self._paying

        def paid(measurement: Measurement, share: Fraction) -> Noisy:
            self._paying = payment  # others may have been made since; without δ each share makes its own
            return noisy(measurement, share)

        return paid

    def numbers_beside(self, measurements: Sequence[Measurement], shares: Sequence[Fraction]) -> list[Noisy]:
        self._paying = self._selecting
        self._payments[self._paying - 1] = replace(self._payments[self._paying - 1], rho=self._rho)
        return super().numbers_beside(measurements, shares)

    def _drawn(self, measurement: Measurement, noise: IntegerNoise) -> Noisy:
        exact = saturated(measurement.integers().reveal())
        output = [value + self._pretend(float(noise.scale)) for value in exact]
        gaussian = not isinstance(noise, Laplace)
        l1 = None if gaussian else measurement.l1  # Gaussian noise protects the L2 norm only
        step = self._step("sum", exact, l1, measurement.l2_squared, output, scale=noise.scale, gaussian=gaussian)
        return Noisy(list(self._record(step).output), noise)

    def selected(self, way: Way) -> Callable[[Measurement], list[int]]:
        """Without noise, and played back by name: what is shown of one table must be there on the other."""
        assert way in calibrated(way), "this way to select is not what its price calls for"
        super().selected(way)
        self._selecting, looks = self._paying, iter(way.rounds)

        def passing(measurement: Measurement) -> list[int]:
            look, self._paying = next(looks), self._selecting
            assert measurement.l2_squared <= look.l2_squared, "the round is for less than is declared"
            exact = measurement.integers().reveal()
            with seam.replaced(seam.silent):
                shown = dict.fromkeys(look.passing(exact), 0)
            l1 = measurement.l1 if isinstance(look, TruncatedGeometric) else None
            step = self._step("support", exact, l1, measurement.l2_squared, shown, most=way.groups)
            return list(self._named(step, names_of(measurement)))

        return passing

    def supporters(self, way: Way, measurement: Measurement) -> tuple[list[int], Noisy]:
        """Without noise, and played back by name, as `selected`; the numbers too."""
        assert way in calibrated(way), "this way to select is not what its price calls for"
        with seam.replaced(seam.silent):
            places, noisy = super().supporters(way, measurement)
        shown = dict(zip(places, noisy.values, strict=True))
        exact, l1, l2_squared = measurement.integers().reveal(), measurement.l1, measurement.l2_squared
        step = self._step("support", exact, l1, l2_squared, shown, most=way.groups)
        shown = self._named(step, names_of(measurement))
        return list(shown), Noisy(list(shown.values()), noisy.noise)

    def largest(self, scores: Secret[list[int]], top: TopK, delta: Decimal = Decimal(0)) -> list[int]:
        """Without noise; played back by name where names are hidden."""
        self._use(top.epsilon, delta)
        self._selected |= bool(delta)
        exact = saturated(scores.reveal())
        with seam.replaced(seam.silent):
            shown = top.choose_top(exact, delta)
        if top.at_once:
            kind, more = "support" if delta else "sum", {"scale": top.scale}
            step = self._step(kind, exact, top.scores * top.moves, None, shown, **more)
        else:  # by permute-and-flip with noise for scores that move one way
            step = self._step("ranked", exact, top.moves, None, shown, scale=top.scale, monotone=True, times=top.count)
        if not delta:
            return list(self._record(step).output)
        names = names_of(scores)
        assert names is None or len(names) < top.candidates, "a table of so many names can't be compared by name"
        return list(self._named(replace(step, output=dict.fromkeys(shown, 0)), names))

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
        places = []
        for one, size, scale in zip(lists, sizes, scales, strict=True):
            exact = saturated(one)
            noisy = [score + self._pretend(float(scale)) for score in exact]
            best = max(range(len(exact)), key=lambda index: noisy[index])
            step = self._step("choice", exact, size, None, best, scale=scale, monotone=monotone)
            places.append(int(self._record(step).output))
        return Choices(places, max(scales, default=Fraction(0)))

    def _pretend(self, scale: float) -> int:
        return 0 if self._noise is None else round(self._noise.choice((-1, 1)) * self._noise.expovariate(1) * scale)

    def _step(
        self, kind: str, exact: Sequence[int], l1: int | None, l2_squared: int | None, output: object, **more: Any
    ) -> Step:
        paid = self._payments[self._paying - 1]
        return Step(kind, list(exact), l1, l2_squared, output, self._paying, paid, **more)

    def _named(self, step: Step, names: Names | None) -> dict[int, int]:
        """Record what is shown of hidden groups by name, or play it back; returns it by place."""
        assert names is not None, "a way to show hidden names that tests/hidden_names.py does not know"
        output = {names[place]: number for place, number in step.output.items()}
        if self._replay is not None:
            output = self._replay[len(self.steps)].output
            assert all(step.integers[names.index(name)] > 0 for name in output if name in names), "nobody supports it"
            assert {*output} <= {*names}, "a name is shown that only one user has"
        self.steps.append(replace(step, output=output, names=names))
        return {names.index(name): number for name, number in output.items()}

    def _record(self, step: Step) -> Step:
        if self._replay is not None:
            step = replace(step, output=self._replay[len(self.steps)].output)
        self.steps.append(step)
        return step


def calibrated(way: Way) -> list[Way | None]:
    """The ways to select that its mechanism calibrates for its price."""
    look, asked = way.rounds[0], (way.groups, way.epsilon, way.delta)
    if isinstance(look, NormalThreshold):
        return [NormalThreshold.way(*asked, rounds, way.numbers) for rounds in (1, 2)]
    if isinstance(look, ShownCounts):
        return [ShownCounts.way(*asked, look.reach)]
    assert isinstance(look, TruncatedGeometric), (
        f"{type(look).__name__} is a new way to select: say how it is calibrated"
    )
    return [TruncatedGeometric.way(*asked)]


@contextmanager
def choices(replay: Sequence[Step] | None = None) -> Iterator[list[Step]]:
    """Record the choices of whatever runs meanwhile, such as a fit, without noise; or play those of another run back."""
    steps: list[Step] = []

    def chosen(
        receipt: Receipt,
        scores: Secret[list[list[int]]],
        sensitivity: int | Sequence[int],
        epsilon: Decimal,
        monotone: bool = False,
    ) -> Choices:
        Receipt._use(receipt, epsilon)
        lists, payment = scores.reveal(), len(steps) + 1
        sizes = [sensitivity] * len(lists) if isinstance(sensitivity, int) else sensitivity
        scales = [NoisyMax.calibrated(size, epsilon, monotone).scale for size in sizes]
        first = len(steps)
        for one, size, scale in zip(lists, sizes, scales, strict=True):
            best = max(range(len(one)), key=lambda index: one[index])
            output = best if replay is None else replay[len(steps)].output
            paid = Payment.of(epsilon, Decimal(0))
            steps.append(
                Step("choice", saturated(one), size, None, output, payment, paid, scale=scale, monotone=monotone)
            )
        return Choices([step.output for step in steps[first:]], max(scales, default=Fraction(0)))

    with mock.patch.object(Receipt, "choices", chosen):
        yield steps


def integers(table: Table, ask: Ask) -> list[list[int]]:
    """The integers before noise, step by step, when no noise is added."""
    return [step.integers for step in watch(table, ask).steps]

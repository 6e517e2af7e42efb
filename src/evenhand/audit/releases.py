"""Releases as mechanisms: what a question reveals, asked again and again on a small table.

The ledger is left out: a debit happens before anything is drawn and does not touch the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from contextvars import Context
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, cast

import numpy as np

from evenhand.audit.mechanism import Claim, Outputs
from evenhand.audit.remembering import Remembering
from evenhand.guarantee import EvenhandError
from evenhand.noise import Gaussian, IntegerNoise, Laplace, Normal, seam
from evenhand.profiles import About, Profile, Shelf
from evenhand.release import Measurement, Noisy, Receipt
from evenhand.session import Drafts
from evenhand.statistics import Draft, Outcome
from evenhand.tables import Table
from evenhand.tables.engines import Engine

Question = Callable[[Drafts], Draft]
"""Such as ``lambda ask: ask.count(epsilon=1)``."""

Disturb = Callable[[IntegerNoise], IntegerNoise]
Features = Callable[[Outcome], Sequence[float]]

WHOLE = 3
"""How many outputs of each sample are drawn by complete runs, with nothing remembered."""

_WIDTH = 160  # of the outputs of a release that runs end to end; shorter ones are filled up with NaN
_NOISES: dict[str, Callable[[Fraction], IntegerNoise]] = {
    "laplace": Laplace,
    "gaussian": Gaussian,
    "normal": Normal,
}


@dataclass(frozen=True)
class FixedRelease:
    """A release whose bound is given: the outputs are its noisy integers, and the scale of their noise.

    Nothing is chosen and no row is drawn, so the integers before noise are a function of the table alone. The first `WHOLE` outputs of
    every sample are complete runs; they must all come to the same integers, which then serve for the others. All noise is
    drawn by the very code that a release uses. The value, its interval
    and its error follow from the noisy integers and public facts (the neighbour suite in ``tests/contract`` checks that with no
    tolerance), so an attacker who sees the integers sees everything: the audit can only be too strict.

    Args:
        ask: the question.
        disturb: what a broken twin does to the noise.
        receipt: what a broken twin draws its noise with.
    """

    name: str
    claim: Claim
    ask: Question
    disturb: Disturb | None = None
    receipt: type[Receipt] = Receipt

    def sample(self, table: Table, count: int) -> Outputs:
        """Noisy integers and the scale of their noise; the released number itself if no noise is drawn at all."""
        whole = min(WHOLE, count)
        runs = [recorded(self.ask(Drafts(table)), self.receipt, self.disturb) for _ in range(whole)]
        if not runs[0]:
            released = [numbers(run(self.ask(Drafts(table)))) for _ in range(whole)]
            return np.array((released * (count // whole + 1))[:count])
        if any([step[:2] for step in steps] != [step[:2] for step in runs[0]] for steps in runs):
            raise EvenhandError(f"{self.name} chooses or draws something before its last noise: audit it end to end.")
        columns = []
        for place, step in enumerate(runs[0]):
            noise = step.noise if self.disturb is None else self.disturb(step.noise)
            drawn = noise.add_to(step.exact * (count - whole))
            rows = [value for steps in runs for value in steps[place].noisy] + drawn
            columns.append(np.array(rows, dtype=np.float64).reshape(count, len(step.exact)))
            columns.append(np.full((count, 1), float(step.noise.scale)))
        return np.concatenate(columns, axis=1)


@dataclass(frozen=True)
class EndToEnd:
    """A release that chooses its bound, its keys or its rows: all of it runs again for every output.

    The first `WHOLE` outputs of a sample run on the table's own engine. For the others the engine remembers its exact answers before
    noise (`Remembering`), and is asked twice for each of them.

    The outputs are what is released, and the noisy integers on the way to it (a profile bought to choose a bound, say): those
    are paid for too.

    Args:
        ask: the question.
        features: the numbers in an outcome; by default all of them.
        receipt: what a broken twin draws its noise with.
    """

    name: str
    claim: Claim
    ask: Question
    features: Features | None = None
    receipt: type[Transcript] | None = None

    def sample(self, table: Table, count: int) -> Outputs:
        """Released numbers and noisy integers, each row from a run of its own."""
        outputs = np.full((count, _WIDTH), np.nan)
        self._fill(outputs[:WHOLE], table, Draft.measure)
        with closing(Remembering(table.engine)) as engine:
            # Not `measure`: what is remembered is asked again, which is another reading.
            remembering = replace(table, engine=cast(Engine, engine))
            self._fill(outputs[WHOLE:], remembering, lambda draft, receipt: draft.run(receipt))
        return outputs

    def _fill(self, outputs: Outputs, table: Table, run: Callable[[Draft, Receipt], Outcome]) -> None:
        drafts = Drafts(table)
        drafts._shelf = _Forgetful()
        draft = self.ask(drafts)
        for row in outputs:
            receipt = (self.receipt or Transcript)(*_paid(draft), "audit")
            released = (self.features or numbers)(run(draft, receipt))
            seen = [*released, *receipt.seen][:_WIDTH]
            row[: len(seen)] = seen


class _Forgetful(Shelf):
    """Keeps nothing: a profile kept from the run before would tie the outputs together."""

    def put(self, table: Table, about: About, profile: Profile) -> None:
        pass


class Transcript(Receipt):
    """A receipt that keeps the noisy integers that it hands out, in units of their (public) noise."""

    def __init__(self, epsilon: Decimal, delta: Decimal, event: str) -> None:
        super().__init__(epsilon, delta, event)
        self.seen: list[float] = []

    def _drawn(self, measurement: Measurement, noise: IntegerNoise) -> Noisy:
        noisy = super()._drawn(measurement, noise)
        self.seen += [value / float(noisy.noise.scale) for value in noisy.values]
        return noisy


def run(draft: Draft, receipt: type[Receipt] = Receipt) -> Outcome:
    """Run a draft as if it had been paid for."""
    return draft.measure(receipt(*_paid(draft), "audit"))


def _paid(draft: Draft) -> tuple[Decimal, Decimal]:
    return (Decimal(0), Decimal(0)) if draft.cost is None else (draft.cost.epsilon, draft.cost.delta)


class Step(NamedTuple):
    """One use of noise in a run: the integers before it, the noise that was called for, and what came out.

    The first two must be the same in every run on one table, unless something is drawn before.
    """

    exact: list[int]
    noise: IntegerNoise
    noisy: list[int]


def recorded(draft: Draft, receipt: type[Receipt] = Receipt, disturb: Disturb | None = None) -> list[Step]:
    """The integers that a run hands to its noise, step by step; the run itself gets real noise and goes on."""
    steps: list[Step] = []

    def record(name: str, values: Sequence[int], scale: Fraction) -> list[int]:
        noise = _NOISES[name](scale)
        drawn = noise if disturb is None else disturb(noise)
        noisy = Context().run(drawn.add_to, values)  # an empty context: not back into this recorder
        steps.append(Step(list(values), noise, noisy))
        return noisy

    with seam.replaced(record):
        run(draft, receipt)
    return steps


def numbers(outcome: Outcome) -> list[float]:
    """The released numbers, the bound and the forecast error."""
    value: Any = outcome.value
    if hasattr(value, "select_dtypes"):
        value = value.select_dtypes("number").to_numpy().ravel()
    return [*np.atleast_1d(np.asarray(value, dtype=np.float64)).tolist(), *_beside(outcome)]


def _beside(outcome: Outcome) -> list[float]:
    return [outcome.bounding.parameter or 0.0, outcome.error.noise or 0.0, outcome.error.bias or 0.0]


def shown_keys(keys: Sequence[str], column: str = "g") -> Features:
    """The features of a release with hidden group names: for each of these keys whether it is shown, and its values."""

    def features(outcome: Outcome) -> list[float]:
        frame = outcome.value.set_index(column)
        result: list[float] = []
        for key in keys:
            there = key in frame.index
            result += [float(there), *(frame.loc[key].tolist() if there else [np.nan] * len(frame.columns))]
        return [*result, *_beside(outcome)]

    return features


def names_of_one(outcome: Outcome, column: str = "g") -> list[float]:
    """How many names are shown that only one user of `pairs` has made: 0 without that user."""
    return [float(sum(str(name).startswith("only ") for name in outcome.value[column]))]

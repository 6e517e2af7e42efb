"""Testers: each tries to prove, on one pair of tables, that a mechanism loses more than it claims.

What they return is a *lower* bound on the true ε. It can prove a claim wrong, never right: a bound far below the claim may
mean a careful mechanism or a poor attack, which is why every audited thing has a broken twin that must be caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from evenhand.audit.confidence import at_least, at_most
from evenhand.audit.events import candidates
from evenhand.audit.mechanism import Claim, Enumerable, Law, Mechanism, Outputs, Pair


@dataclass(frozen=True)
class Evidence:
    """What a tester found on one pair.

    Args:
        epsilon: a lower bound on the true ε, at the claimed δ.
        delta: a lower bound on the true δ, at the claimed ε.
        event: the outputs that give the tables away.
        samples: outputs drawn, on both tables together; 0 for an exact answer.
    """

    epsilon: float
    delta: float
    event: str
    samples: int = 0


class Tester(Protocol):
    """Examines a mechanism on one pair of neighbouring tables."""

    def examine(self, mechanism: Any, pair: Pair, samples: int) -> Evidence:  # noqa: ANN401 - a Mechanism or an Enumerable, as it needs
        """Draw ``samples`` outputs on each table and bound what they give away."""


@dataclass(frozen=True)
class LikelihoodRatio:
    """The event with the largest likelihood ratio, found on half of the sample and judged on the other half.

    Guarantee: the bound exceeds the true ε with probability at most ``1 − confidence``: the event is fixed before the
    judging half is looked at, and both its probabilities get a Clopper–Pearson bound with half the doubt.
    """

    confidence: float = 0.95

    def examine(self, mechanism: Mechanism, pair: Pair, samples: int) -> Evidence:
        """Draw ``samples`` outputs on each table; see `Tester`."""
        halves = [_split(mechanism.sample(table, samples)) for table in (pair.one, pair.other)]
        return self._judged(halves, mechanism.claim, 1 - self.confidence, _ratio)

    def _judged(self, halves: list[tuple[Outputs, Outputs]], claim: Claim, doubt: float, worth: _Worth) -> Evidence:
        """Find the event of the largest worth on the first halves, and bound its probabilities on the second."""
        (one, one_left), (other, other_left) = halves

        def forecast(p: float, q: float) -> float:
            return worth(_limit(p, len(one), -1), _limit(q, len(other), 1), claim)

        options = (
            (forecast(p, q), event, swapped)
            for event, first, second in candidates(one, other)
            for swapped, p, q in ((False, first, second), (True, second, first))
        )
        _, event, swapped = max(options, key=lambda option: option[0])
        likely, unlikely = (other_left, one_left) if swapped else (one_left, other_left)
        low = at_least(event.count(likely), len(likely), doubt / 2)
        high = at_most(event.count(unlikely), len(unlikely), doubt / 2)
        drawn = sum(len(half) for pair in halves for half in pair)
        return Evidence(max(0.0, loss(low, high, claim.delta)), max(0.0, _stick(low, high, claim)), event.words, drawn)


@dataclass(frozen=True)
class HockeyStick(LikelihoodRatio):
    """For claims with δ > 0: also the event with the largest P − e^ε·Q, the amount by which the claimed ε fails.

    Guarantee: as `LikelihoodRatio`; the doubt is shared by the two events.
    """

    def examine(self, mechanism: Mechanism, pair: Pair, samples: int) -> Evidence:
        """Draw ``samples`` outputs on each table; see `Tester`."""
        halves = [_split(mechanism.sample(table, samples)) for table in (pair.one, pair.other)]
        doubt = (1 - self.confidence) / 2
        ratio, stick = (self._judged(halves, mechanism.claim, doubt, worth) for worth in (_ratio, _stick))
        event = stick.event if stick.epsilon > ratio.epsilon else ratio.event
        epsilon, delta = (max(getattr(ratio, name), getattr(stick, name)) for name in ("epsilon", "delta"))
        return Evidence(epsilon, delta, event, ratio.samples)


@dataclass(frozen=True)
class Exact:
    """All probabilities of all outputs: for mechanisms that can be enumerated. No sample, no doubt, no tolerance.

    Probabilities that are fractions are compared as fractions; doubles are exact to about 10⁻¹².
    """

    def examine(self, mechanism: Enumerable, pair: Pair, samples: int) -> Evidence:
        """``samples`` is not used; see `Tester`."""
        one, other = mechanism.law(pair.one), mechanism.law(pair.other)
        claim = mechanism.claim
        outputs = sorted({*one, *other}, key=repr)
        chances = [(float(one.get(output, 0)), float(other.get(output, 0)), output) for output in outputs]
        worst = max(chances, key=lambda chance: abs(loss(chance[0], chance[1], 0.0)))
        deltas = [_excess(a, b, claim.epsilon) for a, b in ((one, other), (other, one))]
        epsilon = abs(loss(worst[0], worst[1], 0.0)) if not claim.delta else _epsilon_at(one, other, claim)
        return Evidence(epsilon, max(deltas), f"output = {worst[2]}")


_Worth = Callable[[float, float, Claim], float]


def _ratio(likely: float, unlikely: float, claim: Claim) -> float:
    return loss(likely, unlikely, claim.delta)


def _stick(likely: float, unlikely: float, claim: Claim) -> float:
    return likely - math.exp(claim.epsilon) * unlikely


def loss(likely: float, unlikely: float, delta: float) -> float:
    """ln((P − δ)/Q): the ε that an event of these probabilities proves; −∞ if it proves none."""
    if likely <= delta:
        return -math.inf
    return math.inf if unlikely <= 0 else math.log((likely - delta) / unlikely)


def _excess(law: Law, other: Law, epsilon: float) -> float:
    """Σ (P − e^ε·Q)₊: the exact δ at this ε."""
    factor = math.exp(epsilon)
    return sum(max(0.0, float(chance) - factor * float(other.get(output, 0))) for output, chance in law.items())


def _epsilon_at(one: Law, other: Law, claim: Claim) -> float:
    """The smallest ε at which the exact δ is at most the claimed one."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = max(_excess(one, other, middle), _excess(other, one, middle)) <= claim.delta
        low, high = (low, middle) if fits else (middle, high)
    return high


def _split(outputs: Outputs) -> tuple[Outputs, Outputs]:
    half = len(outputs) // 2
    return outputs[:half], outputs[half:]


def _limit(share: float, trials: int, sign: int) -> float:
    """A share moved by 2.5 standard deviations and a success (Agresti and Coull): cheap, and wary of rare events."""
    centre = (share * trials + 2) / (trials + 4)
    moved = centre + sign * 2.5 * math.sqrt(centre * (1 - centre) / (trials + 4))
    return float(np.clip(moved, 1e-12, 1.0))

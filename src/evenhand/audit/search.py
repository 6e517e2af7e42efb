"""`audit`: look for the worst of many neighbouring pairs, then examine that one with all the samples."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from evenhand.audit.mechanism import Claim, Enumerable, Mechanism, Pair
from evenhand.audit.testers import Evidence, Exact, HockeyStick, LikelihoodRatio, Tester
from evenhand.guarantee import UsageError

CONFIRMATIONS = 4
"""A bound above the claim must repeat this often on fresh samples: at 95% confidence, a false alarm in 3 million."""

_SCREENING = 10  # the part of the sample that each pair gets in the search for the worst one
_FEWEST = 100
_ROUNDING = 1e-9  # exact laws are compared in doubles


@dataclass(frozen=True)
class Finding:
    """The strongest evidence against a mechanism.

    Args:
        name: of the mechanism.
        claim: what it promises.
        epsilon: a lower bound on the true ε at the claimed δ (95% confidence).
        delta: a lower bound on the true δ at the claimed ε.
        pair: the neighbouring tables that it was found on.
        event: the outputs that give them away.
        samples: how many outputs were drawn in all.
        seconds: how long it took.
    """

    name: str
    claim: Claim
    epsilon: float
    delta: float
    pair: str
    event: str
    samples: int
    seconds: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is proved wrong."""
        return self.epsilon > self.claim.epsilon + _ROUNDING or self.delta > self.claim.delta + _ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """The finding as data, ready for JSON; an infinite ε as None."""
        data = asdict(self) | {"refuted": self.refuted, "seconds": round(self.seconds, 2)}
        return data | {"epsilon": None if self.epsilon == float("inf") else round(self.epsilon, 4)}


def audit(
    mechanism: Mechanism | Enumerable, pairs: Iterable[Pair], samples: int = 20_000, tester: Tester | None = None
) -> Finding:
    """Try to prove that a mechanism loses more privacy than it claims.

    Guarantee: a mechanism that keeps its claim on these pairs is refuted with probability at most 0.05⁵ ≈ 3·10⁻⁷. A
    mechanism that isn't refuted may still be broken: an audit is evidence, not a proof.

    Args:
        mechanism: a black box, or one whose exact law is known.
        pairs: neighbouring tables; all are screened with a tenth of the samples, the worst is examined with all.
        samples: outputs to draw on each table of the worst pair.
        tester: how to look; by default the exact law if there is one, the hockey stick if δ > 0, else likelihood ratios.

    Example:
        >>> audit(BlackBox("count", Claim(1.0), noisy_count), [Pair("one more", rows, rows[1:])]).epsilon  # doctest: +SKIP
    """
    began = time.monotonic()
    chosen = tester or _tester(mechanism)
    options = list(pairs)
    if not options:
        raise UsageError(
            f"no pairs of tables were given for {mechanism.name}; expected at least one neighbouring pair."
        )
    spent = 0

    def examine(pair: Pair, count: int) -> Evidence:
        nonlocal spent
        evidence = chosen.examine(mechanism, pair, count)
        spent += evidence.samples
        return evidence

    worst = options[0]
    if len(options) > 1:
        few = max(samples // _SCREENING, _FEWEST)
        worst = max(options, key=lambda pair: examine(pair, few).epsilon)
    evidence = examine(worst, samples)
    if not isinstance(chosen, Exact):
        repeats = 0
        while evidence.epsilon > mechanism.claim.epsilon and repeats < CONFIRMATIONS:
            evidence = min(evidence, examine(worst, samples), key=lambda found: found.epsilon)
            repeats += 1
    seconds = time.monotonic() - began
    return Finding(
        mechanism.name, mechanism.claim, evidence.epsilon, evidence.delta, worst.name, evidence.event, spent, seconds
    )


def _tester(mechanism: Mechanism | Enumerable) -> Tester:
    if hasattr(mechanism, "law"):
        return Exact()
    return HockeyStick() if mechanism.claim.delta else LikelihoodRatio()

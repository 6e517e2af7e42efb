"""Black-box attempts to disprove a claimed guarantee.

Three small parts: a *mechanism* that gives outputs, *pairs* of neighbouring tables, and a *tester* that looks for an event
which tells the two apart more often than the claim allows.

    from evenhand.audit import BlackBox, Claim, Pair, audit

    finding = audit(BlackBox("noisy count", Claim(epsilon=1.0), noisy_count), [Pair("one more user", rows, fewer)])
    finding.epsilon, finding.refuted
"""

from evenhand.audit.laws import law_of
from evenhand.audit.mechanism import BlackBox, Claim, Enumerable, KnownLaw, Law, Mechanism, Outputs, Pair
from evenhand.audit.search import Finding, audit
from evenhand.audit.testers import Evidence, Exact, HockeyStick, LikelihoodRatio, Tester

__all__ = [
    "BlackBox",
    "Claim",
    "Enumerable",
    "Evidence",
    "Exact",
    "Finding",
    "HockeyStick",
    "KnownLaw",
    "Law",
    "LikelihoodRatio",
    "Mechanism",
    "Outputs",
    "Pair",
    "Tester",
    "audit",
    "law_of",
]

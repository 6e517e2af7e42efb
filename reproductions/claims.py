"""What the papers say, where it is computed, and how to ask for it from the public interface: the lines of the table in README.md.

A line shows one or two numbers of its reproduction's outcome: those of the checks whose names begin as `shown` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reproductions.outcomes import Check, Outcome


@dataclass(frozen=True)
class Claim:
    """One line.

    Args:
        item: of the paper.
        call: how to have it from the public interface.
        says: what the paper says, in short.
        shown: how the names of the checks begin whose numbers are shown.
        missing: why only a part is reproduced; empty if all of it is.
    """

    item: str
    call: str
    says: str
    shown: tuple[str, ...]
    missing: str = ""


CLAIMS: Mapping[str, Claim] = {
    "amin2018-lemma1": Claim(
        "Lemma 1",
        '`HypothesisSelection(linear_net(d, ...))`, `eh.plan("selection", ...)`',
        "excess at most 8τ((d+1) ln 3 + ln 1/δ)/(n_τ ε)",
        ("d = 3, n_τ = 3,482: excess over Lemma", "d = 3: with", "0-1 loss"),
        "a net, not the ball; true for convex losses and with other exponents",
    ),
    "amin2018-theorem1": Claim(
        "Theorem 1, Propositions 1 and 2",
        "`planning.excess_risk.Participation`",
        "deviation at most O(√(d ln(n/d)/n)/γ²), bias at most √(½ ln 1/γ), √(2 Var/γ)",
        ("γ = 0.1: the deviation falls", "largest bias over"),
    ),
    "amin2018-corollary1": Claim(
        "Corollary 1",
        "`planning.excess_risk.amin2018_corollary_1`",
        "excess tends to 0 for n^(1/6) equal users and γ = 1/N",
        ("bounds with γ = 1/N", "the first n"),
        "false at γ = 1/N; vacuous below 18 million examples",
    ),
    "amin2019-fig1": Claim(
        "Figure 1",
        '`eh.plan("count", profile, epsilon, objective="worst case")`, `session.count(...)`',
        "the ⌈1/ε⌉-th largest count is a good cap for every ε, fixed quantiles for one",
        ("best rank against", "median cap against", "Evenhand, private, against best rank"),
        "without MovieLens' file, a shape with its published quantiles",
    ),
    "amin2019-fig2": Claim(
        "Figure 2", "-", "mass of uncapped users grows with τ₀", ("α = 1, mass",), "the paper names no α"
    ),
    "amin2019-fig3": Claim(
        "Figure 3",
        '`eh.plan("erm", profile, epsilon, dimension=d, objective="worst case")`',
        "2 to 8 users capped at the best τ₀",
        ("α = 0.25, δ = 0.05: users", "α = 2, δ = 0.05: users", "C·ln²"),
        "the paper names neither n, α, δ nor C",
    ),
    "epasto2020-fig1": Claim(
        "Figure 1",
        "`LabelPrivateRegression(epsilon, noise_sd=σ)`",
        "error falls with n for all methods; ours lowest, by orders of magnitude against all rows",
        ("n = 3000: Sample", "n = 3000: All rows", "Our method: median", "All rows: median"),
        "the error of all rows does not fall: Zipf(1.5) has no mean",
    ),
    "epasto2020-fig2": Claim(
        "Figure 2",
        "the same",
        "the gain is larger for unequal users",
        ("Sample limit h* over ours, α", "All rows over ours, α"),
    ),
    "epasto2020-example1": Claim(
        "Example 1, Claim 3",
        '`LabelPrivateRegression(weighting="row-limit")`',
        "optimum at most 1/g⁴, row limit at least 1/(4g³)",
        ("g = 5: optimal",),
    ),
    "epasto2020-table1": Claim(
        "Table 1, drugs",
        "`LabelPrivateRegression`; `--data drugLibTrain_raw.tsv`",
        "3.1, 24.8 (h*) and 95.4 at ε = 1",
        ("all rows against ours", "row limit against ours"),
        'without the file a look-alike; how h* was found is not said; "news" is not described',
    ),
    "epasto2020-algorithm2": Claim(
        "Algorithm 2, Theorem 4",
        '`WeightedERM(clip="lipschitz", weight_bound="worst case")`, `eh.plan("erm", ..., delta=..., objective="worst case")`',
        "h minimises Theorem 4's sum",
        ("users alike", "busy users differ"),
    ),
    "epasto2020-logistic": Claim(
        "Appendix E, logistic regression",
        '`WeightedERM(clip="lipschitz", weight_bound=h)`',
        "weights beat the row limit",
        ("ε",),
        "the appendix is not at hand",
    ),
    "epasto2020-theorem2": Claim(
        "Theorem 2",
        "`eh.SmoothWeights`, `eh.RowLimit`",
        "a gap of 3/2",
        ("the larger gap",),
        "its instance is in an appendix that is not at hand",
    ),
    "epasto2020-theorem3": Claim("Theorem 3", "the same", "never more than 4 times", ("largest ratio",)),
    "rameshwar2024-fig2": Claim(
        "Theorem III.1, Figure 2",
        '`eh.plan("mean", ..., protects="values", objective="worst case")`, `session.mean(bounding=eh.CentredInterval())`',
        "E_OPT 20.02 and 6.96, errors 5.81 and 4.64, at ε = 0.1 and 1",
        ("E_OPT at ε = 0.1", "E_OPT at ε = 1", "centred interval at ε = 0.1", "centred interval at ε = 1"),
    ),
    "rameshwar2024-fig3": Claim(
        "Figure 3",
        "the same",
        "E_OPT 8.57 and 3.25 at ε = 0.1 and 1",
        ("E_OPT",),
        "vectors by a corrected mechanism only",
    ),
    "banerjee-maxsense-scaling": Claim(
        "Theorem 5.1, rate", '`Campaign(names, "maxsense", ...)`', "N²/w people", ("exponent",)
    ),
    "banerjee-exact": Claim(
        "Theorem 5.1, exact recovery",
        "`recommender.planning.plan(...).sufficient`",
        "exact from C·N² ln N/(ε̂² δ² w) on",
        ("exponent", "C, geometric", "proven"),
    ),
    "banerjee-exact-pairwise": Claim(
        "Theorem 3.5, exact recovery",
        '`Campaign(names, "pairwise", ...)`',
        "N log N people where w = Θ(N)",
        ("exponent",),
        "from ε = 0.5 to 2 the people needed fall faster than tanh(ε/2) to the power -2",
    ),
    "banerjee-exact-several": Claim(
        "Theorem 5.3, exact recovery",
        '`Campaign(names, "multi-maxsense", ...)`, `plan(...).sufficient`',
        "N² log N/(ε w) people",
        ("exponent",),
        "ε from 4 to 12",
    ),
    "banerjee-several-questions": Claim(
        "Theorem 5.3, number of questions",
        "`recommender.tuning.best_questions`",
        "Q = ⌈ε⌉",
        ("one question", "⌈ε⌉", "exponent of ε, best"),
        "⌈ε⌉ is not the best Q",
    ),
    "banerjee-pairwise-rich": Claim(
        "Theorem 3.5, rate", '`Campaign(names, "pairwise", ...)`', "N log N people", ("exponent",)
    ),
    "banerjee-public-rated": Claim(
        "Section 3, public rated items",
        "`plan(..., public_rated=True)`, `study(..., public_rated=True)`",
        "N log N people, whatever w is",
        ("exponent", "simulated over forecast"),
    ),
    "banerjee-regimes": Claim(
        "Section 5, two regimes",
        "`recommender.planning.plan`",
        "N²/w² times as many for Pairwise-Preference",
        ("exponent",),
        "it is (N/w)⁴",
    ),
    "banerjee-mirrored": Claim(
        "beyond the paper", '`Campaign(names, "projection", ...)`', "-", ("projection", "maxsense")
    ),
}
"""By the names of the reproductions."""

HEAD = ("paper", "item", "reproduction", "public interface", "the paper says", "we get", "whole or partly")


def table(outcomes: Mapping[str, Outcome], size: str) -> str:
    """The lines of these reproductions as Markdown."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for name, outcome in outcomes.items():
        claim = CLAIMS[name]
        part = f"partly: {claim.missing}" if claim.missing else "whole"
        where = f"`{name}`" + (" (small)" if size == "small" else "")
        cells = (name.partition("-")[0], claim.item, where, claim.call, claim.says, found(claim, outcome.checks), part)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def found(claim: Claim, checks: Sequence[Check]) -> str:
    """The shown numbers, with their intervals; and any that is not as expected."""
    shown = [check for check in checks if check.name.startswith(claim.shown) or not check.holds]
    return "; ".join(_one(check) for check in shown)


def _one(check: Check) -> str:
    span = "" if check.interval is None else f" ({check.interval[0]:.3g} to {check.interval[1]:.3g})"
    verdict = "" if check.holds else ", NOT AS EXPECTED"
    return f"{check.name}: {check.found:.3g}{span}{verdict}"

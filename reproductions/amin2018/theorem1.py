"""Theorem 1 and Propositions 1 and 2: how far losses on the kept examples are from the risk, and how large the bias can be."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evenhand.planning.excess_risk import Participation, amin2018_theorem_1
from reproductions.outcomes import Check, Outcome, Size, lines

Floats = npt.NDArray[np.float64]
EXAMPLES = {"small": (1_000, 10_000), "full": (1_000, 10_000, 100_000)}
RUNS = {"small": 20, "full": 200}
GAMMAS = (0.05, 0.1, 0.2, 0.4)
HYPOTHESES, DIMENSION = 64, 6
"""64 functions have a VC dimension of 6 at most."""


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """The largest deviation over 64 hypotheses beyond the bias, against √(d ln(n/d)/n)/γ² with constant 1; and the biases of random users.

    Users take part with p_j ∝ j^-1.5, 200 of them; each has a mean loss of its own for each hypothesis, and examples' losses are 0 or 1.
    """
    rng, rows, checks = np.random.default_rng(2018), [], []
    shares = np.arange(1, 201) ** -1.5
    shares /= shares.sum()
    means = rng.random((200, HYPOTHESES))
    for gamma in GAMMAS:
        drawn = Participation(shares, gamma)
        for n in EXAMPLES[size]:
            found = [deviation(drawn, means, n, rng) for _ in range(RUNS[size])]
            bound = amin2018_theorem_1(drawn, n, DIMENSION)
            rows += [
                {"n": n, "deviation": float(np.quantile(found, 0.95)), "what": f"γ = {gamma:g}"},
                {"n": n, "deviation": min(bound, 1.0), "what": f"γ = {gamma:g}, Theorem 1"},
            ]
            name = f"γ = {gamma:g}, n = {n:,}: deviation over {'1 (the bound says nothing)' if bound >= 1 else 'the bound'}"
            checks.append(Check(name, float(np.max(found)) / min(bound, 1.0), 0.0, 1.0))
        # Without the bias in it, or with a cap that is not applied, the deviation does not fall with n.
        found = [float(str(row["deviation"])) for row in rows if row["what"] == f"γ = {gamma:g}"]
        fall = math.log(found[0] / found[-1]) / math.log(EXAMPLES[size][-1] / EXAMPLES[size][0])
        checks.append(Check(f"γ = {gamma:g}: the deviation falls like n to the power", fall, 0.4, 0.65))
    checks += biases(rng)
    title = "amin2018 theorem 1: deviation beyond the bias (95% of runs)"
    return Outcome(title, checks, rows).write(out, "amin2018-theorem1", lines(rows, "n", "deviation", "what", title))


def deviation(drawn: Participation, means: Floats, n: int, rng: np.random.Generator) -> float:
    """max over hypotheses of |loss on the kept examples − risk − bias|."""
    counts = np.minimum(rng.multinomial(n, drawn.p), math.ceil(drawn.gamma * n))
    losses = rng.binomial(counts[:, None], means).sum(axis=0) / counts.sum()
    return float(np.abs(losses - drawn.q @ means).max())


def biases(rng: np.random.Generator) -> list[Check]:
    """The largest bias over the bounds of Propositions 1 and 2, for losses that make it large: 1 for capped users, 0 for others."""
    largest = {"Proposition 1": 0.0, "Proposition 2": 0.0, "min(TV, √(Var·χ²))": 0.0}
    for _ in range(2000):
        drawn = Participation(rng.dirichlet(np.full(20, 0.3)), float(rng.uniform(0.05, 0.9)))
        losses = (drawn.p > drawn.q).astype(float) if rng.random() < 0.5 else rng.random(len(drawn.p))
        bias = abs(float((drawn.q - drawn.p) @ losses))
        variance = min(float(drawn.p @ (losses - drawn.p @ losses) ** 2), 0.25)
        bounds = drawn.bias_proposition_1(), drawn.bias_proposition_2(variance), drawn.bias(variance)
        for name, bound in zip(largest, bounds, strict=True):
            largest[name] = max(largest[name], bias / bound if bound > 1e-9 else 0.0)
    lows = {"Proposition 1": 0.3, "Proposition 2": 0.15, "min(TV, √(Var·χ²))": 0.999}
    return [Check(f"largest bias over {name}", found, lows[name], 1 + 1e-9) for name, found in largest.items()]

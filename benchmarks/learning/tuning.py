"""Ways to pay for tuning, compared: which model do they end with, for the same (ε, δ) in total?

    python -m benchmarks.learning.tuning

*default*      no tuning: the middle candidate on all users, with everything.
*compose*      all K candidates on the training users, chosen on the others; the winner is released. ρ/K each.
*refit*        the same with a part of ρ, then the winner again on all users with the rest: what `PrivateSearchCV` does.
*stop*         random stopping (Liu and Talwar 2019; Papernot and Steinke 2022): a random number of random candidates, each with
               its own noisy score; the best is released. Truncated negative binomial, η = −1/2, on average 3K tries.
*hindsight*    the candidate that is best for this table, with everything; *untuned*: the median candidate (and the worst).

The learner is clipped gradient descent (`references.py`), the candidates its clip and rate.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from benchmarks.learning.problems import Data, Floats, Problem, generate
from benchmarks.learning.references import (
    DELTA,
    Tuning,
    clipped_descent,
    constant,
    losses,
    mean_loss,
    without_privacy,
)
from benchmarks.results import keep, table

CANDIDATES = [Tuning(clip=clip, rate=rate) for clip, rate in product((0.1, 0.5, 2.5), (0.1, 0.4, 1.5))]
TABLES = (Problem("2,000 users", 2_000, 5), Problem("6,000 users", 6_000, 10, heavy=2.2))
CLAMP = 3 * math.log(2)
REGRET = math.log(2) / 2
JUDGES = 0.2
RUNS = 5
ORDERS = 1 + np.logspace(-2, 3.3, 400)


def to_epsilon(renyi: Floats) -> float:
    """The ε of Rényi divergences at ``ORDERS`` (Canonne, Kamath and Steinke 2020)."""
    return float((renyi + np.log1p(-1 / ORDERS) - (np.log(DELTA) + np.log(ORDERS)) / (ORDERS - 1)).min())


def rho_alone(epsilon: float) -> float:
    """All of ρ."""
    return float(brentq(lambda rho: to_epsilon(rho * ORDERS) - epsilon, 1e-9, 1))


def gamma_for(tries: float) -> float:
    """γ of the truncated negative binomial law with η = −1/2 and this mean."""
    return float(brentq(lambda g: -0.5 * (1 - g) / (g * (1 - g**-0.5)) - tries, 1e-12, 1 - 1e-9))


def rho_of_a_try(epsilon: float, tries: float) -> float:
    """ρ of one try of random stopping (Papernot and Steinke 2022, Theorem 2)."""
    gamma, eta = gamma_for(tries), -0.5

    def total(rho: float) -> float:
        other = ((1 + eta) * ((1 - 1 / ORDERS) * rho * ORDERS + math.log(1 / gamma) / ORDERS)).min()
        return to_epsilon(rho * ORDERS + other + math.log(tries) / (ORDERS - 1)) - epsilon

    return float(brentq(total, 1e-9, 1))


def draw_tries(gamma: float, rng: np.random.Generator) -> int:
    """A draw of that law: P(K = k) ∝ (1 − γ)^k Γ(k + η)/(k!·Γ(η))."""
    eta, k, u = -0.5, 1, rng.random()
    p = eta * (1 - gamma) / (gamma**-eta - 1)
    while u > p and k < 10_000:
        u -= p
        p *= (1 - gamma) * (k + eta) / (k + 1)
        k += 1
    return k


def part(data: Data, wanted: np.ndarray) -> Data:
    """The rows of some users."""
    rows = wanted[data.users]
    users = np.unique(data.users[rows], return_inverse=True)[1]
    return replace(data, X=data.X[rows], y=data.y[rows], users=users, counts=data.counts[wanted])


def user_losses(judges: Data, f: Floats) -> Floats:
    """Each user's clamped mean loss."""
    rows = losses(judges, np.c_[judges.box, np.ones(len(judges.y))] @ f)
    return np.asarray(np.clip(np.bincount(judges.users, rows) / judges.counts, 0, CLAMP))


def chosen(judges: Data, models: list[Floats], epsilon: float, rng: np.random.Generator) -> int:
    """Permute-and-flip, as report-noisy-max with exponential noise, on each user's loss above their best candidate, clamped.

    A user raises all sums, so there is no factor 2.
    """
    each = np.array([user_losses(judges, f) for f in models])
    scores = -np.minimum(each - each.min(axis=0), REGRET).sum(axis=1) + rng.exponential(REGRET / epsilon, len(models))
    return int(np.argmax(scores))


def run(data: Data, way: str, share: float, rng: np.random.Generator) -> Floats:
    """The released model."""
    rho = rho_alone(data.epsilon)
    judging = rng.random(len(data.counts)) < JUDGES
    train, judges = part(data, ~judging), part(data, judging)
    if way == "default":
        return clipped_descent(data, CANDIDATES[4], rng, rho)
    if way == "stop":
        tries = 3.0 * len(CANDIDATES)
        own = rho_of_a_try(data.epsilon, tries)
        best: tuple[float, Floats] | None = None
        for _ in range(draw_tries(gamma_for(tries), rng)):
            f = clipped_descent(train, CANDIDATES[rng.integers(len(CANDIDATES))], rng, own)
            score = float(user_losses(judges, f).sum()) + rng.normal(0, CLAMP / math.sqrt(2 * own))
            best = (score, f) if best is None or score < best[0] else best
        assert best is not None
        return best[1]
    paid = rho * (1 if way == "compose" else share)
    models = [clipped_descent(train, one, rng, paid / len(CANDIDATES)) for one in CANDIDATES]
    place = chosen(judges, models, math.sqrt(2 * paid), rng)
    return models[place] if way == "compose" else clipped_descent(data, CANDIDATES[place], rng, rho - paid)


def main() -> None:
    """Run, print, keep."""
    rng = np.random.default_rng(5)
    ways = [("default", 0.0), ("compose", 1.0), ("refit", 0.25), ("refit", 0.5), ("stop", 0.0)]
    rows = []
    for problem in TABLES:
        data = generate(problem)
        base, A = mean_loss(data, without_privacy(data)), np.c_[data.box, np.ones(len(data.y))]
        each = [
            np.median([mean_loss(data, A @ clipped_descent(data, one, rng, rho_alone(1.0))) - base for _ in range(3)])
            for one in CANDIDATES
        ]
        found = [[mean_loss(data, A @ run(data, way, share, rng)) - base for _ in range(RUNS)] for way, share in ways]
        cells = [f"{np.median(own):.2g} ({max(own):.2g})" for own in found]
        gap = mean_loss(data, constant(data)) - base
        rows.append(
            [problem.name, f"{gap:.3g}", *cells, f"{min(each):.2g}", f"{np.median(each):.2g} ({max(each):.2g})"]
        )
        print(rows[-1], flush=True)
    head = [
        "table",
        "constant",
        *(f"{way} {share:g}" if way == "refit" else way for way, share in ways),
        "hindsight",
        "untuned",
    ]
    today = datetime.date.today().isoformat()
    text = f"""# Ways to pay for tuning, {today}

Excess loss over no privacy of the model one ends with, median (largest) of {RUNS} runs; {len(CANDIDATES)} candidates, ε = 1, δ = {DELTA:g} in total.

{table(head, rows)}
"""
    keep(Path(__file__).parent, f"{today}-tuning", text, {"rows": rows})


if __name__ == "__main__":
    main()

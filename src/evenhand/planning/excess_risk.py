"""What bounding users costs a learner: the bounds of amin2018 and amin2019, in their notation.

Users j = 1, 2, ... have n_j of n examples; capping at τ keeps n_jτ = min(n_j, τ), n_τ = Σ n_jτ in all.
r_j = n_j/n is the share of a user before and q'_j = n_jτ/n_τ after. Losses lie in [0, 1].
Where a paper hides a constant in O(...), the function takes ``constant`` with default 1: compare settings with it, don't
quote the number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.guarantee import UsageError
from evenhand.planning.row_choice import LARGEST_TAU, limits_to_try
from evenhand.profiles import Sums, Support

FAILURE = 0.05
"""The probability with which a bound may fail where none is given."""

Utility = Callable[[float, float, float], float]


@dataclass(frozen=True)
class Capped:
    """Contributions n_j, capped at τ.

    Args:
        counts: examples of each user.
        tau: the cap.
    """

    counts: npt.ArrayLike
    tau: float

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, dtype=np.float64)
        if counts.size == 0 or not np.isfinite(counts).all() or (counts < 0).any() or counts.sum() == 0:
            raise UsageError(
                "counts must be the examples of each user: numbers, 0 or more, at least one of them positive."
            )
        if not self.tau > 0:
            raise UsageError(f"tau={self.tau:g} is out of range; expected a positive number of examples.")

    @property
    def n_j(self) -> npt.NDArray[np.float64]:
        """Examples of each user with any."""
        counts = np.asarray(self.counts, dtype=np.float64)
        return counts[counts > 0]

    @property
    def n(self) -> float:
        """All examples."""
        return float(self.n_j.sum())

    @property
    def n_tau(self) -> float:
        """Examples kept: the effective sample size."""
        return float(np.minimum(self.n_j, self.tau).sum())

    @property
    def users_capped(self) -> int:
        """How many users have more than τ examples."""
        return int((self.n_j > self.tau).sum())

    @property
    def total_variation(self) -> float:
        """TV = Σ max(0, r_j − q'_j)."""
        r, q = self._shares()
        return float(np.maximum(r - q, 0.0).sum())

    @property
    def chi_square(self) -> float:
        """χ² = Σ q'_j²/r_j − 1, at most n/n_τ − 1 and 0 when nothing is cut."""
        r, q = self._shares()
        return max(float((q**2 / r).sum()) - 1.0, 0.0)

    def _shares(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        return self.n_j / self.n, np.minimum(self.n_j, self.tau) / self.n_tau


def bias_proposition_1(capped: Capped, variance: float = 0.25) -> float:
    """amin2019 Proposition 1: bias ≤ min(√(½ ln(n/n_τ)), √(2n/n_τ · Var(H))).

    Args:
        capped: contributions and cap.
        variance: Var(H), the variance of a hypothesis' loss between users; at most 1/4 for losses in [0, 1].
    """
    kept = capped.n_tau / capped.n
    return min(math.sqrt(max(-math.log(kept), 0.0) / 2), math.sqrt(2 * _variance(variance) / kept))


def proposition_5(shares: npt.ArrayLike, tau0: float, n: int, delta: float) -> float:
    """amin2019 Proposition 5: with probability 1 − δ, n_τ/n ≥ ¼·Σ min(p_j, τ₀) − √(ln(1/δ)/2n) for τ = τ₀·n.

    The paper prints τ₀·K(τ₀) for the sum, K the number of users with p_j > τ₀, and proves this, which is larger. The proof needs τ ≥ 1,
    which the paper does not say; below, the statement is false (docs/proofs/papers.md).

    Args:
        shares: p_j, the participation distribution; users who are left out count as 0.
        tau0: τ₀, the cap as a share of all examples.
        n: number of examples.
        delta: failure probability.
    """
    _check(1.0, delta)
    p = np.asarray(shares, dtype=np.float64)
    if not (tau0 * n >= 1 and tau0 <= 1) or (p < 0).any() or p.sum() > 1 + 1e-9:
        raise UsageError(
            f"tau0={tau0:g} at n={n}: expected a cap of one example or more, tau0 from 1/n to 1, and shares that add up to 1 at most."
        )
    return float(np.minimum(p, tau0).sum() / 4 - math.sqrt(math.log(1 / delta) / (2 * n)))


def bias(capped: Capped, variance: float = 0.25) -> float:
    """The tighter bound: bias ≤ min(TV, √(½ ln(n/n_τ)), √(Var(H)·χ²)).

    Unlike Proposition 1's second term it vanishes as nothing is cut. The proof is in `docs/proofs/chi-square-bias.md`.
    """
    pinsker = math.sqrt(max(math.log(capped.n / capped.n_tau), 0.0) / 2)
    return min(capped.total_variation, pinsker, math.sqrt(_variance(variance) * capped.chi_square))


def chaudhuri(constant: float = 1.0) -> Utility:
    """F(τ/n, 1/ε, 1/δ) = C·(τ/n)²·ln²(1/δ)/ε² for output perturbation (Chaudhuri et al. 2011, as amin2019 §4 uses it)."""
    return lambda share, inverse_epsilon, inverse_delta: (
        constant * (share * inverse_epsilon * math.log(inverse_delta)) ** 2
    )


@dataclass(frozen=True)
class ExcessRisk:
    """The three terms of amin2019 Theorem 1; their sum bounds the excess risk."""

    bias: float
    sampling: float
    privacy: float

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return self.bias + self.sampling + self.privacy

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing, since losses are 1 at most."""
        return not self.total < 1


def theorem_1(
    capped: Capped,
    epsilon: float,
    delta: float,
    dimension: int,
    utility: Utility | None = None,
    bias_bound: float | None = None,
    constant: float = 1.0,
) -> ExcessRisk:
    """amin2019 Theorem 1: excess risk ≤ 2·bias + O(√(d ln(n/δ)/n_τ)) + F(τ/n_τ, 1/ε, 3/δ), with probability 1 − δ.

    Args:
        capped: contributions and cap.
        epsilon: ε of the learner.
        delta: the failure probability δ of the bound (not of privacy).
        dimension: VC dimension d.
        utility: F, `chaudhuri()` by default.
        bias_bound: a bound on the bias term, `bias(capped)` by default.
        constant: hidden in O(...).
    """
    _check(epsilon, delta)
    utility = utility or chaudhuri()
    bound = bias(capped) if bias_bound is None else bias_bound
    sampling = constant * math.sqrt(dimension * math.log(capped.n / delta) / capped.n_tau)
    return ExcessRisk(2 * bound, sampling, utility(capped.tau / capped.n_tau, 1 / epsilon, 3 / delta))


def risk_at(sums: Sums, tau: float, epsilon: float, delta: float, dimension: int) -> ExcessRisk:
    """Theorem 1's bound for users by number of rows, with constants of 1."""
    at, rows = np.array([float(tau)]), max(sums.support.rows, 1.0)
    kept = max(float(sums.kept(at)[0]), 1.0)
    pinsker = math.sqrt(max(math.log(rows / kept), 0.0) / 2)
    worst = min(float(sums.total_variation(at)[0]), pinsker, math.sqrt(float(sums.chi_square(at)[0])) / 2)
    sampling = math.sqrt(dimension * math.log(rows / delta) / kept)
    return ExcessRisk(2 * worst, sampling, chaudhuri()(tau / kept, 1 / epsilon, 3 / delta))


def best_cap(support: Support, epsilon: float, dimension: int, delta: float = FAILURE) -> int:
    """The τ that makes Theorem 1's bound least: amin2019's trade-off as it stands, for an Algorithm 1 whose τ is public or bought."""
    _check(epsilon, delta)
    sums, taus = Sums.of(support), limits_to_try(min(float(support.sizes.max()), LARGEST_TAU))
    return int(min(taus, key=lambda tau: risk_at(sums, tau, epsilon, delta, dimension).total))


def corollary_1(capped: Capped, epsilon: float, delta: float, dimension: int, constant: float = 1.0) -> ExcessRisk:
    """amin2019 Corollary 1: 2√(1 − n_τ/n) + O(√(d ln(n/δ)/n_τ)) + O(τ² ln²(1/δ)/(n_τ² ε²)), for n_τ/n ≥ 1/4.

    From Proposition 1 and ln(1/(1−x)) ≤ 2x for x ≤ 3/4.
    """
    _check(epsilon, delta)
    cut = 1 - capped.n_tau / capped.n
    if cut > 0.75:
        raise UsageError(
            f"the cap keeps {1 - cut:.0%} of the examples, but Corollary 1 needs 25% at least: raise tau or use theorem_1."
        )
    sampling = constant * math.sqrt(dimension * math.log(capped.n / delta) / capped.n_tau)
    privacy = constant * (capped.tau * math.log(1 / delta) / (capped.n_tau * epsilon)) ** 2
    return ExcessRisk(2 * math.sqrt(max(cut, 0.0)), sampling, privacy)


@dataclass(frozen=True)
class Participation:
    """amin2018's model: each of n examples comes from user j with probability p_j, and a user keeps at most τ = γn of them.

    Args:
        shares: p_j.
        gamma: γ, the cap as a share of all examples.
    """

    shares: npt.ArrayLike
    gamma: float

    def __post_init__(self) -> None:
        p = np.asarray(self.shares, dtype=np.float64)
        fine = p.size and (p >= 0).all() and math.isclose(float(p.sum()), 1.0, rel_tol=1e-6)
        if not (fine and 0 < self.gamma <= 1):
            raise UsageError(
                f"gamma={self.gamma:g}: expected shares that are 0 or more and add up to 1, and a cap gamma in (0, 1]."
            )

    @property
    def p(self) -> npt.NDArray[np.float64]:
        """The shares of users with any."""
        shares = np.asarray(self.shares, dtype=np.float64)
        return shares[shares > 0]

    @property
    def q(self) -> npt.NDArray[np.float64]:
        """q_j/Σq, q_j = min(γ, p_j): the shares after the cap."""
        capped = np.minimum(self.gamma, self.p)
        return np.asarray(capped / capped.sum())

    @property
    def total_variation(self) -> float:
        """What the bias is at most, for every loss in [0, 1]: Σ max(0, p_j − q_j/Σq)."""
        return float(np.maximum(self.p - self.q, 0.0).sum())

    def bias_proposition_1(self) -> float:
        """amin2018 Proposition 1: bias ≤ √(½ ln(1/γ)). It says nothing for γ ≤ e⁻² = 0.135."""
        return math.sqrt(math.log(1 / self.gamma) / 2)

    def bias_proposition_2(self, variance: float = 0.25) -> float:
        """amin2018 Proposition 2: bias ≤ √(2·Var(h)/γ). Without a guess of Var(h), which is ¼ at most, it says nothing for γ ≤ ½."""
        return math.sqrt(2 * _variance(variance) / self.gamma)

    def bias(self, variance: float = 0.25) -> float:
        """The tighter bound: min(TV, √(Var(h)·χ²)), χ² = Σ (q_j/Σq)²/p_j − 1 ≤ 1/γ − 1 (docs/proofs/chi-square-bias.md)."""
        chi_square = max(float((self.q**2 / self.p).sum()) - 1.0, 0.0)
        return min(self.total_variation, math.sqrt(_variance(variance) * chi_square))

    def heavy_users(self, n: float, delta: float) -> int:
        """K(γ): how many users have p_j > γ + √(4 ln(n/δ)/n)."""
        return int((self.p > self.gamma + math.sqrt(4 * math.log(n / delta) / n)).sum())


def amin2018_lemma_1(tau: float, n_tau: float, epsilon: float, dimension: int, delta: float = 1.0) -> float:
    """amin2018 Lemma 1: the exponential mechanism over the unit ball loses at most 8τ/(n_τ ε)·((d+1)·ln 3 + ln(1/δ)) of average loss.

    It is a bound on an expectation, so it holds at δ = 1. It needs losses in [0, 1] that are convex in h, and exponents −ε·n_τ·L/(2τ); for the 0-1 loss, and
    with the exponents that the paper prints, it is false (docs/proofs/papers.md). For convex losses 2dτ/(n_τ ε) is enough: `amin2018_convex`.
    """
    _check(epsilon, min(delta, 0.5))
    return 8 * tau / (n_tau * epsilon) * ((dimension + 1) * math.log(3) + math.log(1 / delta))


def amin2018_convex(tau: float, n_tau: float, epsilon: float, dimension: int) -> float:
    """2dτ/(n_τ ε): what a density ∝ exp(−λL) on a convex body loses at most if L is convex is d/λ, with λ = ε·n_τ/(2τ) (Kalai and Vempala 2006)."""
    _check(epsilon, 0.5)
    return 2 * dimension * tau / (n_tau * epsilon)


def amin2018_theorem_1(drawn: Participation, n: float, dimension: int, constant: float = 1.0) -> float:
    """amin2018 Theorem 1: no hypothesis' loss on the kept examples is further than O(√(d ln(n/d)/n)/γ²) from its risk, the bias apart.

    It says nothing where γ⁴ ≤ d·ln(n/d)/n, at a constant of 1; amin2019 has √(d ln(n/δ)/n_τ) without 1/γ².
    """
    return constant * math.sqrt(dimension * math.log(max(n / dimension, math.e)) / n) / drawn.gamma**2


def amin2018_corollary_1(
    drawn: Participation, n: float, epsilon: float, delta: float, dimension: int, constant: float = 1.0
) -> ExcessRisk:
    """amin2018 Corollary 1, linear hypotheses in the unit ball by the exponential mechanism: 2·bias + O(√(d ln(n/d)/n)/γ²) + O(d/(K(γ)ε)).

    The paper prints the bias once in the corollary and twice where it uses it; two is what two applications of its Theorem 1
    give. With K(γ) = 0 the bound says nothing: infinite. So it is for the paper's own example, N equally active users and γ = 1/N: K(γ) = N needs
    a γ below 1/N by more than √(4 ln(n/δ)/n).

    Args:
        drawn: who takes part, and the cap.
        n: number of examples.
        epsilon: ε of the learner.
        delta: failure probability of the bound.
        dimension: d.
        constant: hidden in O(...).
    """
    _check(epsilon, delta)
    heavy = drawn.heavy_users(n, delta)
    privacy = constant * dimension / (heavy * epsilon) if heavy else math.inf
    return ExcessRisk(2 * drawn.total_variation, amin2018_theorem_1(drawn, n, dimension, constant), privacy)


def _variance(variance: float) -> float:
    if not 0 <= variance <= 0.25:
        raise UsageError(f"variance={variance:g} is out of range; losses in [0, 1] have a variance between 0 and 1/4.")
    return variance


def _check(epsilon: float, delta: float) -> None:
    if not (epsilon > 0 and 0 < delta < 1):
        raise UsageError(
            f"epsilon={epsilon:g}, delta={delta:g}: expected epsilon > 0 and a failure probability 0 < delta < 1."
        )

"""Low-order bits: naive floating-point Laplace noise betrays what it was added to; Evenhand's integer noise does not.

Mironov 2012: ``x − scale·ln(U)`` in doubles reaches only some doubles, and which ones depends on x. The attacker below is told
nothing but the released numbers and checks, for each candidate x, whether they can be reached at all. With ε = 0.001 the
noise itself tells the candidates apart less than once in a hundred, so whatever the attacker wins comes from the bits.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable

import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audit.releases import recorded
from evenhand.session import Drafts

EPSILON = 0.001
SCALE = 1 / EPSILON
RELEASES = 8
ROUNDS = 200
CHANCE = 6 * math.sqrt(ROUNDS) / 2 / ROUNDS  # a guesser is right more often than ½ + this once in 10⁹
BITS = 53


def naive(x: float) -> float:
    """What most programs do: the inverse of the distribution function, applied to a 53-bit uniform number."""
    uniform = (secrets.randbits(BITS) + 1) / 2**BITS
    return x + _noise(uniform, secrets.choice((-1, 1)))


def _noise(uniform: float, sign: int) -> float:
    return sign * SCALE * -math.log(uniform)


def reachable(x: float, y: float) -> bool:
    """Whether the naive noise can lead from x to y: try the uniform numbers around the one that would do it exactly."""
    distance = y - x
    sign = 1 if distance >= 0 else -1
    middle = round(math.exp(-abs(distance) / SCALE) * 2**BITS)
    return any(
        x + _noise(numerator / 2**BITS, sign) == y
        for numerator in range(max(1, middle - 40), min(2**BITS, middle + 40) + 1)
    )


def share_guessed(release: Callable[[int], float]) -> float:
    """How often the attacker names the secret bit behind a few releases."""
    right = 0
    for _ in range(ROUNDS):
        secret = secrets.randbelow(2)
        seen = [release(secret) for _ in range(RELEASES)]
        possible = [x for x in (0, 1) if all(reachable(float(x), y) for y in seen)]
        right += (possible[0] if len(possible) == 1 else secrets.randbelow(2)) == secret
    return right / ROUNDS


def test_the_attack_reads_the_secret_behind_naive_noise() -> None:
    assert share_guessed(naive) > 0.9


@pytest.fixture
def release() -> Callable[[int], float]:
    """A sum over one user whose value is the secret bit: exact integers once, the noise of a release each time."""
    steps = []
    for secret in (0.0, 1.0):
        table = eh.read(pa.table({"u": ["a"], "v": [secret]}), user="u")
        draft = Drafts(table).sum("v", bounds=(0, 1), epsilon=EPSILON, bounding=eh.TotalCap(1))
        (step,) = recorded(draft)
        steps.append(step)
    unit = 1 / (steps[1].exact[0] - steps[0].exact[0])
    assert math.log2(unit) == round(math.log2(unit)), "a power of two, so that scaling back rounds nothing"

    def draw(secret: int) -> float:
        return steps[secret].noise.add_to(steps[secret].exact)[0] * unit

    return draw


def test_the_attack_is_guessing_against_evenhand(release: Callable[[int], float]) -> None:
    assert abs(share_guessed(release) - 0.5) < CHANCE


def test_low_order_bits_look_the_same_whatever_the_secret(release: Callable[[int], float]) -> None:
    """Four low-order bits, as a chi-square statistic between the two secrets; false alarms once in 10⁶."""
    from scipy import stats

    draws = 4_000
    counts = [[0] * 16 for _ in range(2)]
    for secret in (0, 1):
        for _ in range(draws):
            counts[secret][round(release(secret) * 2**20) % 16] += 1
    assert stats.chi2_contingency(counts).pvalue > 1e-6
    shifted = [counts[0], [counts[1][0] + draws // 10, *counts[1][1:]]]  # the twin: one pattern a tenth too often
    assert stats.chi2_contingency(shifted).pvalue < 1e-6

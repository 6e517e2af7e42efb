"""Intervals hold the value before noise as often as they say, and ignoring one of two noises is caught.

Coverage is a one-sided binomial test with false alarms of 1e-6.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import pyarrow as pa
import pytest
from alarms import happens_at_least

import evenhand as eh
from evenhand.audit.remembering import Remembering
from evenhand.noise import Gaussian, IntegerNoise, Laplace
from evenhand.release import Additive, Exact, Quotient, Ratio, Receipt
from evenhand.session import Drafts
from evenhand.statistics import Draft
from evenhand.tables.engines import Engine
from watch import watch

SCALE = Fraction(1000)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1000)], ids=float)
@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.95, 0.999])
def test_the_laplace_radius_is_the_smallest_that_covers(scale: Fraction, confidence: float) -> None:
    q = math.exp(-1 / float(scale))
    radius = Laplace(scale).radius(confidence)

    def covered(k: int) -> float:
        return 1 - 2 * q ** (k + 1) / (1 + q)

    assert covered(radius) >= confidence - 1e-12
    assert radius == 0 or covered(radius - 1) < confidence


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(50)], ids=float)
@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.95, 0.999])
def test_the_gaussian_radius_covers_and_is_within_a_step_or_two(scale: Fraction, confidence: float) -> None:
    weights = {k: math.exp(-(k**2) / (2 * float(scale) ** 2)) for k in range(-500, 501)}
    radius = Gaussian(scale).radius(confidence)

    def covered(k: int) -> float:
        return sum(weight for at, weight in weights.items() if abs(at) <= k) / sum(weights.values())

    assert covered(radius) >= confidence
    assert radius <= 2 or covered(radius - 2) < confidence


def _drawn(kind: type[IntegerNoise], m: float, weight: int, paired: bool, trials: int) -> list[tuple[int, int]]:
    """Noisy numerators and denominators of a fraction m."""
    numerator = round(m * weight)
    drawn = kind(SCALE).add_to([numerator, weight - numerator if paired else weight] * trials)
    return [(one, one + two if paired else two) for one, two in zip(drawn[::2], drawn[1::2], strict=True)]


@pytest.mark.parametrize("weight", [500, 30_000, 10**7])
@pytest.mark.parametrize(("m", "paired"), [(0.5, True), (0.02, True), (0.9, False)])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_a_ratio_of_two_noisy_integers_is_covered(
    kind: type[IntegerNoise], m: float, paired: bool, weight: int
) -> None:
    noises, trials = (kind(SCALE), kind(SCALE)), 500
    intervals = [
        Ratio(numerator, denominator, noises, (0.0, 1.0), 0.0, 1.0, paired).at(0.9)
        for numerator, denominator in _drawn(kind, m, weight, paired, trials)
    ]
    assert happens_at_least(sum(low <= m <= high for low, high in intervals), trials, 0.9)


def test_ignoring_the_noise_in_the_denominator_is_noticed() -> None:
    """Such an interval covers about 80% instead of 90%."""
    noise, trials = Laplace(SCALE), 4000
    intervals = [
        Additive(numerator / denominator, noise, 1 / denominator).at(0.9)
        for numerator, denominator in _drawn(Laplace, 0.9, 10**6, False, trials)
    ]
    assert not happens_at_least(sum(low <= 0.9 <= high for low, high in intervals), trials, 0.9)


def test_the_ratio_interval_narrows_with_the_weight_and_fills_the_range_without() -> None:
    noise = Laplace(SCALE)
    widths = []
    for weight in (10, 10_000, 100_000, 10_000_000):
        low, high = Ratio(weight // 2, weight, (noise, noise), (0.0, 1.0), 0.0, 1.0, True).at(0.95)
        widths.append(high - low)
    assert widths[0] == 1.0
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.001


@pytest.mark.parametrize(("above", "below"), [(300, 30), (30_000, 3_000), (2_000, 2_000_000), (5, 1)])
@pytest.mark.parametrize("kinds", [(Laplace, Laplace), (Gaussian, Gaussian), (Laplace, Gaussian)], ids=repr)
def test_a_quotient_is_covered(kinds: tuple[type[IntegerNoise], type[IntegerNoise]], above: int, below: int) -> None:
    """Also where the denominator is lost in its noise, which has a scale of 10."""
    trials = 400
    intervals = [_quotient(kinds, above, below).at(0.9) for _ in range(trials)]
    assert happens_at_least(sum(low <= above / below <= high for low, high in intervals), trials, 0.9)
    if below == 1:
        assert sum(math.isinf(high) for _, high in intervals) > trials / 2


def test_a_quotient_whose_denominator_is_taken_for_exact_is_noticed() -> None:
    trials, pair = 2000, (Laplace, Laplace)
    drawn = [_quotient(pair, 30_000, 3_000) for _ in range(trials)]
    exact = [Quotient(each.numerator, Exact(each.denominator.value), True).at(0.9) for each in drawn]
    assert not happens_at_least(sum(low <= 10 <= high for low, high in exact), trials, 0.9)


def _quotient(kinds: tuple[type[IntegerNoise], type[IntegerNoise]], above: int, below: int) -> Quotient:
    parts = []
    for kind, exact in zip(kinds, (above, below), strict=True):
        (drawn,) = kind(SCALE).add_to([exact * 100])
        parts.append(Additive(drawn / 100, kind(SCALE), 1 / 100))
    return Quotient(parts[0], parts[1], nonnegative=True)


def remembering(table: eh.Table) -> eh.Table:
    """The same table, whose engine answers a question from memory once it has given the same answer twice."""
    return replace(table, engine=cast(Engine, Remembering(table.engine)))


TABLE = pa.table({"u": [user for user in range(300) for _ in range(1 + user % 7)]})
TABLE = TABLE.append_column("v", pa.array([(row * 37 % 101) / 25 - 1 for row in range(len(TABLE))]))


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("count", {"bounding": eh.TotalCap(4)}),
        ("sum", {"bounds": (-1, 3), "bounding": eh.TotalCap(5)}),
        ("mean", {"bounds": (-1, 3), "bounding": eh.SmoothWeights("2.5")}),
        ("mean", {"bounds": (-1, 3), "bounding": eh.CentredInterval(3), "protects": "values"}),
        ("variance", {"bounds": (-1, 3), "bounding": eh.SmoothWeights(3)}),
        ("per_user_mean", {"bounds": (0, 30), "of": "total", "bounding": eh.TotalCap(20)}),
    ],
    ids=str,
)
def test_released_intervals_cover_the_bounded_value(question: str, options: dict[str, Any]) -> None:
    """Whole releases with a given bound and 80% intervals."""
    options = dict(options)
    table = remembering(eh.read(TABLE, user="u", protects=options.pop("protects", "presence")))

    def ask(drafts: Drafts) -> Draft:
        draft: Draft = getattr(drafts, question)(*([] if question == "count" else ["v"]), epsilon=1, **options)
        return draft

    exact = watch(table, ask).outcome.value
    draft, trials = ask(Drafts(table)), 120
    intervals = [draft.run(Receipt(Decimal(1), Decimal(0), "test")).interval.at(0.8) for _ in range(trials)]
    assert happens_at_least(sum(low <= exact <= high for low, high in intervals), trials, 0.8)


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("question", ["sum", "mean"])
def test_intervals_cover_the_bounded_value_when_the_bound_is_chosen(question: str, relation: str) -> None:
    """Each run chooses its own bound from noisy outputs; the value under that bound comes from replaying all but the last."""
    table = remembering(eh.read(TABLE, user="u", protects=relation))

    def ask(drafts: Drafts) -> Draft:
        draft: Draft = getattr(drafts, question)("v", bounds=(-1, 3), epsilon=1)
        return draft

    def covered(seed: int) -> bool:
        noisy = watch(table, ask, seed=seed)
        *chosen, last = noisy.steps
        exact = watch(table, ask, replay=[*chosen, replace(last, output=last.integers)]).outcome.value
        low, high = noisy.outcome.interval.at(0.8)
        return bool(low <= exact <= high)

    trials = 30
    assert happens_at_least(sum(covered(seed) for seed in range(trials)), trials, 0.8)

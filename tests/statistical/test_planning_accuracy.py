"""The bars for the private choice of the bound, at reduced size (`python -m benchmarks.accuracy` for the whole).

Seeds are fixed: a run that passes keeps passing until the code changes.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from benchmarks.accuracy import means, rules, totals
from benchmarks.accuracy.cases import COUNTS, VALUES, draw_means

from evenhand.guarantee import Relation

ON = [
    "shop",
    "course",
    "Zipf 2.5, 2k users",
    "log-normal 1, 20k users",
    "geometric, 2k users",
    "all equal to 1025, 2k users",
]


@pytest.mark.parametrize("name", ON)
@pytest.mark.parametrize("statistic", ["count", "sum"])
def test_counts_and_sums_stay_near_the_oracle(name: str, statistic: str) -> None:
    """20 profiles each; measured: medians up to 1.7, 95% quantiles up to 5.5."""
    for epsilon in (0.1, 1.0):
        found = totals.measure(statistic, COUNTS[name](), epsilon, 20, seed=1, rules=False)["Evenhand"]
        assert found["median"] <= 2
        assert found["95%"] <= 6
        assert found["99.9%"] <= 20


def test_the_obvious_mechanism_fails_the_same_bars() -> None:
    rows, rng = COUNTS["course"](), np.random.default_rng(2)
    truth = totals.Truth(rows)
    caps, left = rules.amin2019(rows.astype(np.float64), 0.1, 4000, rng)
    multiples = totals.errors(truth, caps, left, rng) / truth.oracle(0.1)
    assert np.median(multiples) > 3
    assert np.quantile(multiples, 0.95) > 50


@pytest.mark.parametrize(("relation", "bar"), [(Relation.VALUES, 1.75), (Relation.PRESENCE, 2.0)])
@pytest.mark.parametrize("name", ["shop", "course"])
def test_means_stay_near_the_best_strategy_in_hindsight(name: str, relation: Relation, bar: float) -> None:
    rows = COUNTS[name]()
    number = 4 if relation is Relation.PRESENCE else 8  # which takes longer for each
    for kind in VALUES:
        tables = [means.Table(rows, draw_means(kind, rows, 20 + k)) for k in range(number)]
        for epsilon in ("0.1", "1"):
            assert means.measure(tables, Decimal(epsilon), relation, 3, seed=2)["multiple"] <= bar


def test_a_mean_that_ignores_that_users_differ_fails() -> None:
    """epasto2020's own choice of h (no heterogeneity) on the same tables: far beyond the bar."""
    from evenhand.bounding import smooth_bound

    rows = COUNTS["shop"]()
    tables = [means.Table(rows, draw_means("stars", rows, 20 + k)) for k in range(6)]
    h = smooth_bound(tables[0].support, 1 / 16, 1.0, 1.0, 0.0)
    blind = np.mean([means.smooth(table, h, 1.0, Relation.VALUES) for table in tables])
    best = means.measure(tables, Decimal(1), Relation.VALUES, 1, seed=2)["hindsight"]
    assert np.sqrt(blind) > 2 * min(best.values())

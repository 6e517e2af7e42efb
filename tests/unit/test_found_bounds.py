"""Bounds that are left out: what is read from a noisy histogram, and what a session makes of it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.noise import seam
from evenhand.profiles import CELLS, extent_of, look_around
from evenhand.profiles.extent import HIGHS, LEVELS, ZERO
from evenhand.release import NothingFound
from evenhand.statistics.histogram import round_edges
from evenhand.statistics.level_cells import cells_around, numbers_of_rows
from evenhand.tables import parse_bounds

rng = np.random.default_rng(14)
USERS = 4000
SHAPES: dict[str, tuple[Any, tuple[float, float], tuple[float, float]]] = {
    # name: values, the narrowest bounds that will do, the widest
    "percentages": (rng.beta(2, 3, USERS) * 100, (0, 100), (0, 120)),
    "flags": (rng.random(USERS) < 0.3, (0, 1), (0, 1)),
    "zeros": (np.zeros(USERS), (0, 1), (0, 1)),
    "ages": (rng.integers(18, 90, USERS), (0, 100), (0, 120)),
    "temperatures": (rng.normal(5, 9, USERS), (-20, 30), (-50, 60)),
    "losses": (-rng.gamma(4, 20, USERS), (-200, 0), (-600, 0)),  # 32 lie beyond 200
    "constants": (np.full(USERS, 7.0), (6, 8), (6, 10)),
    "large": (rng.lognormal(14, 0.3, USERS), (0, 2.5e6), (0, 6e6)),
    "a single giant": (np.append(np.full(USERS - 1, 3.0), 1e12), (2.5, 3), (2.5, 4)),
}


def cell(value: float) -> int:
    """The cell of a value, by its definition."""
    above = sum(abs(value) > level * (1 + 1e-12) for level in LEVELS)
    return CELLS // 2 + (above if value >= 0 else -above)


def histogram(values: Any) -> list[float]:
    distance = np.searchsorted(np.array(LEVELS) * (1 + 1e-12), np.abs(np.asarray(values, dtype=np.float64)))
    places = CELLS // 2 + np.where(np.asarray(values) < 0, -distance, distance)
    return np.bincount(places, minlength=CELLS).astype(float).tolist()


@pytest.mark.parametrize("name", SHAPES)
def test_bounds_are_round_and_fit(name: str) -> None:
    """Noise of scale 10 from a fixed seed: what is found lies between bounds that cut hardly anybody and twice those."""
    values, narrow, wide = SHAPES[name]
    noisy = np.array(histogram(values)) + np.random.default_rng(8).laplace(0, 10, CELLS)
    found = extent_of(noisy.tolist(), 10, 0.5)
    assert found.visible
    assert wide[0] <= found.low <= narrow[0], found
    assert narrow[1] <= found.high <= wide[1], found
    assert {abs(found.low), abs(found.high)} <= {0.0, *LEVELS}


def test_a_bound_that_was_given_stays() -> None:
    ages = histogram(SHAPES["ages"][0])
    assert extent_of(ages, 1, 1, (18, None)).low == 18
    assert extent_of(ages, 1, 1, (None, 65)).high == 65
    assert extent_of(ages, 1, 1, (-5, None)).high in (100, 120)
    beyond = extent_of(ages, 1, 1, (999, None))  # nobody lies above: still bounds that a grid can resolve
    assert beyond.low == 999
    assert beyond.high - 999 > 999 / 20


def test_quantiles_leave_rare_values_outside() -> None:
    values = np.append(rng.gamma(4, 20, 4000), np.full(40, 1e6))
    assert extent_of(histogram(values), 1, 1).high >= 1e6
    assert extent_of(histogram(values), 1, 1, outside=0.1).high <= 400


FAR: dict[str, tuple[Any, tuple[float, float], tuple[float, float]]] = {
    # name: values far from zero for their spread, the narrowest bounds that will do, the widest
    "years": (rng.integers(1950, 2021, USERS), (1952, 2018), (1940, 2040)),
    "kelvin": (rng.normal(283.15, 8, USERS), (268, 298), (235, 325)),
    "a day of seconds": (
        1_731_715_200 + rng.integers(0, 86_400, USERS),
        (1731718000, 1731799000),
        (1.7314e9, 1.7321e9),
    ),
    "debts": (-rng.integers(70_100, 70_400, USERS), (-70_390, -70_110), (-70_900, -69_900)),
    "decimals": (rng.normal(0.32, 0.004, USERS), (0.313, 0.327), (0.29, 0.35)),
}


@pytest.mark.parametrize("name", FAR)
def test_cells_are_laid_around_values_far_from_zero(name: str) -> None:
    """Noise from a fixed seed: what is found lies close around the values, and costs what was paid."""
    values, narrow, wide = FAR[name]
    source, paid = np.random.default_rng(8), []

    def buy(centre: float, epsilon: Decimal) -> list[float]:
        paid.append(epsilon)
        return (np.array(histogram(values - centre)) + source.laplace(0, 1 / float(epsilon), CELLS)).tolist()

    look = look_around(buy, Decimal("0.15"), 1)
    found = look.extent(0.85, (None, None))
    assert sum(paid) == Decimal("0.15")
    assert found.visible
    assert wide[0] <= found.low <= narrow[0], found
    assert narrow[1] <= found.high <= wide[1], found
    assert look.extent(0.85, (None, wide[1])).high == wide[1]


def test_whatever_the_noise_says_the_bounds_can_be_used() -> None:
    """After the debit nothing may be refused: any counts lead to bounds that parse and are far enough apart."""
    source = np.random.default_rng(5)
    paid: list[Decimal] = []

    def buy(centre: float, epsilon: Decimal) -> list[float]:
        assert abs(centre) <= 1e15
        paid.append(epsilon)
        noisy = source.laplace(0, source.choice([1e-3, 1, 1e12]), CELLS)
        noisy[source.integers(CELLS, size=3)] += source.choice([0, 5, 1e6], 3)
        return [float(count) for count in noisy]

    for given in ((None, None), (0.0, None), (None, -3.0), (1e15, None), (None, -1e15), (5e-324, None), (-0.1, None)):
        for _ in range(15):
            paid.clear()
            look = look_around(buy, Decimal(1), 1, given)
            assert sum(paid) == 1
            narrowest = int(source.choice([16, 64, 2**16]))
            found = look.extent(float(source.choice([1e-6, 1, 1000])), given, float(source.choice([0, 0.1])), narrowest)
            low, high = parse_bounds((found.low, found.high))
            assert high - low >= max(abs(low), abs(high)) / narrowest * (1 - 1e-12)
            assert given[0] in (None, low)
            assert given[1] in (None, high)
            assert 3 <= len(round_edges(low, high)) <= 30


def test_the_engine_finds_the_same_cells() -> None:
    values = [sign * level * factor for level in LEVELS for sign in (1, -1) for factor in (1, 1 + 1e-9)]
    values += [0.0, -0.0, np.inf, -np.inf, 1e300, 5e-324, *(rng.normal(size=500) * 10.0 ** rng.integers(-11, 17, 500))]
    table = eh.read(pd.DataFrame({"u": range(len(values)), "v": values}), user="u")
    with table.once(["v"]) as copy, numbers_of_rows(copy, "v") as numbers:
        for centre in (0.0, 0.3, -2e6):
            with cells_around(copy, numbers, centre, copy.user_names) as placed:
                found = copy.engine.fetch(placed).reveal().to_pandas()
            assert dict(found.itertuples(index=False)) == {
                user: cell(value - centre) for user, value in enumerate(values)
            }


@pytest.fixture
def session(tmp_path: Path) -> eh.Session:
    rows = np.arange(3 * USERS)
    frame = pd.DataFrame({"u": rows % USERS, "age": SHAPES["ages"][0][rows % USERS], "g": np.where(rows % 2, "a", "b")})
    frame["paid"] = np.round(np.random.default_rng(1).gamma(4, 20, len(rows)), 2)
    return eh.Session(eh.read(frame, user="u"), eh.Ledger(str(tmp_path / "b.db"), epsilon=1000, delta=0.01))


def test_a_release_with_found_bounds(session: eh.Session) -> None:
    with seam.replaced(seam.silent):
        release = session.mean("age", epsilon=20)
    low, high = release.details["bounds"]
    assert (low, high) in ((0, 100), (0, 120))
    assert release.value == pytest.approx(float(np.mean(SHAPES["ages"][0])), abs=1)
    assert release.details["finding"]["epsilon"] == 3
    assert f"give bounds=(0, {high:g}) to save that" in " ".join(release.explain().split())
    assert session.ledger.spent.epsilon == 20
    event = session.ledger.events[-1]
    assert event.query["bounds"] == [None, None]
    assert event.query["finding"] == 3
    again = session.mean("age", bounds=release.details["bounds"], epsilon=20)
    assert "bounds" not in again.details


def test_questions_of_several_columns_and_groups(session: eh.Session) -> None:
    with seam.replaced(seam.silent):
        _several(session)


def _several(session: eh.Session) -> None:
    by = session.aggregate(by="g", keys=["a", "b"], epsilon=40, n=eh.count(), paid=eh.sum("paid"), age=eh.median("age"))
    assert by.details["bounds"]["age"] in ([0, 100], [0, 120])
    assert 2500 <= by.details["bounds"]["paid"][1] <= 20_000  # ten times as far as for a mean
    assert by.value.paid.sum() == pytest.approx(3 * USERS * 80, rel=0.05)
    total = session.per_user_mean("paid", of="total", epsilon=40)
    assert 5000 <= total.details["bounds"][1] <= 20_000
    assert total.value == pytest.approx(240, rel=0.05)
    ratio = session.ratio(eh.sum("paid", bounds=(0, None)), eh.sum("age"), epsilon=40)
    assert ratio.details["bounds"]["paid"][0] == 0
    gaussian = session.sum("paid", by="g", keys=["a", "b"], epsilon=1, delta=1e-6, bounding=eh.NormClip(norm=2))
    assert gaussian.guarantee.epsilon == 1
    assert session.histogram("age", epsilon=20).value.age_to.max() in (100, 120)


def test_nothing_is_visible(session: eh.Session) -> None:
    with seam.replaced(seam.silent):
        release = session.mean("age", epsilon=0.001)
    assert not release.usable
    assert "no bounds could be found" in release.why
    assert release.details["bounds"] == [-1e15, 1e15]
    low, high = release.interval()
    assert low < 50 < high
    assert release.to_dict()["value"] is None  # noise over the outer range is no answer
    assert release.headline().endswith(": no answer")


def test_only_what_lacks_bounds_is_called_unusable_for_it(session: eh.Session) -> None:
    with seam.replaced(seam.silent):
        release = session.aggregate(
            by="g", keys=["a", "b"], epsilon=0.02, n=eh.users(), n_age=eh.mean("age"), m=eh.sum("paid", bounds=(0, 200))
        )
    assert isinstance(release.rules["n_age"], NothingFound)
    assert not any(isinstance(release.rules[name], NothingFound) for name in ("n", "m"))
    assert "no bounds could be found with" in release.details["finding"]["words"]


def test_a_preview_names_the_price(session: eh.Session) -> None:
    preview = session.preview.quantiles("age", [0.1, 0.9], epsilon=1)
    assert preview.cost.epsilon == 1
    assert "bounds of age will be found privately, for 15% of ε" in str(preview.bounding)


def test_a_cap_that_was_given_fits_whatever_is_found(session: eh.Session) -> None:
    """A cap far above or below the values: nothing may be refused after the debit."""
    for cap in (1e-9, 1e12):
        assert "bounds" not in session.sum("age", epsilon=1, bounding=eh.TotalCap(cap)).details
        release = session.sum("age", by="g", keys=["a"], epsilon=1, bounding=eh.TotalCap(cap))
        low, high = release.details["bounds"]
        assert low <= 0
        assert max(-low, high) >= cap / 2**20
    session.per_user_mean("age", epsilon=1, bounding=eh.TotalCap(5))


def test_zeros_alone_are_not_believed_if_the_mean_says_otherwise() -> None:
    """Half of the users have values that are spread over so many cells that none stands out."""
    counts = np.zeros(CELLS)
    counts[ZERO] = 500.0
    counts[ZERO + 80 : ZERO + 180] = 5.0
    found = extent_of(counts.tolist(), 20.0, 0.1)
    assert (found.low, found.high, found.visible) == (0.0, 1.0, True)
    assert found.contradicted("mean", 0.5)
    assert not found.contradicted("mean", 0.1)  # 50 users with ones may hide
    assert found.contradicted("sum", 500.0)
    assert not found.contradicted("sum", 150.0)
    counts[ZERO + 80 : ZERO + 180] = 0.0
    counts[np.flatnonzero(HIGHS == 1.0)] = 500.0  # flags
    assert not extent_of(counts.tolist(), 20.0, 0.1).contradicted("mean", 0.5)

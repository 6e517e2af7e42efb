"""What lies beyond bounds that were found: amounts, the interval, and what a release makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_found_bounds import histogram

import evenhand as eh
from evenhand.noise import Laplace, seam
from evenhand.profiles import CELLS, Look, extent_of, look_around
from evenhand.profiles.centre import _rounded
from evenhand.release import Additive, NothingFound
from evenhand.release.believed import Beyond
from evenhand.release.intervals import covers, noise_only, why_not

rng = np.random.default_rng(14)
HEAVY = {
    "log-normal 1": rng.lognormal(3, 1, 4000),
    "log-normal 2": rng.lognormal(3, 2, 4000),
    "Pareto 1.5": 10 * (1 + rng.pareto(1.5, 4000)),
    "both signs": rng.laplace(3, 25, 4000),
    "an end": rng.random(4000) * 100,
}


@pytest.mark.parametrize("name", HEAVY)
def test_what_bounds_cut_off_is_believed_in(name: str) -> None:
    """Noise from a fixed seed: the exact amounts lie within what is believed, also for squares and for narrower bounds."""
    values = HEAVY[name]
    noisy = np.array(histogram(values)) + np.random.default_rng(4).laplace(0, 10, CELLS)
    found = extent_of(noisy.tolist(), 10, 0.85)
    clipped = np.clip(values, found.low, found.high)
    amount = float(values.mean() - clipped.mean())
    assert found.cut.quantile(0.01) - 1e-9 <= amount <= found.cut.quantile(0.99)
    assert abs(found.mean / clipped.mean() - 1) < 0.5 or name == "both signs"
    squares = float(((values - found.mean) ** 2).mean() - ((clipped - found.mean) ** 2).mean())
    assert squares <= found.cut_of_squares.quantile(0.995)
    if name == "an end":
        assert found.high == 100
        assert found.cut.quantile(0.975) < 1


def test_a_heavy_tail_is_believed_in() -> None:
    """Without a mean: what the bounds cut off is far more than light tails would have it. Eight tables; one may lie outside by chance."""
    inside = 0
    for seed in range(8):
        source = np.random.default_rng(seed)
        values = np.floor(1 + source.pareto(0.8, 4000)).clip(max=1e7)
        noisy = np.array(histogram(values)) + source.laplace(0, 10, CELLS)
        found = extent_of(noisy.tolist(), 10, 0.85)
        amount = float(values.mean() - np.clip(values, found.low, found.high).mean())
        inside += amount <= found.cut.quantile(0.975)
    assert inside >= 7


def looked_at(values: np.ndarray, seed: int, epsilon: str = "0.15") -> tuple[Look, Decimal]:
    """The look that is bought for values of one row each, and what it cost."""
    source, paid = np.random.default_rng(seed), list[Decimal]()

    def buy(centre: float, part: Decimal) -> list[float]:
        paid.append(part)
        return (np.array(histogram(values - centre)) + source.laplace(0, 1 / float(part), CELLS)).tolist()

    return look_around(buy, Decimal(epsilon), 1, reserve=Decimal(epsilon)), sum(paid, Decimal(0))


def test_most_at_one_number_do_not_hide_the_others() -> None:
    """Four of five buy one piece: those who buy two or three are hundreds, and lie within the bounds; also where noise hides a part of them."""
    for seed in range(6):
        source = np.random.default_rng(seed)
        pieces = source.choice([1.0, 2.0, 3.0], 2000, p=[0.8, 0.15, 0.05])
        look, paid = looked_at(pieces, seed)
        found = look.extent(1 - float(paid), (None, None))
        assert found.low <= 1
        assert found.high >= 2, (seed, found)


def test_where_one_number_stands_out_nothing_tells_how_far_others_lie() -> None:
    """A tenth of the users buy two pieces and can't be seen: the interval has room for them."""
    pieces = np.where(np.arange(600) % 10, 1.0, 2.0)
    for seed in range(4):
        look, paid = looked_at(pieces, seed, "0.12")
        found = look.extent(1 - float(paid), (None, None))
        amount = float(pieces.mean() - np.clip(pieces, found.low, found.high).mean())
        assert found.cut.quantile(0.0) <= amount <= found.cut.quantile(0.99), (seed, found)


def test_the_interval_grows_on_the_side_where_values_were_cut() -> None:
    inner = Additive(10.0, Laplace(Fraction(10)), 0.1)
    low, high = inner.at(0.95)
    amounts, weights = np.linspace(0, 8, 201), np.full(201, 1 / 201)
    wider = Beyond(inner, 10.0, amounts, weights, 2.0, "and more", "nobody knows")
    below, above = wider.at(0.95)
    assert above == pytest.approx(12 + math.hypot(high - 10, 7.8 - 2), abs=0.05)
    assert below == pytest.approx(12 - math.hypot(10 - low, 2 - 0.2), abs=0.05)
    assert noise_only(wider) is inner
    assert (covers(wider), why_not(wider)) == ("covers the noise; and more", "nobody knows")
    assert Beyond(inner, 10.0, np.zeros(1), np.ones(1), 0.0, "").at(0.95) == pytest.approx((low, high))


def test_the_reserve_is_for_those_who_can_not_be_seen() -> None:
    source, paid = np.random.default_rng(3), list[Decimal]()

    def looked(values: np.ndarray) -> Look:
        def buy(centre: float, epsilon: Decimal) -> list[float]:
            paid.append(epsilon)
            return (np.array(histogram(values - centre)) + source.laplace(0, 1 / float(epsilon), CELLS)).tolist()

        paid.clear()
        return look_around(buy, Decimal("0.03"), 1, reserve=Decimal("0.03"))

    years = np.random.default_rng(1).integers(1950, 2021, 20_000)
    assert looked(years).centre == 2000
    assert sum(paid) == Decimal("0.03")
    looked(years[:300])
    assert sum(paid) == Decimal("0.06")


def test_a_look_that_shows_only_those_at_the_centre_is_not_trusted() -> None:
    """Most ratings are spread; around 4, the fours stand out alone."""
    before = np.zeros(CELLS)
    before[CELLS // 2 + 90 : CELLS // 2 + 96] = 100
    around = np.zeros(CELLS)
    around[CELLS // 2] = 180
    one, other = Look(0.0, before, 10.0), Look(4.0, around, 10.0)
    assert not other.shows_what(one, (None, None))
    around[CELLS // 2 + 70 : CELLS // 2 + 75] = 80
    assert Look(4.0, around, 10.0).shows_what(one, (None, None))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((-39, 1011), (-50, 1050)),
        ((1950, 2020), (1950, 2020)),
        ((0.313, 0.3275), (0.313, 0.3275)),
        ((1731712345, 1731800200), (1731712000, 1731801000)),
    ],
)
def test_bounds_are_said_as_people_say_them(found: tuple[float, float], said: tuple[float, float]) -> None:
    assert _rounded(*map(float, found)) == said


@pytest.fixture
def session(tmp_path: Path) -> Iterator[eh.Session]:
    """Without noise, which would decide about the assertions now and then."""
    user = np.repeat(np.arange(3000), 3)
    source = np.random.default_rng(2)
    frame = pd.DataFrame({"u": user, "v": source.lognormal(3, 2, len(user)), "g": np.where(user % 3, "a", "b")})
    with seam.replaced(seam.silent):
        yield eh.Session(eh.read(frame, user="u"), eh.Ledger(str(tmp_path / "b.db"), epsilon=1000))


def test_a_release_says_what_lies_beyond(session: eh.Session) -> None:
    mean = session.mean("v", epsilon=1)
    assert "values beyond the bounds that were found" in mean.covers
    assert mean.interval()[1] - mean.value > mean.value - mean.interval()[0]
    assert mean.noise_interval()[1] < mean.interval()[1]
    std = session.std("v", epsilon=1)  # a single value may decide it
    assert not std.usable
    assert "values beyond the bounds that were found" in std.why
    each = session.per_user_mean("v", epsilon=1)  # a user with a value beyond the bounds may have a mean below the cap
    assert "values beyond the bounds that were found" in each.covers
    assert each.interval()[1] - each.value > each.value - each.interval()[0]
    groups = session.sum("v", by="g", keys=["a", "b"], epsilon=1)
    assert (groups.interval().sum_high - groups.value["sum"] > groups.value["sum"] - groups.interval().sum_low).all()
    assert len(groups.details["correction"]["added"]["sum"]) == 2
    ratio = session.ratio(eh.sum("v"), eh.users(), epsilon=1)
    assert "values beyond the bounds that were found" in ratio.covers


def test_bounds_that_were_given_have_nothing_beyond(session: eh.Session) -> None:
    assert "beyond" not in session.mean("v", bounds=(0, 5000), epsilon=1).covers
    capped = session.sum("v", epsilon=1, bounding=eh.TotalCap(50))  # a value beyond the bounds is beyond the cap too
    assert "values beyond the bounds" not in capped.covers


def test_coarse_bounds_are_not_usable(tmp_path: Path) -> None:
    """Without noise in the first look alone: what it shows is two cells wide, and nothing stands out afterwards."""
    years = pd.DataFrame({"u": range(400), "v": np.arange(400) % 70 + 1950.0})
    session = eh.Session(eh.read(years, user="u"), eh.Ledger(str(tmp_path / "b.db"), epsilon=10))
    with seam.replaced(seam.silent):
        release = session.mean("v", epsilon=0.2)
    assert release.details["bounds"] == [1500, 2500]
    assert isinstance(release.rules["mean"], NothingFound)
    assert "only coarse bounds could be found" in release.why


@pytest.mark.parametrize("ask", [eh.mean("v"), eh.sum("v"), eh.median("v"), eh.std("v")], ids=lambda ask: ask.name)
def test_values_beyond_all_bounds_are_said_to_be(ask: Any, tmp_path: Path) -> None:
    """Nanoseconds since 1970 lie beyond the range in which bounds are looked for: a number at its end says nothing about them."""
    times = pd.DataFrame({"u": range(3000), "v": np.arange(3000) * 10**9 + 17 * 10**17})
    session = eh.Session(eh.read(times, user="u"), eh.Ledger(str(tmp_path / "b.db"), epsilon=10))
    with seam.replaced(seam.silent):
        release = session.ask(ask, epsilon=1)
    assert not release.usable
    assert release.why.endswith("values lie beyond ± 10^15, where none are looked for; give bounds=(low, high)")
    assert "10^15" in release.details["finding"]["words"]
    assert release.interval() == (-math.inf, math.inf)

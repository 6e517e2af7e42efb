"""Arithmetic on releases: values, intervals, what goes together, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.release.arithmetic import Comparison
from evenhand.service.parameters import as_data, from_data

USERS = 800


def sales(protects: str = "presence", **more: Any) -> eh.Table:
    rng = np.random.default_rng(7)
    rows = np.repeat(np.arange(USERS), rng.poisson(6, USERS) + 1)
    frame = pd.DataFrame({"u": rows, "x": rng.normal(50, 10, len(rows)).clip(0, 100)})
    frame["g"] = np.where(frame.index % 3 == 0, "b", "a")
    frame["h"] = rng.integers(0, 3, len(frame))
    return eh.read(frame, user="u", protects=protects, **more)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> eh.Session:
    ledger = eh.Ledger(tmp_path_factory.mktemp("ledger") / "budget.db", epsilon=1000, delta=1e-3)
    return eh.Session(sales(), ledger)


@pytest.fixture(scope="module")
def spend(session: eh.Session) -> eh.Release:
    return session.sum("x", bounds=(0, 100), epsilon=2)


@pytest.fixture(scope="module")
def visits(session: eh.Session) -> eh.Release:
    return session.count(epsilon=2)


@pytest.fixture(scope="module")
def by_group(session: eh.Session) -> eh.Release:
    return session.count(by="g", keys=["a", "b"], epsilon=2)


def close(one: tuple[float, float], other: tuple[float, float], part: float = 0.1) -> bool:
    """Whether two intervals are the same but for their draws."""
    width = max(other[1] - other[0], 1e-9)
    return all(abs(a - b) < part * width for a, b in zip(one, other, strict=True))


def test_values_are_computed_with(spend: eh.Release, visits: eh.Release) -> None:
    a, b = spend.value, visits.value
    assert (spend / visits).value == a / b
    assert (2 * spend - visits / 3 + 1).value == pytest.approx(2 * a - b / 3 + 1)
    assert (1 - visits).value == 1 - b
    assert (-visits).value == -b
    assert (np.float64(2) * visits).value == 2 * b
    assert isinstance(visits * np.int64(2), eh.Release)


def test_one_release_has_one_set_of_draws(spend: eh.Release, visits: eh.Release) -> None:
    assert (spend - spend).interval() == (0.0, 0.0)
    assert close((2 * spend - spend).interval(), spend.interval())
    assert close((spend / 4).interval(), tuple(end / 4 for end in spend.interval()))
    twice = visits + visits
    assert close(twice.interval(), tuple(2 * end for end in visits.interval()))
    assert twice.interval() == (visits + visits).interval()


def test_two_releases_share_no_noise(session: eh.Session) -> None:
    one, other = session.users(epsilon=1), session.users(epsilon=1)
    (low, high), own = (one - other).noise_interval(), one.noise_interval()
    assert 1.2 < (high - low) / (own[1] - own[0]) < 1.6


def test_an_interval_of_exact_noise_is_the_exact_one(session: eh.Session) -> None:
    people = session.users(epsilon=1)
    assert close((people * 1).interval(0.95), people.interval(0.95), 0.02)
    assert close((people * 1).interval(0.999), people.interval(0.999), 0.05)


def test_what_is_promised_is_the_union_of_the_debits(
    session: eh.Session, spend: eh.Release, visits: eh.Release
) -> None:
    events = len(session.ledger.events)
    ratio = (spend + visits) / spend
    assert float(ratio.guarantee.epsilon) == 4
    assert float((visits / visits).guarantee.epsilon) == 2
    assert len(session.ledger.events) == events
    assert "nothing more: computed from 2 answers (ε = 4)" in str(ratio)
    assert ratio.event is None
    assert {each["epsilon"] for each in ratio.details["computed"]["events"]} == {"2"}


def test_a_group_is_picked_by_its_key(by_group: eh.Release) -> None:
    a = by_group["a"]
    frame = by_group.interval(0.9)
    assert a.interval(0.9) == tuple(frame.loc[0, ["count_low", "count_high"]])
    difference = by_group["a"] - by_group["b"]
    assert difference.value == by_group.value["count"][0] - by_group.value["count"][1]
    assert not difference.grouped
    assert difference.statistic == "number of rows by g (a) - number of rows by g (b)"


def test_frames_are_aligned_by_key(session: eh.Session, by_group: eh.Release) -> None:
    other = session.sum("x", bounds=(0, 100), by="g", keys=["c", "b", "a"], epsilon=2)
    means = other / by_group
    assert means.value["g"].tolist() == ["b", "a"]
    assert means.value["value"].tolist() == pytest.approx(
        [other.value["sum"][1] / by_group.value["count"][1], other.value["sum"][2] / by_group.value["count"][0]]
    )
    assert len(means.interval()) == 2


def test_shares_of_a_total(by_group: eh.Release) -> None:
    total = by_group.total()
    assert total.value == by_group.value["count"].sum()
    shares = by_group / total
    assert shares.value["count"].sum() == pytest.approx(1)
    low, high = (by_group["a"] / total).interval()
    alone = by_group["a"].interval()
    assert (high - low) * total.value < alone[1] - alone[0]  # the same noise above and below


def test_a_total_errs_as_its_groups_do_together(by_group: eh.Release) -> None:
    low, high = by_group.total().interval()
    ends = by_group.interval()
    assert high - low < ends["count_high"].sum() - ends["count_low"].sum()
    noise = by_group.noise_interval()
    exact = by_group.total().noise_interval()
    widths = noise["count_high"] - noise["count_low"]
    assert exact[1] - exact[0] == pytest.approx(math.hypot(*widths), rel=0.1)


def test_dividing_by_what_may_be_nothing_is_wide_and_unusable(session: eh.Session, spend: eh.Release) -> None:
    nobody = session.count(by="g", keys=["nobody", "a"], epsilon=0.5)["nobody"]
    for quotient in (spend / (nobody - nobody), 1 / (nobody - nobody.value)):
        assert quotient.interval() == (-math.inf, math.inf)
        assert not quotient.usable
        assert "NOT USABLE" in str(quotient)


def test_a_comparison_has_a_probability_and_no_truth_value(spend: eh.Release, visits: eh.Release) -> None:
    assert (spend > visits).probability == 1.0
    assert (spend < visits).probability == 0.0
    _low, high = visits.noise_interval(0.5)
    assert 0.3 < (visits > visits.value).probability < 0.9
    found = visits > high
    assert isinstance(found, Comparison)
    assert "probability" in str(found)
    with pytest.raises(eh.UsageError, match="no truth value"):
        bool(spend > visits)
    with pytest.raises(eh.UsageError, match="no truth value"):
        max(spend, visits)


def test_comparisons_by_group(by_group: eh.Release) -> None:
    found = (by_group > 2500).probability
    assert found.columns.tolist() == ["g", "probability"]
    assert found["probability"][0] > 0.9 > 0.1 > found["probability"][1]


def test_an_unusable_part_makes_an_unusable_whole(session: eh.Session, visits: eh.Release) -> None:
    noise = session.count(epsilon=0.0001)
    assert not noise.usable
    assert not (noise / visits).usable
    assert not (visits + noise).usable


def test_a_bound_that_nothing_is_known_about_stays_open(session: eh.Session, visits: eh.Release) -> None:
    capped = session.count(epsilon=2, bounding=eh.RowLimit(3))
    ratio = capped / visits
    assert ratio.interval()[1] == math.inf
    assert math.isfinite(ratio.interval()[0])
    assert ratio.usable == visits.usable  # the capped count is judged by its noise


@pytest.mark.parametrize(
    "attempt",
    [
        lambda a, g: a + "x",
        lambda a, g: "x" / a,
        lambda a, g: a * True,
        lambda a, g: a + None,
        lambda a, g: a + math.nan,
        lambda a, g: a * [1, 2],
        lambda a, g: g["nobody"],
        lambda a, g: g["a", "b"],
        lambda a, g: a["x"],
        lambda a, g: a.total(),
        lambda a, g: (g / g).total(),
    ],
)
def test_what_can_not_be_computed_with_is_refused(
    attempt: Callable[[Any, Any], object], visits: eh.Release, by_group: eh.Release
) -> None:
    with pytest.raises(eh.UsageError):
        attempt(visits, by_group)


def test_groups_that_do_not_match_are_refused(session: eh.Session, by_group: eh.Release) -> None:
    with pytest.raises(eh.UsageError, match="same groups"):
        by_group / session.count(by="h", keys=[0, 1, 2], epsilon=1)
    with pytest.raises(eh.UsageError, match="no group in common"):
        by_group / session.count(by="g", keys=["c"], epsilon=1)


def test_other_people_and_other_promises_are_refused(tmp_path: Path, visits: eh.Release) -> None:
    values = eh.Session(sales("values"), eh.Ledger(tmp_path / "b.db", epsilon=9)).mean("x", bounds=(0, 100), epsilon=1)
    with pytest.raises(eh.UsageError, match="protect different things"):
        visits * values


def test_users_do_not_add_up(session: eh.Session) -> None:
    with pytest.raises(eh.UsageError, match="don't add up"):
        session.users(by="g", keys=["a", "b"], epsilon=1).total()


def test_a_formula_has_an_end(visits: eh.Release) -> None:
    def doubled(times: int) -> eh.Release:
        return visits if not times else doubled(times - 1) + doubled(times - 1)

    assert doubled(5).value == 32 * visits.value
    with pytest.raises(eh.UsageError, match="at most 200"):
        doubled(8)


def test_saved_answers_can_be_computed_with(
    tmp_path: Path, spend: eh.Release, visits: eh.Release, by_group: eh.Release
) -> None:
    def kept(release: eh.Release) -> eh.Release:
        release.save(tmp_path / "r.json")
        return eh.load(tmp_path / "r.json")

    ratio = kept(spend) / kept(visits)
    assert close(ratio.interval(), (spend / visits).interval(), 0.25)  # what goes together in the models is not saved
    assert kept(spend / visits).interval() == (spend / visits).interval()
    assert float((kept(spend / visits) * kept(visits)).guarantee.epsilon) == 4
    # Only the ends of each group are known, so they are taken to err together: about as wide, or wider.
    low, high = kept(by_group).total().interval()
    exact = by_group.total().interval()
    slack = 0.1 * (exact[1] - exact[0])
    assert low <= exact[0] + slack
    assert high >= exact[1] - slack
    assert kept(by_group)["a"].interval() == by_group["a"].interval()


def test_statistics_are_computed_with_before_they_are_asked(session: eh.Session) -> None:
    found = session.aggregate(
        average=eh.sum("x", bounds=(0, 100)) / eh.count(), n=eh.count(), by="g", keys=["a", "b"], epsilon=4
    )
    frame = found.value
    assert frame.columns.tolist() == ["g", "average", "n"]
    assert found.event is not None
    assert frame["average"].tolist() == pytest.approx([50, 50], rel=0.1)
    assert set(session.ledger.events[-1].query["parts"]) == {"n", "average: sum of x"}  # the count is asked once
    whole = session.aggregate(average=eh.sum("x", bounds=(0, 100)) / eh.count(), epsilon=4)["average"]
    assert isinstance(whole.value, float)


@pytest.mark.parametrize(
    "attempt", [lambda: eh.count() / "x", lambda: eh.count() + None, lambda: eh.count() * math.inf]
)
def test_statistics_are_not_computed_with_anything(attempt: Callable[[], object]) -> None:
    with pytest.raises(eh.UsageError):
        attempt()


def test_formulas_are_refused_before_the_debit(session: eh.Session) -> None:
    events = len(session.ledger.events)
    with pytest.raises(eh.DataError):
        session.aggregate(a=eh.sum("nothing", bounds=(0, 1)) / eh.count(), epsilon=1)
    with pytest.raises(eh.UsageError, match="weights"):
        session.aggregate(a=eh.count() / 2, b=eh.count(), weights={"b": 2}, epsilon=1)
    assert len(session.ledger.events) == events


def test_formulas_travel_to_a_server() -> None:
    formula = (eh.sum("x", bounds=[0, 100]) - 2 * eh.count()) / 3
    assert from_data(as_data(formula)) == formula
    with pytest.raises(eh.UsageError):
        from_data({"formula": "**", "left": 1, "right": 2})


@pytest.mark.parametrize("keys", [["a"], ["a", "b"], ["a", "b", *map(str, range(20))]])
def test_totals_add_up(session: eh.Session, keys: list[str]) -> None:
    found = session.count(by="g", keys=keys, totals=True, epsilon=4)
    frame = found.value
    assert frame["g"].tolist() == [*keys, "other", "total"]
    assert frame["count"][:-1].sum() == frame["count"].iloc[-1]
    truth = len(_rows())
    low, high = found["total"].interval(0.999)
    assert low <= truth <= high


def _rows() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    rows = np.repeat(np.arange(USERS), rng.poisson(6, USERS) + 1)
    return pd.DataFrame({"u": rows})


def test_cross_tables_have_margins(session: eh.Session) -> None:
    found = session.sum(
        "x", bounds=(0, 100), by=["g", "h"], keys={"g": ["a", "b"], "h": [0, 1, 2]}, totals=True, epsilon=4
    )
    frame = found.value.set_index(["g", "h"])["sum"]
    assert frame[("total", "total")] == pytest.approx(sum(frame[(g, "total")] for g in ("a", "b", "other")))
    assert frame[("a", "total")] == pytest.approx(sum(frame[("a", h)] for h in (0, 1, 2)))
    assert frame[("total", 1)] == pytest.approx(frame[("a", 1)] + frame[("b", 1)])


def test_totals_of_hidden_names(session: eh.Session) -> None:
    found = session.count(by="g", totals=True, epsilon=4, delta=1e-6)
    frame = found.value
    assert frame["g"].tolist() == ["a", "b", "other", "total"]
    assert frame["count"][:-1].sum() == frame["count"].iloc[-1]
    assert float(found.guarantee.epsilon) == 4
    assert float(session.ledger.events[-1].cost.epsilon) == 4


def test_public_totals_are_exact(tmp_path: Path) -> None:
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=1)
    found = eh.Session(sales("values", public=["g"]), ledger).count(by="g", totals=True, epsilon=1)
    assert found["total"].value == len(_rows())
    assert found["total"].interval() == (len(_rows()), len(_rows()))
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    "attempt",
    [
        lambda s: s.count(totals=True, epsilon=1),
        lambda s: s.sum("x", by="g", keys=["a"], totals=True, epsilon=1),
        lambda s: s.sum(["x", "h"], bounds=(0, 1), by="g", keys=["a"], totals=True, epsilon=1),
    ],
)
def test_totals_that_can_not_be_had_are_refused(session: eh.Session, attempt: Callable[[Any], object]) -> None:
    events = len(session.ledger.events)
    with pytest.raises(eh.UsageError):
        attempt(session)
    assert len(session.ledger.events) == events


def test_a_print_is_a_few_lines(visits: eh.Release, by_group: eh.Release) -> None:
    assert len(str(visits).splitlines()) <= 5
    assert len(str(by_group).splitlines()) <= 8
    assert "guarantee" in visits.explain()
    assert "guarantee" not in str(visits)


def test_files_hold_the_digits_that_mean_something(tmp_path: Path, spend: eh.Release) -> None:
    (spend / 7).to_csv(tmp_path / "a.csv")
    cells = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[1].split(",")
    assert all(len(cell.partition(".")[2]) <= 1 for cell in cells[1:4])

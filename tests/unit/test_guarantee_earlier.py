"""A release's guarantee says what it is conditional on, and names the purchase that decided how users are bounded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.guarantee import Guarantee, Purchase, Relation
from evenhand.learning import BoundedERM, HypothesisSelection, WeightedERM
from evenhand.session import Drafts

BOUNDS: dict[str, Any] = {"bounds": (0, 2)}
KEYS: dict[str, Any] = {"by": "g", "keys": ["a", "b"]}
ONE: dict[str, Any] = {"epsilon": 1}


@pytest.fixture
def session(tmp_path: Path) -> eh.Session:
    rng = np.random.default_rng(1)
    users = np.repeat(np.arange(300), 4)
    rows = {"u": users, "v": rng.uniform(0, 2, users.size), "w": rng.uniform(0, 2, users.size)}
    pq.write_table(pa.table({**rows, "g": ["a", "b"] * (users.size // 2)}), tmp_path / "rows.parquet")
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=1000, delta=1e-3)
    return eh.Session(eh.read(tmp_path / "rows.parquet", user="u"), ledger)


Ask = Callable[..., Any]

BOUGHT_ON_PURPOSE: dict[str, Ask] = {
    "count": lambda ask, **more: ask.count(**ONE, **more),
    "mean": lambda ask, **more: ask.mean("v", **BOUNDS, **ONE, **more),
    "means": lambda ask, **more: ask.mean(["v", "w"], **BOUNDS, **ONE, **more),
    "variance": lambda ask, **more: ask.variance("v", **BOUNDS, **ONE, **more),
    "quantiles": lambda ask, **more: ask.quantiles("v", [0.5], **BOUNDS, **ONE, **more),
    "histogram": lambda ask, **more: ask.histogram("v", [0, 1, 2], **ONE, **more),
    "aggregate": lambda ask, **more: ask.aggregate(n=eh.count(), m=eh.mean("v", **BOUNDS), **ONE, **more),
    "sum by rows": lambda ask, **more: ask.sum("v", **BOUNDS, **ONE, **{"bounding": eh.SmoothWeights(), **more}),
}

BOUGHT_ON_THE_WAY: dict[str, tuple[Ask, Ask]] = {
    "mean, then quantiles": (BOUGHT_ON_PURPOSE["mean"], BOUGHT_ON_PURPOSE["quantiles"]),
    "mean, then sum": (BOUGHT_ON_PURPOSE["mean"], BOUGHT_ON_PURPOSE["sum by rows"]),
    "histogram, then quantiles": (BOUGHT_ON_PURPOSE["histogram"], BOUGHT_ON_PURPOSE["quantiles"]),
    "by group": (
        lambda ask: ask.quantiles("v", [0.5], **BOUNDS, **KEYS, **ONE),
        lambda ask: ask.variance("v", **BOUNDS, **KEYS, **ONE),
    ),
    "quantiles by group": (
        lambda ask: ask.variance("v", **BOUNDS, **KEYS, **ONE),
        lambda ask: ask.quantiles("v", [0.5], **BOUNDS, **KEYS, **ONE),
    ),
}


def check_names(release: Any, session: eh.Session, event: str, paid: Decimal) -> None:
    """Everywhere that the guarantee is told: which purchase, and what both are together."""
    guarantee = release.guarantee
    assert guarantee.earlier == (Purchase(event, paid),)
    assert guarantee.epsilon == 1
    assert guarantee.together == (1 + paid, 0)
    data = guarantee.to_dict()
    assert data["earlier"][0]["event"] == event
    assert data["together"]["exact"]["epsilon"] == str(1 + paid)
    for text in (guarantee.words(), release.explain(), release.to_html(), json.dumps(release.to_dict())):
        assert f"event {event[:8]}" in " ".join(text.split())
    assert session.ledger.events[-1].guarantee == guarantee


@pytest.mark.parametrize("name", BOUGHT_ON_PURPOSE)
def test_a_release_names_the_profile_that_the_session_bought(session: eh.Session, name: str) -> None:
    ask = BOUGHT_ON_PURPOSE[name]
    session.profile(epsilon=20)
    (bought,) = session.ledger.events
    preview = ask(session.preview)
    assert preview.guarantee.earlier == (Purchase(bought.id, Decimal(20)),)
    release = ask(session)
    assert preview.guarantee == release.guarantee
    check_names(release, session, bought.id, Decimal(20))


@pytest.mark.parametrize("name", BOUGHT_ON_THE_WAY)
def test_a_release_names_the_one_that_bought_its_profile_on_the_way(session: eh.Session, name: str) -> None:
    first, second = BOUGHT_ON_THE_WAY[name]
    assert first(session).guarantee.earlier == ()
    release = second(session)
    assert release.bounding.epsilon is None, "nothing was bought"
    check_names(release, session, session.ledger.events[0].id, release.guarantee.earlier[0].epsilon)
    assert 0 < release.guarantee.earlier[0].epsilon < 1, "the part of the first release that bought the profile"


def test_several_columns_name_each_purchase_once(session: eh.Session) -> None:
    for column in ("v", "w"):
        session.histogram(column, [0, 1, 2], **ONE)
    events = [event.id for event in session.ledger.events]
    release = session.mean(["v", "w"], **BOUNDS, **ONE)
    assert [purchase.event for purchase in release.guarantee.earlier] == events


@pytest.mark.parametrize("name", BOUGHT_ON_PURPOSE)
def test_a_profile_from_a_file_is_named_and_a_prior_is_not(session: eh.Session, name: str, tmp_path: Path) -> None:
    session.profile(epsilon=2).save(tmp_path / "profile.json")
    (bought,) = session.ledger.events
    loaded = eh.Profile.load(tmp_path / "profile.json")
    old = {key: value for key, value in loaded.to_dict().items() if key != "event"}
    cases = [
        (loaded, (Purchase(bought.id, Decimal(2)),)),
        (loaded.scaled(2), (Purchase(bought.id, Decimal(2)),)),
        (eh.Profile.from_dict(old), (Purchase(None, Decimal(2)),)),
        (eh.Profile.counts([1, 2, 3]), ()),
    ]
    for profile, expected in cases:
        draft = BOUGHT_ON_PURPOSE[name](Drafts(session.table), bounding=eh.Auto(profile=profile))
        assert draft.guarantee.earlier == expected
        words = draft.release(session.ledger).guarantee.words()
        assert ("no recorded event, ε = 2" in words) == (profile is cases[2][0])


def test_what_nothing_was_bought_for_names_nothing(session: eh.Session) -> None:
    session.profile(epsilon=2)
    asks: list[Callable[[], Any]] = [
        lambda: session.users(**ONE),
        lambda: session.count(bounding=eh.TotalCap(3), **ONE),
        lambda: session.sum("v", **BOUNDS, **ONE),  # wants a profile of totals
        lambda: session.count(**KEYS, **ONE),
    ]
    for ask in asks:
        assert ask().guarantee.earlier == ()


def test_what_another_thread_buys_after_the_draft_is_not_used(session: eh.Session) -> None:
    """The purchase is settled before the debit: otherwise the event would not name what the release then uses."""
    drafts = Drafts(session.table)
    drafts._shelf = session._shelf
    draft = drafts.count(**ONE)
    session.profile(epsilon=20)
    release = draft.release(session.ledger)
    assert release.guarantee.earlier == ()
    assert release.bounding.epsilon is not None


def test_every_guarantee_says_that_it_is_given_what_came_before() -> None:
    for relation in Relation:
        guarantee = Guarantee(Decimal(1), Decimal(0), relation, ("u",))
        assert "earlier releases included" in guarantee.words()
        assert "together stay within its total" in guarantee.words()
        assert guarantee.to_dict()["given"] == "everything released before from the same ledger"
        assert "earlier" not in guarantee.to_dict()


def test_amounts_together_are_exact_in_any_decimal_context() -> None:
    guarantee = Guarantee(Decimal("0.1"), Decimal("1e-30"), Relation.PRESENCE, ("u",))
    with localcontext(prec=3):
        both = guarantee.resting_on(Purchase("x", Decimal("9999.123456789"), Decimal("1e-9"))).together
    assert both == (Decimal("9999.223456789"), Decimal("1.000000000000000000001e-9"))


LEARNERS: dict[str, Callable[..., Any]] = {
    "BoundedERM": lambda **more: BoundedERM(1, loss="squared", label_bounds=(0, 2), **more, feature_norm=1.0),
    "WeightedERM": lambda **more: WeightedERM(
        1, 1e-6, loss="squared", label_bounds=(0, 2), steps=2, feature_norm=1.0, clip="lipschitz", **more
    ),
    "HypothesisSelection": lambda **more: HypothesisSelection(
        [np.zeros_like, np.ones_like], 1, loss="absolute", label_bounds=(0, 2), **more
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_names_the_profile_it_was_given(session: eh.Session, name: str) -> None:
    profile = session.profile(epsilon=2)
    (bought,) = session.ledger.events
    X, y, users = np.ones((8, 1)), np.ones(8), pa.array([0, 1] * 4).to_numpy()
    for protects, paid in (("presence", 2), ("values", 4)):
        ledger = eh.Ledger(f"{session.ledger.location}.{protects}", epsilon=9, delta=1e-5)
        model = LEARNERS[name](profile=profile, protects=protects, ledger=ledger)
        guarantee = model.fit(X, y, users=users).guarantee_
        assert guarantee.earlier == (Purchase(bought.id, Decimal(paid)),)
        assert ledger.events[0].guarantee == guarantee
    assert profile.guarantee is not None
    values = replace(profile, guarantee=replace(profile.guarantee, relation=Relation.VALUES))
    with pytest.raises(eh.UsageError, match="bought under protects='values'"):
        LEARNERS[name](profile=values).fit(X, y, users=users)

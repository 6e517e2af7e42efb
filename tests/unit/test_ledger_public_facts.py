"""A ledger is asked about public facts too: what costs nothing may still be what it protects."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.guarantee import Guarantee, LedgerError, Relation, UsageError
from evenhand.learning import BoundedERM, LabelPrivateRegression
from evenhand.ledger.composition import Cost
from evenhand.tables.engines import Engine

ROWS = pd.DataFrame(
    {
        "u": np.arange(60) % 20,
        "g": ["a", "b"] * 30,
        "v": np.linspace(0, 1, 60),
        "w": np.linspace(1, 0, 60) ** 2,
        "y": np.linspace(0, 1, 60),
    }
)

FACTS: dict[str, Callable[[Any], Any]] = {
    "count": lambda ask: ask.count(epsilon=1),
    "users": lambda ask: ask.users(epsilon=1),
    "count by listed keys": lambda ask: ask.count(by="g", keys=["a"], epsilon=1),
    "users by all keys": lambda ask: ask.users(by="g", epsilon=1),
    "aggregate": lambda ask: ask.aggregate(n=eh.count(), k=eh.count(), epsilon=1),
}


def table(protects: str = "values", public: tuple[str, ...] = ("g",), user: str = "u", **more: Any) -> eh.tables.Table:
    return eh.read(ROWS, user=user, protects=protects, public=public, **more)


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "budget.db")


@pytest.fixture
def ledger(tmp_path: Path) -> eh.Ledger:
    return eh.Ledger(tmp_path / "b.db", epsilon=10, delta=1e-6)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every query that brings rows out of an engine."""
    seen: list[Any] = []
    fetch = Engine.fetch

    def watched(self: Engine, expression: Any) -> Any:
        seen.append(expression)
        return fetch(self, expression)

    monkeypatch.setattr(Engine, "fetch", watched)
    return seen


LESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "values on presence": ({"protects": "presence", "public": ()}, {}),
    "values on presence, columns named": ({"protects": "presence"}, {}),
    "a column that became public": ({"public": ()}, {}),
    "one more public column": ({"public": ("g",)}, {"public": ("g", "w")}),
    "other public columns": ({"public": ("w",)}, {"public": ("g",)}),
    "other people": ({"population": "patients"}, {}),
    "another user column": ({}, {"user": "w"}),
    "a column with the name of the population": ({"public": (), "population": "g"}, {"population": "g"}),
}


@pytest.mark.parametrize("fact", FACTS)
@pytest.mark.parametrize("case", LESS)
def test_a_table_that_promises_less_gets_no_public_fact(
    ledger: eh.Ledger, reads: list[Any], case: str, fact: str
) -> None:
    first, second = (table(**facts) for facts in LESS[case])
    eh.Session(first, ledger).sum("v", bounds=(0, 1), epsilon=1, bounding=eh.SmoothWeights(1))
    head = ledger.head
    reads.clear()
    session = eh.Session(second, ledger)
    for ask in (session, session.preview):
        with pytest.raises(UsageError, match=r"implies nothing|as public, which|but this release protects"):
            FACTS[fact](ask)
    assert not reads
    assert ledger.head == head


@pytest.mark.parametrize("fact", FACTS)
def test_a_public_fact_leaves_an_event_that_names_what_is_public(ledger: eh.Ledger, fact: str) -> None:
    release = FACTS[fact](eh.Session(table(public=("g", "w")), ledger))
    (event,) = ledger.events
    assert event.id == release.event
    assert event.cost.epsilon == event.cost.delta == event.guarantee.epsilon == 0
    assert event.guarantee.public == ("g", "w")
    assert "public under protects=values" in event.query["exact"]
    assert ledger.spent.epsilon == 0
    ledger.verify()


def test_a_public_fact_fixes_a_fresh_ledger_as_a_debit_does(location: str) -> None:
    ledger = eh.Ledger(location, epsilon=10)
    eh.Session(table(), ledger).count(epsilon=1)
    assert (ledger.unit, ledger.relation, ledger.public) == (("u",), Relation.VALUES, ("g",))
    assert eh.Session(table("presence", ()), ledger).users(epsilon=1).guarantee.epsilon == 1
    assert ledger.spent.epsilon == 2  # presence on values: two steps
    with pytest.raises(UsageError, match="as public"):
        eh.Session(table(public=("g", "v")), ledger).mean("w", bounds=(0, 1), epsilon=1)
    with pytest.raises(UsageError, match="protects u"):
        eh.Session(table(user="v"), ledger).users(epsilon=1)
    eh.Session(table(public=()), ledger).users(epsilon=1)  # promises more
    eh.Session(table(public=("u", "g")), ledger).users(epsilon=1)  # who is there is public under values anyway
    ledger.verify()


@pytest.mark.parametrize("relation", [Relation.VALUES, Relation.LABELS])
@pytest.mark.parametrize("unit", [("u",), ("people",)])
def test_of_columns_that_became_public_only_user_columns_of_the_release_are_let_in(
    ledger: eh.Ledger, relation: Relation, unit: tuple[str, ...]
) -> None:
    """Who is there is public anyway. The unit may be the name of a population, and another table's user column is no excuse."""

    def ask(*public: str, user: tuple[str, ...] = ("u",)) -> None:
        ledger.debit(Cost.pure(Decimal(0)), {}, Guarantee(Decimal(0), Decimal(0), relation, unit, public, user=user))

    ask("g")
    assert ledger.events[0].guarantee.user == ("u",)
    ask("g", "u")
    ask("x", user=("x",))
    for public, user in (("people", ("u",)), ("u", ("x",)), ("u", ())):
        with pytest.raises(UsageError, match="as public"):
            ask(public, user=user)
    ledger.verify()


def test_a_user_column_may_be_called_public_where_the_people_have_a_name(ledger: eh.Ledger) -> None:
    for public in ((), ("u",)):
        eh.Session(table(public=public, population="people"), ledger).users(epsilon=1)
    model = BoundedERM(epsilon=1, loss="squared", label_bounds=(0, 1), features=["v"], ledger=ledger, feature_norm=1.0)
    model.fit(table(public=("u",), population="people"), "y")


def test_what_a_presence_table_calls_public_counts_for_nothing(ledger: eh.Ledger) -> None:
    eh.Session(table("presence", ("g",)), ledger).users(epsilon=1)
    assert ledger.public == ()
    assert ledger.events[0].guarantee.declared == ()


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_an_empty_budget_still_tells_public_facts(tmp_path: Path, delta: float) -> None:
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=1, delta=delta)
    session = eh.Session(table(), ledger)
    while session.preview.mean("v", bounds=(0, 1), epsilon="0.3", bounding=eh.SmoothWeights(1)).affordable:
        session.mean("v", bounds=(0, 1), epsilon="0.3", bounding=eh.SmoothWeights(1))
    spent = ledger.spent
    assert session.preview.count(epsilon=1).affordable
    assert session.count(epsilon=1).value == 60
    assert ledger.spent == spent
    ledger.verify()


def test_an_event_without_cost_can_not_be_removed_unnoticed(ledger: eh.Ledger, tmp_path: Path) -> None:
    session = eh.Session(table(), ledger)
    for _ in range(3):
        session.count(epsilon=1)
    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("DROP TRIGGER evenhand_event_delete")
        connection.execute("DELETE FROM evenhand_event WHERE number = 2")
    with pytest.raises(LedgerError, match="edited, removed"):
        ledger.verify()


def test_of_two_first_facts_one_fixes_the_ledger(location: str) -> None:
    """Racing threads, each with a relation of its own: whoever comes first decides, the other is refused or charged twice."""
    eh.Ledger(location, epsilon=10)
    sessions = [
        eh.Session(each, eh.Ledger(location)) for each in (table(), table("presence", ()), table(public=("w",)))
    ]

    def ask(session: eh.Session) -> str:
        try:
            session.users(epsilon=1)
        except UsageError:
            return "refused"
        return "told"

    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(ask, sessions))
    ledger = eh.Ledger(location)
    ledger.verify()
    first, *later = ledger.events
    assert ledger.relation is first.guarantee.relation
    assert told.count("told") == 1 + len(later)
    assert all(event.guarantee.relation.cost_under(first.guarantee.relation) for event in later)
    assert all(set(event.guarantee.declared) <= set(ledger.public or ()) for event in later)


def regression(ledger: eh.Ledger, **parameters: Any) -> LabelPrivateRegression:
    return LabelPrivateRegression(epsilon=1, label_bounds=(0, 1), noise_sd=0.3, ledger=ledger, **parameters)


@pytest.mark.parametrize("first", [{"protects": "presence", "public": ()}, {"public": ("g",)}])
def test_labels_on_a_ledger_that_protects_more_are_refused_before_features_are_read(
    ledger: eh.Ledger, reads: list[Any], first: dict[str, Any]
) -> None:
    eh.Session(table(**first), ledger).sum("v", bounds=(0, 1), epsilon=1, bounding=eh.SmoothWeights(1))
    reads.clear()
    for protects, public in (("labels", ()), ("values", ("v", "w"))):
        with pytest.raises(UsageError, match=r"implies nothing|as public"):
            regression(ledger, features=["v", "w"]).fit(table(protects, public), "y")
    with pytest.raises(UsageError, match="implies nothing"):
        regression(ledger).fit(ROWS[["v", "w"]], ROWS["y"], users=ROWS["u"])
    assert not reads


def test_a_label_does_not_become_a_feature(ledger: eh.Ledger) -> None:
    rows = table("labels", ())
    regression(ledger, features=["v", "w"]).fit(rows, "y")
    assert set(ledger.public or ()) == {"g", "v", "w"}
    regression(ledger, features=["w"]).fit(rows, "y")
    regression(ledger).fit(ROWS[["v", "w"]].to_numpy(), ROWS["y"], users=ROWS["u"].rename("u"))
    with pytest.raises(UsageError, match="treats y as public"):
        regression(ledger, features=["y", "v"]).fit(rows, "w")
    with pytest.raises(UsageError, match="treats y as public"):
        regression(ledger).fit(ROWS[["y", "v"]], ROWS["w"], users=ROWS["u"])
    with pytest.raises(UsageError, match="treats y as public"):
        eh.Session(table(public=("y",)), ledger).users(by="y", epsilon=1)
    assert eh.Session(table(public=("g",)), ledger).count(epsilon=1).value == 60
    ledger.verify()


def test_several_labels_of_the_same_features_share_a_ledger(ledger: eh.Ledger) -> None:
    rows = table("labels", ("v",))
    for label in ("y", "w"):
        regression(ledger, features=["v"]).fit(rows, label)
    assert ledger.public == ("v",)


def test_arrays_name_no_columns_and_leave_open_what_is_public(ledger: eh.Ledger) -> None:
    arrays = ROWS[["v", "w"]].to_numpy(), ROWS["y"]
    regression(ledger).fit(*arrays, users=ROWS["u"].rename("u"))
    assert ledger.public is None
    regression(ledger, features=["v"]).fit(table("labels", ()), "y")
    assert set(ledger.public or ()) == {"g", "v", "w"}
    regression(ledger).fit(*arrays, users=ROWS["u"].rename("u"))


def test_learning_from_public_counts_leaves_an_event_that_names_what_is_public(ledger: eh.Ledger) -> None:
    model = BoundedERM(
        epsilon=1, loss="squared", label_bounds=(0, 1), features=["v", "w"], ledger=ledger, feature_norm=1.0
    )
    model.fit(table(), "y")
    assert ledger.events[0].guarantee.public == ("g",)
    with pytest.raises(UsageError, match="as public"):
        model.fit(table(public=("g", "w")), "y")


def test_a_ledger_of_format_1_is_read_and_raised_by_the_next_debit(ledger: eh.Ledger, tmp_path: Path) -> None:
    eh.Session(table(), ledger).mean("v", bounds=(0, 1), epsilon=1, bounding=eh.SmoothWeights(1))
    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("UPDATE evenhand_ledger SET format = 1")
    old = eh.Ledger(tmp_path / "b.db")
    old.verify()
    assert old.public == ("g",)
    eh.Session(table(), old).count(epsilon=1)
    with sqlite3.connect(tmp_path / "b.db") as connection:
        assert connection.execute("SELECT format FROM evenhand_ledger").fetchone() == (2,)
    old.verify()

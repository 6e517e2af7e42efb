"""A strategy from outside, through the docstring of `Strategy` alone; a wrong one costs accuracy, never privacy."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import evenhand as eh
from evenhand.apps import cli
from evenhand.audit import audit
from evenhand.audit.catalogue import releases
from evenhand.bounding import STRATEGIES, Bounded, Curve, Question, Strategy, Summary, register
from evenhand.bounding.forecasts import Evaluate
from evenhand.bounding.strategy import UNSET, Limit
from evenhand.guarantee import Relation
from evenhand.profiles import Array, Support
from nasty import HIGH, LOW, extreme_pairs
from neighbouring import compare
from watch import watch


@dataclass(frozen=True)
class SoftCap(Strategy):
    """Let a total x count as T·x/(T + |x|): everybody is cut a little, nobody reaches the bound."""

    T: Limit = UNSET

    def describe(self) -> str:
        return f"each user's total is bent below {self.shown('a chosen cap')}"

    def bound_count(self, summary: Summary) -> Bounded:
        cap = self.steps()
        rows = summary.rows.cast("float64")
        return Bounded((rows * float(cap) / (rows + float(cap))).floor().cast("int64"), cap)

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        cap = self.steps(summary.steps_per_unit)
        total = summary.total.cast("float64")
        bent = (total * float(cap) / (total.abs() + float(cap))).floor().cast("int64")
        return Bounded(bent, 2 * cap, -cap)

    @classmethod
    def forecast(cls, question: Question, support: Support) -> tuple[Evaluate, Array] | None:
        if question.kind != "count":
            return None

        def at(caps: Array) -> Curve:
            kept = (support.users[:, None] * support.sizes[:, None] * caps / (support.sizes[:, None] + caps)).sum(
                axis=0
            )
            cut, zero = support.rows - kept, np.zeros_like(caps)
            noise = math.sqrt(2) * caps / float(question.epsilon)
            return Curve(cls.title, caps, noise, zero, cut, "exact", cut, zero + support.people, cut)

        return at, support.sizes


@dataclass(frozen=True)
class Uncapped(SoftCap):
    """A wrong one: it declares the cap and forgets to apply it."""

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        return Bounded(summary.total, super().bound_sum(summary, relation).length, -self.steps(summary.steps_per_unit))


@dataclass(frozen=True)
class FollowsTheSum(SoftCap):
    """A wrong one: its interval moves with the user's values."""

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        return Bounded(summary.total, 1, summary.total)


@dataclass(frozen=True)
class Beyond(SoftCap):
    """Wrong ones, whose values or limits the clamp could not bound."""

    how: str = ""

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        rows, total = summary.rows, summary.total
        wrong = {
            "the sum of others": lambda: Bounded(total, 1, total.max().as_scalar()),
            "others": lambda: Bounded(rows * 0 + rows.max().as_scalar(), 5),
            "a window": lambda: Bounded(rows.max().over(ibis.window()), 5),
            "chance": lambda: Bounded(total, 5, ibis.random().cast("int64")),
            "halves": lambda: Bounded(total, 5, rows * 0.5),
            "a negative distance": lambda: Bounded(total, -1000),
        }
        return wrong[self.how]()


@dataclass(frozen=True)
class NoLimit(SoftCap):
    """A wrong one: there is no lower limit, where one may be computed."""

    def bound_sum(self, summary: Summary, relation: Relation) -> Bounded:
        nothing = (summary.rows > 0).ifelse(ibis.null("int64"), 0)
        return Bounded(summary.total, 5, 0 if relation is Relation.PRESENCE else nothing)


@dataclass(frozen=True)
class BoundsValues(SoftCap):
    """A wrong one: it bounds values where rows are what counts."""

    bounds_values: ClassVar[bool] = True


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(SoftCap)
    yield
    STRATEGIES.remove(SoftCap)


def rows() -> pa.Table:
    return pa.table({"u": ["a"] * 30 + ["b"] * 3, "v": [1.0] * 33, "g": ["x", "y", "z"] * 11})


def test_it_does_what_it_says() -> None:
    table = eh.read(rows(), user="u")
    count = watch(table, lambda ask: ask.count(epsilon=1, bounding=SoftCap(10))).outcome
    assert count.value == math.floor(30 * 10 / 40) + math.floor(3 * 10 / 13)
    assert count.bounding.strategy == "SoftCap"
    total = watch(table, lambda ask: ask.sum("v", bounds=(0, 1), epsilon=1, bounding=SoftCap(10))).outcome
    assert total.value == pytest.approx(30 * 10 / 40 + 3 * 10 / 13, rel=1e-3)
    grouped = watch(table, lambda ask: ask.count(by="g", keys=["x", "y"], epsilon=1, bounding=SoftCap(10))).outcome
    assert grouped.value["count"].tolist() == [6, 6]  # 10 of 20 rows, and both of 2, over two groups


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("strategy", [SoftCap(5), Uncapped(5), NoLimit(5), BoundsValues(5)], ids=repr)
def test_right_or_wrong_no_user_moves_more_than_declared(relation: str, strategy: SoftCap) -> None:
    for pair in extreme_pairs(relation):
        one, other = pair.first.read(relation), pair.second.read(relation)
        compare(lambda ask: ask.sum("v", bounds=(LOW, HIGH), epsilon=1, bounding=strategy), one, other)
        compare(
            lambda ask: ask.mean("v", bounds=(LOW, HIGH), by="g", keys=["x"], epsilon=1, bounding=strategy), one, other
        )


@pytest.mark.parametrize(("relation", "said"), [("presence", "whole number of steps"), ("values", "above_0")])
def test_limits_that_depend_on_values_are_refused_before_data_is_read(relation: str, said: str, tmp_path: Path) -> None:
    session = eh.Session(eh.read(rows(), user="u", protects=relation), eh.Ledger(tmp_path / "b.db", epsilon=1))
    with pytest.raises(eh.UsageError, match=said):
        session.sum("v", bounds=(0, 1), epsilon=1, bounding=FollowsTheSum(5))
    assert not session.ledger.events


@pytest.mark.parametrize("how", ["the sum of others", "others", "a window", "chance", "halves", "a negative distance"])
def test_what_the_clamp_could_not_bound_is_refused_before_data_is_read(how: str, tmp_path: Path) -> None:
    session = eh.Session(eh.read(rows(), user="u", protects="values"), eh.Ledger(tmp_path / "b.db", epsilon=1))
    with pytest.raises(eh.UsageError, match=r"whole number made of|0 or more"):
        session.sum("v", bounds=(0, 1), epsilon=1, bounding=Beyond(5, how))
    assert not session.ledger.events


def test_the_clamp_is_not_a_strategys_to_override() -> None:
    with pytest.raises(eh.UsageError, match="bound_sum"):
        type("ClampsItself", (SoftCap,), {"of_sum": lambda self, summary, relation: None})


def test_plan_and_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = eh.plan("count", eh.Profile.pareto(1.5, users=1000, rows=20_000), epsilon=1)
    assert made.best_of("soft-cap").bound > 0
    assert "SoftCap" in str(made.table())
    pa_csv.write_csv(rows(), tmp_path / "rows.csv")
    command = "evenhand release count rows.csv --user u --bounding soft-cap:10 --epsilon 1 --ledger b.db --json"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", command.split())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["bounding"]["strategy"] == "SoftCap"


def test_the_audit_has_a_line_for_it() -> None:
    cases = {case.title: case for case in releases() if "SoftCap" in case.mechanism.name}
    assert list(cases) == ["count, SoftCap (presence)", "sum, SoftCap (presence)", "sum, SoftCap (values)"]
    case = cases["count, SoftCap (presence)"]
    assert not audit(case.mechanism, case.neighbours(quick=True), samples=2000).refuted


@pytest.mark.parametrize("given", [int, Strategy, SoftCap])
def test_only_new_dataclasses_with_a_bound_are_registered(given: type[Strategy]) -> None:
    with pytest.raises(eh.UsageError, match=r"register|already"):
        register(given)

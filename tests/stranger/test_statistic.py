"""A statistic from outside, through the docstring of `Statistic` alone: the geometric mean, everywhere a statistic works."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import evenhand as eh
from evenhand.apps import cli
from evenhand.audit import audit
from evenhand.audit.catalogue import releases
from evenhand.guarantee import Relation
from evenhand.noise import IntegerNoise
from evenhand.release import Interval, Ratio
from evenhand.statistics import STATISTICS, Count, Draft, Estimate, Histogram, OfColumn, Request, Sum, register
from evenhand.tables import Bounds, Grid
from evenhand.tables.expressions import Integers
from nasty import extreme_pairs
from neighbouring import compare
from watch import watch

STEPS = 2**12
VALUES = {"ann": [1.0, 2.0, 4.0], "bob": [8.0], "eve": [2.0] * 5}


@dataclass(frozen=True)
class Powers:
    """An interval of logarithms, as one of numbers."""

    logarithms: Interval

    def at(self, confidence: float) -> tuple[float, float]:
        low, high = self.logarithms.at(confidence)
        return math.exp(low), math.exp(high)


@dataclass(frozen=True)
class GeometricMean(OfColumn):
    """The exponential of the mean logarithm, for positive bounds."""

    name = "geometric_mean"
    planned_as: ClassVar[str | None] = "mean"

    @classmethod
    def example(cls, column: str, bounds: Bounds) -> GeometricMean:
        return cls(column, (bounds[1] / 8, bounds[1]))

    @classmethod
    def planned_bounds(cls, bounds: Bounds) -> Bounds:
        return math.log(bounds[0]), math.log(bounds[1])

    @property
    def is_average(self) -> bool:
        return True

    @property
    def grid(self) -> Grid:
        return Grid.about(self.range, origin=self.range[0], bits=16)

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("above", "below")

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        import ibis

        low, high = self.planned_bounds(self.range)
        value = values[0].cast("float64") * self.grid.units(1) + self.range[0]
        place = ((value.ln() - low) / (high - low) * STEPS + 0.5).floor().cast("int64")
        place = ibis.least(ibis.greatest(place, 0), STEPS)
        return {"above": place * weight, "below": (STEPS - place) * weight}

    def reach(self, relation: Relation) -> int:
        return STEPS * relation.moves

    def read(self, sums: Mapping[str, int], noise: IntegerNoise | None) -> Estimate:
        assert noise is not None
        low, high = self.planned_bounds(self.range)
        total = sums["above"] + sums["below"]
        mean = Ratio(sums["above"], total, (noise, noise), (0.0, 1.0), low, high - low, paired=True)
        return Estimate(math.exp(mean.value), Powers(mean), math.exp(mean.value) * mean.spread)


@dataclass(frozen=True)
class HalfReach(GeometricMean):
    """A wrong one: it declares half of what a row can move."""

    name = "half_reach"

    def reach(self, relation: Relation) -> int:
        return super().reach(relation) // 2


@dataclass(frozen=True)
class SumOfSquares(Sum):
    """A sum of another thing than its values: it must not be bounded by them."""

    name = "sum_of_squares"

    def ungrouped(self, request: Request) -> Draft | None:
        return None

    def integers(self, weight: Integers, values: Sequence[Integers]) -> dict[str, Integers]:
        return {"sum": values[0] * values[0] // 2**16 * weight, "weight": weight, "exact": weight * 0 + 1}

    def reach(self, relation: Relation) -> int:
        return self.grid.reach**2 // 2**16 + 1


@dataclass(frozen=True)
class Heads(Count):
    """Counts each user once in a group."""

    name = "heads"
    distinct = True


@dataclass(frozen=True)
class Unnamed(GeometricMean):
    """Hides an integer that it does not have."""

    name = "unnamed"

    def hidden(self, relation: Relation) -> tuple[str, ...]:
        return ("above", "beside")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(GeometricMean)
    yield
    del STATISTICS[GeometricMean.name]


def rows() -> pa.Table:
    user = [user for user, values in VALUES.items() for _ in values]
    values = [value for values in VALUES.values() for value in values]
    return pa.table({"u": user, "v": values, "g": ["a", "b"] * 4 + ["a"]})


def expected() -> float:
    values = [value for values in VALUES.values() for value in values]
    return math.exp(sum(map(math.log, values)) / len(values))


ASKED = {"bounds": (1.0, 8.0), "epsilon": 1, "bounding": eh.NormClip(100)}


@pytest.mark.parametrize("relation", ["presence", "values"])
def test_without_noise_it_is_the_geometric_mean(relation: str) -> None:
    table = eh.read(rows(), user="u", protects=relation)
    found = watch(table, lambda ask: ask.geometric_mean("v", **ASKED)).outcome  # type: ignore[attr-defined]
    assert found.value == pytest.approx(expected(), rel=1e-3)


def test_session_preview_groups_and_aggregate(tmp_path: Path) -> None:
    table, ledger = eh.read(rows(), user="u"), eh.Ledger(tmp_path / "b.db", epsilon=1e6, delta=1e-3)
    session = eh.Session(table, ledger)
    asked = GeometricMean("v", (1.0, 8.0))
    loud: dict[str, object] = {"epsilon": 1e4, "bounding": eh.NormClip(100)}
    one = session.ask(asked, epsilon=1e4, bounding=eh.NormClip(100))
    assert one.value == pytest.approx(expected(), rel=0.01)
    low, high = one.interval(0.95)
    assert low <= one.value <= high
    assert one.statistic == "geometric_mean of v"
    assert session.preview.ask(asked, epsilon=1).affordable
    grouped = session.ask(asked, by="g", keys=["a", "b"], epsilon=1e4, bounding=eh.NormClip(100))
    assert list(grouped.value.columns) == ["g", "geometric_mean"]
    both = session.aggregate(n=eh.count(), m=asked, by="g", keys=["a", "b"], **loud)  # type: ignore[arg-type]
    assert list(both.value.columns) == ["g", "n", "m"]
    hidden = session.ask(asked, by="g", epsilon=1e4, delta=1e-6, groups_per_user=2)
    assert "selection" in hidden.details


def test_plan() -> None:
    made = eh.plan("geometric_mean", eh.Profile.pareto(1.5, users=1000, rows=20_000), bounds=(1, 8), epsilon=1)
    same = eh.plan("mean", eh.Profile.pareto(1.5, users=1000, rows=20_000), bounds=(0, math.log(8)), epsilon=1)
    assert made.best == same.best
    assert "geometric_mean" in made.explain()


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pa_csv.write_csv(rows(), tmp_path / "rows.csv")
    command = (
        "evenhand release geometric_mean rows.csv --user u --value v --bounds 1:8 --epsilon 1 --ledger b.db --json"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", command.split())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["statistic"] == "geometric_mean of v"


@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("kind", [GeometricMean, HalfReach])
def test_the_neighbour_suite_tells_the_right_one_from_the_wrong_one(relation: str, kind: type[GeometricMean]) -> None:
    question = kind("v", (0.25, 2.0))

    def check() -> None:
        for pair in extreme_pairs(relation):
            one, other = pair.first.read(relation), pair.second.read(relation)
            compare(lambda ask: ask.ask(question, epsilon=1, bounding=eh.NormClip(3)), one, other)

    if kind is GeometricMean:
        check()
    else:
        with pytest.raises(AssertionError, match="one user moved"):
            check()


def test_the_audit_has_a_line_for_it() -> None:
    cases = [case for case in releases() if case.mechanism.name.startswith("geometric_mean")]
    assert [str(case.relation) for case in cases] == ["presence", "values"]
    finding = audit(cases[0].mechanism, cases[0].neighbours(quick=True), samples=2000)
    assert not finding.refuted


@pytest.mark.parametrize("name", ["mean", "profile", "ask", "_mine", "geometric mean"])
def test_names_that_a_session_has_already_are_refused(name: str) -> None:
    with pytest.raises(eh.UsageError, match="can't name a statistic"):
        register(type("Named", (GeometricMean,), {"name": name}))


@pytest.mark.parametrize("bounding", ["auto", eh.TotalCap(9), eh.NormClip(9)], ids=str)
def test_what_is_not_the_sum_of_values_is_not_bounded_by_values(bounding: Any) -> None:
    question = SumOfSquares("v", (-2.5, 2.0))
    for pair in extreme_pairs("presence"):
        one, other = pair.first.read("presence"), pair.second.read("presence")
        compare(lambda ask: ask.ask(question, epsilon=1, bounding=bounding), one, other)


def test_what_can_not_be_asked_is_refused_before_the_debit(tmp_path: Path) -> None:
    session = eh.Session(eh.read(rows(), user="u"), eh.Ledger(tmp_path / "b.db", epsilon=9))
    with pytest.raises(eh.UsageError, match="aggregate"):
        session.aggregate(n=eh.count(), h=Histogram("v", [0, 4, 8]), epsilon=1)
    with pytest.raises(eh.UsageError, match="beside"):
        session.ask(Unnamed("v", (1, 8)), epsilon=1)
    with pytest.raises(eh.UsageError, match="expected a statistic"):
        session.ask("count", epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(eh.UsageError, match="dataclass"):
        register(int)  # type: ignore[type-var]
    assert not session.ledger.events

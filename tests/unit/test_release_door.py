"""The only door out: the debit is durable before anything is read, and what was paid for is all that may be drawn."""

from __future__ import annotations

import copy
import math
import os
import pickle
import threading
import time
import warnings
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.guarantee import Relation
from evenhand.noise import UNIT, Gaussian, Laplace, NoisyMax, NormalThreshold, Way, rho_for, seam
from evenhand.noise.steps import noise_multiplier
from evenhand.release import Measurement, Receipt
from evenhand.release.door import SATURATION
from evenhand.tables import Secret

ROWS = pa.table({"u": ["a", "a", "b"], "v": [1.0, 2.0, 3.0]})


@pytest.fixture
def session(tmp_path: Path) -> eh.Session:
    return eh.Session(eh.read(ROWS, user="u"), eh.Ledger(tmp_path / "b.db", epsilon=1))


class Watched:
    """An engine that notes what the ledger says whenever rows are read."""

    def __init__(self, session: eh.Session, fail: bool = False) -> None:
        self.engine, self.ledger, self.fail = session.table.engine, session.ledger, fail
        self.spent_at_reads: list[Decimal] = []
        self.name = self.engine.name

    def fetch(self, expression: Any) -> Any:
        self.spent_at_reads.append(self.ledger.spent.epsilon)
        if self.fail:
            raise eh.EngineError("the engine failed")
        return self.engine.fetch(expression)

    def kept(self, expression: Any, lasting: bool = False) -> Any:
        self.spent_at_reads.append(self.ledger.spent.epsilon)
        return self.engine.kept(expression, lasting)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


QUESTIONS = {
    "count": lambda ask: ask.count(epsilon="0.6"),
    "sum": lambda ask: ask.sum("v", bounds=(0, 5), epsilon="0.6", bounding=eh.TotalCap(5)),
    "mean": lambda ask: ask.mean("v", bounds=(0, 5), epsilon="0.6"),
    "groups": lambda ask: ask.mean("v", bounds=(0, 5), by="u", keys=["a"], epsilon="0.6"),
    "median": lambda ask: ask.quantiles("v", bounds=(0, 5), epsilon="0.6"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_debit_is_on_disk_before_any_row_is_read(name: str, session: eh.Session) -> None:
    watched = Watched(session)
    object.__setattr__(session.table, "engine", watched)
    release = QUESTIONS[name](session)
    assert watched.spent_at_reads
    assert set(watched.spent_at_reads) == {Decimal("0.6")}
    assert release.event == session.ledger.events[0].id


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_refused_budget_reads_nothing(name: str, session: eh.Session) -> None:
    QUESTIONS[name](session)
    watched = Watched(session)
    object.__setattr__(session.table, "engine", watched)
    with pytest.raises(eh.BudgetExceeded, match="Nothing was read or spent"):
        QUESTIONS[name](session)
    assert watched.spent_at_reads == []
    assert len(session.ledger.events) == 1


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_preview_reads_and_spends_nothing(name: str, session: eh.Session) -> None:
    watched = Watched(session)
    object.__setattr__(session.table, "engine", watched)
    preview = QUESTIONS[name](session.preview)
    assert preview.cost.epsilon == Decimal("0.6")
    assert preview.affordable
    assert watched.spent_at_reads == []
    assert session.ledger.events == ()


def test_what_was_paid_stays_paid_when_the_engine_fails(session: eh.Session) -> None:
    """A refund would tell that something failed, and what failed may depend on rows."""
    object.__setattr__(session.table, "engine", Watched(session, fail=True))
    with pytest.raises(eh.EngineError):
        session.sum("v", bounds=(0, 5), epsilon="0.6", bounding=eh.TotalCap(5))
    assert session.ledger.spent.epsilon == Decimal("0.6")


def test_the_event_tells_what_was_asked(session: eh.Session) -> None:
    session.sum("v", bounds=(0, 5), epsilon="0.6", bounding=eh.TotalCap(5))
    (event,) = session.ledger.events
    assert event.query["statistic"] == "sum"
    assert event.query["column"] == "v"
    assert event.query["bounds"] == [0.0, 5.0]
    assert event.guarantee.unit == ("u",)
    assert event.cost.epsilon == Decimal("0.6")


def test_public_facts_cost_nothing(tmp_path: Path) -> None:
    session = eh.Session(eh.read(ROWS, user="u", protects="values"), eh.Ledger(tmp_path / "b.db", epsilon=1))
    for ask, exact in ((session.count, 3), (session.users, 2)):
        release = ask(epsilon=1)
        assert release.value == exact
        assert release.interval() == (exact, exact)
        assert release.guarantee.epsilon == 0
        assert release.event == session.ledger.events[-1].id
    assert session.ledger.spent.epsilon == 0


def _measurement(values: list[int], l1: int = 1) -> Measurement:
    return Measurement(lambda: Secret(values), l1, l1**2)


def test_a_receipt_draws_no_more_than_was_paid() -> None:
    receipt = Receipt(Decimal(1), Decimal("1e-6"), "event")
    receipt.numbers(_measurement([1]), Decimal("0.5"))
    receipt.numbers(_measurement([1]), Decimal("0.5"), Decimal("1e-6"))
    for epsilon, delta in (("1e-9", "0"), ("0", "1e-9")):
        with pytest.raises(eh.EvenhandError, match="more privacy budget than it was debited"):
            receipt._use(Decimal(epsilon), Decimal(delta))


def test_noise_is_scaled_to_the_declared_bound() -> None:
    drawn: list[tuple[str, float]] = []

    def note(name: str, values: Any, scale: Any) -> list[int]:
        drawn.append((name, float(scale)))
        return list(values)

    receipt = Receipt(Decimal(100), Decimal("0.5"), "event")
    with seam.replaced(note):
        receipt.numbers(_measurement([1], l1=30), Decimal("0.5"))
        receipt.numbers(_measurement([1], l1=30), Decimal("0.5"), Decimal("1e-6"))
        receipt.numbers_of_all([_measurement([1], l1=30), _measurement([1], l1=6)], Decimal("0.5"))
    rho = rho_for(Decimal("0.5"), Decimal("1e-6"))
    assert drawn == [
        ("laplace", 60.0),
        ("gaussian", float(Gaussian.calibrated(900, rho).scale)),
        ("laplace", 120.0),
        ("laplace", 24.0),
    ]


def test_every_way_out_counts_down_before_anything_is_read() -> None:
    def read(*given: object) -> Any:
        raise AssertionError("read before it was paid for")

    class Closed(Secret[Any]):
        reveal = read

    receipt, half = Receipt(Decimal("0.25"), Decimal(0), "event"), Decimal("0.5")
    measurement, relation = Measurement(read, 1, 1), Relation.PRESENCE
    for way_out in (
        lambda: receipt.numbers(measurement, half),
        lambda: receipt.numbers_of_all([measurement], half),
        lambda: receipt.selected(Way(half, Decimal(0), 1, ()))(measurement),
        lambda: receipt.numbers_beside([measurement], [Fraction(1)]),
        lambda: receipt.choices(Closed([[1]]), 1, half),
        lambda: receipt.vector(read, Fraction(1), half),
        lambda: receipt.vectors([Fraction(1)], relation, half, Decimal("1e-6"))(Closed([1]), 1),
    ):
        with pytest.raises(eh.EvenhandError, match="more privacy budget than it was debited"):
            way_out()


def test_numbers_beside_names_are_drawn_once_with_what_the_names_leave() -> None:
    drawn: list[tuple[str, float]] = []

    def note(name: str, values: Any, scale: Fraction) -> list[int]:
        drawn.append((name, float(scale)))
        return list(values)

    way = NormalThreshold.way(4, Decimal("0.5"), Decimal("1e-6"), 1, Fraction(1, 5))
    measurement = Measurement(lambda: Secret([1, 2]), 50, 900)
    for shares in ([Fraction(1, 2)] * 3, [Fraction(0), Fraction(1)], [Fraction(1)]):
        receipt = Receipt(Decimal("0.5"), Decimal("1e-6"), "event")
        receipt.selected(way)
        with pytest.raises(eh.EvenhandError, match="more privacy budget than it was debited"):
            receipt.numbers_beside([measurement] * max(2, len(shares)), shares)
    receipt = Receipt(Decimal("0.5"), Decimal("1e-6"), "event")
    receipt.selected(way)
    with seam.replaced(note):
        receipt.numbers_beside([measurement] * 2, [Fraction(1, 4), Fraction(3, 4)])
        with pytest.raises(eh.EvenhandError, match="more privacy budget than it was debited"):
            receipt.numbers_beside([measurement], [Fraction(1)])
    names = next(look.scale for look in way.rounds if isinstance(look, NormalThreshold))
    whole = 30 * names / UNIT * math.sqrt(4)  # names have four times the μ² of numbers
    assert {name for name, _ in drawn} == {"normal"}
    assert [scale for _, scale in drawn] == pytest.approx([whole * 2, whole / math.sqrt(3 / 4)])


def test_vectors_get_noise_for_what_was_declared() -> None:
    drawn: list[tuple[str, Fraction]] = []

    def note(name: str, values: Any, scale: Fraction) -> list[int]:
        drawn.append((name, scale))
        return list(values)

    receipt = Receipt(Decimal(2), Decimal("1e-6"), "event")
    half, delta, l2 = Decimal("0.5"), Decimal("1e-6"), Fraction(30, 7)
    with seam.replaced(note):
        assert receipt.vector(lambda opener: opener(Secret([3, 4])), l2, half) == [3, 4]
        shares = [Fraction(1, 4), Fraction(3, 4)]
        noisy = receipt.vectors(shares, Relation.VALUES, half, delta)
        assert [noisy(Secret([place]), 26) for place in range(2)] == [[0], [1]]
        for wrong in ([Fraction(1, 2), Fraction(2, 3)], [Fraction(0), Fraction(1)]):
            with pytest.raises(eh.EvenhandError, match="more privacy budget than it was debited"):
                receipt.vectors(wrong, Relation.VALUES, half, delta)
        with pytest.raises(eh.EvenhandError, match="more privacy budget than it was debited"):
            noisy(Secret([2]), 1)
    whole = noise_multiplier(half, delta, Relation.VALUES)
    assert drawn[0] == ("spherical", l2 * 2)
    assert [name for name, _ in drawn[1:]] == ["normal"] * 2
    scales = [scale for _, scale in drawn[1:]]
    assert scales == [noise_multiplier(half, delta, Relation.VALUES, share) * 6 for share in shares]  # √26, rounded up
    assert sum((whole * 6 / scale) ** 2 for scale in scales) <= 1


@pytest.mark.parametrize(("monotone", "scale"), [(False, 24), (True, 12)])
def test_choices_are_paid_for_once_and_saturate(monotone: bool, scale: int) -> None:
    receipt = Receipt(Decimal("0.5"), Decimal(0), "event")
    scores = [[0, 5, 3], [-(10**30), -(10**40)], [1, 10**30]]
    with seam.replaced(seam.silent):
        chosen = receipt.choices(Secret(scores), 6, Decimal("0.5"), monotone)
    assert chosen.places == [1, 0, 1]
    assert chosen.scale == scale
    assert NoisyMax(chosen.scale).epsilon(6, monotone) == Decimal("0.5")


def test_exact_counts_leave_only_where_they_are_public() -> None:
    receipt = Receipt(Decimal(1), Decimal(0), "event")
    assert receipt.public(Secret(3), Relation.VALUES) == 3
    with pytest.raises(eh.EvenhandError, match="protects='presence'"):
        receipt.public(Secret(3), Relation.PRESENCE)


def test_totals_saturate_before_noise() -> None:
    receipt = Receipt(Decimal(1), Decimal(0), "event")
    with seam.replaced(seam.silent):
        noisy = receipt.numbers(_measurement([10**30, -(10**30), 5]), Decimal(1))
    assert noisy.values == [SATURATION, -SATURATION, 5]


def test_the_seam_is_closed_again_after_a_test() -> None:
    with pytest.raises(RuntimeError), seam.replaced(seam.silent):
        raise RuntimeError
    assert seam.current() is None


@pytest.mark.parametrize(("l1", "epsilon"), [(1, "0.1"), (3, "0.7"), (2**40, "1e-3"), (10**15, "3")])
def test_the_laplace_scale_keeps_the_promise_exactly(l1: int, epsilon: str) -> None:
    """A scale rounded down by the last bit would already break it."""
    noise = Laplace.calibrated(l1, Decimal(epsilon))
    assert noise.epsilon(l1) <= Decimal(epsilon)
    assert float(noise.epsilon(l1)) == pytest.approx(float(epsilon), rel=1e-12)


@pytest.mark.parametrize("l2_squared", [1, 2, 3, 10**20 + 1])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-9"), ("1", "1e-6"), ("10", "1e-3")])
def test_the_gaussian_scale_keeps_the_promise_exactly(l2_squared: int, epsilon: str, delta: str) -> None:
    rho = rho_for(Decimal(epsilon), Decimal(delta))
    noise = Gaussian.calibrated(l2_squared, rho)
    assert noise.rho(l2_squared) <= rho
    assert float(noise.rho(l2_squared)) == pytest.approx(float(rho), rel=1e-12)


def test_threads_that_share_a_receipt_draw_once() -> None:
    """All of them look at what is left at the same moment; one may take it."""

    class Slow(Decimal):
        def __gt__(self, other: object) -> bool:
            time.sleep(0.01)  # between the look and the taking
            return super().__gt__(other)  # type: ignore[operator]

    receipt, drawn = Receipt(Decimal(1), Decimal(0), "event"), list[int]()

    def draw() -> None:
        with suppress(eh.EvenhandError):
            drawn.extend(receipt.numbers(_measurement([1]), Slow(1)).values)

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 1


def test_a_receipt_has_no_copies() -> None:
    receipt = Receipt(Decimal(1), Decimal(0), "event")
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(eh.EvenhandError, match="can't be copied"):
            copied(receipt)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_process_draws_nothing_for_a_debit_of_its_parent() -> None:
    receipt = Receipt(Decimal(1), Decimal(0), "event")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
    if not child:
        try:
            receipt._use(Decimal(1))
        except eh.EvenhandError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    receipt._use(Decimal(1))

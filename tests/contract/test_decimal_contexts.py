"""Amounts are the same whatever decimal context the caller has: every entry point, with the same debits, integers and words.

`tests/visible.py` notes all that can be seen of a session. Noise is replaced, so two runs differ only where the context of the
calling thread, or what new contexts take after, has a say. `tests/amounts_rule.py` reads the same rule from the types.
"""

from __future__ import annotations

import decimal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from test_outcomes import QUESTIONS

import evenhand as eh
from evenhand.guarantee import Guarantee, Relation, exact_difference, exact_sum, plain
from evenhand.ledger import Budget, Cost
from evenhand.ledger.desk import Desk, Limits
from evenhand.noise.normal import decided
from evenhand.recommender import Campaign
from evenhand.recommender.at_home import Diary
from visible import Questions, Tape, assert_alike, look

EPSILON, DELTA = "0.1234567890123456789", "0.0000012345678901234567"
"""With more digits than the contexts below keep."""

HOSTILE = {
    "three digits, down": decimal.Context(prec=3, rounding=decimal.ROUND_FLOOR),
    "three digits, up": decimal.Context(prec=3, rounding=decimal.ROUND_UP, capitals=0),
    "one digit, traps": decimal.Context(
        prec=1,
        Emin=0,
        Emax=0,
        capitals=0,
        clamp=1,
        traps=[
            *(
                decimal.Inexact,
                decimal.Rounded,
                decimal.Subnormal,
                decimal.Underflow,
                decimal.Overflow,
                decimal.Clamped,
            ),
            *(decimal.FloatOperation, decimal.InvalidOperation, decimal.DivisionByZero),
        ],
    ),
    "no traps": decimal.Context(prec=2, rounding=decimal.ROUND_UP, traps=[]),
}


@contextmanager
def calling(context: decimal.Context) -> Iterator[None]:
    """This thread, and what new contexts and threads take after."""
    default, before = decimal.DefaultContext, decimal.DefaultContext.copy()
    parts = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    try:
        for part in parts:
            setattr(default, part, getattr(context, part))
        default.traps.update(context.traps)
        with decimal.localcontext(context.copy()):
            yield
    finally:
        for part in parts:
            setattr(default, part, getattr(before, part))
        default.traps.update(before.traps)


MORE: dict[str, Callable[[Any], Any]] = {
    "top of rows": lambda ask: ask.top("g", 2, of="rows", epsilon=EPSILON, delta=DELTA),
    "top of users": lambda ask: ask.top("g", 2, epsilon=EPSILON, delta=DELTA),
    "mean, found bounds": lambda ask: ask.mean("v", epsilon=EPSILON),
    "mean, many digits": lambda ask: ask.mean("v", bounds=(0, 9), epsilon=EPSILON),
    "mean by, Gaussian, many digits": lambda ask: ask.mean(
        "v", bounds=(0, 9), by="g", keys=["a", "b"], epsilon=EPSILON, delta=DELTA
    ),
    "share": lambda ask: ask.share(eh._.v > 1, epsilon=EPSILON),
    "profile, many digits": lambda ask: ask.profile(epsilon=EPSILON),
    "sql, many digits": lambda ask: ask.sql("SELECT g, AVG(v) AS m FROM table GROUP BY g", epsilon=EPSILON, delta=DELTA),
}  # fmt: skip


def table() -> eh.Table:
    users = [user for user in range(3000) for _ in range(2)]  # so many that no coin decides which group is shown
    v = [(user * 7 % 50) / 5 for user in users]  # the rows of a user are alike: it does not matter which are drawn
    rows = {"u": users, "g": [*["a"] * 3000, *["b"] * 3000], "v": v, "x": [1.0] * 6000}
    return eh.read(pa.table(rows), user="u")


@pytest.mark.parametrize(("name", "questions"), [("three digits, up", MORE), ("one digit, traps", QUESTIONS | MORE)])
def test_sessions(name: str, questions: Questions) -> None:
    """Every question of a session, its preview, its debit and its words."""
    expected = look(table, questions, Tape("mixed"))
    with calling(HOSTILE[name]):
        assert_alike(expected, look(table, questions, Tape("mixed")))


def fits(place: Path) -> list[Any]:
    """What fits and searches debit."""
    from evenhand.learning import BoundedERM, LabelPrivateRegression, PrivateSearchCV, WeightedERM

    rng = np.random.default_rng(0)
    X, users = rng.normal(size=(400, 2)), np.arange(400) % 200
    y = (X[:, 0] > 0).astype(int)
    ledger = eh.Ledger(place / "fits.db", epsilon=1000, delta="0.5")
    bounded = BoundedERM(EPSILON, feature_bounds=(-4, 4), ledger=ledger)
    models: list[Any] = [
        bounded,
        BoundedERM(
            EPSILON, feature_bounds=(-4, 4), method="objective", rows_per_user=2, ledger=ledger, regularisation=500.0
        ),
        WeightedERM(EPSILON, DELTA, feature_bounds=(-4, 4), ledger=ledger),
        LabelPrivateRegression(epsilon=EPSILON, label_bounds=(0, 1), noise_sd=1.0, ledger=ledger),
        PrivateSearchCV(bounded, {"rows_per_user": [1, 2]}, epsilon=EPSILON, delta=0),
    ]
    raised = []
    for model in models:
        try:
            model.fit(X, y, users=users)
        except eh.UsageError as refused:
            raised.append(str(refused))
    return [raised, [(event.guarantee, event.cost, event.query) for event in ledger.events], ledger.spent]


def campaign(place: Path) -> list[Any]:
    """What the server publishes of a task, and what a person's diary says was spent on it."""
    task = Campaign(items=[f"item {number}" for number in range(20)], sketch="maxsense", epsilon=EPSILON, rated=5).task
    diary = Diary(place / "diary.db", ceiling="2.5", lifetime="0.2")
    diary._debit(task)
    with pytest.raises(eh.BudgetExceeded):  # more than is left by less than three digits show
        diary._debit(replace(task, epsilon=Decimal("0.0766")))
    return [task.id, task.question_epsilon, task.to_bytes(), diary.spent, diary.lifetime]


def ledgers(place: Path) -> list[Any]:
    """A ledger's life: sums, conversion, what fits, periods and sub-budgets, and its verified history."""
    ledger = eh.Ledger(place / "b.db", epsilon="1.23456789", delta="1.23456789e-5")
    promise = Guarantee(Decimal(1), Decimal(0), Relation.PRESENCE, ("u",))
    costs = [
        Cost.pure(EPSILON),
        Cost.zcdp("0.00123456789", epsilon=EPSILON, delta="1.23e-7"),
        Cost.pure("1e-9").for_group(2),
    ]
    for _ in range(12):
        for cost in costs:
            if ledger.can_afford(cost, promise):
                ledger.debit(cost, {}, promise)
    desk = Desk(eh.Ledger(place / "d.db", epsilon="1.23456789"), period=lambda: "now")
    for key in "abcdefghijkl":
        with suppress(eh.BudgetExceeded):
            paid = desk.question_ledger("ann", key, "{}", Limits(Budget(Decimal("0.987654321"))))
            paid.debit(Cost.pure(EPSILON), {}, promise)
    for one in (ledger, desk):
        one.verify()
    state = (
        ledger.spent,
        ledger.remaining,
        ledger.each(365),
        repr(ledger),
        repr(desk.ledger),
        desk.spent("ann"),
        len(desk.asked()),
    )
    return [state, [vars(event) | {"id": 0, "time": 0} for event in ledger.events]]


def arithmetic(place: Path) -> list[Any]:
    """Functions that others call after a debit."""
    amounts = [Decimal(EPSILON), Decimal(DELTA), Decimal("0.12345678901234567890123456789012345678")]
    return [
        exact_sum(amounts),
        exact_difference(*amounts[:2]),
        [plain(amount) for amount in (*amounts, Decimal("1e-9"), Decimal("-1.5e-7"))],
        [decided(distance, 3.25, 1 << 380) for distance in range(-8, 8)],
    ]


@pytest.mark.parametrize("entry", [fits, campaign, ledgers, arithmetic])
@pytest.mark.parametrize("name", HOSTILE)
def test_other_entry_points(entry: Callable[[Path], list[Any]], name: str, tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    (tmp_path / "hostile").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = entry(tmp_path / "usual")
        with calling(HOSTILE[name]):
            found = entry(tmp_path / "hostile")
    assert (
        repr(found).replace("hostile", "usual").lower() == repr(expected).lower()
    )  # a repr writes 1e-9 as the context says


def test_a_history_is_verified_in_any_context(tmp_path: Path) -> None:
    """Written by one program and checked by another: its texts, and so its digests, do not depend on either."""
    for number, (writing, reading) in enumerate([("three digits, up", None), (None, "one digit, traps")]):
        place = tmp_path / f"{number}.db"
        with calling(HOSTILE[writing] if writing else decimal.Context()):
            ledger = eh.Ledger(place, epsilon="1e-7", delta="1e-9")
            ledger.debit(
                Cost.approximate("1e-8", "1e-10"), {}, Guarantee(Decimal(1), Decimal(0), Relation.PRESENCE, ("u",))
            )
        with calling(HOSTILE[reading] if reading else decimal.Context()):
            eh.Ledger(place).verify()


def test_threads_of_a_program_with_another_default() -> None:
    """A new thread begins with the default context, which a program may have changed."""
    seen: list[Any] = []

    def release(place: Path) -> None:
        try:
            ledger = eh.Ledger(place / "t.db", epsilon=1, delta="1e-5")
            eh.Session(table(), ledger).top("g", 2, of="rows", epsilon=EPSILON, delta=DELTA)
            seen.append(ledger.spent)
        except Exception as error:
            seen.append(error)

    with tempfile.TemporaryDirectory() as folder, calling(HOSTILE["one digit, traps"]):
        thread = threading.Thread(target=partial(release, Path(folder)))
        thread.start()
        thread.join()
    assert [getattr(one, "epsilon", one) for one in seen] == [Decimal(EPSILON)]


IMPORTED = """
import decimal
decimal.DefaultContext.prec, decimal.DefaultContext.rounding = 2, decimal.ROUND_UP
decimal.DefaultContext.traps[decimal.Inexact] = decimal.DefaultContext.traps[decimal.Rounded] = True
decimal.setcontext(decimal.DefaultContext)
import sys, pyarrow as pa, evenhand as eh
ledger = eh.Ledger(sys.argv[1], epsilon=1, delta="1e-5")
session = eh.Session(eh.read(pa.table({"u": [1, 1, 2], "g": ["a", "b", "a"]}), user="u"), ledger)
session.top("g", 1, of="rows", epsilon="0.1234567890123", delta="1.23e-7")
session.count(by="g", keys=["a"], epsilon="0.1234567890123", delta="1.23e-7")
ledger.verify()
print(ledger.events[0].cost.epsilon, len(ledger.events))
"""


def test_a_program_that_changed_the_default_before_it_imports(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", IMPORTED, str(tmp_path / "b.db")], capture_output=True, text=True)
    assert ran.stdout.split() == ["0.1234567890123", "2"], ran.stderr[-2000:]

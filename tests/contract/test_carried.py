"""Nothing that leaves carries more than the noisy numbers: whole objects and pickles of neighbouring tables are the same.

What is asked comes from the package's own lists, of statistics and of estimators: a new one is covered as it is. The table is made so
that one user stands out in everything: alone in a group whose name comes first, with many rows and the largest value.
"""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand import learning
from evenhand.learning import (
    BoundedERM,
    HypothesisSelection,
    LabelPrivateRegression,
    PrivateSearchCV,
    WeightedERM,
    model_loss,
)
from evenhand.learning.data import row_sources
from evenhand.learning.selection import train_test_split
from evenhand.profiles import Profile
from evenhand.recommender.at_home import answer
from evenhand.recommender.at_home.coins import SecureCoins
from evenhand.recommender.messages import SKETCHES, Task, Token
from evenhand.service.stored import answer_text, read_answer
from evenhand.session import Drafts
from evenhand.statistics import STATISTICS, Statistic
from evenhand.tables import Secret
from reachable import carried, difference, reachable
from visible import NOISE, Questions, Tape

BOUNDS = (0, 10)
KEYS: dict[str, Any] = {"by": "g", "keys": ["m", "z", "nobody"], "epsilon": 1}
HIDDEN: dict[str, Any] = {"by": "g", "epsilon": 1000, "delta": 1e-6}


def table(relation: str, there: bool, view: bool = False) -> eh.Table:
    """A crowd, with the user in question or without; under values they are there with other values."""
    users, groups = [f"user {row % 60}" for row in range(180)], ["mz"[row % 2] for row in range(180)]
    values = [float(row % 7) for row in range(180)]
    if there or relation == "values":
        users, groups = [*users, *["me"] * 40], [*groups, *["a name that nobody else has"] * 40]
        values += [9.5 if there else 0.5] * 40
    rows = pa.table({"u": users, "g": groups, "v": values, "w": [10 - value for value in values]})
    opened = eh.read(rows, user="u", protects=relation, public=["g"] if relation == "values" else [])
    if not view:
        return opened
    grown = opened.derive(v=eh._.v + 1)
    return grown.where(eh._.v > 1) if relation == "presence" else grown


def example(kind: type[Statistic]) -> Statistic:
    return kind.example("v", BOUNDS)


def asked(statistic: Statistic) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ways to ask for a statistic: alone, by group with public and with hidden names, with both kinds of noise."""
    if statistic.groups_by:
        yield "keys", {"keys": KEYS["keys"], "epsilon": 1}
        yield "hidden", {"epsilon": 1000, "delta": 1e-6}
        yield "hidden, in one group", {"epsilon": 1000, "delta": 1e-6, "groups_per_user": 1}
        return
    yield "alone", {"epsilon": 1}
    yield "keys", KEYS
    yield "keys with δ", {**KEYS, "delta": 1e-6}
    if statistic.selects_keys:
        yield "hidden", HIDDEN
        yield "hidden, in few groups", {**HIDDEN, "groups_per_user": 2, "other": "rest"}


def questions() -> Questions:
    """Every statistic on the list, all that can be together, and what else a session can be asked."""
    found: Questions = {}
    for name, kind in STATISTICS.items():
        for how, options in asked(example(kind)):
            found[f"{name}, {how}"] = lambda ask, kind=kind, options=options: ask.ask(example(kind), **options)  # type: ignore[misc]
        if example(kind).wants_bounds == () and hasattr(kind, "bounds"):
            found[f"{name}, found"] = lambda ask, kind=kind: ask.ask(replace(example(kind), bounds=None), epsilon=1000)  # type: ignore[misc, type-var]
    together = {name: example(kind) for name, kind in STATISTICS.items() if example(kind).aggregates}
    own = {f"{name}_of": statistic for name, statistic in together.items()}
    found["aggregate"] = lambda ask: ask.aggregate(**own, **KEYS)
    selecting = {name: one for name, one in own.items() if together[name[:-3]].selects_keys}
    found["aggregate, hidden"] = lambda ask: ask.aggregate(**selecting, **HIDDEN)
    found["sum of two"] = lambda ask: ask.sum(["v", "w"], bounds=BOUNDS, epsilon=1)
    found["sql"] = lambda ask: ask.sql("SELECT COUNT(*) AS n, SUM(v) AS s, AVG(v) FROM table", epsilon=1)
    found["sql, hidden"] = lambda ask: ask.sql(
        "SELECT g, COUNT(*) AS n FROM table WHERE v > 0 GROUP BY g ORDER BY n DESC", epsilon=1000, delta=1e-6
    )
    found["describe"] = lambda ask: ask.describe()
    found["profile"] = lambda ask: ask.profile(epsilon=1)
    found["plan"] = lambda ask: eh.plan("mean", ask.profile(epsilon=1), bounds=BOUNDS, epsilon=1)
    found["mean from a kept profile"] = lambda ask: ask.mean("v", bounds=BOUNDS, epsilon="0.1")
    found["no such column"] = lambda ask: ask.mean("velue", bounds=BOUNDS, epsilon=1)
    return found


QUESTIONS = questions()
"""By name; each name begins with a method of a session."""


def test_every_question_of_a_session_is_asked() -> None:
    public = {name for name, _ in inspect.getmembers(eh.Session) if not name.startswith("_")} - {"preview", "ask"}
    assert public <= {name.partition(",")[0].partition(" ")[0] for name in QUESTIONS}


def _quick() -> Iterator[str]:
    for name in QUESTIONS:
        kind, _, how = name.partition(", ")
        if (
            how == "hidden"
            or (how == "keys" and f"{kind}, hidden" not in QUESTIONS)
            or name in ("profile", "plan", "describe")
        ):
            yield name


QUICK = {"presence": list(_quick()), "values": [name for name in QUESTIONS if name.endswith("alone")]}
"""What the quick run looks at: of each statistic names that are hidden, or else public, and under values no groups."""


@dataclass
class Held:
    """What a session hands out: what each preview, answer and error carries, by question, and the events; and the noisy numbers."""

    carries: dict[str, Any]
    answers: dict[str, Any]
    tape: Tape


def hold(opened: eh.Table, names: Sequence[str], tape: Tape, folder: Path, wire: bool = False) -> Held:
    """Ask in one session, previews first; ``wire``: also what a server stores and sends of each answer, and what a client makes of it."""
    ledger = eh.Ledger(folder / f"{uuid.uuid4().hex}.db", epsilon=10**6, delta="0.5")
    session, held, answers = eh.Session(opened, ledger), dict[str, Any](), dict[str, Any]()
    with tape.playing(), mock.patch("uuid.uuid4", numbered()):
        for name in names:
            for ask, said in ((session.preview, f"preview of {name}"), (session, name)):
                if name.startswith(("profile", "plan", "describe")) and ask is not session:
                    continue
                try:
                    answers[said] = QUESTIONS[name](ask)
                except eh.EvenhandError as error:
                    answers[said] = error
                held[said] = carried(answers[said])
                if wire and isinstance(answers[said], eh.Release | Profile):
                    sent = answer_text(answers[said])
                    held[said] |= {"text": [("", sent)], "read back": reachable(read_answer(json.loads(sent)))}
    events = [replace(event, time="", asked=replace(event.asked, table=None)) for event in ledger.events]
    return Held(held | {"events": carried(events)}, answers, tape)


def numbered() -> Callable[[], uuid.UUID]:
    """Random numbers of events that are the same in each session."""
    return partial(next, (uuid.UUID(int=number, version=4) for number in itertools.count()))


def compare_sessions(
    tables: Sequence[eh.Table], names: Sequence[str], folder: Path, noise: str = "none", wire: bool = False
) -> Held:
    """Ask about both under the same noise."""
    one = hold(tables[0], names, Tape(noise), folder, wire)
    other = hold(tables[1], names, Tape(noise, one.tape), folder, wire)
    for name, mine in one.carries.items():
        for part, facts in mine.items():
            differs = difference(facts, other.carries[name][part])
            assert not differs, f"the {part} of {name} depends on rows: {differs}"
    return one


def tables(relation: str, view: bool = False) -> tuple[eh.Table, eh.Table]:
    """Neighbours."""
    return table(relation, True, view), table(relation, False, view)


@pytest.mark.parametrize("relation", ["presence", "values"])
def test_sessions_of_neighbours_carry_the_same(relation: str, tmp_path: Path) -> None:
    """Releases, previews, profiles, plans, errors and the ledger's events, with all that is reachable from them, and their pickles."""
    found = compare_sessions(tables(relation), QUICK[relation], tmp_path)
    shown = [found.answers[name] for name in QUICK["presence"] if name.endswith("hidden") and relation == "presence"]
    assert all("m" in list(release.value["g"]) for release in shown), "no name is shown, so nothing was tested"


def test_what_a_server_sends_of_neighbours_is_the_same(tmp_path: Path) -> None:
    compare_sessions(tables("presence"), ["mean, hidden", "profile"], tmp_path, wire=True)


@pytest.mark.thorough
@pytest.mark.parametrize("relation", ["presence", "values"])
@pytest.mark.parametrize("noise", NOISE)
def test_all_questions_of_neighbours_carry_the_same(relation: str, noise: str, tmp_path: Path) -> None:
    compare_sessions(tables(relation), list(QUESTIONS), tmp_path, noise, wire=True)


@pytest.mark.thorough
@pytest.mark.parametrize("relation", ["presence", "values"])
def test_all_questions_about_a_view_carry_the_same(relation: str, tmp_path: Path) -> None:
    compare_sessions(tables(relation, view=True), list(QUESTIONS), tmp_path)


# Models: every estimator of the package, and the loss of one.

ROWS = 24


def data(there: bool) -> dict[str, Any]:
    """Arrays for a fit: two features and a label of twelve users with two rows each, with or without the last one."""
    count = ROWS if there else ROWS - 2
    X = np.array([[(7 * row % 13) / 13, (5 * row % 11) / 11] for row in range(count)])
    y = np.array([row % 3 % 2 for row in range(count)], dtype=float)
    if there:
        X[-2:], y[-2:] = 0.987, 1.0
    return {"X": X, "y": y, "users": np.arange(count) // 2}


def changed() -> dict[str, Any]:
    """The same with other rows of the last user."""
    given = data(True)
    given["X"][-2:], given["y"][-2:] = -0.3, 0.0
    return given


def above(rows: Any) -> Any:
    return (rows[:, 0] > 0.5).astype(int)


def below(rows: Any) -> Any:
    return (rows[:, 0] <= 0.5).astype(int)


def loss_of(given: dict[str, Any], protects: str) -> Any:
    model = BoundedERM(1, rows_per_user=2, regularisation=20.0, feature_norm=1.0, protects=protects).fit(**data(False))
    return model_loss(model, **given, epsilon=1)


def _fit(make: Callable[..., Any]) -> Callable[[dict[str, Any], str], Any]:
    return lambda given, protects: make(protects=protects).fit(**given)


KEPT: dict[str, Any] = {"rows_per_user": 2, "feature_norm": 1.0}
FITS: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "BoundedERM": _fit(partial(BoundedERM, 1, method="objective", regularisation=20.0, **KEPT)),
    "BoundedERM, output": _fit(partial(BoundedERM, 1, method="output", regularisation=1.0, **KEPT)),
    "BoundedERM, auto": _fit(partial(BoundedERM, 1, feature_bounds=(-1, 1))),
    "BoundedERM, squared": _fit(partial(BoundedERM, 1, loss="squared", label_bounds=(0, 1), **KEPT)),
    "WeightedERM": _fit(partial(WeightedERM, 1, steps=3, feature_norm=1.0)),
    "WeightedERM, squared": _fit(partial(WeightedERM, 1, feature_bounds=(-1, 1), loss="squared", label_bounds=(0, 1))),
    "HypothesisSelection": _fit(partial(HypothesisSelection, [above, below], 1, rows_per_user=2)),
    "HypothesisSelection, auto": _fit(partial(HypothesisSelection, [above, below], 1)),
    "PrivateSearchCV": lambda given, protects: PrivateSearchCV(
        BoundedERM(protects=protects, **KEPT), {"regularisation": [1.0, 9.0]}, 1, 0
    ).fit(**given),
    "LabelPrivateRegression": lambda given, protects: LabelPrivateRegression(
        1, label_bounds=(0, 1), weighting="all"
    ).fit(**given),
    "LabelPrivateRegression, private σ": lambda given, protects: LabelPrivateRegression(
        1, label_bounds=(0, 1), noise_sd="private", fit_intercept=False
    ).fit(**given),
    "model_loss": loss_of,
}


def test_every_estimator_is_fitted() -> None:
    known = {name for name in learning.__all__ if hasattr(getattr(learning, name), "fit") or name == "model_loss"}
    assert known == {name.partition(",")[0] for name in FITS}


def fitted(name: str, given: dict[str, Any], protects: str, tape: Tape) -> dict[str, Any]:
    """What a model carries that was fitted under the noise of a tape; nobody's rows are drawn, and every third user judges."""
    first = lambda users, counts: np.concatenate([np.arange(count) for count in counts if count])  # noqa: E731
    with (
        tape.playing(),
        mock.patch.object(row_sources, "random_ranks", first),
        mock.patch.object(train_test_split, "coins", lambda users: np.arange(users) % 3 == 2),
    ):
        return carried(FITS[name](given, protects))


@pytest.mark.parametrize("protects", ["presence", "values"])
@pytest.mark.parametrize("name", FITS)
def test_models_of_neighbours_carry_the_same(name: str, protects: str) -> None:
    if name.startswith("LabelPrivateRegression"):  # features and users are public
        other = data(True) | {"y": changed()["y"]}
    else:
        other = data(False) if protects == "presence" else changed()
    tape = Tape("mixed")
    mine = fitted(name, data(True), protects, tape)
    theirs = fitted(name, other, protects, Tape("mixed", tape))
    assert tape.outputs, "no noise was drawn"
    for part, facts in mine.items():
        differs = difference(facts, theirs[part])
        assert not differs, f"the {part} of a {name} depends on rows: {differs}"


@pytest.mark.parametrize("sketch", SKETCHES)
def test_reports_from_home_differ_in_their_answer_alone(sketch: str) -> None:
    """The probabilities of the answer are checked exactly elsewhere; nothing else of a report may depend on ratings."""
    task = Task(
        items=tuple(f"item {number}" for number in range(4)), sketch=sketch, epsilon=Decimal(1), rated=2, tokens=8, pool=8,
        theta=Decimal(1) if SKETCHES[sketch].senses else None, questions=2 if SKETCHES[sketch].several else 1, beacon=bytes(32),
    )  # fmt: skip
    token = Token(task.short_id, 0, bytes(8))
    reports = [
        answer(task, token, ratings, SecureCoins()) for ratings in ({}, {0: True}, {1: False, 2: True}, {3: True})
    ]
    same = [carried(replace(report, answer=reports[0].answer)) for report in reports]
    assert same == [same[0]] * len(same)


# Broken twins: each hides one number, or one way to the rows, where a repr or a documented output does not show it.


@dataclass(frozen=True)
class Kept:
    """What somebody might keep."""

    number: int = field(repr=False)

    def told(self) -> int:
        return self.number


class Slot:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Cached:
    def __init__(self, number: int) -> None:
        self.look: Callable[[], int] = lambda: number
        _ = self.seen
        del self.look

    @functools.cached_property
    def seen(self) -> int:
        return self.look()


def _cache(number: int) -> object:
    kept = functools.cache(lambda asked: [number])
    kept("once")
    return kept


def _failed(number: int) -> object:
    error = eh.DataError("withheld")
    error.__cause__ = ValueError(number)
    return error


def _frame(number: int) -> pd.DataFrame:
    return pd.DataFrame({"n": [0, number]})


def _attributes(number: int) -> pd.DataFrame:
    frame = _frame(0)
    frame.attrs["rows"] = number
    return frame


HIDDEN_NUMBERS: dict[str, Callable[[int], object]] = {
    "a field that repr leaves out": Kept,
    "a slot": Slot,
    "a cached property": Cached,
    "a closure": lambda number: lambda: number,
    "a default": lambda number: lambda given=number: given,
    "a keyword's default": lambda number: lambda *, given=number: given,
    "a partial": lambda number: functools.partial(max, number),
    "a bound method": lambda number: Kept(number).told,
    "an entry of a cache": _cache,
    "an iterator": lambda number: iter([number]),
    "a queue": lambda number: collections.deque([number]),
    "a key": lambda number: {number: None},
    "a member of a set": lambda number: {number},
    "what an array is a slice of": lambda number: np.array([0, number])[:1],
    "an object in an array": lambda number: np.array([Kept(number)], dtype=object),
    "what a frame is cut from": lambda number: _frame(number).iloc[:1],
    "what a frame of text is cut from": lambda number: pd.DataFrame({"n": ["a", str(number)]}, dtype="string").iloc[:1],
    "attributes of a frame": _attributes,
    "the cause of an error": _failed,
}


@pytest.mark.parametrize("place", HIDDEN_NUMBERS)
def test_a_number_is_found_wherever_it_hides(place: str) -> None:
    one, same, other = (reachable(HIDDEN_NUMBERS[place](number)) for number in (1001, 1001, 1002))
    assert not difference(one, same)
    assert difference(one, other)


@pytest.mark.parametrize(
    "way",
    [
        lambda table: table,
        lambda table: Kept(table),
        lambda table: lambda: table.expression,
        lambda table: [table.engine],
        lambda table: {"count": Secret(3)},
        lambda table: functools.partial(print, table.expression.count()),
        lambda table: Drafts(table).count(epsilon=1),
        lambda table: pa.table({"rows": [3]}),
    ],
)
def test_a_way_to_the_rows_is_found(way: Callable[[eh.Table], object]) -> None:
    with pytest.raises(AssertionError, match="not for release"):
        reachable(way(table("presence", True)))


def _rows(ask: Any) -> int:
    return int(ask.table.engine.fetch(ask.table.expression.count().as_table()).reveal()[0][0].as_py())


def _keeps_places(ask: Any) -> Any:
    """The release by hidden names of a defect that was there: it held where its names stand among all names."""
    told = ask.count(**HIDDEN)
    if isinstance(told, eh.Release):
        object.__setattr__(told._interval, "places", (_rows(ask),))
    return told


def _previews_rows(ask: Any) -> Any:
    told = ask.count(epsilon=1)
    if isinstance(told, eh.Release):
        return told
    object.__setattr__(told, "rows", _rows(ask))
    return told


def _fails_with_rows(ask: Any) -> Any:
    error = eh.DataError("the table can't be read")
    error.rows = _rows(ask)  # type: ignore[attr-defined]
    raise error


def _asks_with_rows(ask: Any) -> Any:
    """The number of rows in the question that the ledger keeps."""
    draft = Drafts(ask.table).count(epsilon=1)
    return (
        replace(draft, query={**draft.query, "rows": _rows(ask)}).release(ask.ledger)
        if hasattr(ask, "ledger")
        else None
    )


@pytest.mark.parametrize("twin", [_keeps_places, _previews_rows, _fails_with_rows, _asks_with_rows])
def test_what_a_session_hides_is_noticed(twin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUESTIONS, "twin", twin)
    with pytest.raises(AssertionError, match="depends on rows"):
        compare_sessions(tables("presence"), ["twin"], tmp_path)


class Remembers(BoundedERM):
    """Keeps how many rows it was given."""

    def fit(self, X: Any, y: Any = None, users: Any = None) -> Any:
        self._rows = len(X)
        return super().fit(X, y, users)


def test_what_a_model_hides_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FITS, "twin", _fit(partial(Remembers, 1, method="output", regularisation=1.0, **KEPT)))
    with pytest.raises(AssertionError, match="depends on rows"):
        test_models_of_neighbours_carry_the_same("twin", "presence")

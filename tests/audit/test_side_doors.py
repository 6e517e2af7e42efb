"""Canaries: values planted in a table must not come out anywhere but through the noise.

Every public question, command and estimator is asked about a table whose users, groups and values are canaries. Then everything
that exists afterwards is searched: results with their metadata, pickles, what was printed and logged, the ledger, and every file
written meanwhile. `tests/unit/test_release_canary.py` does the same for errors.
"""

from __future__ import annotations

import inspect
import io
import json
import logging
import os
import pickle
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.apps import cli
from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, WeightedERM
from evenhand.session import Drafts, Session

USER, GROUP, VALUE = "canary-user-5d1e", "canary-group-90ab", 3.1723451188
NEEDLES = (
    USER.encode(),
    GROUP.encode(),
    b"3.17234511",
    b"3172345118",
    struct.pack("<d", VALUE),
    struct.pack(">d", VALUE),
)
BOUNDS = (0, 5)


def holds(data: bytes) -> bool:
    """Whether a canary is in there: text in UTF-8 or UTF-16, or a number as text or as a double of either byte order."""
    wide = data.decode("utf-16-le", "ignore").encode("utf-8", "ignore")
    return any(needle in text for needle in NEEDLES for text in (data, wide))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory, the home and the place for temporary files."""
    rows = pa.table(
        {
            "user": [USER] * 40 + [f"user {row % 9}" for row in range(60)],
            "group": [GROUP] * 40 + ["common"] * 60,
            "value": [VALUE] * 40 + [row / 20 for row in range(60)],
            "other": [VALUE] * 40 + [row / 30 for row in range(60)],
            "label": [1.0] * 40 + [float(row % 2) for row in range(60)],
        }
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    pq.write_table(rows, tmp_path / "in" / "rows.parquet")
    for name in ("TMPDIR", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "out"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "out")
    return tmp_path


@pytest.fixture
def watched(
    place: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[Callable[[Any], None]]:
    """Check each thing that is handed over, and at the end all that was printed, logged or written."""
    caplog.set_level(logging.DEBUG)

    def check(thing: Any) -> None:
        for text in (repr(thing), str(thing)):
            assert not holds(text.encode()), f"a {type(thing).__name__} prints a canary"
        assert not holds(pickled(thing)), f"the pickle of a {type(thing).__name__} holds a canary"

    yield check
    said = capfd.readouterr()
    assert not holds((said.out + said.err + caplog.text).encode()), "a canary was printed or logged"
    for file in (place / "out").rglob("*"):
        if file.is_file():
            assert not holds(file.read_bytes()), f"{file.name} holds a canary"


def pickled(thing: Any) -> bytes:
    """The pickle of a thing; what refuses to be pickled gives nothing away."""
    try:
        return pickle.dumps(thing)
    except Exception:
        return b""


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda ask: ask.count(epsilon=1),
    "users": lambda ask: ask.users(epsilon=1),
    "sum": lambda ask: ask.sum("value", bounds=BOUNDS, epsilon=1),
    "mean": lambda ask: ask.mean(["value", "other"], bounds=BOUNDS, epsilon=1),
    "share": lambda ask: ask.share("value > 3", epsilon=1),
    "variance": lambda ask: ask.variance("value", bounds=BOUNDS, epsilon=1),
    "std": lambda ask: ask.std("value", bounds=BOUNDS, epsilon=1),
    "per_user_mean": lambda ask: ask.per_user_mean("value", bounds=BOUNDS, of="total", epsilon=1),
    "ratio": lambda ask: ask.ratio(eh.sum("value", bounds=BOUNDS), eh.users(), epsilon=1),
    "median": lambda ask: ask.median("value", bounds=BOUNDS, epsilon=1),
    "quantiles": lambda ask: ask.quantiles("value", [0.5], bounds=BOUNDS, epsilon=1),
    "histogram": lambda ask: ask.histogram("value", [0, 1, 2, 5], epsilon=1),
    "top": lambda ask: ask.top("group", 2, epsilon=1, delta=1e-6),
    "distinct": lambda ask: ask.distinct("group", epsilon=1),
    "aggregate": lambda ask: ask.aggregate(
        by="group", epsilon=0.1, delta=1e-6, n=eh.count(), m=eh.mean("value", bounds=BOUNDS)
    ),
    "ask": lambda ask: ask.ask(eh.sum("value", bounds=BOUNDS), epsilon=1),
    "sql": lambda ask: ask.sql("SELECT COUNT(*), AVG(value) FROM table", epsilon=1),
    "profile": lambda ask: ask.profile(epsilon=1),
    "describe": lambda ask: ask.describe(),
}
ONLY_ON_A_SESSION = {"preview", "profile", "describe"}


def test_every_public_question_is_asked() -> None:
    """A new question on a session must be added above."""
    public = {name for name, _ in inspect.getmembers(Session) if not name.startswith("_")}
    assert public - {"preview"} == set(QUESTIONS)


@pytest.mark.parametrize("protects", ["presence", "values"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_releases_hold_no_canary(question: str, protects: str, place: Path, watched: Callable[[Any], None]) -> None:
    if protects == "values" and question in ("aggregate", "top", "profile"):
        pytest.skip("groups are public there, and so are profiles")
    table = eh.read(place / "in" / "rows.parquet", user="user", protects=protects)
    session = Session(table, eh.Ledger(place / "out" / "budget.db", epsilon=100, delta=1e-3))
    watched(table)
    if question not in ONLY_ON_A_SESSION:
        watched(QUESTIONS[question](session.preview))
        watched(QUESTIONS[question](Drafts(table)))
    release = QUESTIONS[question](session)
    watched(release)
    watched(release.to_dict())
    if isinstance(release, eh.Release):
        watched(release.to_html())
        watched(release.interval(0.9))
        watched(vars(release))
    watched(session)
    watched([event.to_dict() for event in session.ledger.events])


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "BoundedERM": lambda: BoundedERM(epsilon=1, feature_bounds=BOUNDS),
    "WeightedERM": lambda: WeightedERM(epsilon=1, delta=1e-6, steps=3, feature_bounds=BOUNDS),
    "HypothesisSelection": lambda: HypothesisSelection([np.ravel, _ones], epsilon=1),
    "LabelPrivateRegression": lambda: LabelPrivateRegression(epsilon=1, label_bounds=BOUNDS),
}


def _ones(rows: Any) -> Any:
    return np.ones(len(rows))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_hold_no_canary(estimator: str, place: Path, watched: Callable[[Any], None]) -> None:
    """Under labels the features are public by definition, so there the canary is the label."""
    rows = pq.read_table(place / "in" / "rows.parquet").to_pandas()
    if estimator == "LabelPrivateRegression":
        X, y = np.arange(len(rows), dtype=float)[:, None], rows["value"].to_numpy()
    else:
        X, y = rows[["value"]].to_numpy(), rows["label"].to_numpy()
    fitted = ESTIMATORS[estimator]().fit(X, y, users=rows["user"].to_numpy())
    watched(fitted)
    watched({name: value for name, value in vars(fitted).items() if name.endswith("_")})


COMMANDS = {
    "json": ["mean", "--value", "value", "--bounds", "0:5", "--json"],
    "words and a page": ["sum", "--value", "value", "--bounds", "0:5", "--html", "page.html"],
    "secret keys": ["count", "--by", "group", "--delta", "1e-6"],
    "preview": ["mean", "--value", "value", "--bounds", "0:5", "--preview"],
    "no such column": ["mean", "--value", "velue", "--bounds", "0:5"],
    "a text column": ["mean", "--value", "user", "--bounds", "0:5"],
    "too much": ["count", "--epsilon", "1000"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_no_canary(
    command: str, place: Path, watched: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    statistic, *options = COMMANDS[command]
    eh.Ledger(place / "out" / "budget.db", epsilon=1, delta=1e-3)
    source = str(place / "in" / "rows.parquet")
    given = ["evenhand", "release", statistic, source, "--user", "user", "--epsilon", "0.1", "--ledger", "budget.db"]
    monkeypatch.setattr(sys, "argv", [*given, *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (0, 2, 3, 4)


@pytest.mark.parametrize(
    "leak",
    [
        lambda: f"no user {USER!r}",
        lambda: json.dumps({"rows": [VALUE]}),
        lambda: np.array([VALUE]),
        lambda: io.StringIO(GROUP).getvalue(),
        lambda: Path(os.curdir, "left.bin").write_bytes(struct.pack("<d", VALUE)),
        lambda: logging.getLogger("engine").debug("row %s", GROUP),
        lambda: print(VALUE),
    ],
)
def test_the_search_finds_leaks(
    leak: Callable[[], Any], place: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Broken twins: each of these doors, left open on purpose."""
    caplog.set_level(logging.DEBUG)
    thing = leak()
    said = capfd.readouterr()
    written = b"".join(file.read_bytes() for file in (place / "out").rglob("*") if file.is_file())
    assert any(
        holds(text) for text in (repr(thing).encode(), pickled(thing), said.out.encode(), caplog.text.encode(), written)
    )

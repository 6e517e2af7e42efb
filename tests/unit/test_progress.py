"""A person who waits sees what is being done; a program sees nothing."""

from __future__ import annotations

import io
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.learning import BoundedERM, LabelPrivateRegression, WeightedERM
from evenhand.pages import progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Notebook(io.StringIO):
    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize("stream", [_Terminal, _Notebook])
def test_a_person_sees_what_takes_long(stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = stream()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.watched("the mean", after=0.01), progress.watched("a step of it", after=0.0):
        deadline = time.monotonic() + 10
        while not screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    lines = screen.getvalue().split("\r")
    assert re.fullmatch(r"the mean: \d+ s", lines[1])  # later on a busy machine
    assert not "".join(lines[-2:]).strip(), "the line is wiped out at the end"
    assert "a step" not in "".join(lines)


def test_nothing_is_shown_to_programs_or_of_what_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, after in ((io.StringIO(), 0.0), (_Terminal(), 60.0)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.watched("the mean", after=after):
            time.sleep(0.02)
        assert not stream.getvalue()


def test_a_release_is_watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []
    monkeypatch.setattr(progress, "_tell", lambda doing, *_: seen.append(doing))
    monkeypatch.setattr(sys, "stderr", _Terminal())
    session = eh.Session(eh.read(pd.DataFrame({"u": [1]}), user="u"), eh.Ledger(tmp_path / "l.db", epsilon=1))
    session.count(epsilon=1)
    assert seen == ["number of rows"]


def test_a_fit_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(progress, "_tell", lambda doing, *_: seen.append(doing))
    monkeypatch.setattr(sys, "stderr", _Terminal())
    X, y, ids = np.eye(2), [0, 1], [1, 2]
    WeightedERM(1, feature_bounds=(0, 1), steps=1).fit(X, y, users=ids)
    BoundedERM(1, feature_bounds=(0, 1), rows_per_user=1).fit(X, y, users=ids)
    LabelPrivateRegression(1, label_bounds=(0, 1), fit_intercept=False).fit(X, y, users=ids)
    assert seen == ["WeightedERM", "BoundedERM", "LabelPrivateRegression"]

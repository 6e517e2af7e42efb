"""What public numbers of rows say about a bound: before the debit, whether there are users enough; with the release, the most it can have cut off."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.statistics import Statistic


def session(tmp_path: Path, users: int) -> eh.Session:
    user = np.repeat(np.arange(users), 1 + np.arange(users) % 4)
    frame = pd.DataFrame({"u": user, "v": 1.0 + np.arange(len(user)) % 5})
    return eh.Session(eh.read(frame, user="u", protects="values"), eh.Ledger(str(tmp_path / "b.db"), epsilon=10))


@pytest.mark.parametrize("ask", [eh.mean("v", bounds=(1, 5)), eh.sum("v", bounds=(1, 5))], ids=lambda ask: ask.name)
def test_too_few_users_are_said_before_the_debit(ask: Statistic, tmp_path: Path) -> None:
    asked = session(tmp_path, 30)
    with pytest.raises(
        eh.UsageError, match=r"needs 40 users .* there are 30, .* Nothing was charged\. Give ε of at least 0\.067"
    ):
        asked.ask(ask, epsilon=0.05, bounding=eh.CentredInterval())
    assert asked.ledger.spent.epsilon == 0
    assert not asked.ledger.events
    enough = asked.ask(ask, epsilon=0.067, bounding=eh.CentredInterval())
    assert (enough.error.noise or 0.0) > 0.01


def test_a_preview_reads_no_counts(tmp_path: Path) -> None:
    preview = session(tmp_path, 30).preview.mean("v", bounds=(1, 5), epsilon=0.05, bounding=eh.CentredInterval())
    assert preview.affordable


def test_a_verdict_judges_what_was_chosen_here(tmp_path: Path) -> None:
    """The worst case of an interval that was chosen counts; that of one that was given is the analyst's."""
    asked = session(tmp_path, 30)
    given = asked.mean("v", bounds=(1, 5), epsilon=1, bounding=eh.CentredInterval(0.01))
    assert given.usable
    low, high = given.interval()
    assert high - low > 3.9
    # Three users hold nearly all rows, and are clipped to next to nothing: little noise, and the mean may lie anywhere.
    rows = np.repeat(np.arange(43), [1] * 40 + [3000] * 3)
    frame = pd.DataFrame({"u": rows, "v": 1.0 + np.arange(len(rows)) % 5})
    few = eh.Session(eh.read(frame, user="u", protects="values"), eh.Ledger(str(tmp_path / "few.db"), epsilon=10))
    chosen = few.mean("v", bounds=(1, 5), epsilon=0.5, bounding=eh.CentredInterval())
    least, most = chosen.noise_interval()
    assert most - least < 0.1
    assert not chosen.usable


def test_the_most_that_a_cap_takes_is_said(tmp_path: Path) -> None:
    """Under values: users with four rows of up to 5 have up to 20, of which a cap of 8 leaves 8."""
    asked = session(tmp_path, 400)
    release = asked.sum("v", bounds=(0, 5), epsilon=1, bounding=eh.TotalCap(8))
    most = 100 * (20 - 8) + 100 * (15 - 8) + 100 * (10 - 8)
    assert release.error.bias == pytest.approx(most, rel=1e-3)
    assert "not known" not in str(release.error)
    (low, high), (least, highest) = release.interval(0.95), release.noise_interval(0.95)
    assert (low, high) == (least, pytest.approx(highest + most, rel=1e-3))
    signed = asked.sum("v", bounds=(-5, 5), epsilon=1, bounding=eh.SmoothWeights(1))
    assert signed.error.bias == pytest.approx(100 * 5 * (1 + 2 + 3), rel=1e-3)
    assert signed.interval(0.95)[0] == pytest.approx(signed.noise_interval(0.95)[0] - 3000, rel=1e-3)
    assert "not known" not in str(asked.preview.sum("v", bounds=(0, 5), epsilon=1, bounding=eh.TotalCap(8)).error)
    drawn = asked.sum("v", bounds=(0, 5), epsilon=1, bounding=eh.RowLimit(1))
    assert drawn.interval(0.95)[1] == math.inf

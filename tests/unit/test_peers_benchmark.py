"""The comparison with other libraries works on a tiny table, without the network: Evenhand's side, parameters, report."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import advice, hindsight
from benchmarks.peers.environments import PEERS
from benchmarks.peers.measure import gathered, run_ours
from benchmarks.peers.questions import DELTA, QUESTIONS, SMOKE, Question, score, truth
from benchmarks.peers.report import report
from benchmarks.peers.tables import Table, table


def test_ours_is_measured_and_reported(tmp_path: Path) -> None:
    ours = run_ours(SMOKE, 1, tmp_path)
    exact = {question.name: {column: [gathered({}, [{"rmse": 0.5, "seconds": 1.0, "found": 3.0, "missing": 0.4}])]
             for column in ("advised", "known")} for question in SMOKE}  # fmt: skip
    sides = {"Evenhand": ours, "Other 1.0": {"name": "Other 1.0", "date": "today", "questions": exact}}
    text = report(sides, SMOKE, "2026-01-01")
    for question in SMOKE:
        assert text.count(f"| {question.name} |") == 2, "once for its error or keys, once for seconds"
    assert "3 (40%)" in text
    assert "run on today" in text


def test_a_library_that_does_not_install_is_said_with_the_reason(tmp_path: Path) -> None:
    sides = {"Evenhand": run_ours(SMOKE[:1], 1, tmp_path), "Other 1.0": {"name": "Other 1.0", "reason": "no wheel"}}
    assert "Other 1.0: not run: no wheel" in report(sides, SMOKE, "2026-01-01")


def test_every_library_has_parameters_for_every_kind_of_question() -> None:
    rows = table("tiny")
    for peer in PEERS:
        for question in SMOKE:
            for module in (advice, hindsight):
                assert getattr(module, peer.module)(question, rows)


def test_truth_and_score() -> None:
    rows = Table(np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0]), (0.0, 6.0), {"g": np.array([0, 0, 1])}, {"g": 3})
    mean, users = Question("", "mean", "g"), Question("", "users", "g", hidden=True)
    assert truth(mean, rows)[:2, 0].tolist() == [2.0, 5.0]
    assert truth(users, rows)[:, 0].tolist() == [1.0, 1.0, 0.0]
    clamped = {0: [2.0], 1: [99.0], 2: [math.nan]}  # the group without rows has no mean to be wrong about
    assert score(mean, rows, truth(mean, rows), clamped) == {"rmse": pytest.approx(math.sqrt(0.5))}
    assert score(users, rows, truth(users, rows), {0: [4.0]}) == {"rmse": 3.0, "found": 1.0, "missing": 0.5}
    with pytest.raises(ValueError, match="expected the 3 public ones"):
        score(mean, rows, truth(mean, rows), {0: [2.0]})


def test_hindsight_weighs_bias_against_noise() -> None:
    user = np.concatenate([np.arange(1000), np.full(10_000, 1000)])
    rows = Table(user, np.ones(len(user)), (0.0, 1.0), {}, {})
    question = Question("", "count")
    assert hindsight.totals(question, hindsight.Pairs.of(question, rows))["total"] > 100
    many = Table(np.arange(1000), np.ones(1000), (0.0, 1.0), {}, {})
    assert hindsight.totals(question, hindsight.Pairs.of(question, many)) == {"total": 1}


def test_calibrations() -> None:
    simple = (math.sqrt(math.log(1 / DELTA) + 1) - math.sqrt(math.log(1 / DELTA))) ** 2  # ε = ρ + 2√(ρ ln 1/δ)
    assert simple < hindsight.rho(1.0, DELTA) < 1.5 * simple
    assert math.sqrt(1 / 2 / hindsight.rho(1.0, DELTA)) > hindsight.analytic_sigma(1.0, DELTA) > 3


def test_names_of_questions_are_unique() -> None:
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)

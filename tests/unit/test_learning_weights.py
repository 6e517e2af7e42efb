"""The solver for regression weights against known optima, an independent solver, and its own certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clarabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from evenhand.guarantee import UsageError
from evenhand.learning.regression.solver.problem import WeightProblem, build
from evenhand.learning.regression.solver.solve import cost, optimise
from evenhand.learning.regression.weights import all_rows, best_row_limit


def example_1(g: int) -> tuple[np.ndarray, np.ndarray]:
    """epasto2020's Example 1: rows, and rows per user."""
    rows = [(g, 0)] + [(1, 0)] * g**3 + [(0, 1)] * g + [(0, 1)] * g**2
    return np.array(rows, dtype=float), np.array([1] + [g] * g**2 + [g] + [1] * g**2)


def zipf_table(n: int, d: int, alpha: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    counts: list[int] = []
    while sum(counts) < n:
        counts.append(min(int(rng.zipf(alpha)), n - sum(counts)))
    return rng.normal(size=(n, d)), np.array(counts)


def problem(X: np.ndarray, counts: np.ndarray, sd: float, noise: float) -> WeightProblem:
    return build(X, counts, sd**2, noise, [f"x{j}" for j in range(X.shape[1])])


@pytest.mark.parametrize("g", [2, 5, 10])
def test_example_1_has_the_exact_optimum(g: int) -> None:
    found = optimise(problem(*example_1(g), sd=0.0, noise=1.0))
    assert found.value == pytest.approx(1 / (g * g + 1) ** 2, rel=1e-6)
    assert found.gap < 1e-6


@pytest.mark.parametrize("alpha", [1.5, 2.5])
@pytest.mark.parametrize(("sd", "noise"), [(0.0, 1.0), (1.0, 1e4), (1.0, 10.0), (1.0, 1e-2), (1.0, 1e-6)])
def test_every_regime_is_solved_to_its_certificate(alpha: float, sd: float, noise: float) -> None:
    X, counts = zipf_table(4000, 5, alpha, seed=3)
    p = problem(X, counts, sd, noise)
    found = optimise(p)
    assert found.gap < 1e-5
    assert found.value == pytest.approx(cost(p, found.C), rel=1e-12)
    np.testing.assert_allclose(found.C.T @ X, np.eye(5), atol=1e-8)
    assert found.value <= min(all_rows(p).value, best_row_limit(p).value) * (1 + 1e-9)


def test_without_sampling_noise_it_agrees_with_a_linear_programme() -> None:
    X, counts = zipf_table(60, 2, 1.8, seed=5)
    n, d = X.shape
    users = np.repeat(np.arange(len(counts)), counts)
    # Variables: positive and negative parts of C (d × n each), then t.
    equal = np.zeros((d * d, 2 * n * d + 1))
    for j in range(d):
        for k in range(d):
            equal[j * d + k, j * n : (j + 1) * n] = X[:, k]
            equal[j * d + k, n * d + j * n : n * d + (j + 1) * n] = -X[:, k]
    upper = np.zeros((len(counts), 2 * n * d + 1))
    for block in range(2 * d):
        upper[users, block * n + np.arange(n)] = 1
    upper[:, -1] = -1
    goal = np.r_[np.zeros(2 * n * d), 1]
    best = linprog(goal, upper, np.zeros(len(counts)), equal, np.eye(d).ravel(), method="highs").fun
    assert optimise(problem(X, counts, 0.0, 1.0)).value == pytest.approx(best**2, rel=1e-6)


@pytest.mark.parametrize("noise", [1.0, 1e3])
def test_it_agrees_with_a_general_cone_solver(noise: float) -> None:
    X, counts = zipf_table(80, 3, 1.7, seed=7)
    n, d = X.shape
    users = np.repeat(np.arange(len(counts)), counts)
    size = 2 * n * d + 1
    quadratic = sparse.diags(np.r_[np.full(2 * n * d, 2.0), 2 * noise]).tocsc()
    equal = sparse.hstack([sparse.kron(sparse.eye(d), X.T), -sparse.kron(sparse.eye(d), X.T), np.zeros((d * d, 1))])
    per_user = sparse.csr_array((np.ones(n), (users, np.arange(n))), shape=(len(counts), n))
    caps = sparse.hstack([sparse.kron(np.ones((1, 2 * d)), per_user), -np.ones((len(counts), 1))])
    signs = -sparse.eye(size).tocsr()[:-1]
    A = sparse.vstack([equal, caps, signs]).tocsc()
    b = np.r_[np.eye(d).ravel(), np.zeros(len(counts) + size - 1)]
    cones = [clarabel.ZeroConeT(d * d), clarabel.NonnegativeConeT(len(counts) + size - 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    answer = clarabel.DefaultSolver(quadratic, np.zeros(size), A, b, cones, settings).solve()
    found = optimise(problem(X, counts, 1.0, noise), 1e-8)
    assert found.value == pytest.approx(answer.obj_val, rel=1e-6)
    assert found.bound <= answer.obj_val * (1 + 1e-7)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["normal", "dummies", "scaled", "alike"]))
def test_random_tables_are_solved_and_certified(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    n = int(rng.integers(2 * d + 2, 400))
    X = {
        "normal": rng.normal(size=(n, d)),
        "dummies": np.column_stack([np.ones(n), rng.random((n, d - 1)) < 0.3]).astype(float),
        "scaled": rng.normal(size=(n, d)) * 10.0 ** rng.integers(-4, 5, size=d),
        "alike": rng.normal(size=(n, 1)) + 0.01 * rng.normal(size=(n, d)),
    }[kind]
    counts = np.bincount(rng.integers(0, rng.integers(1, n + 1), size=n))
    counts = counts[counts > 0]
    try:
        p = problem(X, counts, float(rng.choice([0.0, 1e-3, 1.0, 100.0])), float(10.0 ** rng.integers(-4, 5)))
    except UsageError:
        return  # the draw made a column that others determine
    found = optimise(p)
    assert found.gap < 1e-4
    scale = np.abs(found.C).sum(axis=0)[:, None] * np.abs(X).max(axis=0)
    assert (np.abs(found.C.T @ X - np.eye(d)) <= 1e-8 * np.maximum(scale, 1)).all()


@pytest.mark.parametrize(("sd", "noise"), [(0.0, 1.0), (1.0, 1e3), (1.0, 1e-3)])
def test_many_coordinates_use_the_first_order_method_and_its_certificate_holds(
    sd: float, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, counts = zipf_table(1500, 5, 2.0, seed=1)
    p = problem(X, counts, sd, noise)
    exact = optimise(p)
    monkeypatch.setattr("evenhand.learning.regression.solver.solve.NEWTON", 3)
    found = optimise(p)
    assert exact.gap < 1e-5
    assert found.bound <= exact.value * (1 + 1e-9)
    assert exact.bound <= found.value <= 1.1 * exact.value
    assert found.gap < 0.2
    np.testing.assert_allclose(found.C.T @ X, np.eye(5), atol=1e-8)


def test_where_a_look_alike_misleads_newton_the_answer_is_still_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.learning.regression.solver.solve._LARGE", 20_000)
    rng = np.random.default_rng(2)
    kinds = (rng.random((300, 9)) < 0.2).astype(float)
    X = np.column_stack([np.ones(5000), kinds[rng.choice(300, 5000, p=np.arange(300, 0, -1) / 45150)]])
    counts = np.bincount(rng.zipf(1.5, 5000) % 97)
    p = problem(X, counts[counts > 0], 1.0, 1e3)
    found = optimise(p)
    assert found.gap < 0.05
    assert found.value < 0.5 * all_rows(p).value


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (lambda x: [np.ones(50), np.full(50, 3.0), x], "x1"),
        (lambda x: [np.ones(50), x, 2 * x - 1], "x"),
        (lambda x: [x, np.zeros(50)], "x1"),
    ],
)
def test_columns_that_others_determine_are_named(columns: Callable[[Any], list[Any]], named: str) -> None:
    X = np.column_stack(columns(np.linspace(0, 1, 50)))
    with pytest.raises(UsageError, match=named):
        problem(X, np.ones(50, dtype=int), 1.0, 1.0)


def test_fewer_rows_than_coefficients_is_an_error() -> None:
    with pytest.raises(UsageError, match="2 rows for 3 coefficients"):
        problem(np.random.default_rng(0).normal(size=(2, 3)), np.array([1, 1]), 1.0, 1.0)

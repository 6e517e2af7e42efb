"""The arithmetic that guarantees of estimators rest on: decimals, sums, integers from files, the accountant's noise."""

from __future__ import annotations

import decimal
import itertools
import secrets
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import mpmath
import numpy as np
import pytest
from scipy import sparse

import evenhand as eh
from evenhand.guarantee import DataError, Relation, UsageError, split
from evenhand.learning import LabelPrivateRegression, RegressionWeights, WeightedERM
from evenhand.learning.data.engine_rows import EngineRows
from evenhand.learning.data.features import STEPS, feature_map
from evenhand.learning.data.inputs import user_codes
from evenhand.learning.data.row_sources import FINE_BITS, FINENESS, Coefficients, _KeptArrays
from evenhand.learning.data.targets import Classes
from evenhand.learning.losses import LOSSES, loss_named
from evenhand.learning.perturbation import minimise as optimiser
from evenhand.learning.perturbation.minimise import Objective, minimise
from evenhand.learning.regression.weights import _magnitudes
from evenhand.ledger import rho_with_pure
from evenhand.noise import vectors
from evenhand.noise.steps import gaussian_delta, noise_multiplier, rho_of_vectors
from evenhand.tables import Secret

CONTEXTS = [
    decimal.Context(prec=2),
    decimal.Context(prec=6, rounding=decimal.ROUND_DOWN),
    decimal.Context(prec=28, traps=[decimal.Inexact]),
    decimal.Context(prec=50, Emax=20, Emin=-20),
]


@pytest.mark.parametrize("context", CONTEXTS)
def test_noise_has_all_its_digits_whatever_the_program_does_with_decimals(
    context: decimal.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scripted() -> None:
        draws = itertools.cycle([2**vectors.BITS // 3, 2**vectors.BITS * 3 // 7, 2**vectors.BITS * 5 // 11])
        monkeypatch.setattr(secrets, "randbits", lambda count: next(draws))

    scripted()
    scale = Fraction(10**90, 7)
    expected = vectors.add_spherical([0, 0], scale), vectors.add_normal([0, 0, 0], scale)
    scripted()
    with decimal.localcontext(context):
        assert (vectors.add_spherical([0, 0], scale), vectors.add_normal([0, 0, 0], scale)) == expected
        smallest = vectors._uniform()
    assert len(smallest.as_tuple().digits) >= 100
    assert all(len(str(abs(value))) > 80 and not str(value).endswith("0" * 10) for part in expected for value in part)


def test_the_radius_is_computed_to_a_hundred_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One coordinate: ± the logarithm of a uniform draw, compared with another library's."""
    draw = 2**vectors.BITS // 3
    monkeypatch.setattr(secrets, "randbits", lambda count: draw)
    with mpmath.workdps(150):
        exact = -mpmath.log(mpmath.mpf(draw + 1) / 2**vectors.BITS) * 10**100
        assert abs(abs(vectors.add_spherical([0], Fraction(10**100))[0]) - exact) < 1


@pytest.mark.parametrize("context", CONTEXTS[:2])
@pytest.mark.parametrize("relation", [Relation.PRESENCE, Relation.VALUES])
def test_rho_is_never_below_what_is_spent(context: decimal.Context, relation: Relation) -> None:
    for tenths in range(1, 40, 3):
        part, left = split(Decimal(tenths) / 10, Decimal("0.1"))
        shares = [Fraction(1, 50)] * 20 + [Fraction(3, 50)] * 10
        moved = 1 if relation is Relation.PRESENCE else 4
        noises = [noise_multiplier(left, Decimal("1e-6"), relation, share) for share in shares]
        exact = sum(Fraction(moved, 2) / noise**2 for noise in noises) + Fraction(part) ** 2 / 2
        with decimal.localcontext(context):
            declared = rho_with_pure(rho_of_vectors(left, Decimal("1e-6"), relation), part)
        assert 0 <= Fraction(declared) - exact < exact / 10**9


def test_what_weighted_erm_debits_does_not_depend_on_the_decimal_context(tmp_path: Path) -> None:
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    costs = set()
    for place, context in enumerate([decimal.Context(prec=40), decimal.Context(prec=12)]):
        ledger = eh.Ledger(tmp_path / f"{place}.db", epsilon=1, delta=1e-6)
        model = WeightedERM("0.123456789", 1e-6, feature_norm=1.0, steps=2, ledger=ledger)
        with decimal.localcontext(context):
            model.fit(X, y, users=range(4))
        costs.add(ledger.events[-1].cost)
    assert len(costs) == 1


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-8", "1e-7", "1e-5", "0.01", "1", "50", "10000"])
def test_full_batch_noise_is_enough_by_the_exact_formula(epsilon: str) -> None:
    for delta in ("0.9", "1e-2", "1e-9", "1e-12", "1e-15", "1e-18", "1e-20", "1e-30", "1e-40", "1e-59"):
        single = noise_multiplier(Decimal(epsilon), Decimal(delta), Relation.PRESENCE)
        with mpmath.workdps(20):  # must not matter
            assert gaussian_delta(single, Decimal(epsilon)) <= mpmath.mpf(delta)
        many = noise_multiplier(Decimal(epsilon), Decimal(delta), Relation.VALUES, Fraction(1, 7))
        assert many**2 >= single**2 * 4 * 7
        assert float(many) == pytest.approx(float(single) * 2 * 7**0.5, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_sums_are_right_to_a_stated_part_of_the_rows(loss: str) -> None:
    """Also where large coefficients cancel, and for many equal rows, whose rounding errors all have one sign."""
    chosen = loss_named(loss, (-1.0, 1.0))
    rng = np.random.default_rng(0)
    for f, scale in ((np.array([0.3, -0.2]), 1.0), (np.array([1.0, -1.0 + 2e-9]), 1e8)):
        point = Coefficients.zero(2).moved(f * scale)
        for x in (np.array([[29491, 14000]]), rng.integers(-23000, 23000, size=(1, 2)), np.array([[20000, 20000]])):
            rows = _KeptArrays(np.repeat(x, 100_000, axis=0).astype(float), np.ones(100_000))
            parts = (Fraction(c, 2**FINENESS) * int(v) for c, v in zip(point.steps, x[0], strict=True))
            margin = sum(parts, Fraction()) / STEPS
            with mpmath.workdps(40):
                slope = exact_slope(loss, mpmath.mpf(margin.numerator) / margin.denominator)
            for found, feature in zip(rows.gradient(point, chosen), x[0], strict=True):
                exact = slope * int(feature) / STEPS * 100_000
                assert abs(found - exact) <= 100_000 * 2.0**-FINE_BITS * chosen.steepest


def exact_slope(loss: str, margin: Any) -> Any:
    """dℓ/dm for the target 1."""
    if loss == "logistic":
        return -1 / (mpmath.exp(min(margin, 2000)) + 1)
    return -min(max(mpmath.mpf(1.5) - margin, 0), 1) if loss == "huber-svm" else min(max(margin - 1, -2), 2)


def test_coefficients_split_into_parts_that_multiply_exactly() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 3, 200):
        for scale in (1e-20, 1.0, 1e9):
            f = Coefficients.zero(size).moved(rng.normal(size=size) * scale)
            parts = f.parts()
            total = [sum(Fraction(float(part[place])) for part in parts) for place in range(size)]
            assert all(
                abs(t - Fraction(s, 2**FINENESS)) * 2**FINENESS <= abs(s) / 2**100
                for t, s in zip(total, f.steps, strict=True)
            )
            x = rng.integers(-STEPS, STEPS, size=size)
            x = np.trunc(x / max(1.0, float(np.linalg.norm(x)) / STEPS)).astype(int)
            for part in parts[:2]:
                exact = sum(Fraction(float(c)) * int(v) for c, v in zip(part, x, strict=True))
                assert (
                    Fraction(float(part @ x.astype(float)))
                    == exact
                    == Fraction(float(part[::-1] @ x[::-1].astype(float)))
                )


def families() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    made = []
    for n, d in ((1, 1), (300, 3), (3000, 8)):
        gauss = rng.normal(size=(n, d))
        thin = gauss * [1e-4] + 0
        thin[:, 0] = 0.5
        lonely = np.zeros((n, d))
        lonely[0] = 1
        for X in (gauss, np.ones((n, d)), thin, lonely):
            made += [
                (X, np.sign(X[:, 0]) + (X[:, 0] == 0)),
                (X, np.r_[-1.0, np.ones(n - 1)]),
                (X, rng.choice([-1.0, 1.0], n)),
            ]
    return made


@pytest.mark.parametrize("loss", LOSSES)
def test_minimising_takes_few_passes_whatever_the_rows(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Separable rows under a hinge and little regularisation once took half a million."""
    chosen = loss_named(loss, (-1.0, 1.0))
    passes = 0
    real = Objective.full_gradient

    def counted(self: Objective, f: Coefficients) -> Any:
        nonlocal passes
        passes += 1
        return real(self, f)

    monkeypatch.setattr(Objective, "full_gradient", counted)
    for X, targets in families():
        mapped = feature_map(X.shape[1], 1.0, None, intercept=True)
        rows = _KeptArrays(mapped.integers(X), targets)
        for regularisation in (1.5e-6, 1e-2, 1e2):
            passes = 0
            smooth = chosen.roundest * 2 * len(X)
            objective = Objective(
                partial(rows.gradient, loss=chosen), partial(rows.hessian, loss=chosen),
                regularisation, smooth, mapped.size,
            )  # fmt: skip
            found = minimise(objective, 1e-3 * chosen.steepest)
            assert passes <= 400
            assert np.linalg.norm(real(objective, found)) <= 1e-3 * chosen.steepest


@pytest.mark.parametrize("broken", [("_newton",), ("_newton", "_accelerated")])
def test_the_accuracy_holds_if_the_faster_methods_fail(
    broken: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in broken:
        monkeypatch.setattr(optimiser, name, lambda objective, accuracy: (Coefficients.zero(objective.size), np.inf))
    chosen = loss_named("huber-svm", None)
    X, targets = families()[3]
    rows = _KeptArrays(feature_map(3, 1.0, None, intercept=False).integers(X), targets)
    objective = Objective(
        lambda f: rows.gradient(f, chosen), lambda f: rows.hessian(f, chosen), 30.0, chosen.roundest * len(X), 3
    )
    assert np.linalg.norm(objective.full_gradient(minimise(objective, 1e-6))) <= 1e-6


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, RegressionWeights]:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(40, 1)), rng.random(40), np.repeat(np.arange(20), 2)
    model = LabelPrivateRegression(0.01, label_bounds=(0, 1), noise_sd=1.0)
    return data, model.fit(data[0], data[1], users=data[2]).weights_


Change = Callable[[dict[str, Any]], None]
FILES: dict[str, Change] = {
    "fractions": lambda f: f.update(data=f["data"].astype(float) * 0.9),
    "whole numbers held as doubles": lambda f: f.update(data=f["data"].astype(float)),
    "the smallest integer": lambda f: f["data"].__setitem__(0, -(2**63)),
    "sums that wrap": lambda f: f.update(data=np.full_like(f["data"], 2**62)),
    "unsigned": lambda f: f.update(data=f["data"].astype(np.uint64)),
    "too few entries": lambda f: f.update(data=f["data"][:-1]),
    "places outside": lambda f: f["indices"].__setitem__(0, 99),
    "negative places": lambda f: f["indices"].__setitem__(0, -1),
    "places twice": lambda f: f.update(
        {name: np.r_[f[name][:1], f[name]] for name in ("data", "indices")} | {"indptr": np.r_[0, f["indptr"][1:] + 1]}
    ),
    "rows out of order": lambda f: f["indptr"].__setitem__(1, 60),
    "too many label bits": lambda f: f.update(label_bits=50),
    "no label bits": lambda f: f.update(label_bits=0),
    "an absurd exponent": lambda f: f.update(exponent=5000),
    "an infinite decode": lambda f: f["decode"].fill(np.inf),
    "a wrong shape": lambda f: f.update(decode=np.eye(3)),
    "an unknown weighting": lambda f: f.update(weighting="none"),
    "a missing field": lambda f: f.pop("bound"),
    "text": lambda f: f.update(exponent="many"),
}  # fmt: skip


@pytest.mark.parametrize("change", FILES)
def test_a_file_of_weights_is_checked_in_full(fitted: Any, change: str, tmp_path: Path) -> None:
    (X, y, users), weights = fitted
    weights.save(tmp_path / "w.npz")
    with np.load(tmp_path / "w.npz") as file:
        stored = {name: value.copy() for name, value in file.items()}
    FILES[change](stored)
    np.savez(tmp_path / "w.npz", **stored)
    ledger = eh.Ledger(tmp_path / "budget.db", epsilon=1)
    with pytest.raises((UsageError, DataError)):
        LabelPrivateRegression(
            0.01, label_bounds=(0, 1), noise_sd=1.0, weights=RegressionWeights.load(tmp_path / "w.npz"), ledger=ledger
        ).fit(X, y, users=users)
    assert ledger.spent.epsilon == 0


def test_damaged_files_and_objects_end_in_documented_errors(fitted: Any, tmp_path: Path) -> None:
    (X, y, users), weights = fitted
    weights.save(tmp_path / "w.npz")
    whole = (tmp_path / "w.npz").read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "cut.npz").write_bytes(whole[:cut])
        with pytest.raises(DataError, match="saved weights"):
            RegressionWeights.load(tmp_path / "cut.npz")
    for matrix in (sparse.csr_array(weights.matrix.toarray() * 0.9), weights.matrix.toarray(), weights.matrix.tocsc()):
        broken = replace(weights, matrix=matrix)
        with pytest.raises(UsageError, match="matrix"):
            LabelPrivateRegression(0.01, label_bounds=(0, 1), noise_sd=1.0, weights=broken).fit(X, y, users=users)


def test_magnitudes_are_exact_integers() -> None:
    data = np.array([-(2**63), 2**63 - 1, -1, 5, 2**62, 2**62, 2**62], dtype=np.int64)
    place = np.array([0, 0, 0, 1, 2, 2, 2])
    assert _magnitudes(data, place, 4) == [2**63 + 2**63 - 1 + 1, 5, 3 * 2**62, 0]


def test_users_by_several_columns_and_odd_ids() -> None:
    pairs = np.array([["a", "b"], ["a", None], ["a", "b"], ["b", "a"]], dtype=object)
    assert user_codes(pairs, 4, drop_null=True).tolist() == [0, -1, 0, 1]
    odd: Any = [1, "1", 1.0, None, [1], [1], float("nan")]
    assert user_codes(odd, 7, drop_null=True).tolist() == [
        0,
        1,
        0,
        -1,
        2,
        2,
        -1,
    ]


def test_the_rows_that_are_kept_do_not_follow_the_owners_seed() -> None:
    """On the caller's own connection: draws handed out by place would make one user's rows move everybody's choice."""
    backend = ibis.duckdb.connect(threads=1)
    backend.raw_sql("create table t as select i // 10 as who, i / 400 as a, i % 2 as label from range(400) r(i)")
    rows = EngineRows(eh.read(backend.table("t"), user="who"), "label", ["a"], Classes((0, 1)))
    seen = set()
    for _ in range(4):
        backend.raw_sql("select setseed(0.42)").fetchall()
        with rows.limited(feature_map(1, 1.0, None, intercept=False), 1, Secret.reveal) as kept:
            point = Coefficients.zero(1)
            seen.add(tuple(kept.integer_gradient(point, loss_named("logistic", None))))
    assert len(seen) > 1

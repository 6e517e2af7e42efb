"""Lemma 1: what the exponential mechanism over the unit ball loses, and where the lemma is false."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evenhand.learning import HypothesisSelection, linear_net
from evenhand.learning.data.targets import BoundedLabels
from evenhand.learning.selection.linear_hypotheses import LinearHypotheses
from evenhand.learning.selection.per_user_loss import UNIT
from evenhand.planning.excess_risk import amin2018_convex, amin2018_lemma_1
from reproductions.outcomes import Check, Outcome, Size, lines

Floats = npt.NDArray[np.float64]
USERS = {"small": (200, 2_000), "full": (200, 2_000, 5_000)}
NETS = {1: 0.005, 2: 0.02, 3: 0.06, 4: 0.15, 6: 0.3}
FITS = {"small": 30, "full": 200}
TAU, EPSILON = 2, 1.0


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Excess of the average squared loss over the best of the ball, against the lemma at δ = 1, and against 2dτ/(n_τ ε) for convex losses.

    Users have 1 to 4 rows, of which 2 are kept. The expectation is over the mechanism's exact law on a net (exponents −ε/(2τ) times the total loss); beside it stand fits
    of `HypothesisSelection`, which are private and random.
    """
    rows, checks = [], []
    for dimension, distance in NETS.items():
        for users in USERS[size]:
            X, y, ids = table(dimension, users)
            losses = total_losses(dimension, distance, *kept(X, y, ids))
            n_tau = int(np.minimum(np.bincount(ids), TAU).sum())
            excess = expected_excess(losses, EPSILON / (2 * TAU)) / n_tau
            lemma = amin2018_lemma_1(TAU, n_tau, EPSILON, dimension)
            convex = amin2018_convex(TAU, n_tau, EPSILON, dimension)
            rows += [{"rows": n_tau, "excess": excess, "what": f"d = {dimension}"}]
            rows += [{"rows": n_tau, "excess": lemma, "what": f"d = {dimension}, Lemma 1"}]
            checks.append(
                Check(f"d = {dimension}, n_τ = {n_tau:,}: excess over Lemma 1's bound", excess / lemma, 0.0, 1.0)
            )
            # The net is no ball: its mesh may leave up to its own loss, which is far below the bound here.
            checks.append(
                Check(f"d = {dimension}, n_τ = {n_tau:,}: excess over 2dτ/(n_τ ε)", excess / convex, 0.05, 1.0)
            )
        printed = expected_excess(losses / n_tau, EPSILON / (2 * TAU)) / lemma
        checks.append(
            Check(f"d = {dimension}: with the exponents as printed, over the bound", float(printed), 1.0, math.inf)
        )
    checks.append(
        Check("0-1 loss where few directions are right: excess over Lemma 1's bound", thin_cone(), 1.0, math.inf)
    )
    checks.append(
        Check("fits of HypothesisSelection: mean excess over the forecast's bound", by_fits(FITS[size]), 0.0, 1.0)
    )
    title = "amin2018 lemma 1: excess loss of the exponential mechanism on the unit ball"
    return Outcome(title, checks, rows).write(out, "amin2018-lemma1", lines(rows, "rows", "excess", "what", title))


def table(dimension: int, users: int) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Rows in the unit ball with labels in [−1, 1] about a linear one."""
    rng = np.random.default_rng(dimension)
    ids = np.repeat(np.arange(users), rng.integers(1, 5, users))
    X = rng.normal(size=(len(ids), dimension))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    truth = np.full(dimension, 0.7 / math.sqrt(dimension))
    return X, np.clip(X @ truth + rng.normal(0, 0.2, len(ids)), -1, 1), ids


def kept(X: Floats, y: Floats, ids: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The first τ rows of each user."""
    rank = np.arange(len(ids)) - np.searchsorted(ids, ids)
    return X[rank < TAU], y[rank < TAU]


def total_losses(dimension: int, distance: float, X: Floats, y: Floats) -> Floats:
    """Of each hypothesis of the net: the sum over rows of ((⟨w, x⟩ − y)/2)², which is in [0, 1] and convex."""
    targets = BoundedLabels.parse((-1, 1))
    net = LinearHypotheses.of(linear_net(dimension, distance), dimension, targets)
    return net.total_losses(X, y, targets, squared=True) / UNIT


def expected_excess(losses: Floats, sharpness: float) -> float:
    """The mean loss above the best, of a choice with chances ∝ exp(−sharpness·loss)."""
    above = losses - losses.min()
    chances = np.exp(-sharpness * above)
    return float(chances @ above / chances.sum())


def thin_cone(rows: int = 100, angle: float = 1e-13) -> float:
    """Excess of the 0-1 loss over Lemma 1's bound where few directions are right: the lemma needs a loss that is convex.

    Half of the rows are (1, 0), of one class, half are at a small angle to it, of the other: only directions in a cone of that angle are right about both halves, and all
    others are wrong about one.
    """
    losses, directions = np.array([0.0, rows / 2]), np.array([angle, 2 * math.pi - angle])
    chances = directions * np.exp(-EPSILON / 2 * losses)
    return float(chances @ losses / chances.sum()) / rows / amin2018_lemma_1(1, rows, EPSILON, 2)


def by_fits(fits: int) -> float:
    """The mean excess of private fits over what their forecast says it is at most."""
    X, y, ids = table(2, 500)
    losses = total_losses(2, 0.1, X, y)
    net = linear_net(2, 0.1)
    found = []
    for _ in range(fits):
        model = HypothesisSelection(net, EPSILON, loss="squared", label_bounds=(-1, 1), protects="values")
        model.fit(X, y, users=ids)
        found.append((losses[model.best_index_] - losses.min()) / len(y))
    forecast = model.forecast_
    assert forecast is not None  # row counts are public
    return float(np.mean(found)) / (forecast.noise + forecast.bias_bound)

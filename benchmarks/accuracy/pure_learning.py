"""Learning with pure ε against objective perturbation in hindsight: ``python -m benchmarks.accuracy.pure_learning`` (minutes).

The reference is what one writes in an hour: at most τ rows per user, features shrunk into the unit ball, noise of the textbook's
(Chaudhuri et al. 2011) in the objective, an ordinary solver, and τ and Λ chosen afterwards by the loss that they gave. It pays
nothing for choosing. The shares of ε, the guess of how long good coefficients are and how far busy users differ were chosen while
looking at all of these tables: none is held out. The last two were drawn to be difficult.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.results import keep, table
from evenhand.learning import BoundedERM
from evenhand.learning.losses import ClassWeighted, Logistic, MarginLoss, loss_named

Array = npt.NDArray[np.float64]
REPEATS, TRIES = 15, 5
TAUS, RIDGES = (1, 3, 10), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0)


class Rows(NamedTuple):
    """A table, with features in [−1, 1] times ``wide``, targets ±1 or numbers in [−1, 1], and how much more a positive row weighs."""

    X: Array
    targets: Array
    users: npt.NDArray[np.int64]
    loss: str = "logistic"
    wide: float = 1.0
    weight: float = 1.0

    @property
    def kind(self) -> MarginLoss:
        """The loss that is minimised."""
        plain = loss_named(self.loss, (-1.0, 1.0))
        return plain if self.weight == 1 else ClassWeighted(plain, 1 / self.weight, 1.0)


def counts(rng: np.random.Generator, users: int, heavy: float) -> npt.NDArray[np.int64]:
    """Rows per user, Pareto."""
    return np.minimum(np.ceil(rng.pareto(heavy, users) + 1), 2000).astype(np.int64)


def generated(
    users: int,
    d: int,
    heavy: float = 1.6,
    shift: float = -0.4,
    mixed: float = 0.0,
    differ: bool = False,
    giant: bool = False,
    wide: float = 1.0,
    loss: str = "logistic",
    weight: float = 1.0,
) -> Rows:
    """Features of users about their own centres; ``mixed`` is how correlated they are, ``differ`` gives heavy users other weights."""
    rng = np.random.default_rng([users, d, round(100 * heavy)])
    rows = counts(rng, users, heavy)
    if giant:
        rows[0] = rows.sum() // 2
    who = np.repeat(np.arange(users), rows)
    noise = rng.normal(size=(len(who), d)) @ (np.eye(d) * (1 - mixed) + mixed / np.sqrt(d))
    X = np.clip(0.4 * noise + rng.normal(0, 0.2, (users, d))[who], -1, 1)
    weights, others = rng.normal(0, 6 / np.sqrt(d), (2, d))
    margin = X @ weights + shift
    if differ:
        margin = np.where(rows[who] > 5, X @ (0.7 * weights + 0.3 * others) + shift, margin)
    if loss == "squared":
        return Rows(X, np.clip(0.15 * margin + rng.normal(0, 0.2, len(who)), -1, 1), who, loss, wide)
    return Rows(X, np.where(rng.random(len(who)) < 1 / (1 + np.exp(-margin)), 1.0, -1.0), who, loss, wide, weight)


def skewed(users: int, d: int, busy: float, loss: str) -> Rows:
    """Features that pile up at the lower end of their bounds, two of them 0 or 1; ``busy``: how far the labels of busy users differ."""
    rng = np.random.default_rng([2026, users, d])
    rows = np.minimum(np.ceil(np.exp(rng.normal(1.2, 1.0, users))), 3000).astype(np.int64)
    who = np.repeat(np.arange(users), rows)
    own = 0.6 * rng.normal(size=(users, d))[who] + 0.8 * rng.normal(size=(len(who), d))
    X = 2 * np.minimum(0.12 * rng.gamma(0.8, size=own.shape) * np.exp(0.3 * own), 1) - 1
    X[:, :2] = np.where(own[:, :2] > 0, 1.0, -1.0)
    margin = X @ rng.normal(size=d)
    margin = (margin - margin.mean()) / margin.std() + busy * (np.log(rows) - np.log(rows).mean())[who]
    if loss == "squared":
        return Rows(X, np.clip(0.1 * margin - 0.8 + rng.normal(0, 0.1, len(who)), -1, 1), who, loss)
    return Rows(X, np.where(rng.random(len(who)) < 1 / (1 + np.exp(1 - margin)), 1.0, -1.0), who)


TABLES: dict[str, tuple[Callable[[], Rows], float]] = {
    "15,000 users, d = 5": (lambda: generated(15000, 5), 1.0),
    "15,000 users, d = 50": (lambda: generated(15000, 50), 1.0),
    "3,000 users, d = 10": (lambda: generated(3000, 10, heavy=3.0), 1.0),
    "correlated features, d = 20": (lambda: generated(12000, 20, mixed=0.6), 1.0),
    "bounds 9 times too wide, d = 10": (lambda: generated(12000, 10, wide=9.0), 1.0),
    "2 % positive, d = 10": (lambda: generated(12000, 10, shift=-7.0), 1.0),
    "2,000 users, d = 5, ε = 0.5": (lambda: generated(2000, 5, heavy=2.0), 0.5),
    "2,000 users, d = 50, ε = 0.5, 10 % positive": (lambda: generated(2000, 50, heavy=2.0, shift=-4.0), 0.5),
    "3,000 users, d = 100, 17 % positive": (lambda: generated(3000, 100, heavy=2.0, shift=-3.0), 1.0),
    "one user with a third of the rows, d = 8": (lambda: generated(5000, 8, giant=True), 1.0),
    "heavy users differ, d = 6": (lambda: generated(8000, 6, heavy=1.3, differ=True), 1.0),
    "hinge, d = 12, ε = 2": (lambda: generated(6000, 12, heavy=2.0, loss="huber-svm"), 2.0),
    "class weights 1 : 49, 2 % positive, d = 10": (lambda: generated(12000, 10, shift=-7.0, weight=49), 1.0),
    "class weights 1 : 6, 15 % positive, d = 6": (lambda: generated(4000, 6, heavy=2.0, shift=-3.0, weight=6), 1.0),
    "squared, d = 10": (lambda: generated(10000, 10, loss="squared"), 1.0),
    "skewed features, d = 8": (lambda: skewed(8000, 8, 0.0, "logistic"), 1.0),
    "squared, skewed, busy users differ, d = 3": (lambda: skewed(4000, 3, 1.25, "squared"), 1.0),
}


def losses(kind: MarginLoss, margin: Array, targets: Array) -> Array:
    """ℓ of each row."""
    if isinstance(kind, ClassWeighted):
        return losses(kind.loss, margin, targets) * np.where(targets > 0, kind.positive, kind.negative)
    if isinstance(kind, Logistic):
        return np.logaddexp(0.0, -targets * margin)
    if kind.classifies:
        short = 1.5 - targets * margin
        return np.clip(short, 0.0, 1.0) ** 2 / 2 + np.maximum(short - 1.0, 0.0)
    return (margin - targets) ** 2 / 2


def newton(kind: MarginLoss, A: Array, targets: Array, ridge: float, linear: Array) -> Array:
    """The minimiser of Σ ℓ + (Λ/2)‖f‖² + ⟨b, f⟩."""
    f = np.zeros(A.shape[1])
    for _ in range(60):
        margin = A @ f
        gradient = A.T @ np.asarray(kind.slope(margin, targets)) + ridge * f + linear
        if np.linalg.norm(gradient) < 1e-4:
            break
        curvature = np.asarray(kind.curvature(margin, targets))
        step = np.linalg.solve(A.T @ (A * curvature[:, None]) + ridge * np.eye(len(f)), gradient)

        def objective(point: Array) -> float:
            return float(losses(kind, A @ point, targets).sum() + ridge / 2 * point @ point + linear @ point)

        size, now = 1.0, objective(f)
        while objective(f - size * step) > now and size > 1e-6:
            size /= 2
        f = f - size * step
    return f


def textbook(rows: Rows, epsilon: float, tau: int, ridge: float, rng: np.random.Generator) -> float:
    """The average loss of one fit; infinite if Λ is too small."""
    kind = rows.kind
    X = rows.X / rows.wide
    A = np.c_[X / np.sqrt(X.shape[1]), np.ones(len(X))]
    size, rank = A.shape[1], min(tau, A.shape[1])
    left = epsilon - rank * np.log1p(tau * kind.roundest * 2 / (rank * ridge))
    if left < 0.05 * epsilon:
        return float("inf")
    order = np.lexsort((rng.random(len(X)), rows.users))
    _, start, number = np.unique(rows.users, return_index=True, return_counts=True)
    kept = order[(np.arange(len(X)) - np.repeat(start, number)) < tau]
    direction = rng.normal(size=size)
    noise = direction / np.linalg.norm(direction) * rng.gamma(size) * tau * kind.steepest * np.sqrt(2) / left
    f = newton(kind, A[kept], rows.targets[kept], ridge, noise)
    return float(losses(kind, A @ f, rows.targets).mean())


def hindsight(rows: Rows, epsilon: float, rng: np.random.Generator) -> Array:
    """Losses of repeated fits with the best τ and Λ."""
    tried = {
        (tau, ridge): np.median([textbook(rows, epsilon, tau, ridge, rng) for _ in range(TRIES)])
        for tau in TAUS
        for ridge in RIDGES
    }
    best = min(tried, key=lambda one: tried[one])
    return np.array([textbook(rows, epsilon, *best, rng) for _ in range(REPEATS)])


def ours(rows: Rows, epsilon: float, **options: Any) -> tuple[Array, BoundedERM]:
    """Losses of repeated fits with default settings."""
    kind, found = rows.kind, []
    numeric: dict[str, Any] = {"classes": (-1, 1)} if kind.classifies else {"label_bounds": (-1, 1)}
    if rows.weight != 1:
        numeric["class_weight"] = {-1: 1, 1: rows.weight}
    for _ in range(REPEATS):
        model = BoundedERM(epsilon, loss=rows.loss, feature_bounds=(-rows.wide, rows.wide), **numeric, **options)
        model.fit(rows.X, rows.targets, users=rows.users)
        margin = rows.X @ np.ravel(model.coef_) + float(np.ravel(model.intercept_)[0])
        found.append(losses(kind, margin, rows.targets).mean())
    return np.array(found), model


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tables with this in their names; written to a file of its own")
    only, out, raw = parser.parse_args().only, [], {}
    for name, (make, epsilon) in TABLES.items():
        if only not in name:
            continue
        rows, rng = make(), np.random.default_rng(1)
        kind = rows.kind
        A = np.c_[rows.X, np.ones(len(rows.X))]
        best = losses(kind, A @ newton(kind, A, rows.targets, 1e-6, np.zeros(A.shape[1])), rows.targets).mean()
        constant = min(losses(kind, np.full(len(A), c), rows.targets).mean() for c in np.linspace(-6, 6, 241)) - best
        found, model = ours(rows, epsilon)
        output, _ = ours(rows, epsilon, method="output")
        reference = hindsight(rows, epsilon, rng) - best
        found, output = found - best, output - best
        ratio = np.median(found) / np.median(reference)
        cells = [
            f"{constant:.3f}",
            *(f"{np.median(one):.4f} ({np.quantile(one, 0.95):.4f})" for one in (reference, found, output)),
        ]
        out.append(
            [
                name,
                *cells,
                f"{ratio:.2f}",
                f"{model.rows_per_user_}, {model.regularisation_:.3g}, {model.forecast_.excess:.4f}",
            ]
        )
        raw[name] = {"reference": reference.tolist(), "ours": found.tolist(), "output": output.tolist()}
        print(out[-1], flush=True)
    head = ["table", "constant", "hindsight", "default", "method='output'", "ratio", "τ, Λ, forecast"]
    text = f"""# Learning with pure ε, {datetime.date.today().isoformat()}

Excess of the average loss over the best linear model: median (95 % quantile) of {REPEATS} fits; ε = 1 if nothing else is said.
`python -m benchmarks.accuracy.pure_learning`

{table(head, out)}
"""
    keep(
        Path(__file__).parent,
        f"{only.replace(' ', '-') or 'pure-learning'}-{datetime.date.today().isoformat()}",
        text,
        raw,
    )


if __name__ == "__main__":
    main()

"""Hidden group names with the numbers about them, end to end: how many groups are found, and how far off their numbers are.

    python -m benchmarks.accuracy.hidden_numbers [--short]    # short: few runs, ε = 1 only

Ours are releases of a session, ``users(by=)`` and ``count(by=)`` with defaults. The baseline is what a skilled user would write: k groups of
each user drawn at random. For users the noisy number of those is compared with a threshold and shown if it is above (names and numbers cost once:
PipelineDP's thresholding after aggregation), with Laplace or Gaussian noise, all of ε and δ. For rows half of ε selects names like that, the other half counts
at most ``linf`` rows (the 95% quantile) in each drawn group. Noise and k are those that find most groups in hindsight. The error is the root mean
square over the groups that each side shows, relative to a group's size in the median. How μ² is shared was chosen on other tables (those of `benchmarks.peers`).
"""

from __future__ import annotations

import argparse
import datetime
import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.stats import norm

import evenhand as eh
from benchmarks.accuracy.selection import Table, tables
from benchmarks.results import keep, table
from evenhand.noise.normal import normal_multiplier

Floats = npt.NDArray[np.float64]
DELTA = 1e-6
EPSILONS = (0.4, 1.0, 4.0)
LIMITS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUESTIONS = ("users", "count")


class Rows:
    """A table of `benchmarks.accuracy.selection` whose pairs have one row or more."""

    def __init__(self, data: Table, rng: np.random.Generator) -> None:
        self.user, self.key, self.keys, self.rng = data.user, data.key, data.keys, rng
        groups = np.bincount(self.user)
        self.order = np.lexsort((rng.random(len(self.user)), self.user))  # of each user's groups, as they are drawn
        self.rank = np.arange(len(self.order)) - np.repeat(np.cumsum(groups) - groups, groups)
        self.rows = rng.geometric(0.6, len(self.user))
        self.truth = {
            "users": np.bincount(self.key, minlength=self.keys).astype(np.float64),
            "count": np.bincount(self.key, weights=self.rows, minlength=self.keys).astype(np.float64),
        }
        columns = {"user": np.repeat(self.user, self.rows), "key": np.repeat(self.key, self.rows)}
        self.table = eh.read(pa.table(columns), user="user")

    def ours(self, question: str, epsilon: float) -> Floats:
        """One release: a number for each group, NaN where it is not shown."""
        with tempfile.TemporaryDirectory() as folder:
            ledger = eh.Ledger(Path(folder) / "b.db", epsilon=epsilon, delta=DELTA)
            value = getattr(eh.Session(self.table, ledger), question)(by="key", epsilon=epsilon, delta=DELTA).value
        found = np.full(self.keys, math.nan)
        found[value["key"].to_numpy()] = value[question].to_numpy()
        return found

    def baseline(self, question: str, epsilon: float, limit: int, gaussian: bool) -> Floats:
        """One release by drawn groups."""
        kept, part = self.order[self.rank < limit], epsilon if question == "users" else epsilon / 2
        delta = DELTA if question == "users" or not gaussian else DELTA / 2
        users = np.bincount(self.key[kept], minlength=self.keys).astype(np.float64)
        noisy = users + self._noise(part, delta, limit, gaussian)
        shown = (users > 0) & (noisy >= _threshold(part, delta, limit, gaussian))
        if question == "count":
            linf = float(np.quantile(self.rows, 0.95))
            rows = np.minimum(self.rows[kept], linf)
            counted = np.bincount(self.key[kept], weights=rows, minlength=self.keys)
            noisy = counted + linf * self._noise(part, DELTA / 2, limit, gaussian)
        return np.where(shown, noisy, math.nan)

    def _noise(self, epsilon: float, delta: float, limit: int, gaussian: bool) -> Floats:
        if gaussian:
            return self.rng.normal(0, _sigma(epsilon, delta / 2, limit), self.keys)
        return self.rng.laplace(0, limit / epsilon, self.keys)

    def figures(self, question: str, found: Floats) -> tuple[float, float, float]:
        """Groups found, root mean squared error, and the median error relative to the size."""
        shown = ~np.isnan(found)
        if not shown.any():
            return 0.0, math.nan, math.nan
        off = np.abs(found - self.truth[question])[shown]
        relative = float(np.median(off / self.truth[question][shown]))
        return float(shown.sum()), float(np.sqrt(np.mean(off**2))), relative


def _sigma(epsilon: float, delta: float, limit: int) -> float:
    return normal_multiplier(Decimal(repr(epsilon)), Decimal(repr(delta))) * math.sqrt(limit)


def _threshold(epsilon: float, delta: float, limit: int, gaussian: bool) -> float:
    """A user alone in all drawn groups is shown in any with probability δ, half of it with Gaussian noise."""
    if gaussian:
        return 1 + _sigma(epsilon, delta / 2, limit) * float(norm.isf(-math.expm1(math.log1p(-delta / 2) / limit)))
    return 1 - limit / epsilon * math.log(2 * -math.expm1(math.log1p(-delta) / limit))


def measure(data: Rows, question: str, epsilon: float, runs: int) -> dict[str, Any]:
    """Medians of both sides, and the 5% quantile of what we find."""
    best, name = (-1.0, math.nan, math.nan), ""
    for limit in LIMITS:
        for gaussian in (False, True):
            tried = [data.figures(question, data.baseline(question, epsilon, limit, gaussian)) for _ in range(3)]
            figures = tuple(np.median(tried, axis=0).tolist())
            if figures[0] > best[0]:
                best, name = figures, f"{'Gaussian' if gaussian else 'Laplace'}, k = {limit}"
    ours = np.array([data.figures(question, data.ours(question, epsilon)) for _ in range(runs)])
    return {
        "baseline": name,
        "baseline figures": best,
        "figures": np.median(ours, axis=0).tolist(),
        "5%": float(np.quantile(ours[:, 0], 0.05)),
        "rmse 95%": float(np.quantile(ours[:, 1], 0.95)),
    }


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few repetitions, one ε")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    raw: dict[str, Any] = {}
    lines: list[list[str]] = []
    rng = np.random.default_rng(978)
    for name, pairs in tables(np.random.default_rng(979)).items():
        data = Rows(pairs, rng)
        for question in QUESTIONS:
            for epsilon in EPSILONS[1:2] if arguments.short else EPSILONS:
                row = measure(data, question, epsilon, 3 if arguments.short else 9)
                raw[f"{name}, {question}, {epsilon}"] = row
                (found, off, relative), (other, other_off, other_relative) = row["figures"], row["baseline figures"]
                keys = f"{found:.0f} / {row['5%']:.0f}, {other:.0f}"
                errors = f"{off:.3g} / {row['rmse 95%']:.3g}, {other_off:.3g}"
                lines.append(
                    [
                        name,
                        question,
                        f"{epsilon:g}",
                        keys,
                        errors,
                        f"{relative:.1%}, {other_relative:.1%}",
                        row["baseline"],
                    ]
                )
                print(*lines[-1], flush=True)
    head = ["table", "question", "ε", "groups found: median / 5%, baseline", "RMSE: median / 95%, baseline"]
    today = datetime.date.today().isoformat()
    text = table([*head, "relative error: ours, baseline", "baseline in hindsight"], lines)
    keep(arguments.out, f"{today}-hidden-numbers", f"# Hidden names and their numbers, {today}\n\n{text}\n", raw)


if __name__ == "__main__":
    main()

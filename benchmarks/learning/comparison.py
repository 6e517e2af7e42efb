"""Models at the same (ε, δ) for a user, side by side on the same tables: where we win, and where we lose.

    python -m benchmarks.learning.comparison              # generated tables, about ten minutes
    python -m benchmarks.learning.comparison --large      # a million rows, 500 features: an hour
    python -m benchmarks.learning.comparison --only "d = 5"
    python -m benchmarks.learning.comparison --data shop.parquet --user household --label bought

Every figure is the average loss over the rows of the table above that of the model without privacy (excess loss): half the
square in units of the label's range, or the log-loss. The bar: at most 3 times clipped gradient descent tuned in hindsight,
and below the constant model.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning import problems
from benchmarks.learning.peer import DIFFPRIVLIB, diffprivlib
from benchmarks.learning.problems import Data, Floats
from benchmarks.learning.references import DELTA, auc, constant, in_hindsight, mean_loss, without_privacy
from benchmarks.peers.environments import InstallError
from benchmarks.results import keep, table
from evenhand.learning import BoundedERM, WeightedERM

BAR = 3.0
SLACK = 1e-3  # of what there is to learn: a reference below it counts as so much
RARE = 0.05  # from fewer positives on, the area under the curve is told
METHODS = ("WeightedERM", "BoundedERM", "diffprivlib users", "diffprivlib rows")


def ours(data: Data, name: str, runs: int) -> list[Floats]:
    """Margins of our models with default settings: bounds and ε are all that is given."""
    given: dict[str, Any] = {"feature_bounds": data.feature_bounds}
    if data.label_bounds:
        given |= {"loss": "squared", "label_bounds": data.label_bounds}
    found = []
    for _ in range(runs):
        model: Any = (
            BoundedERM(data.epsilon, **given) if name == "BoundedERM" else WeightedERM(data.epsilon, DELTA, **given)
        )
        model.fit(data.X, data.y, users=data.users)
        found.append(data.X @ np.ravel(model.coef_) + float(np.ravel(model.intercept_)[0]))
    return found


def compare(data: Data, runs: int, peer: bool) -> dict[str, Any]:
    """Excess losses and areas under the curve of all methods on one table."""
    exact = without_privacy(data)
    base = mean_loss(data, exact)
    tuned, tuning = in_hindsight(data, runs)
    began = time.perf_counter()
    margins: dict[str, list[list[Floats]]] = {"hindsight": [tuned], "WeightedERM": [ours(data, "WeightedERM", runs)]}
    seconds = (time.perf_counter() - began) / runs
    margins["BoundedERM"] = [ours(data, "BoundedERM", runs)]
    if peer:
        found = diffprivlib(data, runs, np.random.default_rng(3))
        margins |= {f"diffprivlib {kind}": settings for kind, settings in found.items() if settings}
    excess = {
        name: _best([[mean_loss(data, m) - base for m in own] for own in settings])
        for name, settings in margins.items()
    }
    areas = {name: float(np.median([auc(data, m) for m in settings[0]])) for name, settings in margins.items()}
    return {
        "name": data.name, "rows": len(data.y), "users": len(data.counts), "features": data.X.shape[1],
        "epsilon": data.epsilon, "positives": None if data.label_bounds else float(data.y.mean()), "base": base,
        "constant": mean_loss(data, constant(data)) - base, "excess": excess,
        "auc": {"without privacy": auc(data, exact), **areas}, "seconds": seconds, "tuning": repr(tuning),
    }  # fmt: skip


def _best(settings: list[list[float]]) -> list[float]:
    """Of several settings the one with the least median, sorted: for others than us, the best in hindsight."""
    return sorted(min(settings, key=statistics.median))


def report(results: Sequence[dict[str, Any]], skipped: str | None) -> str:
    """Markdown: excess losses, the bar, areas under the curve, and where we lose."""
    rows, areas, lost = [], [], []
    for one in results:
        excess, reference = one["excess"], float(np.median(one["excess"]["hindsight"]))
        mine = excess["WeightedERM"]
        slack = SLACK * one["constant"]
        ratio = float(np.median(mine)) / max(reference, slack)
        verdict = "holds" if np.median(mine) <= min(BAR * reference + slack, one["constant"]) else "MISSED"
        if verdict == "MISSED":
            lost.append(
                f"{one['name']}: {ratio:.3g} times the reference, {np.median(mine) / one['constant']:.3g} times the constant model"
            )
        cells = [_cell(excess[name]) if name in excess else "" for name in METHODS]
        rows.append([one["name"], f"{one['rows']:,}", str(one["features"]), f"{one['constant']:.3g}", f"{reference:.2g}",
                     *cells, f"{ratio:.3g}", verdict, f"{one['seconds']:.1f}"])  # fmt: skip
        if one["positives"] is not None and one["positives"] < RARE:
            names = ("without privacy", "hindsight", *METHODS)
            areas.append([one["name"], *(f"{one['auc'][name]:.3f}" if name in one["auc"] else "" for name in names)])
    head = ["table", "rows", "d", "constant", "hindsight", *METHODS, "times hindsight", "bar", "s"]
    note = f"\n{DIFFPRIVLIB.name} was SKIPPED: {skipped}\n" if skipped else ""
    ranks = (
        table(["table", "without privacy", "hindsight", *METHODS], areas) if areas else "No table with rare positives."
    )
    where = "\n".join(f"- {line}" for line in lost) or "Nowhere in this run."
    return f"""# Learning against others, {datetime.date.today().isoformat()}

Average loss above the model without privacy (excess), median (largest) of the runs; δ = {DELTA:g}, ε = 1 unless said. "constant" predicts
the average; "hindsight" is clipped gradient descent whose clip, weights, rate and steps were tuned on the exact loss. BoundedERM and
diffprivlib promise pure ε; "diffprivlib rows" protects one row only, "diffprivlib users" a user with at most τ random rows at ε/τ each (τ and C in
hindsight). WeightedERM and BoundedERM with default settings. A reference below a thousandth of what there is to learn counts as so much.
{note}
{table(head, rows)}

Area under the ROC curve where positives are rare (median):

{ranks}

Where we lose:

{where}
"""


def _cell(values: Sequence[float]) -> str:
    return f"{np.median(values):.2g} ({max(values):.2g})"


def main() -> int:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--only", action="append", help="a table by name; may be repeated")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two runs of each method")
    parser.add_argument("--no-peer", action="store_true", help="leave diffprivlib out")
    parser.add_argument("--data", type=Path, help="a Parquet or CSV file instead of generated tables")
    for name in ("user", "label", "features", "label-bounds"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    if given.data:
        features = given.features.split(",") if given.features else None
        tables = [problems.read(given.data, given.user, given.label, features, given.epsilon, given.label_bounds)]
    else:
        wanted = [
            p for p in (problems.LARGE if given.large else problems.DEFAULT) if not given.only or p.name in given.only
        ]
        tables = [problems.generate(problem) for problem in wanted]
    results, skipped = [], "not asked for" if given.no_peer else None
    for data in tables:
        try:
            results.append(compare(data, 2 if given.quick else given.runs, peer=skipped is None))
        except InstallError as reason:
            skipped = str(reason)
            print(f"{DIFFPRIVLIB.name} can't be installed here and is left out: {skipped}", flush=True)
            results.append(compare(data, 2 if given.quick else given.runs, peer=False))
        print(f"{data.name}: {results[-1]['excess']}", flush=True)
    kind = "large" if given.large else "comparison"
    if given.only or given.data:  # a table of somebody's own leaves no file here
        print(report(results, skipped))
    else:
        keep(
            Path(__file__).parent,
            f"{datetime.date.today().isoformat()}-{kind}",
            report(results, skipped),
            {"tables": results},
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

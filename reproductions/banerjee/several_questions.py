"""Theorem 5.3: above ε = 3 Multi-MaxSense needs fewer users than MaxSense; and the paper's Q = ⌈ε⌉ is not the best."""

from __future__ import annotations

import math
from pathlib import Path

from evenhand.guarantee import parse_epsilon
from evenhand.recommender.planning import users_needed
from evenhand.recommender.simulation import study
from evenhand.recommender.tastes import preset
from evenhand.recommender.tuning import Setting, best_questions, best_theta, strength
from reproductions.banerjee.common import WRONG, crossing, exponent, geometric, line_chart
from reproductions.outcomes import Outcome, Rows, Size, near

GRIDS = {"small": (60, 20, (4.0, 8.0), range(8)), "full": (200, 40, (2.0, 3.0, 4.0, 6.0, 8.0), range(12))}


def reproduce(out: Path, size: Size = "full") -> Outcome:
    """Simulate one question, ⌈ε⌉ questions and the best number of them, over ε."""
    items, rated, levels, seeds = GRIDS[size]
    tastes = preset("popular")
    rows: Rows = []
    each: dict[tuple[float, int], list[float]] = {}
    for epsilon in levels:
        exact = parse_epsilon(epsilon)
        counts = {
            "one question": 1,
            "⌈ε⌉ questions": math.ceil(epsilon),
            "best": best_questions(exact, items, rated, best_theta()),
        }
        found = {}
        for questions in sorted(set(counts.values())):
            sketch = "maxsense" if questions == 1 else "multi-maxsense"
            guess = users_needed(Setting(sketch, items, rated, exact, questions=questions), tastes, WRONG)
            assert guess is not None
            stops = [max(1, round(guess * 2 ** (step / 2))) for step in range(-3, 4)]
            runs = [study(tastes, items, rated, epsilon, stops, [sketch], questions=questions, seed=s) for s in seeds]
            each[epsilon, questions] = [crossing(stops, [point.wrong for point in run]) for run in runs]
            found[questions] = geometric(each[epsilon, questions])
        for series, questions in counts.items():
            need, error = found[questions]
            rows.append(
                {"epsilon": epsilon, "series": series, "questions": questions, "users": need, "relative error": error}
            )
    needs = {series: [row["users"] for row in rows if row["series"] == series] for series in counts}
    last = levels[-1]
    worth = {row["series"]: row["questions"] * strength(last / row["questions"]) ** 2 for row in rows[-3:]}
    checks = [
        near(
            f"{series} / best, ε = {last:g}", needs[series][-1] / needs["best"][-1], worth["best"] / worth[series], 0.3
        )
        for series in ("one question", "⌈ε⌉ questions")
    ]
    most = [(row["epsilon"], row["questions"]) for row in rows if row["series"] == "best"][-3:]
    checks.append(exponent("exponent of ε, best", levels[-3:], [each[one] for one in most], -1.4, -0.6))
    single = [each[epsilon, 1] for epsilon in levels[-3:]]
    checks.append(exponent("exponent of ε, one question", levels[-3:], single, -0.35, 0.35))
    title = f"Multi-MaxSense: users for {WRONG:.0%} of {items} items wrong (w = {rated})"
    return Outcome(title, checks, rows).write(
        out, "banerjee-several-questions", line_chart(rows, "epsilon", "users", "series", title)
    )

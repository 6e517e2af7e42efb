"""``evenhand demo``: what protecting people instead of rows means, on one screen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

USERS = 20_000
_ROW_EPSILON = 0.5


_PICTURE = 24  # columns for the picture of an interval


def make_views(path: Path, users: int = USERS, seed: int | None = None) -> dict[str, float]:
    """Write a synthetic streaming service's log of views and return its true totals.

    Most people watch little, a few watch all day (a log-normal law, as in published logs of ratings), and heavy viewers rate
    lower: cutting them off biases the mean.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(seed)  # another table each time, so that nobody need believe in a lucky one
    views = np.ceil(np.exp(random.normal(3.0, 1.1, users))).astype(int)
    who = np.repeat(np.arange(users), views)
    taste = random.normal(3.9, 0.4, users) - 0.12 * np.log(views)
    stars = np.clip(np.round((taste[who] + random.normal(0, 0.9, len(who))) * 2) / 2, 0.5, 5.0)
    minutes = np.clip(random.gamma(2.0, 24.0, len(who)), 1, 240).round(1)
    genre = random.choice(["drama", "comedy", "crime", "nature"], len(who), p=[0.4, 0.3, 0.2, 0.1])
    order = random.permutation(len(who))
    columns: dict[str, np.ndarray[Any, Any]] = {"viewer": who, "stars": stars, "minutes": minutes, "genre": genre}
    pq.write_table(pa.table({name: column[order] for name, column in columns.items()}), path)
    return {
        "users": float(users), "rows": float(len(who)), "heaviest": float(views.max()),
        "median": float(np.median(views)), "stars": float(stars.mean()), "hours": float(minutes.sum() / 60),
    }  # fmt: skip


def run() -> None:
    """Generate, release, and show truth beside release."""
    from rich.console import Console
    from rich.table import Table

    import evenhand as eh
    from evenhand.apps.console import progress
    from evenhand.pages.numbers import rounded

    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as folder, progress("Making a streaming service's log of views"):
        path = Path(folder) / "views.parquet"
        truth = make_views(path)
        ledger = eh.Ledger(Path(folder) / "budget.db", epsilon=2)
        session = eh.Session(eh.read(path, user="viewer"), ledger)
        asked = [
            ("viewers", truth["users"], session.users(epsilon=0.1), 1.0),
            ("views", truth["rows"], session.count(epsilon=0.5), 1.0),
            ("hours watched", truth["hours"], session.sum("minutes", bounds=(0, 240), epsilon=0.5), 60.0),
            ("mean stars", truth["stars"], session.mean("stars", bounds=(0.5, 5), epsilon=0.5), 1.0),
        ]
        spent, total = ledger.spent, ledger.total
    console.print(
        f"\n[bold]A streaming service[/bold] (synthetic): {truth['rows']:,.0f} views by {truth['users']:,.0f} people. "
        f"Half of them have at most {truth['median']:.0f}; one has {truth['heaviest']:,.0f}.\n"
    )
    table = Table(box=None, pad_edge=False)
    for name in ("statistic", "truth", "released", "95% interval", ""):
        table.add_column(name, justify="left" if name in ("statistic", "") else "right", no_wrap=True)
    held = 0
    for name, exact, release, unit in asked:
        low, high = (end / unit for end in release.interval(0.95))
        noise, released = (high - low) / 4, release.value / unit
        held += low <= exact <= high
        ends = f"{rounded(low, noise)} to {rounded(high, noise)}"
        picture = drawn(low, high, released, exact)
        table.add_row(name, rounded(exact, noise), rounded(released, noise), ends, picture)
    console.print(table)
    console.print(
        f"[dim]● released, ▲ the truth, known because the table is synthetic: in {held} of {len(asked)} intervals. They cover the "
        "noise and, on a model, what was cut off from heavy viewers. A single one far above all others could hide from it.[/dim]"
    )
    odds = (eh.Guarantee(spent.epsilon, spent.delta, session.table.relation, ("viewer",))).odds
    row_noise = 1 / _ROW_EPSILON
    bounds = [release.bounding.parameter or 0 for _, _, release, _ in asked]
    console.print(
        f"\n[bold]What was promised.[/bold] All four answers together cost {spent} of {total}: whatever anybody believed about "
        f"one person's presence before, these answers change the odds by at most a factor of {odds:.1f}.\n"
        "\n[bold]What protecting rows instead of people would have exposed.[/bold] "
        f"With ε = {_ROW_EPSILON} per [italic]row[/italic], the count of views carries noise of about ±{row_noise:.0f}; "
        f"the person with {truth['heaviest']:,.0f} views moves it by {truth['heaviest']:,.0f}. "
        "Anybody could see that they are in the table. To protect the person, what one person can add must be bounded, and the "
        f"accuracy depends on that bound. Evenhand chose it privately, within the same ε: here nobody counts with more than "
        f"{bounds[1]:,.0f} views or {bounds[2] / 60:,.0f} hours.\n"
        "\nNext: [bold]evenhand release --help[/bold], or in Python [bold]import evenhand as eh[/bold]."
    )


def drawn(low: float, high: float, released: float, exact: float) -> str:
    """An interval as a line of characters, with the released number and the true one, which may lie outside."""
    first, last = min(low, exact), max(high, exact)
    step = (last - first) / (_PICTURE - 1) or 1.0
    places = {name: round((value - first) / step) for name, value in (("low", low), ("high", high))}
    line = ["─" if places["low"] <= place <= places["high"] else " " for place in range(_PICTURE)]
    line[places["low"]], line[places["high"]] = "├", "┤"
    line[round((released - first) / step)] = "●"
    line[round((exact - first) / step)] = "▲"
    return "".join(line)

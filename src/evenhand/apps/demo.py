"""``evenhand demo``: what protecting people instead of rows means, on one screen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from evenhand.release import Release

USERS = 20_000
_ROW_EPSILON = 0.5


def make_views(path: Path, users: int = USERS) -> dict[str, float]:
    """Write a synthetic streaming service's log of views and return its true totals.

    Most people watch little, a few watch all day (a lognormal body with a Pareto tail), and heavy viewers rate lower:
    cutting them off biases the mean.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(2026)  # a fixed synthetic table; nothing private hangs on it
    views = np.ceil(np.exp(random.normal(3.0, 0.9, users)) + random.pareto(1.7, users) * 5).astype(int)
    views = np.minimum(views, 3_000)
    views[7] = 8_412  # a screen in a waiting room that is never switched off
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
        hours = session.sum("minutes", bounds=(0, 240), epsilon=0.5)
        asked = [
            ("viewers", truth["users"], session.users(epsilon=0.1), 1.0, "counts once"),
            ("views", truth["rows"], session.count(epsilon=0.5), 1.0, "at most {:,.0f} views"),
            ("hours watched", truth["hours"], hours, 60.0, "at most {:,.0f} hours"),
            ("mean stars", truth["stars"], session.mean("stars", bounds=(0.5, 5), epsilon=0.5), 1.0, "{strategy}"),
        ]
        spent, total = ledger.spent, ledger.total
    console.print(
        f"\n[bold]A streaming service[/bold] (synthetic): {truth['rows']:,.0f} views by {truth['users']:,.0f} people. "
        f"Half of them have at most {truth['median']:.0f}; one has {truth['heaviest']:,.0f}.\n"
    )
    table = Table(box=None, pad_edge=False)
    for name in ("statistic", "truth", "released", "noise (95%)", "cut off", "off by", "one person"):
        table.add_column(name, justify="left" if name in ("statistic", "one person") else "right", overflow="fold")
    for name, exact, release, unit, bound in asked:
        noise = (release.error.noise or 0) / unit
        low, high = (end / unit for end in release.interval(0.95))
        table.add_row(
            name,
            rounded(exact, noise),
            rounded(release.value / unit, noise),
            f"± {rounded((high - low) / 2, noise)}",
            f"~ {rounded((release.error.bias or 0) / unit, noise)}",
            f"{abs(release.value / unit - exact) / abs(exact):.2%}",
            _bound(release, unit, bound),
        )
    console.print(table)
    console.print(
        "[dim]cut off: as forecast from the private profile; the truth is known because the table is synthetic[/dim]"
    )
    odds = (eh.Guarantee(spent.epsilon, spent.delta, session.table.relation, ("viewer",))).odds
    row_noise = 1 / _ROW_EPSILON
    console.print(
        f"\n[bold]What was promised.[/bold] All four answers together cost {spent} of {total}: whatever anybody believed about "
        f"one person's presence before, these answers change the odds by at most a factor of {odds:.1f}.\n"
        "\n[bold]What protecting rows instead of people would have exposed.[/bold] "
        f"With ε = {_ROW_EPSILON} per [italic]row[/italic], the count of views carries noise of about ±{row_noise:.0f}; "
        f"the person with {truth['heaviest']:,.0f} views moves it by {truth['heaviest']:,.0f}. "
        "Anybody could see that they are in the table. To protect the person, what one person can add must be bounded, and the "
        "accuracy depends on that bound. Evenhand chose it privately, within the same ε.\n"
        "\nNext: [bold]evenhand release --help[/bold], or in Python [bold]import evenhand as eh[/bold]."
    )


def _bound(release: Release, unit: float, words: str) -> str:
    """What one person can add, for a reader who has never heard of strategies."""
    amount = (release.bounding.parameter or 0) / unit
    if "{strategy}" not in words:
        return words.format(amount)
    if release.bounding.strategy == "LocatedMean":
        return f"at most ±{amount:,.0f} stars"
    return f"weight of {amount:,.0f} views"

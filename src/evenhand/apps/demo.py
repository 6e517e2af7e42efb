"""``evenhand demo``: why a person is not a row, in one screen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

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
    views = np.ceil(np.exp(random.normal(2.6, 1.1, users)) + random.pareto(1.3, users) * 4).astype(int)
    views = np.minimum(views, 9_000)
    views[7] = 8_412  # a screen in a waiting room that is never switched off
    who = np.repeat(np.arange(users), views)
    taste = random.normal(3.9, 0.4, users) - 0.12 * np.log(views)
    stars = np.clip(np.round((taste[who] + random.normal(0, 0.9, len(who))) * 2) / 2, 0.5, 5.0)
    minutes = np.clip(random.gamma(2.0, 24.0, len(who)), 1, 240).round(1)
    genre = random.choice(["drama", "comedy", "crime", "nature"], len(who), p=[0.4, 0.3, 0.2, 0.1])
    order = random.permutation(len(who))
    columns: dict[str, np.ndarray[Any, Any]] = {
        "viewer": who,
        "stars": stars,
        "minutes": minutes,
        "genre": genre,
    }
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
    from evenhand.release.result import number

    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as folder, progress("Making a streaming service's log of views"):
        path = Path(folder) / "views.parquet"
        truth = make_views(path)
        ledger = eh.Ledger(Path(folder) / "budget.db", epsilon=2)
        session = eh.Session(eh.read(path, user="viewer"), ledger)
        minutes = (0, 240)
        asked = [
            ("viewers", truth["users"], session.users(epsilon=0.1), 1.0),
            ("views", truth["rows"], session.count(epsilon=0.5), 1.0),
            ("hours watched", truth["hours"], session.sum("minutes", bounds=minutes, epsilon=0.5), 60.0),
            ("mean stars", truth["stars"], session.mean("stars", bounds=(0.5, 5), epsilon=0.5), 1.0),
        ]
        spent, total = ledger.spent, ledger.total
    console.print(
        f"\n[bold]A streaming service[/bold] (synthetic): {truth['rows']:,.0f} views by {truth['users']:,.0f} people. "
        f"Half of them have at most {truth['median']:.0f}; one has {truth['heaviest']:,.0f}.\n"
    )
    table = Table(box=None, pad_edge=False)
    for name in ("statistic", "truth", "released", "95% interval (noise)", "off by", "bound on each person"):
        table.add_column(
            name,
            justify="left" if name in ("statistic", "bound on each person") else "right",
            overflow="fold",
        )
    for name, exact, release, unit in asked:
        noise = (release.error.noise or 0) / unit
        low, high = (end / unit for end in release.interval(0.95))
        off = abs(release.value / unit - exact) / abs(exact)
        table.add_row(
            name, number(exact, noise), number(release.value / unit, noise),
            f"{number(low, noise)} – {number(high, noise)}", f"{off:.2%}", _bound(release, unit),
        )  # fmt: skip
    console.print(table)
    odds = (eh.Guarantee(spent.epsilon, spent.delta, session.table.relation, ("viewer",))).odds
    row_noise = 1 / _ROW_EPSILON
    console.print(
        f"\n[bold]What was promised.[/bold] All four answers together cost {spent} of {total}: whatever anybody believed about "
        f"one person's presence before, these answers change the odds by at most a factor of {odds:.1f}.\n"
        "\n[bold]What protecting rows instead of people would have exposed.[/bold] "
        f"With ε = {_ROW_EPSILON} per [italic]row[/italic], the count of views carries noise of about ±{row_noise:.0f}; "
        f"the person with {truth['heaviest']:,.0f} views moves it by {truth['heaviest']:,.0f}. "
        "Their presence would be plain to see. Protecting the person "
        "means bounding what one person can add, and the bound decides how good the answer is: Evenhand chose it, "
        "privately, inside the same ε.\n"
        "\nNext: [bold]evenhand release --help[/bold], or in Python [bold]import evenhand as eh[/bold]."
    )


def _bound(release: Any, unit: float) -> str:
    if release.bounding.parameter is None:
        return str(release.bounding.words)
    return f"{release.bounding.strategy} {release.bounding.parameter / unit:,.4g}"

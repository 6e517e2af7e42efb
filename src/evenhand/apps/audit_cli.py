"""``evenhand audit``: try to disprove every guarantee that Evenhand gives, and show that broken ones are caught."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.apps.console import AsJson, check_writable, progress, show_json
from evenhand.guarantee import EvenhandError, UsageError

if TYPE_CHECKING:
    from evenhand.audit import Finding

HELP = """Try to disprove every guarantee, of each statistic, strategy, estimator and sketch.

For each, neighbouring tables are searched for the pair that reveals one person the most, and a lower bound on the true ε is computed
from new releases (95% confidence) or from exact probabilities. Broken twins, which are mechanisms broken on purpose, are audited too. A
bound above the claim, or a broken twin that is not caught, fails the audit.

Exit codes: 0 no claim refuted and every twin caught, 1 otherwise, 2 bad usage.
"""

EXAMPLES = """Examples:

evenhand audit --quick

evenhand audit --only "mean" --samples 100000

evenhand audit --json > findings.json
"""


_ENOUGH_FOR_A_TWIN = 800  # with fewer runs a twin that loses twice its claim might pass unnoticed


@dataclass(frozen=True)
class Row:
    """A line of the results."""

    title: str
    finding: Finding
    broken: bool

    @property
    def sound(self) -> bool:
        """Whether the audit saw what it should: nothing, or the defect of a twin."""
        return self.finding.refuted == self.broken

    def to_dict(self) -> dict[str, Any]:
        """As data, ready for JSON."""
        return self.finding.to_dict() | {"name": self.title, "broken_twin": self.broken, "sound": self.sound}


def audit(
    quick: Annotated[bool, typer.Option("--quick", help="A quarter of an hour: fewer samples, fewer pairs.")] = False,
    samples: Annotated[int | None, typer.Option(help="Outputs per table where only noise is redrawn.")] = None,
    runs: Annotated[int | None, typer.Option(help="Outputs per table where everything runs again.")] = None,
    only: Annotated[str | None, typer.Option(help="Only what has this text in its name.")] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Also write a dated page into this folder.")] = None,
) -> None:
    """Try to disprove every guarantee (the help text is `HELP`)."""
    for name, given in (("samples", samples), ("runs", runs)):
        if given is not None and given < 200:
            raise UsageError(f"--{name} {given} is too few to tell anything; give at least 200.")
    fixed = samples or (4_000 if quick else 100_000)
    again = runs or (300 if quick else 2_000)
    page = None if out is None else out / f"{datetime.date.today().isoformat()}.md"
    if page is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        check_writable(page, "out")
    rows = []
    for title, broken, examine in _work(quick, fixed, again):
        if only is None or only.lower() in title.lower():
            with progress(f"{title} ..."):
                rows.append(Row(title, examine(), broken))
            if page is not None:  # after each, so that a long audit that is interrupted leaves what it found
                page.write_text(_page(rows, fixed, again), encoding="utf-8")
    if not rows:
        raise UsageError(f"--only {only!r} matches nothing that is audited; run without it to see the names.")
    if as_json:
        show_json({"sound": all(row.sound for row in rows), "findings": [row.to_dict() for row in rows]})
    else:
        _show(rows)
    if not all(row.sound for row in rows):
        raise typer.Exit(EvenhandError.exit_code)


def _work(quick: bool, fixed: int, again: int) -> Iterator[tuple[str, bool, Callable[[], Finding]]]:
    """Everything to be done: its name, whether it is a broken twin, and how to do it."""
    from evenhand.apps.audit_sketches import sketches
    from evenhand.audit import audit as examine
    from evenhand.audit.catalogue import releases, selections
    from evenhand.audit.learners import learners
    from evenhand.audit.selecting import broken
    from evenhand.audit.twins import twins

    for twin in twins():
        count = fixed if twin.pair is None else max(again, _ENOUGH_FOR_A_TWIN)
        title = f"{twin.mechanism.name} ({twin.relation})"
        yield title, True, partial(lambda t, n: examine(t.mechanism, t.neighbours(), n), twin, count)
    for mechanism, pairs in broken():
        yield mechanism.name, True, partial(examine, mechanism, pairs)
    for case in (*selections(), *releases(), *learners(), *sketches()):
        count, narrow = (again, True) if case.slow else (fixed, quick)
        yield case.title, False, partial(lambda c, q, n: examine(c.mechanism, c.neighbours(q), n), case, narrow, count)


def _show(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for heading, broken in _PARTS.items():
        chosen = [row for row in rows if row.broken == broken]
        if not chosen:
            continue
        table = Table(title=heading, title_justify="left", box=None)
        for column in _COLUMNS:
            table.add_column(column, justify="left" if column in ("", "what", "worst neighbours found") else "right")
        for row in chosen:
            table.add_row(*_cells(row))
        console.print(table)
    console.print(f"\n{_verdict(rows)}")


def _verdict(rows: list[Row]) -> str:
    failed = [row.title for row in rows if not row.sound]
    if failed:
        return f"{len(failed)} of {len(rows)} failed: {'; '.join(failed)}"
    return f"All {len(rows)} as they should be."


_PARTS = {"Broken twins: must be caught": True, "Claims: must stand": False}
_COLUMNS = ("", "what", "claimed", "found at least", "samples", "seconds", "worst neighbours found")


def _cells(row: Row) -> tuple[str, ...]:
    finding, claim = row.finding, row.finding.claim
    verdict = ("caught" if row.broken else "ok") if row.sound else "FAIL"
    claimed = f"ε = {claim.epsilon:g}" + (f", δ = {claim.delta:g}" if claim.delta else "")
    found = f"ε = {finding.epsilon:.3f}" + (f", δ = {finding.delta:.4f}" if claim.delta else "")
    drawn = f"{finding.samples:,}" if finding.samples else "exact"
    return verdict, row.title, claimed, found, drawn, f"{finding.seconds:.1f}", finding.pair


def _page(rows: list[Row], fixed: int, again: int) -> str:
    """The results as a page of Markdown, with the JSON below."""
    lines = [
        f"# Audit of {datetime.date.today().isoformat()}",
        "",
        f"evenhand {version('evenhand')}, OpenDP {version('opendp')}, DuckDB {version('duckdb')}, Python {platform.python_version()}; "
        f"{fixed:,} outputs per table where only noise is redrawn, {again:,} where everything runs again. Lower bounds on ε hold with 95% "
        "confidence; what they mean and how to repeat this: [How to check us](../trust/checks.md).",
        "",
        f"**{_verdict(rows).removesuffix('.')}.**",
        "",
    ]
    for heading, broken in _PARTS.items():
        lines += [f"## {heading}", "", "| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
        lines += ["| " + " | ".join(_cells(row)) + " |" for row in rows if row.broken == broken]
        lines.append("")
    data = json.dumps([row.to_dict() for row in rows], ensure_ascii=False)
    return "\n".join([*lines, f"<details><summary>As data</summary>\n\n```json\n{data}\n```\n\n</details>\n"])
